//! Folds over records and events: cycles, rounds, metrics, reports and sessions.
//!
//! Imports only `runs` and the folders below it.

mod agent_event;
mod cycle;
mod error_context;
mod executions;
mod metrics;
mod projection;
mod report;
mod round;
mod session;
mod session_fold;
mod session_recorder;
mod session_store;
mod stream_event;

pub use agent_event::{AgentEvent, StreamDelta};
pub use cycle::{Cycle, CycleAction, CycleContext, CycleObservation, CyclePerformance, ToolCallRecord};
pub use error_context::{ErrorContext, ErrorSeverity, FailureGroup};
pub use executions::{ToolExecutionState, ToolExecutions};
pub use metrics::{ConversationMetrics, GlobalStats, ToolAverages, ToolMetrics};
pub use projection::AgentEvents;
pub use report::RunReport;
pub use round::{ConversationRound, RoundStatus};
pub use session::{
    ChildLoopRef, LoopConfigSnapshot, LoopEvent, LoopRecord, LoopStatus, ParallelGroupRecord, Session,
    SessionFormation, SessionState, SpawnRef, restore_messages, save_messages,
};
pub use session_recorder::{SessionFormationPolicy, SessionRecorder, SessionRecorderConfig};
pub use session_store::{SessionError, SessionStore};
pub use stream_event::{StreamEvent, StreamEvents, WaitingFor};
