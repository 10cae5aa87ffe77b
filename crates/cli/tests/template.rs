//! The project of `archon new`, compiled and tested as a part of this crate. `cargo xtask new` builds it as its user does.

#![allow(clippy::print_stdout, dead_code, reason = "a program prints, and only its tests run here")]

#[path = "../template/src/main.rs"]
mod project;
