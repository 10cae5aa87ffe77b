//! Records: the entries of a run's log. The log is a run's only state; everything else is computed from it.
//!
//! A record is an **input** (it carries data from outside: a prompt, an answer, a result, the clock) or
//! **derived** (it follows from the inputs before it and is written so that readers need not compute it).
//! [`RecordBody::is_input`] tells them apart.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    config::{FallbackStep, GoalVerdict, Lease, LimitReached, MoreLimits, SchemaProblem, Spending},
    messages::{AgentMessage, AssistantMessage, Compaction, ContextLevel, Message, Summary, ToolResult},
    models::{ApiErrorKind, ModelErrorCode},
    plans::{PlanRecord, TeamRecord},
    tools::{Answer, ApprovalRequest, Effect, ModeSource, ProcessGroup, SessionMode},
    values::{CallId, CommandId, RunId, Timestamp},
};

use super::{
    hook_point::HookPoint,
    outcome::Outcome,
    parallel::{ParallelBranch, ParallelChoice},
    run_started::RunStarted,
    session_snapshot::SessionSnapshot,
    workspace_snapshot::WorkspaceSnapshot,
};

/// One entry of a run's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// The sequence number in the log, from 0, without gaps.
    pub seq: u64,
    /// The time in milliseconds since the Unix epoch.
    pub at: Timestamp,
    /// The content of the record.
    #[serde(flatten)]
    pub body: RecordBody,
}

