//! Tests with a server that is a program, and misbehaves.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod calls;
mod faults;
mod held;
#[cfg(feature = "http")]
mod http;
mod pins;
mod questions;
mod resources;
mod sandbox;
#[cfg(feature = "sign-in")]
mod sign_in;
mod supervisor;
mod support;
#[cfg(feature = "sign-in")]
mod two_servers;
#[cfg(feature = "http")]
#[cfg_attr(
    not(feature = "sign-in"),
    allow(dead_code, reason = "only a sign-in needs the authorization server")
)]
#[path = "../shared/web_servers.rs"]
mod web_servers;
