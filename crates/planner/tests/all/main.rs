//! Tests of the planner through its public API.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test may")]

mod another_plan;
mod another_try;
mod called;
mod corpus;
mod dags;
mod expenses;
mod faults;
mod fixed;
mod loops;
mod machine;
mod plan_checks;
mod planners;
mod processes;
mod reach;
mod reviews;
mod small_models;
mod structured_output;
mod support;
mod templates;
