//! The loop of thinking and acting.
//!
//! [`ReactMachine`] decides: it folds records and says what is to be done next, without time,
//! chance or I/O. [`Driver`] does it: asks the provider, runs the tools, and appends what happened
//! before anyone acts on it. [`ReactAgent`] holds both together behind the `Agent` trait and knows
//! how a run is started, continued and taken up again.
//!
//! | question | file |
//! |---|---|
//! | what happens next? | `machine.rs` |
//! | when does a run end? | `limits.rs`, `repetition.rs`, `machine/endings.rs` |
//! | who speaks into a run, and when is it heard? | `queues.rs`, `mailbox.rs`, `machine/prompts.rs` |
//! | what does the model see, and what when it gets too long? | `window.rs`, `text_mode.rs` |
//! | what did a model without tool calling mean? | `action_parser.rs` |
//! | when is a failed call tried again? | `retry.rs` |
//! | and when that does not help? | `fallback.rs`, `machine/failures.rs` |
//! | which tools are left alone? | `circuit_breaker.rs` |
//! | who calls whom? | `driver.rs`, `tool_batch.rs`, `summarize.rs`, `hooked.rs` |
//! | what ends a wait? | `interrupt.rs` |
//! | what happens after a crash? | `resume.rs`, `spawns.rs` |
//! | what was said before a run, and who repeats it? | `earlier_runs.rs` |
//! | how does an agent call another, and who pays? | `sub_agent.rs`, `agent/called.rs`, `delegate.rs`, `leases.rs` |
//! | how does a run leave another? | `fork.rs` |
//! | how do several run side by side, and which one is taken? | `parallel.rs`, `evaluation.rs`, `judge.rs` |
//! | what waits for a person, and what follows from the answer? | `machine/approvals.rs`, `decide.rs` |
//! | does an answer have the form that it must have? | `form.rs`, `machine/form.rs` |
//! | does a log hold together? | `replay.rs` |

mod action_parser;
mod agent;
mod calls;
mod circuit_breaker;
mod decide;
mod delegate;
mod deltas;
mod drive;
mod driver;
mod earlier_runs;
mod error;
mod evaluation;
mod fallback;
mod fork;
mod goal_check;
mod hooked;
mod interrupt;
mod judge;
mod leases;
mod limits;
mod machine;
mod mailbox;
mod opening;
mod parallel;
mod post;
mod pythonic;
mod queues;
mod redacted;
mod repetition;
mod replay;
mod resume;
mod retry;
mod run_log;
mod single_call;
mod spawns;
mod sub_agent;
mod summarize;
mod text_mode;
mod tool_batch;
mod window;

pub use action_parser::{ParseFailure, Written, WrittenCall, parse_answer};
pub use agent::{ReactAgent, ReactAgentOptions, conversation};
pub use calls::{CallStage, CallState, Consent};
pub use circuit_breaker::Breaker;
pub use driver::Driver;
pub use earlier_runs::{EarlierRuns, fold_before, fold_chain, fold_whole_chain};
pub use error::LoopError;
pub use evaluation::{Elaborate, PickFirst, TokenEfficient, Transparent};
pub use fallback::Fallback;
pub use fork::{fork, whole_turns};
pub use judge::LlmJudge;
pub use machine::{Command, GoalDue, ReactMachine};
pub use opening::Opening;
pub use parallel::{Parallel, ParallelOutcome, stands_at};
pub use post::post;
pub use replay::{Replay, replay, replay_with};
pub use resume::{Undo, fold, fold_undone, fold_with};
pub use run_log::RunLog;
pub use sub_agent::SubAgentTool;
pub use text_mode::decode_answer;
pub use window::{
    ContextManager, ContextParts, ContextUsage, History, MODEL_SUMMARY, Messages, QueueNotice, Summarize,
    SummaryDue, Tiered, ToolGate, Trim, Urgency, is_paired, round_summary, token_counter,
};
