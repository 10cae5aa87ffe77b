//! Records: the entries of a run's log. The log is the only state of a run; everything else is a fold over
//! it.
//!
//! A record is an **input** (it carries something from outside: a prompt, an answer, a result, the clock) or
//! **derived** (it follows from the inputs before it and is written so that readers need not compute it).
//! [`RecordBody::is_input`] tells them apart. A model sees only what input records carry.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    config::{FallbackStep, GoalVerdict, Lease, LimitReached, MoreLimits, SchemaProblem, Spending},
    messages::{AgentMessage, AssistantMessage, Compaction, ContextLevel, Message, Summary, ToolResult},
    models::{ApiErrorKind, ModelErrorCode},
    plans::{PlanRecord, TeamRecord},
    tools::{Answer, ApprovalRequest, Effect, ProcessGroup},
    values::{CallId, CommandId, RunId, Timestamp},
};

use super::{
    carried::SessionSnapshot,
    hook_point::HookPoint,
    outcome::Outcome,
    parallel::{ParallelBranch, ParallelChoice},
    run_started::RunStarted,
};

/// One entry of a run's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// Sequence number in the log, from 0, without gaps.
    pub seq: u64,
    /// The time, Unix milliseconds.
    pub at: Timestamp,
    /// The content.
    #[serde(flatten)]
    pub body: RecordBody,
}

/// The content of a record.
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
        /// The way in which it came.
        source: PromptSource,
    },
    /// The next record came through the run's inbox. At the end of a log this does not count: the message did
    /// not arrive.
    InboxMessageReceived {
        /// [`InboxEntry::id`](crate::InboxEntry::id).
        message_id: String,
    },
    /// The run begins with this conversation, which was kept elsewhere. Tool calls without a result, and
    /// results without a call, are ignored.
    ConversationRestored {
        /// The messages, oldest first.
        messages: Vec<Message>,
    },
    /// The state at the end of the runs before this one, so that their logs need not be read. Derived: it is
    /// the fold of those logs. It changes nothing in this run.
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
    /// record: it is in no log.
    LogUnavailable {
        /// The error of the storage.
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
        /// [`Request::content_hash`](crate::Request::content_hash) of the request.
        request_hash: String,
    },
    /// The model answered. The tool calls in the answer are requested by this record.
    ModelCallFinished {
        /// The command of the request.
        command: CommandId,
        /// The attempt.
        attempt: u32,
        /// The whole answer.
        message: Box<AssistantMessage>,
    },
    /// The model gave no answer. Deltas of this attempt do not count.
    ModelCallFailed {
        /// The command of the request.
        command: CommandId,
        /// The attempt.
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
        /// [`ModelFailure::code`] of the failure that led to it.
        code: ModelErrorCode,
        /// The text of the failure.
        reason: String,
    },
    /// A model call was under way when the process died; its answer is lost.
    ModelCallLost {
        /// The command whose request is sent again.
        command: CommandId,
        /// The attempt that was lost.
        attempt: u32,
    },
    /// A guard refused a call, or it was skipped; `result` is its result.
    ToolCallRefused {
        /// The call.
        call: CallId,
        /// The result that the model reads.
        result: Arc<ToolResult>,
    },
    /// A call is about to start a child run, and this part of the remaining budget is reserved for it.
    /// Derived.
    LeaseGranted {
        /// The call.
        call: CallId,
        /// The child run.
        child_run: RunId,
        /// The part of the budget that the child run may use.
        lease: Lease,
    },
    /// A child run used this much; the rest of its lease is returned. A second such record for the same call
    /// replaces the first: the child run went on after a crash.
    LeaseSettled {
        /// The call.
        call: CallId,
        /// The child run.
        child_run: RunId,
        /// The tokens and the money that it used.
        spent: Spending,
    },
    /// A side question is about to be sent to a model. Derived, except for [`AuxiliaryCall::BranchChoice`].
    AuxiliaryCallStarted {
        /// The question.
        purpose: AuxiliaryCall,
        /// The money that it may cost, in millionths of a currency unit. It is reserved until the answer
        /// comes, and counts as spent if the process dies before. 0 if tokens have no price.
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
    /// A tool is about to run; the record is on disk before the tool starts.
    ToolCallStarted {
        /// The call.
        call: CallId,
        /// The number of the attempt, from 0; each retry writes its own start.
        attempt: u32,
        /// The effect of a second execution.
        effect: Effect,
        /// The child run, if the call starts one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child_run: Option<RunId>,
    },
    /// A running tool started processes; the record is in the log before they do anything.
    ProcessStarted {
        /// The call.
        call: CallId,
        /// The processes.
        process_group: ProcessGroup,
    },
    /// A child run has a log and has done nothing yet. If that log is missing later, it is lost, and the
    /// effects of the child run are unknown.
    ChildRunCreated {
        /// The call.
        call: CallId,
        /// The child run.
        child_run: RunId,
    },
    /// A tool failed in a way that may pass, and the call is retried after a delay. Only calls that may be
    /// repeated are retried.
    ToolCallFailed {
        /// The call.
        call: CallId,
        /// The attempt that failed.
        attempt: u32,
        /// The result of the failed attempt. The model reads it if there is no retry after all.
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
        /// The person or the reason behind it, for people.
        reason: String,
    },
    /// The run is resumed with larger limits. A `resumed` record follows.
    LimitsRaised(MoreLimits),
    /// A process resumed the run.
    Resumed,
    /// The current time, when the machine needs it: a deadline passed or a wait is over.
    ClockRead,
    /// A text of the loop for the model, such as a hint or a reminder. Derived.
    HintAdded {
        /// The text that the model reads, as a user message.
        text: String,
    },
    /// A model summarised old turns, for a compaction that follows.
    Summarized(Summary),
    /// The project's instructions for its agents are new or have changed. The model reads them after its
    /// standing instructions from here on.
    InstructionsRead {
        /// The whole text; empty if there are no instructions any more.
        text: String,
    },
    /// A model checked the answer against the expected output; see
    /// [`RunConfig::goal_check`](crate::RunConfig::goal_check).
    GoalChecked(GoalVerdict),
    /// The answer was checked against its schema; see
    /// [`RunConfig::output_check`](crate::RunConfig::output_check).
    OutputChecked {
        /// The problems; empty if the answer is valid.
        problems: Vec<SchemaProblem>,
    },
    /// The model sees less of the conversation from here on. Derived.
    Compacted(Compaction),
    /// A text tells the model how full its context window is, as a user message. Derived.
    ContextStatus {
        /// The level that was reached.
        level: ContextLevel,
        /// The text that the model reads.
        text: String,
    },
    /// Several configurations begin in parallel, each as a run of its own. The run with this record calls no
    /// model itself.
    ParallelStarted {
        /// The messages that every branch gets.
        prompts: Vec<AgentMessage>,
        /// The branches, in the order of their configurations.
        branches: Vec<ParallelBranch>,
    },
    /// The branches have ended, with the chosen one if there was a choice.
    ParallelFinished(Box<ParallelChoice>),
    /// An event of the plan that this run follows. A run with such records calls no model itself.
    Plan(Box<PlanRecord>),
    /// An event of the team of this run. A run with such records calls no model itself.
    Team(Box<TeamRecord>),
    /// A limit was reached. Derived.
    LimitReached(LimitReached),
    /// The run waits for answers and nothing else is under way. Derived.
    Suspended {
        /// The calls that wait.
        waiting: Vec<CallId>,
    },
    /// The last record of a run that ended. Derived.
    RunFinished(Box<Outcome>),
}

