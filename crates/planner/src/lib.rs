//! Plans: a goal becomes a checked graph of subtasks, which is followed at the speed of its longest path and
//! repaired while it runs.
//!
//! A plan is a value: a [`Task`](archon_types::Task) whose subtasks name what they depend on. [`check`] says
//! everything that is wrong with one before anything of it runs.
//!
//! | question | file |
//! |---|---|
//! | how is a plan read from text? | `read.rs` |
//! | what can be wrong with it, and what helps? | `check.rs`, `problem.rs`, `arguments.rs` |
//! | who waits for whom? | `graph.rs` |
//! | how does a result reach those that need it? | `references.rs`, `condition.rs` |

mod arguments;
mod check;
mod condition;
mod graph;
mod problem;
mod read;
mod references;

pub use check::{CheckOptions, PlanBudget, PlanSize, check, check_running};
pub use condition::Condition;
pub use graph::{PlanGraph, invariants, plan_of};
pub use problem::{PlanProblem, ProblemKind, with_remedy};
pub use read::{ReadPlan, Reading, plan_of_json, read_plan};
pub use references::{PathStep, Reference, Unresolved, references, resolve, resolve_text, value_of_result};
