//! What teams and the bus inside a process promise.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod agents;
mod assistant;
mod bus;
mod concluding;
mod desk;
mod forms;
mod growth;
mod messages;
mod mini_loop;
mod office;
mod pool;
mod questions;
mod random;
mod replans;
mod scenarios;
mod support;
mod teams;
mod waiting;
