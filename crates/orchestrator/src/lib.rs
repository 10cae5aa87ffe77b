//! Teams of agents: a planner makes a plan for a goal, and members with roles do the steps of the plan.
//!
//! Use this crate alone to let agents of your own work as a team. A team publishes on any
//! [`Bus`](archon_types::Bus), such as the one of `archon-bus`.
//!
//! A [`Team`] is an [`Agent`](archon_types::Agent). Any [`Planner`](archon_types::Planner) makes the
//! plan; each step is a run of a suitable member. [`TeamMachine`] folds the log of the run and derives
//! the next command from the log alone; the driver carries the commands out.
//!
//! # Example
//!
//! One step, done by the member with its role:
//!
//! ```
//! use std::sync::Arc;
//!
//! use archon_orchestrator::{Team, TeamOptions};
//! use archon_testkit::{FnAgent, MortalJournal, SeededIds, VirtualClock, drive};
//! use archon_types::{
//!     Context, Member, PlanError, Planner, PlanningContext, RunId, SessionId, SubTask, SubTaskRules, Task,
//! };
//!
//! struct OneStep;
//!
//! impl Planner for OneStep {
//!     async fn create_plan(&self, goal: &str, _: &PlanningContext) -> Result<Task, PlanError> {
//!         let mut rules = SubTaskRules::default();
//!         rules.role = Some("researcher".into());
//!         let step = SubTask::new("find", "Find the year.");
//!         Ok(Task::new("task_1", goal).with_subtasks(vec![step.with_rules(rules)]))
//!     }
//! }
//!
//! # fn main() -> Result<(), archon_orchestrator::TeamError> {
//! let team = Team::new(OneStep, Arc::new(MortalJournal::default()), TeamOptions::default())
//!     .with_member(Member::new("ann", "researcher"), FnAgent::saying("1969"));
//!
//! let clock = VirtualClock::new();
//! let (time, ids) = (Arc::new(clock.clone()), Arc::new(SeededIds::new(1)));
//! let context = Context::new(RunId::new("run_1"), SessionId::new("s"), time, ids);
//! let outcome = drive(&clock, team.start("When was the first moon landing?", &context))?;
//! assert_eq!(outcome.last_text(), Some("[find] 1969"));
//! # Ok(())
//! # }
//! ```

// | question | file |
// |---|---|
// | what happens next? | `machine.rs`, `machine/progress.rs`, `machine/apply.rs` |
// | what happens when a step is lost? | `machine/another_plan.rs` |
// | which member does a step? | `machine/matching.rs`, `machine/job.rs` |
// | which member is silent, or late? | `machine/assignments.rs`, `heartbeat.rs` |
// | which answers contradict each other, and which one counts? | `machine/conflicts.rs`, `claims.rs` |
// | what does a member read, and what does it answer? | `machine/brief.rs`, `response.rs` |
// | how does a member reach its team while it works? | `desk.rs`, `desk_tools.rs`, `board.rs` |
// | what is a team made of, and what can be wrong with it? | `parts.rs`, `check.rs`, `error.rs` |
// | what starts and drives the runs? | `team.rs`, `driver.rs`, `driver/members.rs`, `driver/planning.rs` |
// | what does a team publish on its bus? | `machine/bus_content.rs`, `driver/announce.rs`, `outbox.rs` |

mod board;
mod check;
mod claims;
mod desk;
mod desk_tools;
mod driver;
mod error;
mod heartbeat;
mod machine;
mod outbox;
mod parts;
mod response;
mod roles;
mod team;

pub use archon_run::{Machine, Next};
pub use board::{Board, Stale};
pub use check::{TeamProblem, check_team, needs_team, roles_of};
pub use claims::contradict;
pub use desk::{TeamDesk, TeamHandle, TeamHandleError};
pub use error::TeamError;
pub use machine::{
    Assignment, AssignmentState, Job, JobState, MACHINE_VERSION, Match, MemberState, Purpose, TeamMachine,
    TeamTask,
};
pub use parts::TeamOptions;
pub use response::{Response, ResponseStatus};
pub use roles::sample_roles;
pub use team::{Team, fold};
