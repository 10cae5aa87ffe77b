//! The log of a run: its records, the journal that keeps it, and lists of runs.
//!
//! Imports only `plans` and the folders below it.

mod event;
mod hook_point;
mod inbox;
mod journal;
mod journal_error;
mod origin;
mod outcome;
mod parallel;
mod pending;
mod pool;
mod record;
mod record_media;
mod record_name;
mod redaction;
mod run_filter;
mod run_head;
mod run_started;
mod run_status;
#[cfg(feature = "schema")]
mod schema;
mod session_snapshot;
mod workspace_snapshot;

pub use event::{Delta, DeltaKind, Event, NullSink, Sink};
pub use hook_point::HookPoint;
pub use inbox::{Inbox, InboxEntry, InboxRequest, received_messages};
pub use journal::{Durability, Journal, OpenMode, OpenRun, RunWriter, Salvaged};
pub use journal_error::JournalError;
pub use origin::{ContinuationKind, Origin, TRIGGER_KEYS, TRIGGER_MESSAGE, TurnTrigger};
pub use outcome::{Outcome, OutcomeStatus};
pub use parallel::{ParallelBranch, ParallelChoice};
pub use pending::{PendingApproval, open_questions, pending_approvals, questions_below};
pub use pool::{AgentStatus, PoolFilter, PoolIndex};
pub use record::{AuxiliaryCall, ModelFailure, PromptSource, Record, RecordBody};
pub use run_filter::RunFilter;
pub use run_head::{RunHead, RunPlace};
pub use run_started::{LOG_FORMAT, RunStarted};
pub use run_status::{AgentState, ReactState, RunStatus};
#[cfg(feature = "schema")]
pub use schema::event_log_schema;
pub use session_snapshot::{SessionSnapshot, SnapshotMessage, SnapshotResult, SnapshotSpending};
pub use workspace_snapshot::{SnapshotPlace, WorkspaceSnapshot};

pub(crate) use journal::read_if_exists;
pub(crate) use pending::inbox_of;
