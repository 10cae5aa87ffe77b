//! Tests of skills: the lenient load, the strict validation, trust, activation, and the tool.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod activation;
mod agents;
mod folders;
mod load;
mod places;
mod reference;
mod tool;
mod validation;
