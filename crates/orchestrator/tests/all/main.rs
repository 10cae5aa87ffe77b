//! What teams and the bus inside a process promise.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod bus;
mod desk;
mod random;
mod scenarios;
mod support;
mod teams;
