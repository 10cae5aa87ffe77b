//! Teams: a goal becomes work for agents with roles, which is handed out, watched, taken back, compared and put
//! together.
//!
//! A [`Team`] is an [`Agent`](archon_types::Agent). Any [`Planner`](archon_types::Planner) makes its plan; each step
//! is a run of whichever member fits it. What happens next follows from the log of the run alone: [`TeamMachine`] is
//! a fold over it, and the driver does what it says.
//!
//! | question | file |
//! |---|---|
//! | what happens next? | `machine.rs`, `machine/progress.rs`, `machine/apply.rs` |
//! | and when a step is lost? | `machine/another_plan.rs` |
//! | who does what? | `machine/matching.rs`, `machine/job.rs` |
//! | who is silent, or late? | `machine/hands.rs`, `vital.rs` |
//! | what is looked up after each record? | `machine/index.rs` |
//! | who contradicts whom, and who is right? | `machine/conflicts.rs`, `claims.rs` |
//! | what is a member told? | `machine/brief.rs` |
//! | what does it answer? | `response.rs` |
//! | how does it speak to its team? | `desk.rs`, and its model by the tools of `desk_tools.rs` |
//! | what do all of them know? | `board.rs` |
//! | what may it cost? | `Budget` of `archon-types` |
//! | who runs whom? | `team.rs`, `driver.rs` |
//! | what did others leave for a run? | `driver.rs`, `received.rs` |
//! | what can be wrong with a team? | `check.rs`, `error.rs` |
//! | how do agents talk in one process? | `bus.rs` |
//!
//! An [`AgentTool`] is an agent as a tool with typed fields, which may ask a person and wait. An [`AgentPool`] finds the
//! runs of a tenant that wait: it is an index, and the logs of the runs are the truth.
//!
//! | question | file |
//! |---|---|
//! | what does an agent need to know? | `fields.rs` |
//! | what is asked before it works, and what follows from the answer? | `agent_tool/form.rs` |
//! | who does that, and keeps it? | `agent_tool.rs`, `agent_tool/work.rs` |
//! | who waits, for how long, and who may? | `pool.rs` |
//!
//! An [`Assistant`] answers messages of many tenants: whoever waits for a person gets the message first, and then the
//! loop does, which it reaches by a trait ([`Conversations`]).
//!
//! | question | file |
//! |---|---|
//! | what happens with a message? | `assistant.rs` |
//! | what is known before, who is let in, what is kept after? | `assistant/steps.rs` |
//! | what do a person's words answer? | `assistant/reader.rs` |

mod agent_tool;
mod assistant;
mod begun;
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
    Hand, HandState, Job, JobState, MACHINE_VERSION, Match, MemberState, Purpose, TeamCommand, TeamMachine,
};
pub use pool::{AgentPool, MemoryIndex, Noted, PoolOptions};
pub use response::{Response, ResponseStatus};
pub use roles::sample_roles;
pub use team::{Team, TeamOptions, fold};
