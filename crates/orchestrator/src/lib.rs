//! Teams of agents: a goal becomes a plan, and its steps become work for agents with roles.
//! Assistants, and agents as tools, are here as well.
//!
//! Use it alone to let agents of your own work as a team, or to exchange messages between agents.
//!
//! A [`Team`] is an [`Agent`](archon_types::Agent). Any [`Planner`](archon_types::Planner) makes
//! its plan; each step is a run of a suitable member. [`TeamMachine`] folds the log of the run and
//! derives the next command from it alone; the driver carries the commands out.
//!
//! | question | file |
//! |---|---|
//! | what happens next? | `machine.rs`, `machine/progress.rs`, `machine/apply.rs` |
//! | what happens when a step is lost? | `machine/another_plan.rs` |
//! | which member does a step? | `machine/matching.rs`, `machine/job.rs` |
//! | which member is silent, or late? | `machine/hands.rs`, `vital.rs` |
//! | which lookup tables follow from the records? | `machine/index.rs` |
//! | which answers contradict each other, and which one counts? | `machine/conflicts.rs`, `claims.rs` |
//! | what does a member read? | `machine/brief.rs` |
//! | what does it answer? | `response.rs` |
//! | how does a member reach its team while it works? | `desk.rs`, and its model by the tools of `desk_tools.rs` |
//! | what does the team share? | `board.rs` |
//! | what may it cost? | `Budget` of `archon-run` |
//! | what is a team made of? | `team/options.rs` |
//! | what starts and drives the runs? | `team.rs`, `driver.rs`, `driver/members.rs` |
//! | who is asked for a plan? | `driver/planning.rs` |
//! | what does a team publish on its bus? | `driver/announce.rs`, `outbox.rs` |
//! | what is in a run's inbox? | `mailbox.rs` of `archon-run` |
//! | what can be wrong with a team? | `check.rs`, `error.rs` |
//! | how do agents exchange messages in one process? | `bus.rs` |
//!
//! An [`AgentTool`] is an agent as a tool with typed fields, which may ask a person and wait. An
//! [`AgentPool`] finds the runs of a tenant that wait: it is an index, and the logs of the runs are
//! the truth.
//!
//! | question | file |
//! |---|---|
//! | which fields does an agent need? | `fields.rs` |
//! | what is asked before it works, and what follows from the answer? | `agent_tool/form.rs` |
//! | what asks, runs the agent, and keeps its state? | `agent_tool.rs`, `agent_tool/work.rs` |
//! | which runs wait, for how long, and how many may? | `pool.rs` |
//!
//! An [`Assistant`] answers messages of many tenants. A run that waits for a person gets the
//! message first; otherwise the agent loop does, which it reaches by a trait ([`Conversations`]).
//!
//! | question | file |
//! |---|---|
//! | what happens with a message? | `assistant.rs` |
//! | what is recalled before, checked, and stored after? | [`Steps`], `assistant/steps.rs` |
//! | what time is it for a tenant? | [`Zone::named`], `assistant/steps.rs` |
//! | which question do a person's words answer? | `assistant/reader.rs` |
//!
//! # Example
//!
//! Messages between the agents of one process:
//!
//! ```
//! use std::sync::Arc;
//!
//! use archon_orchestrator::LocalBus;
//! use archon_testkit::VirtualClock;
//! use archon_types::{AgentId, Bus, BusMessage, MessageType, Timestamp};
//! use futures_util::StreamExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), archon_types::BusError> {
//! let bus = LocalBus::new(Arc::new(VirtualClock::new()));
//! let mut to_bob = bus.subscribe(&AgentId::new("bob"), &[]).await?;
//! let content = serde_json::json!({ "done": 3 }).as_object().cloned().unwrap_or_default();
//! bus.publish(BusMessage::new("ann", "bob", MessageType::StatusUpdate, content, Timestamp::default())).await?;
//!
//! let message = to_bob.next().await.expect("a message");
//! assert_eq!(message.content["done"], 3);
//! # Ok(())
//! # }
//! ```

mod agent_tool;
mod assistant;
mod board;
mod bus;
mod check;
mod claims;
mod desk;
mod desk_tools;
mod driver;
mod error;
mod fields;
mod machine;
mod outbox;
mod pool;
mod response;
mod roles;
mod team;
mod vital;

pub use agent_tool::{AgentTool, exposed, fields_of};
pub use archon_run::Next;
pub use assistant::{
    AnswerReader, Assistant, AssistantError, AssistantReply, Background, Conversations, Incoming,
    LongTermSteps, ModelReader, NextTurn, PlainSteps, RateLimited, Source, Steps, Swept, UnknownZone,
    Verdict, WordReader, Zone,
};
pub use board::{Board, Stale};
pub use bus::{BusAudit, BusOptions, Delivery, Fate, LocalBus, MemoryAudit, Receiver};
pub use check::{TeamProblem, check_team, needs_team, roles_of};
pub use claims::contradict;
pub use desk::{Desk, Seat, SeatError};
pub use error::TeamError;
pub use fields::{FieldKind, InputField, Validator};
pub use machine::{
    Hand, HandState, Job, JobState, MACHINE_VERSION, Match, MemberState, Purpose, TeamMachine, TeamTask,
};
pub use pool::{AgentPool, MemoryIndex, Noted, PoolOptions};
pub use response::{Response, ResponseStatus};
pub use roles::sample_roles;
pub use team::{Team, TeamOptions, fold};
