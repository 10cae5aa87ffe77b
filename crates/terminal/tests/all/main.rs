//! Tests of the screen.

mod composer;
mod emulator;
mod inline;
mod interrupts;
mod question;
mod resize_fuzz;
mod support;
mod typing;
mod work;
