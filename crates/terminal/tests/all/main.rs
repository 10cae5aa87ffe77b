//! Tests of the screen.

mod emulator;
mod inline;
mod resize_fuzz;
mod support;