impl RecordBody {
    /// Returns true if the record carries something from outside; the other records follow from these.
    pub fn is_input(&self) -> bool {
        match self {
            Self::Plan(plan) => return plan.is_input(),
            Self::Team(team) => return team.is_input(),
            // The reserved cost of a choice comes from its strategy, not from records before it.
            Self::AuxiliaryCallStarted { purpose: question, .. } => {
                return *question == AuxiliaryCall::BranchChoice;
            }
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

    /// Returns true if a process resumes the run with this record: no process worked on the run before it.
    pub fn is_resumption(&self) -> bool {
        matches!(self, Self::Resumed | Self::LimitsRaised(_))
    }

    /// Returns true if the record must be on the storage medium before anything else happens. The start of a
    /// read-only tool need not be: without it the tool simply runs again.
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

/// A question to a model that is not one of the run's turns.
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

/// The way in which a message came to a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PromptSource {
    /// The run was started with it.
    #[default]
    Prompt,
    /// Somebody steered the running turn.
    Steer,
    /// Somebody queued it as a follow-up, for when the run would otherwise end.
    FollowUp,
}

/// The failure of a model call, as records have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ModelFailure {
    /// [`ProviderError::code`](crate::ProviderError::code).
    pub code: ModelErrorCode,
    /// The error's text.
    pub message: String,
    /// True if the same request may succeed later.
    pub retryable: bool,
    /// The kind of the refusal, if the service refused the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_error: Option<ApiErrorKind>,
    /// True if a part of the answer had been streamed. It does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub had_output: bool,
    /// The HTTP status; none if no answer came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The wait that the service asked for, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The jitter that was drawn for the next delay, -1.0 to 1.0.
    #[serde(default)]
    pub jitter: f64,
}

impl ModelFailure {
    /// Creates the failure from an error, with the jitter that was drawn for it.
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
    /// Returns the first record of a log, if it is the start of a run.
    pub fn of(records: &[Arc<Record>]) -> Option<&Self> {
        match &records.first()?.body {
            RecordBody::RunStarted(started) => Some(started),
            _ => None,
        }
    }
}
