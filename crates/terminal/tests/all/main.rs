//! Tests of the screen.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cells;
mod composer;
mod conversation;
mod emulator;
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
mod work;
