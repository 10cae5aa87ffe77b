//! Tests of teams.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod concluding;
mod desk;
mod growth;
mod messages;
mod questions;
mod random;
mod replans;
mod scenarios;
mod structured_output;
mod support;
mod teams;
mod waiting;
