//! Tests of the screen.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may panic and prints what it measures")]

mod cells;
mod composer;
mod conversation;
mod conversation_fuzz;
mod emulator;
mod figures;
mod full;
mod injection;
mod inline;
mod interrupts;
mod lists;
mod long_pastes;
mod question;
mod reflow;
mod resize_fuzz;
mod support;
mod typing;
mod vi;
mod work;
