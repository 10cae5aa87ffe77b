//! The configuration of a run: limits, retries, fallbacks, and the checks of an answer.
//!
//! Imports only `models` and the folders below it.

mod failure;
mod form;
mod goal;
mod held_form;
mod lease;
mod limits;
mod misfits;
mod retry;
mod run_config;
mod run_kind;

pub use failure::{CircuitBreaker, FailurePolicy, FailureStep, FallbackModel, ModelTarget, OnStorageFailure};
pub use form::{FormCheck, FormProblem, misfit_failure, misfit_line, misfit_note};
pub use goal::{GoalCheck, GoalVerdict};
pub use held_form::{FormVerdict, HeldForm};
pub use lease::{Lease, Spending};
pub use limits::{ExecutionLimits, LimitReached, MoreLimits, OnLimit};
pub use retry::RetryConfig;
pub use run_config::{MemoryConfig, QueueMode, RunConfig, ToolMode};
pub use run_kind::RunKind;
