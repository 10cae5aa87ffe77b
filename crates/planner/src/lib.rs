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
//! | what happens next? | `machine.rs`, `machine/nodes.rs` |
//! | and when a subtask fails? | `machine/failures.rs`, `machine/changes.rs` |
//! | what may it cost? | `Budget` of `archon-types` |
//! | who calls whom? | `planning_agent.rs`, `driver.rs`, `following.rs`, `calls.rs`, `workers.rs`, `brief.rs` |
//! | what may another plan change? | `diff.rs` |
//! | who makes plans? | `llm_planner.rs`, `plan_form.rs`, `scripted_planner.rs`, `template_planner.rs`, `template.rs` |
//! | does a plan fit its goal? | `plan_check.rs` |
//! | what does a plan look like? | `render.rs` |
//! | who puts the answer together? | `conclusion.rs` |
//! | and if it must have a form? | `machine/form.rs` |
//! | how does a result reach those that need it? | `references.rs`, `condition.rs` |

mod arguments;
mod ask;
mod brief;
mod calls;
mod check;
mod conclusion;
mod condition;
mod control;
mod diff;
mod driver;
mod error;
mod fold;
mod following;
mod goal_parts;
mod graph;
mod llm_planner;
mod machine;
mod options;
mod parts;
mod plan_check;
mod plan_form;
mod planning_agent;
mod problem;
mod processes;
mod read;
mod references;
mod render;
mod scripted_planner;
mod step_by_step;
mod template;
mod template_planner;
mod workers;

pub use brief::Briefing;
pub use check::{CheckOptions, PlanBudget, PlanSize, check, check_running};
pub use conclusion::{Conclude, Conclusion, ConclusionQuestion, LastResults, LlmConclusion, Misfit};
pub use condition::Condition;
pub use control::PlanControl;
pub use diff::{changed, check_diff, difference, show_diff};
pub use error::PlanRunError;
pub use fold::{fold, open_questions};
pub use graph::{PlanGraph, invariants, plan_of};
pub use llm_planner::{LlmPlanner, LlmPlannerOptions, Shape, Structured};
pub use machine::{MACHINE_VERSION, NodeState, PlanCommand, PlanMachine, PlanNode};
pub use options::PlanningAgentOptions;
pub use plan_check::{CheckedPlanner, LlmPlanCheck, PlanCheck};
pub use plan_form::{plan_outline, plan_schema};
pub use planning_agent::{PlanDraft, PlanningAgent};
pub use problem::{PlanProblem, ProblemKind, with_remedy};
pub use read::{ReadPlan, Reading, plan_of_json, read_plan};
pub use references::{PathStep, Reference, Unresolved, references, resolve, resolve_text, value_of_result};
pub use render::{PlanFormat, render};
pub use scripted_planner::ScriptedPlanner;
pub use template::{OnError, OnErrorWord, Parameter, TemplateProblem, TemplateStep, WorkflowTemplate};
pub use template_planner::{TemplatePlanner, TemplateRegistry};
pub use workers::{OneWorker, OnlyTool, Workers};
