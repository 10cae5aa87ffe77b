//! The audit trail of a run: who did what, on what, and with which outcome. It is computed from the log and not stored.

use archon_types::{AgentId, Effect, RunId, SessionId, Spending, TenantId, Timestamp};
use serde::Serialize;

/// The audit trail of a run. An entry has the sequence number of its record. The entries of a call and of the questions
/// about this call have the same call id.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::Record;
/// use archon_views::{AuditAction, AuditTrail};
///
/// fn cancels(log: &[Arc<Record>]) -> usize {
///     let trail = AuditTrail::of(log);
///     let entries = trail.iter().flat_map(|trail| &trail.entries);
///     entries.filter(|entry| entry.action == AuditAction::CancelRequested).count()
/// }
///
/// assert_eq!(cancels(&[]), 0);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AuditTrail {
    /// The run.
    pub run: RunId,
    /// The tenant on whose behalf the run works.
    pub tenant: TenantId,
    /// The session of the run.
    pub session: SessionId,
    /// The agent of the run.
    pub agent: AgentId,
    /// The entries, in the order of their records.
    pub entries: Vec<AuditEntry>,
}

/// An entry of an audit trail.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AuditEntry {
    /// The sequence number of the record. The record has the full messages, arguments and results.
    pub seq: u64,
    /// The time of the record.
    pub at: Timestamp,
    /// The party that acted.
    pub actor: AuditActor,
    /// The action.
    pub action: AuditAction,
    /// The object of the action, such as the name of a tool or the id of a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The outcome, or the reason. `None` if the log has none, for instance for a call that still runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The id of the call. An entry of a question has the id of the call that the question is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The effect that a second execution of the call would have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// The other run: the child run of a call, the caller of this run, or the run that this run continues or was forked
    /// from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The tokens and the money of an ended run, with those of its child runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spending>,
}

/// The party that acted. The log has no names of people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuditActor {
    /// A person, or a program in the name of a person.
    Person,
    /// Another agent: the caller that started this run, the author of a message, or a member of a team.
    Agent,
    /// The model of the run.
    Model,
    /// The planner of a plan or a team.
    Planner,
    /// The process that works on the run.
    Archon,
    /// The author of a message that came from a tool, an event or a program, or that has no known author.
    Other,
}

/// An action in an audit trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuditAction {
    /// The run was started; the target is the agent.
    Started,
    /// The run was started as a fork of another run.
    Forked,
    /// A message was added; the target is `prompt`, `steer` or `follow_up`. Or the run began with a conversation that
    /// was stored elsewhere; then the target is `restored`, and the outcome is the number of messages.
    MessageAdded,
    /// A filter refused the prompt.
    InputRejected,
    /// The instructions of the project were read.
    InstructionsRead,
    /// A hook stopped the run.
    StoppedByHook,
    /// Another model, key or level of thinking is used after a failure.
    FallbackSelected,
    /// A tool was called, or refused before it ran; the target is the tool.
    ToolCalled,
    /// A person was asked; the target is the id of the question, and the outcome the answer.
    Asked,
    /// A question was answered; the target is the id of the question.
    Answered,
    /// The mode of the session changed; the target is the mode.
    ModeChanged,
    /// A person asked for a compaction of the conversation.
    CompactionRequested,
    /// The run was asked to stop; the outcome is the reason.
    CancelRequested,
    /// Limits were raised; the outcome has them.
    LimitsRaised,
    /// A process resumed the run.
    Resumed,
    /// A limit was reached.
    LimitReached,
    /// A plan was made.
    Planned,
    /// No valid plan was made.
    PlanRejected,
    /// A new plan was requested.
    ReplanRequested,
    /// The plan was changed.
    PlanChanged,
    /// A subtask was skipped.
    StepSkipped,
    /// The plan was paused.
    PlanPaused,
    /// The plan went on after a pause.
    PlanUnpaused,
    /// A task was delegated to a member of a team; the target is the member.
    Delegated,
    /// A task was not delegated.
    DelegationFailed,
    /// A task was taken from a member.
    DelegationRevoked,
    /// A member asked for a delegation.
    DelegationRequested,
    /// A conflict between members was settled.
    ConflictResolved,
    /// The run ended; the outcome is its status.
    Ended,
}

impl AuditTrail {
    /// Returns the ids of the questions of the run.
    pub fn questions(&self) -> impl Iterator<Item = &str> {
        let asked = self.entries.iter().filter(|entry| entry.action == AuditAction::Asked);
        asked.filter_map(|entry| entry.target.as_deref())
    }
}
