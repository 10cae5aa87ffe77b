//! The configuration of a run: limits, retries, fallbacks, and the checks of an answer.
//!
//! Imports only `models` and the folders below it.

mod failure;
mod goal;
mod lease;
mod limits;
mod output_checker;
mod retry;
mod run_config;
mod run_kind;
mod schema_problems;
mod structured_output;

pub use failure::{
    CircuitBreaker, FailurePolicy, FallbackModel, FallbackStep, ModelTarget, OnStorageFailure,
};
pub use goal::{GoalCheck, GoalVerdict};
pub use lease::{Lease, Spending};
pub use limits::{ExecutionLimits, LimitReached, MoreLimits, OnLimit};
pub use output_checker::{OutputChecker, OutputVerdict};
pub use retry::RetryConfig;
pub use run_config::{MemoryConfig, QueueMode, RunConfig, ToolMode};
pub use run_kind::RunKind;
pub use structured_output::{OutputCheck, SchemaProblem, problems_line, problems_note, schema_failure};
