//! Views of the logs of runs: computed from records and events, and not stored.
//!
//! Use this crate to show, measure or export runs. An agent or a tool needs only `archon-agents-types`.
//!
//! | term | types | meaning |
//! |---|---|---|
//! | event | [`AgentEvent`], [`StreamEvent`] | a run, its turns, messages and calls as they happen; projections of records and deltas |
//! | cycle | [`Cycle`], [`ToolCallRecord`] | a turn as a structured entry |
//! | round | [`ConversationRound`] | a question with its thoughts, calls and answer |
//! | metrics | [`ConversationMetrics`], [`GlobalStats`] | tool calls and durations of a conversation, with a text report |
//! | report | [`RunReport`] | the outcome of a run, the durations of its calls and its working time |
//! | state of a call | [`ToolExecutionState`], [`ToolExecutions`] | the progress of each call |
//! | source of a text | [`TextSources`], [`TextSource`], [`SourceLogs`] | the record that the words of a call's argument come from |
//! | timeline | [`Timeline`], [`Span`] | calls, waits, retries, steps and child runs in lanes |
//! | graph | [`RunGraph`] | the plan of a run or a team as a drawing, with the critical path |
//! | performance | [`Performance`] | calls, failures and durations of tools, and alerts, of several runs |
//! | error | [`ErrorContext`] | the errors of a run with their severity |
//! | audit trail | [`AuditTrail`], [`AuditEntry`] | who did what in a run, on what, and with which outcome |
//! | explanation | [`Explanation`] | the answer of a run with the tool results that share words with it |
//! | session | [`Session`], [`SessionRecorder`], [`SessionStore`] | the runs of a conversation as a tree, in a file that other programs can read |
//!
//! *Invariant*: this crate starts no task, opens no file and changes no log.
//!
//! # Example
//!
//! The cycles of a log:
//!
//! ```
//! use std::sync::Arc;
//!
//! use archon_types::Record;
//! use archon_views::Cycle;
//!
//! fn calls(log: &[Arc<Record>]) -> usize {
//!     Cycle::of(log).iter().map(|cycle| cycle.parsed_action.len()).sum()
//! }
//!
//! assert_eq!(calls(&[]), 0);
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod agent_event;
mod audit;
mod audit_fold;
mod cycle;
mod error_context;
mod executions;
mod explanation;
mod graph;
mod layered;
mod metrics;
mod open_spans;
mod performance;
mod projection;
mod report;
mod round;
mod session;
mod session_fold;
mod session_recorder;
mod session_store;
mod source_logs;
mod span;
mod span_fold;
mod stream_event;
mod subtasks;
mod text_sources;
mod timeline;

pub use agent_event::{AgentEvent, StreamDelta};
pub use audit::{AuditAction, AuditActor, AuditEntry, AuditTrail};
pub use cycle::{Cycle, CycleAction, CycleContext, CycleObservation, CyclePerformance, ToolCallRecord};
pub use error_context::{ErrorContext, ErrorSeverity, FailureGroup};
pub use executions::{ToolExecutionState, ToolExecutions};
pub use explanation::{Evidence, Explanation};
pub use graph::{GraphEdge, GraphNode, RunGraph};
pub use metrics::{ConversationMetrics, GlobalStats, ToolAverages, ToolMetrics};
pub use performance::{Alert, Durations, Performance, PerformanceSummary, ToolPerformance};
pub use projection::AgentEvents;
pub use report::RunReport;
pub use round::{ConversationRound, RoundStatus};
pub use session::{
    ChildLoopRef, LoopConfigSnapshot, LoopEvent, LoopRecord, LoopStatus, ParallelGroupRecord, Session,
    SessionFormation, SessionState, SpawnRef, restore_messages, save_messages,
};
pub use session_recorder::{SessionFormationPolicy, SessionRecorder, SessionRecorderConfig};
pub use session_store::{SessionError, SessionStore};
pub use source_logs::SourceLogs;
pub use span::{Span, SpanKind, SpanStatus};
pub use stream_event::{StreamEvent, StreamEvents, WaitingFor};
pub use subtasks::{GraphKind, NodeStatus};
pub use text_sources::{ArgumentSource, TextSource, TextSources};
pub use timeline::Timeline;