/// The content of a record. A derived record can be computed from the records before it; see
/// [`is_input`](Self::is_input). Many records name a command. A command is one step that the run's machine
/// (the state that is folded from the log) asks the driver to do, for instance to send a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "a prompt is the largest, and records are kept behind pointers")]
#[non_exhaustive]
pub enum RecordBody {
    /// The first record of every run.
    RunStarted(Box<RunStarted>),
    /// A message to the agent. The model reads it in its next request.
    MessageAdded {
        /// The message.
        message: AgentMessage,
        /// The source of the message.
        source: PromptSource,
    },
    /// The next record came through the run's inbox. A record of this type at the end of a log does not
    /// count, because its message is missing.
    InboxMessageReceived {
        /// The [`id`](crate::InboxEntry::id) of the inbox message.
        message_id: String,
    },
    /// The run begins with this conversation, which was stored outside of the log. Tool calls without a
    /// result, and results without a call, are ignored.
    ConversationRestored {
        /// The messages, oldest first.
        messages: Vec<Message>,
    },
    /// The state of the session before this run, so that the logs of the earlier runs need not be read.
    /// Derived: the state is the fold of those logs. The record changes nothing in this run.
    SessionSnapshot(Box<SessionSnapshot>),
    /// An [`InputFilter`](crate::InputFilter) refused the prompt; the model never sees it.
    InputRejected {
        /// The reason.
        reason: String,
    },
    /// A hook stopped the run.
    StoppedByHook {
        /// The hook.
        hook: HookPoint,
    },
    /// The storage failed when the run began, and the run goes on without a log. Only watchers see this
    /// record; no log contains it.
    LogUnavailable {
        /// The error text of the storage.
        reason: String,
    },
    /// A request is about to be sent to the model. Derived.
    ModelCallStarted {
        /// The command that the request belongs to.
        command: CommandId,
        /// The number of the attempt, from 0; grows with each retry of the same request.
        attempt: u32,
        /// The number of the turn, from 0.
        turn: u32,
        /// The [`content_hash`](crate::Request::content_hash) of the request.
        request_hash: String,
    },
    /// The model answered. This record requests the tool calls in the answer.
    ModelCallFinished {
        /// The command of the request.
        command: CommandId,
        /// The number of the attempt, from 0.
        attempt: u32,
        /// The whole answer.
        message: Box<AssistantMessage>,
    },
    /// The model call failed. The deltas of this attempt do not count.
    ModelCallFailed {
        /// The command of the request.
        command: CommandId,
        /// The number of the attempt, from 0.
        attempt: u32,
        /// The failure.
        failure: ModelFailure,
    },
    /// After a failure that a retry does not fix, the run uses a fallback from here on. Derived.
    FallbackSelected {
        /// The command whose request is sent again.
        command: CommandId,
        /// The attempt that failed.
        attempt: u32,
        /// The fallback.
        fallback: FallbackStep,
        /// The [`code`](ModelFailure::code) of the failure that led to the fallback.
        code: ModelErrorCode,
        /// The text of the failure.
        reason: String,
    },
    /// A model call was under way when the process died, so the answer of the model is lost.
    ModelCallLost {
        /// The command whose request is sent again.
        command: CommandId,
        /// The attempt that was lost.
        attempt: u32,
    },
    /// A guard refused a call, or the call was skipped.
    ToolCallRefused {
        /// The call.
        call: CallId,
        /// The result that the model reads.
        result: Arc<ToolResult>,
    },
    /// A lease was granted: a call is about to start a child run, and this part of the remaining budget is
    /// reserved for the child run. Derived.
    LeaseGranted {
        /// The call.
        call: CallId,
        /// The child run.
        child_run: RunId,
        /// The part of the budget that the child run may use.
        lease: Lease,
    },
    /// A child run used the tokens and the money in `spent`, and the rest of its lease is returned to the
    /// budget of this run. If the child run goes on after a crash, a second such record for the same call
    /// replaces the first.
    LeaseSettled {
        /// The call.
        call: CallId,
        /// The child run.
        child_run: RunId,
        /// The tokens and the money that the child run used.
        spent: Spending,
    },
    /// An auxiliary request is about to be sent to a model. Derived, except for
    /// [`AuxiliaryCall::BranchChoice`].
    AuxiliaryCallStarted {
        /// The purpose of the request.
        purpose: AuxiliaryCall,
        /// The maximum cost of the request, in millionths of a currency unit. This amount is reserved until
        /// the answer comes, and counts as spent if the process dies before. 0 if tokens have no price.
        reserved_cost_micros: u64,
    },
    /// A person is asked about a call.
    ApprovalRequested {
        /// The call.
        call: CallId,
        /// The question.
        request: Box<ApprovalRequest>,
    },
    /// A person answered a question.
    ApprovalAnswered {
        /// The call.
        call: CallId,
        /// The answer.
        answer: Answer,
    },
    /// The mode of the session changed. Derived if a person agreed to the plan of the model.
    ModeChanged {
        /// The mode from here on.
        mode: SessionMode,
        /// The reason of the change.
        source: ModeSource,
    },
    /// A snapshot of the workspace was taken before or after calls that may change something. If it could not
    /// be taken, the run goes on without snapshots. Not derived, because the files on the disk are not in the
    /// log. The record after the calls is missing if the process died before it was written.
    WorkspaceSnapshot(WorkspaceSnapshot),
    /// A tool is about to run. Unless the tool is read-only, the record is on the storage medium before the
    /// tool runs.
    ToolCallStarted {
        /// The call.
        call: CallId,
        /// The number of the attempt, from 0. Each retry writes a record of its own.
        attempt: u32,
        /// The effect that a second execution of the call would have.
        effect: Effect,
        /// The child run, if the call starts one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child_run: Option<RunId>,
    },
    /// A running tool started processes. The record is in the log before the processes do anything.
    ProcessStarted {
        /// The call.
        call: CallId,
        /// The processes.
        process_group: ProcessGroup,
    },
    /// The log of a child run was created, and the child run has done nothing yet. If this log is missing
    /// later, it was lost, and the effects of the child run are unknown.
    ChildRunCreated {
        /// The call.
        call: CallId,
        /// The child run.
        child_run: RunId,
    },
    /// A tool call that may be repeated failed temporarily, and is retried after a delay.
    ToolCallFailed {
        /// The call.
        call: CallId,
        /// The attempt that failed.
        attempt: u32,
        /// The result of the failed attempt. The model reads this result if there is no retry after all.
        result: Arc<ToolResult>,
        /// The jitter that was drawn for the delay, -1.0 to 1.0.
        #[serde(default)]
        jitter: f64,
    },
    /// A tool call ended.
    ToolCallFinished {
        /// The call.
        call: CallId,
        /// The result.
        result: Arc<ToolResult>,
    },
    /// The run was asked to stop.
    CancelRequested {
        /// The person who cancels the run, or the reason for the cancel; the text is shown to people.
        reason: String,
    },
    /// The run is resumed with larger limits. A `resumed` record follows.
    LimitsRaised(MoreLimits),
    /// A process resumed the run.
    Resumed,
    /// The process read the clock for the run: the time of this record tells the run that a deadline has
    /// passed or that a wait is over.
    ClockRead,
    /// Archon adds a text for the model, such as a hint or a reminder. Derived.
    HintAdded {
        /// The text that the model reads, as a user message.
        text: String,
    },
    /// A person asked for a compaction, which happens before the next request to the model.
    CompactionRequested {
        /// The instructions of the person for the summary; `None` for none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<String>,
    },
    /// A model summarised old turns, for the compaction that follows.
    Summarized(Summary),
    /// The project's instructions for its agents are new or have changed. The model reads them after its
    /// standing instructions from here on.
    InstructionsRead {
        /// The whole text of the instructions; empty if there are none any more.
        text: String,
    },
    /// A model checked the answer against the expected output; see
    /// [`RunConfig::goal_check`](crate::RunConfig::goal_check).
    GoalChecked(GoalVerdict),
    /// The answer was checked against its schema; see
    /// [`RunConfig::output_check`](crate::RunConfig::output_check).
    OutputChecked {
        /// The problems of the answer; empty if the answer is valid.
        problems: Vec<SchemaProblem>,
    },
    /// The model sees less of the conversation from here on. Derived.
    Compacted(Compaction),
    /// The model is told in a user message how full its context window is. Derived.
    ContextStatus {
        /// The fill level that the window has reached.
        level: ContextLevel,
        /// The text that the model reads.
        text: String,
    },
    /// A parallel loop starts its branches. Each branch is a run with a log of its own, which has the turns.
    ParallelStarted {
        /// The messages that every branch gets.
        prompts: Vec<AgentMessage>,
        /// The branches, in the order of their configurations.
        branches: Vec<ParallelBranch>,
    },
    /// The branches have ended, and the strategy has made its choice.
    ParallelFinished(Box<ParallelChoice>),
    /// A record of the plan that this run follows. The turns are in the logs of the child runs.
    Plan(Box<PlanRecord>),
    /// A record of the team of this run. The turns are in the logs of the child runs.
    Team(Box<TeamRecord>),
    /// A limit was reached. Derived.
    LimitReached(LimitReached),
    /// The run waits for answers, and no other work is under way. Derived.
    Suspended {
        /// The calls that wait.
        waiting: Vec<CallId>,
    },
    /// The run ended with this outcome. If the run is resumed, more records follow. Derived.
    RunFinished(Box<Outcome>),
}

