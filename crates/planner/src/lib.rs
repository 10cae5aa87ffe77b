//! Plans: a planner makes a checked graph of subtasks for a goal. Independent subtasks run concurrently,
//! and the plan is changed when subtasks fail.
//!
//! Use this crate alone to check and order plans that your own code or another framework runs.
//!
//! A plan is a value: a [`Task`](archon_types::Task) whose subtasks name their dependencies. [`check`]
//! returns all problems of a plan before any subtask runs.
//!
//! # Example
//!
//! A step that depends on a missing step:
//!
//! ```
//! use archon_planner::{CheckOptions, check};
//! use archon_types::{SubTask, Task};
//!
//! let plan = Task::new("trip", "Three days in Paris").with_subtasks(vec![
//!     SubTask::new("weather", "Find the forecast"),
//!     SubTask::new("days", "Plan each day").after(["weather", "hotel"]),
//! ]);
//! let problems = check(&plan, &CheckOptions::default());
//! assert!(problems.iter().any(|problem| problem.to_string().contains("hotel")));
//! ```

// | topic | file |
// |---|---|
// | parsing a plan from text | `read.rs` |
// | problems of a plan, and their remedies | `check.rs`, `problem.rs`, `arguments.rs` |
// | the graph of dependencies | `graph.rs` |
// | the next step of a run | `machine.rs`, `machine/nodes.rs` |
// | failures and replans | `machine/failures.rs`, `machine/changes.rs` |
// | driving a run | `planning_agent.rs`, `driver.rs`, `following.rs` |
// | plans and their checks during a run | `driver/plans.rs` |
// | questions to people and their answers | `driver/questions.rs` |
// | executing subtasks with agents and tools | `calls.rs`, `workers.rs`, `brief.rs` |
// | diffs between plans | `diff.rs`, `diff_check.rs` |
// | planners | `llm_planner.rs`, `plan_output.rs`, `step_by_step.rs`, `scripted_planner.rs` |
// | templates | `template_planner.rs`, `template.rs` |
// | the check of a plan against its goal | `plan_check.rs` |
// | rendering a plan | `render.rs` |
// | the conclusion | `conclusion.rs`, `driver/answer.rs` |
// | structured output | `machine/structured_output.rs` |
// | results as arguments and in conditions | `references.rs`, `condition.rs` |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod arguments;
mod ask;
mod brief;
mod calls;
mod check;
mod conclusion;
mod condition;
mod control;
mod diff;
mod diff_check;
mod driver;
mod error;
mod following;
mod goal_parts;
mod graph;
mod llm_planner;
mod machine;
mod options;
mod parts;
mod plan_check;
mod plan_output;
mod planning_agent;
mod problem;
mod read;
mod references;
mod render;
mod scripted_planner;
mod step_by_step;
mod template;
mod template_planner;
mod texts;
mod workers;

pub use archon_run::Next;
pub use archon_types::open_questions;
pub use brief::Briefing;
pub use check::{CheckOptions, PlanBudget, PlanSize, check, check_running};
pub use conclusion::{Conclude, Conclusion, ConclusionQuestion, InvalidOutput, LastResults, LlmConclusion};
pub use condition::Condition;
pub use control::PlanControl;
pub use diff::{changed, show_diff};
pub use diff_check::{check_diff, difference};
pub use error::PlanRunError;
pub use graph::{PlanGraph, invariants, plan_of};
pub use llm_planner::{LlmPlanner, LlmPlannerOptions, Shape, Structured};
pub use machine::{MACHINE_VERSION, NodeState, PlanMachine, PlanNode, PlanTask, fold};
pub use options::PlanningAgentOptions;
pub use plan_check::{CheckedPlanner, LlmPlanCheck, PlanCheck};
pub use plan_output::{plan_outline, plan_schema};
pub use planning_agent::{PlanDraft, PlanningAgent};
pub use problem::{PlanProblem, ProblemKind, with_remedy};
pub use read::{ReadPlan, Reading, plan_of_json, read_plan};
pub use references::{PathStep, Reference, Unresolved, references, resolve, resolve_text, value_of_result};
pub use render::{PlanFormat, render};
pub use scripted_planner::ScriptedPlanner;
pub use template::{OnError, OnErrorWord, Parameter, TemplateProblem, TemplateStep, WorkflowTemplate};
pub use template_planner::{TemplatePlanner, TemplateRegistry};
pub use workers::{OneWorker, OnlyTool, Workers};
