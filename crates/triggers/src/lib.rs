//! Tasks that start runs when nobody is there: at the times of a schedule, for an event, or when a condition becomes true.
//!
//! Use this crate with any [`RunService`](archon_types::RunService): the facade `archon-agents` has one over its agents.
//!
//! A [`TriggerTask`] says what starts a run ([`Trigger`]), and which work it is ([`TriggerAction`]). A [`TriggerEngine`] starts the
//! runs. A time or an event for which a task starts a run is an [`Occurrence`].
//!
//! *Invariants*
//!
//! - Each occurrence starts at most one run, also after a crash: the idempotency key of the run follows from the task and the
//!   occurrence, and the journal decides. The state of a task only saves work.
//! - One run of a task works at a time.
//! - The data of an event is an attached file of the run's message, which is untrusted: no text in it raises a permission.
//!
//! # Example
//!
//! ```
//! use archon_triggers::{MissedRuns, Schedule, TriggerTask};
//! use archon_types::Timestamp;
//!
//! # fn main() -> Result<(), archon_triggers::ScheduleError> {
//! let schedule = Schedule::cron("0 8 * * MON-FRI", "Europe/Berlin")?;
//! let friday = "2026-03-27T12:00:00Z".parse().expect("a time");
//! // Between Friday and Monday the clocks of Berlin change, and 8:00 there is an hour earlier in UTC.
//! assert_eq!(schedule.next_after(friday).map(|at: Timestamp| at.to_string()).as_deref(), Some("2026-03-30T06:00:00.000Z"));
//!
//! let task = TriggerTask::new("mail", schedule, "Summarize unread emails").missed(MissedRuns::Skip);
//! let text = serde_json::to_string(&task).expect("a task as JSON");
//! assert!(text.contains(r#""cron":"0 8 * * MON-FRI","zone":"Europe/Berlin""#));
//! # Ok(())
//! # }
//! ```

// | concept | file |
// |---|---|
// | times of a schedule, and when clocks change | `schedule.rs`, `schedule/cron.rs` |
// | events, patterns and filters; callbacks for events | `event.rs`, `event_bus.rs` |
// | conditions, probes, and expressions with their limits | `condition.rs`, `probe.rs`, `expression.rs`, `expression/cost.rs` |
// | the definition and the state of a task | `task.rs` |
// | occurrences, and the requests of their runs | `occurrence.rs`, `request.rs` |
// | runs of code without a model | `code_model.rs` |
// | which task is due, and its next step | `engine/agenda.rs` |
// | starting and following | `engine.rs`, `engine/work.rs` |
// | notifications to the channels of a task | `engine/notices.rs` |
// | the questions of runs that wait, and those that expired | `engine/looks.rs`, `engine/expiry.rs` |
// | events, and starts by a person, from any process | `engine/requests.rs` |
// | problems of sources and channels | `engine/problems.rs` |
// | the tasks of one tenant, for servers and commands | `engine/service.rs` |

mod code_model;
mod condition;
mod engine;
mod error;
mod event;
mod event_bus;
mod expression;
mod occurrence;
mod probe;
mod request;
mod schedule;
mod task;

pub use archon_types::{TRIGGER_MESSAGE, TaskProblem, TaskStatus};
pub use code_model::{CODE_AGENT, CodeModel};
pub use condition::TriggerCondition;
pub use engine::{ListedTask, TenantTasks, TriggerEngine, TriggerParts};
pub use error::TriggerError;
pub use event::{EventFilter, EventPattern, TriggerEvent};
pub use event_bus::EventBus;
pub use expression::{Expression, ExpressionError};
pub use occurrence::Occurrence;
pub use probe::Probe;
pub use schedule::{Cron, Schedule, ScheduleError};
pub use task::{ConditionState, MissedRuns, TaskLimits, TaskState, Trigger, TriggerAction, TriggerTask};
