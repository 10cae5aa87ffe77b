//! Tests with a server that is a program, and misbehaves.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod calls;
mod faults;
#[cfg(feature = "http")]
mod http;
mod pins;
mod resources;
mod supervisor;
mod support;
