//! The ReAct loop: a run in which a model and its tools take turns until the task has an answer.
//!
//! Use this crate without the facade to choose each part of an agent yourself: provider, journal, tools,
//! clock and ids.
//!
//! [`ReactMachine`] is the pure part: it folds records and derives the next step, without time,
//! randomness or I/O. [`Driver`] executes the steps: it asks the provider, runs the tools, and records
//! each result before it acts on the result. [`ReactAgent`] joins both behind the `Agent` trait; it
//! starts, continues and resumes runs.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use archon_react_loop::{ReactAgent, ReactAgentOptions};
//! use archon_testkit::{FnProvider, MortalJournal, SeededIds, VirtualClock};
//! use archon_types::{Agent, Context, Outcome};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! // For tests. `archon-providers` has models, `archon-store` has journals.
//! let model = FnProvider::new(|_, _| FnProvider::text("Hello, Anna."));
//! let agent = ReactAgent::new(Arc::new(model), Arc::new(MortalJournal::default()), ReactAgentOptions::new("m"));
//!
//! let clock = Arc::new(VirtualClock::new());
//! let context = Context::new("run_1".into(), "session_1".into(), clock, Arc::new(SeededIds::new(1)));
//! let outcome: Outcome = agent.run("Hello", &context).await;
//! assert_eq!(outcome.last_text(), Some("Hello, Anna."));
//! # }
//! ```

// | concept | file |
// |---|---|
// | the next step of a run, from its records | `machine.rs` and `machine/` |
// | executing the steps: the model and the tools | `driver.rs`, `drive.rs`, `tool_batch.rs` |
// | an agent: start, continue and resume its runs | `agent.rs` and `agent/`, `resume.rs` |
// | a fork, another text for an earlier message, a replay | `fork.rs`, `going_back.rs`, `replay.rs` |
// | the input of a run, and messages while it works | `opening.rs`, `post.rs`, `queues.rs` |
// | limits, and runs without progress | `limits.rs`, `machine/endings.rs`, `repetition.rs` |
// | failures of the model | `retry.rs`, `fallback.rs`, `machine/failures.rs` |
// | failures of tools | `machine/tool_retry.rs`, `circuit_breaker.rs` |
// | one tool call, from its request to its result | `calls.rs` |
// | approvals | `machine/approvals.rs`, `decide.rs` |
// | the context window, and its compaction | `window.rs` and `window/`, `summarize.rs`, `context_report.rs` |
// | the conversation before a run | `earlier_runs.rs` |
// | child runs | `sub_agent.rs`, `delegate.rs`, `agent/called.rs` |
// | parallel loops | `parallel.rs` and `parallel/`, `evaluation.rs`, `judge.rs` |
// | checks of an answer | `goal_check.rs`, `machine/goal.rs`, `machine/structured_output.rs` |
// | text mode | `text_mode.rs`, `action_parser.rs`, `pythonic.rs`, `written_call.rs` |
// | deltas of an answer | `deltas.rs`, `redacted.rs` |
// | hooks, and snapshots of a workspace | `hooked.rs`, `snapshots.rs` |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod action_parser;
mod agent;
mod calls;
mod circuit_breaker;
mod context_report;
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
mod going_back;
mod hooked;
mod judge;
mod limits;
mod machine;
mod opening;
mod panic_text;
mod parallel;
mod post;
mod pythonic;
mod queues;
mod redacted;
mod repetition;
mod replay;
mod resume;
mod retry;
mod single_call;
mod snapshots;
mod sub_agent;
mod summarize;
mod text_mode;
mod tool_batch;
mod window;
mod written_call;

pub use action_parser::{ParseFailure, Written, parse_answer};
pub use agent::{ReactAgent, ReactAgentOptions};
pub use archon_run::{Machine, Next, RunLog};
pub use calls::{CallStage, CallState, Consent};
pub use circuit_breaker::Breaker;
pub use context_report::{ContextReport, context_report};
pub use driver::Driver;
pub use earlier_runs::{EarlierRuns, conversation, fold_before, fold_chain, fold_whole_chain, session_mode};
pub use error::LoopError;
pub use evaluation::{Elaborate, PickFirst, TokenEfficient, Transparent};
pub use fallback::Fallback;
pub use fork::whole_turns;
pub use going_back::{PlacedMessage, messages_of_people, point_before};
pub use judge::LlmJudge;
pub use machine::{GoalDue, ReactMachine, ReactTask};
pub use opening::Opening;
pub use parallel::{ParallelLoop, ParallelOutcome, continuation_point};
pub use post::post;
pub use replay::{Replay, replay, replay_with};
pub use resume::{fold, fold_with};
pub use sub_agent::SubAgentTool;
pub use text_mode::decode_answer;
pub use window::{
    ContextManager, ContextParts, ContextUsage, History, MODEL_SUMMARY, Messages, QueueNotice, Summarize,
    SummaryDue, Tiered, ToolGate, Trim, Urgency, is_paired, prompts_and_answer, round_summary, token_counter,
};
pub use written_call::WrittenCall;