impl RecordBody {
    /// Returns true if the record has data from outside the run, such as an answer of a model or of a person.
    /// All other records are derived: they can be computed from the input records before them.
    pub fn is_input(&self) -> bool {
        match self {
            Self::Plan(plan) => return plan.is_input(),
            Self::Team(team) => return team.is_input(),
            // The reserved cost of a choice comes from its strategy, not from records before it.
            Self::AuxiliaryCallStarted { purpose: question, .. } => {
                return *question == AuxiliaryCall::BranchChoice;
            }
            Self::ModeChanged { source, .. } => return *source == ModeSource::Person,
            _ => {}
        }
        !matches!(
            self,
            Self::ModelCallStarted { .. }
                | Self::SessionSnapshot(_)
                | Self::FallbackSelected { .. }
                | Self::LeaseGranted { .. }
                | Self::HintAdded { .. }
                | Self::Compacted(_)
                | Self::ContextStatus { .. }
                | Self::LimitReached(_)
                | Self::Suspended { .. }
                | Self::RunFinished(_)
        )
    }

    /// Returns true if a process begins to resume the run with this record. Between the record before and this
    /// record no process worked on the run.
    pub fn is_resumption(&self) -> bool {
        matches!(self, Self::Resumed | Self::LimitsRaised(_))
    }

    /// Returns true if the record must be on the storage medium before the run goes on. The start of a
    /// read-only tool need not be: without the record the tool simply runs again.
    pub fn needs_sync(&self) -> bool {
        if let Self::Plan(plan) = self {
            return plan.needs_sync();
        }
        if let Self::Team(team) = self {
            return team.needs_sync();
        }
        matches!(
            self,
            Self::RunStarted(_)
                | Self::InboxMessageReceived { .. }
                | Self::ParallelStarted { .. }
                | Self::ToolCallStarted { effect: Effect::Idempotent | Effect::SideEffect, .. }
                | Self::ApprovalRequested { .. }
                | Self::Suspended { .. }
                | Self::RunFinished(_)
        )
    }
}

/// A request to a model that is not one of the run's turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuxiliaryCall {
    /// Asks for a summary of old turns; answered by [`RecordBody::Summarized`].
    Summary,
    /// Asks if the answer meets the expected output; answered by [`RecordBody::GoalChecked`].
    GoalCheck,
    /// Asks for the best branch of a parallel loop; answered by [`RecordBody::ParallelFinished`].
    BranchChoice,
}

/// The source of a message to a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PromptSource {
    /// The run was started with the message.
    #[default]
    Prompt,
    /// The message steers the run while it works.
    Steer,
    /// The message is a follow-up, for the time when the run would otherwise end.
    FollowUp,
}

/// The failure of a model call, as records store it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ModelFailure {
    /// The [`code`](crate::ProviderError::code) of the error.
    pub code: ModelErrorCode,
    /// The text of the error.
    pub message: String,
    /// True if the same request may succeed later.
    pub retryable: bool,
    /// The kind of the refusal; `None` if the service did not refuse the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_error: Option<ApiErrorKind>,
    /// True if a part of the answer was streamed before the failure. That part does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub had_output: bool,
    /// The HTTP status; `None` if no response came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The delay that the service asked for, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The jitter that was drawn for the next delay, -1.0 to 1.0.
    #[serde(default)]
    pub jitter: f64,
}

impl ModelFailure {
    /// Creates the failure from a provider's error. `jitter` is the random number, -1.0 to 1.0, for the delay
    /// before the next attempt.
    pub fn new(error: &crate::ProviderError, jitter: f64) -> Self {
        Self {
            code: error.code(),
            message: error.to_string(),
            retryable: error.is_retryable(),
            api_error: error.refusal(),
            had_output: false,
            status: error.status(),
            retry_after_ms: error.retry_after().map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
            jitter,
        }
    }
}

impl RunStarted {
    /// Returns the content of the first record of a log; `None` if the log is empty or begins with another
    /// record.
    pub fn of(records: &[Arc<Record>]) -> Option<&Self> {
        match &records.first()?.body {
            RecordBody::RunStarted(started) => Some(started),
            _ => None,
        }
    }
}
