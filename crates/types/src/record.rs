//! Records: the entries of a run's log. The log is the only state of a run; everything else is a fold over
//! it.
//!
//! A record is an **input** (it carries something from outside: a prompt, an answer, a result, the clock) or
//! **derived** (it follows from the inputs before it and is written so that readers need not compute it).
//! [`RecordBody::is_input`] tells them apart. A model sees only what input records carry.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    AgentId, AgentMessage, Answer, ApiErrorKind, ApprovalRequest, ApprovalSettings, AssistantMessage, CallId,
    Carried, Collection, CommandId, Compaction, Context, ContextConfig, ContextLevel, Effect, Encoded,
    ExecutionLimits, FailurePolicy, FailureStep, FormCheck, FormProblem, GoalCheck, GoalVerdict, HookPoint,
    Lease, LimitReached, LoopId, Message, ModelErrorCode, ModelPrice, MoreLimits, Outcome, ParallelBranch,
    ParallelChoice, PlanRecord, ProcessGroup, RequestOptions, RetryConfig, RunId, RunKind, SessionId,
    SessionPlace, Spending, Summary, TeamRecord, TenantId, Timestamp, ToolExecutionStrategy, ToolResult,
    ToolSpec,
};

/// Version of the log's format, in the first record of every run. Readers refuse a newer one.
pub const LOG_FORMAT: u32 = 1;

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
    Prompted {
        /// The message.
        message: AgentMessage,
        /// The way in which it came.
        source: PromptSource,
    },
    /// The next record came through the run's inbox. At the end of a log this does not count: the message did
    /// not arrive.
    Received {
        /// [`InboxEntry::id`](crate::InboxEntry::id).
        id: String,
    },
    /// The run begins with this conversation, which was kept elsewhere. Tool calls without a result, and
    /// results without a call, are ignored.
    Restored {
        /// The messages, oldest first.
        messages: Vec<Message>,
    },
    /// The state at the end of the runs before this one, so that their logs need not be read. Derived: it is
    /// the fold of those logs. It changes nothing in this run.
    Carried(Box<Carried>),
    /// An [`InputFilter`](crate::InputFilter) refused the prompt; the model never sees it.
    InputRejected {
        /// The reason.
        reason: String,
    },
    /// A hook stopped the run.
    Vetoed {
        /// The hook.
        hook: HookPoint,
    },
    /// The storage failed when the run began, and the run goes on without a log. Only watchers see this
    /// record: it is in no log.
    NotKept {
        /// The error of the storage.
        reason: String,
    },
    /// A request is about to be sent to the model. Derived.
    ModelAsked {
        /// The command that the request belongs to.
        command: CommandId,
        /// The number of the attempt, from 0; grows with each retry of the same request.
        attempt: u32,
        /// The number of the turn, from 0.
        turn: u32,
        /// [`Request::content_hash`](crate::Request::content_hash) of the request; empty in logs of versions
        /// that did not record it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        request_hash: String,
    },
    /// The model answered. The tool calls in the answer are requested by this record.
    ModelAnswered {
        /// The command of the request.
        command: CommandId,
        /// The attempt.
        attempt: u32,
        /// The whole answer.
        message: Box<AssistantMessage>,
    },
    /// The model gave no answer. Deltas of this attempt do not count.
    ModelFailed {
        /// The command of the request.
        command: CommandId,
        /// The attempt.
        attempt: u32,
        /// The failure.
        failure: ModelFailure,
    },
    /// After a failure that a retry does not fix, the run uses a fallback from here on. Derived.
    SteppedDown {
        /// The command whose request is sent again.
        command: CommandId,
        /// The attempt that failed.
        attempt: u32,
        /// The fallback.
        step: FailureStep,
        /// [`ModelFailure::code`] of the failure that led to it.
        code: ModelErrorCode,
        /// The text of the failure.
        reason: String,
    },
    /// A model call was under way when the process died; its answer is lost.
    CallLost {
        /// The command whose request is sent again.
        command: CommandId,
        /// The attempt that was lost.
        attempt: u32,
    },
    /// A guard refused a call, or it was skipped; `result` is its result.
    ToolRefused {
        /// The call.
        call: CallId,
        /// The result that the model reads.
        result: Arc<ToolResult>,
    },
    /// A call is about to start a child run, and this part of the remaining budget is reserved for it.
    /// Derived.
    Granted {
        /// The call.
        call: CallId,
        /// The child run.
        child: RunId,
        /// The part of the budget that the child run may use.
        lease: Lease,
    },
    /// A child run used this much; the rest of its lease is returned. A second such record for the same call
    /// replaces the first: the child run went on after a crash.
    Settled {
        /// The call.
        call: CallId,
        /// The child run.
        child: RunId,
        /// The tokens and the money that it used.
        spent: Spending,
    },
    /// A side question is about to be sent to a model. Derived, except for [`SideQuestion::Choice`].
    AskedBeside {
        /// The question.
        question: SideQuestion,
        /// The money that it may cost, in millionths of a currency unit. It is reserved until the answer
        /// comes, and counts as spent if the process dies before. 0 if tokens have no price.
        reserved: u64,
    },
    /// A person is asked about a call.
    ToolAsked {
        /// The call.
        call: CallId,
        /// The question.
        request: Box<ApprovalRequest>,
    },
    /// A person answered a question.
    ToolAnswered {
        /// The call.
        call: CallId,
        /// The answer.
        answer: Answer,
    },
    /// A tool is about to run; the record is on disk before the tool starts.
    ToolStarted {
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
    ToolSpawned {
        /// The call.
        call: CallId,
        /// The processes.
        group: ProcessGroup,
    },
    /// A child run has a log and has done nothing yet. If that log is missing later, it is lost, and the
    /// effects of the child run are unknown.
    ChildBegun {
        /// The call.
        call: CallId,
        /// The child run.
        child: RunId,
    },
    /// A tool failed in a way that may pass, and the call is retried after a delay. Only calls that may be
    /// repeated are retried.
    ToolFailed {
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
    ToolFinished {
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
    Noted {
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
    /// A model checked the answer against the expected output; see [`RunConfig::goal_check`].
    GoalChecked(GoalVerdict),
    /// The answer was checked against its schema; see [`RunConfig::form_check`].
    FormChecked {
        /// The problems; empty if the answer is valid.
        problems: Vec<FormProblem>,
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
    ParallelEnded(Box<ParallelChoice>),
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
            Self::AskedBeside { question, .. } => return *question == SideQuestion::Choice,
            _ => {}
        }
        !matches!(
            self,
            Self::ModelAsked { .. }
                | Self::Carried(_)
                | Self::SteppedDown { .. }
                | Self::Granted { .. }
                | Self::Noted { .. }
                | Self::Compacted(_)
                | Self::ContextStatus { .. }
                | Self::LimitReached(_)
                | Self::Suspended { .. }
                | Self::RunFinished(_)
        )
    }

    /// Returns true if a process resumes the run with this record: no process worked on the run before it.
    pub fn is_taking_up(&self) -> bool {
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
                | Self::Received { .. }
                | Self::ParallelStarted { .. }
                | Self::ToolStarted { effect: Effect::Idempotent | Effect::SideEffect, .. }
                | Self::ToolAsked { .. }
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
pub enum SideQuestion {
    /// Asks for a summary of old turns; answered by [`RecordBody::Summarized`].
    Summary,
    /// Asks if the answer meets the expected output; answered by [`RecordBody::GoalChecked`].
    Goal,
    /// Asks for the best branch of a parallel loop; answered by [`RecordBody::ParallelEnded`].
    Choice,
}

/// The beginning of a run: its identity, its origin, and its configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RunStarted {
    /// [`LOG_FORMAT`] of the writer.
    pub format: u32,
    /// The kind of the run.
    pub kind: RunKind,
    /// The run.
    pub run: RunId,
    /// The session that the run belongs to.
    pub session: SessionId,
    /// The agent that works.
    pub agent: AgentId,
    /// Display name of the run.
    pub loop_id: LoopId,
    /// The tenant for which it works.
    pub tenant: TenantId,
    /// The origin of the run.
    pub origin: Origin,
    /// The parallel loop of which it is a branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<RunId>,
    /// The trigger of the first turn.
    pub first_turn: TurnTrigger,
    /// Model, tools and limits.
    pub config: RunConfig,
}

impl RunStarted {
    /// Creates the record of a loop that begins with a prompt, in format [`LOG_FORMAT`].
    pub fn new(run: RunId, session: SessionId, agent: AgentId, loop_id: LoopId, config: RunConfig) -> Self {
        Self {
            format: LOG_FORMAT,
            kind: RunKind::Loop,
            run,
            session,
            agent,
            loop_id,
            tenant: TenantId::new("local"),
            origin: Origin::Prompt,
            parallel: None,
            first_turn: TurnTrigger::User,
            config,
        }
    }

    /// Returns the first record of a log, if it is the start of a run.
    pub fn of(records: &[Arc<Record>]) -> Option<&Self> {
        match &records.first()?.body {
            RecordBody::RunStarted(started) => Some(started),
            _ => None,
        }
    }

    /// Creates the start record of the run that `context` names, for an agent that directs others. Its
    /// display name is `{session}.{kind}.{n}`, where `n` grows along a conversation.
    pub fn of_lead(
        context: &Context,
        place: &SessionPlace,
        agent: AgentId,
        kind: RunKind,
        config: RunConfig,
    ) -> Self {
        let (session, origin) =
            (context.session.as_str().replace(['.', '/', ':'], "-"), place.origin.clone());
        let loop_id = LoopId::new(format!("{session}.{kind}.{}", place.earlier + 1));
        let mut started = Self::new(context.run.clone(), context.session.clone(), agent, loop_id, config);
        started.kind = kind;
        started.tenant = context.tenant.clone();
        if matches!(origin, Origin::CalledBy { .. }) {
            started.first_turn = TurnTrigger::SubAgent;
        }
        started.origin = origin;
        started
    }
}

/// The origin of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Origin {
    /// The first run of a session.
    Prompt,
    /// The run continues another run of the session, whose messages are not repeated here.
    Continues {
        /// The run that is continued.
        run: RunId,
        /// The number of its records that count.
        records: u64,
        /// The kind of the continuation.
        continuation: ContinuationKind,
    },
    /// A tool call of another run started it.
    CalledBy {
        /// The caller.
        run: RunId,
        /// Its call.
        call: CallId,
    },
}

/// The kind of a continuation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContinuationKind {
    /// The next prompt of a conversation.
    #[default]
    Default,
    /// The same request again in an equal context.
    Rerun {
        /// RFC 3339 time in UTC, or any other mark.
        tag: String,
    },
    /// An alternative from a branching point.
    Branch {
        /// RFC 3339 time in UTC, or any other mark.
        tag: String,
    },
}

/// The trigger of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnTrigger {
    /// A person's prompt.
    #[default]
    User,
    /// A parent agent's call.
    SubAgent,
    /// Tool results, a steering message, or a run that continues another.
    Continuation,
    /// The first turn of a branch.
    Branch,
}

impl TurnTrigger {
    /// Returns the trigger of a run's first turn: a branch wins over any other continuation, which wins over
    /// `configured`. Later turns are always [`TurnTrigger::Continuation`].
    pub fn first(origin: &Origin, configured: Self) -> Self {
        match origin {
            Origin::Continues { continuation: ContinuationKind::Branch { .. }, .. } => Self::Branch,
            Origin::Continues { .. } => Self::Continuation,
            _ => configured,
        }
    }
}

/// The configuration of a run. It is logged, so that replay needs nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct RunConfig {
    /// The provider's id, for people.
    pub provider: String,
    /// The model, as the provider names it.
    pub model: String,
    /// Standing instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub system: Option<Arc<Encoded<String>>>,
    /// The tools that are offered to the model.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<ToolSpec>"))]
    pub tools: Arc<Encoded<Vec<ToolSpec>>>,
    /// Sampling, output length and so on.
    pub options: Arc<RequestOptions>,
    /// The limits of the run.
    pub limits: ExecutionLimits,
    /// The retries of failed model calls.
    pub retry: RetryConfig,
    /// The policy for failures that retries do not fix; without it the run fails, and a failing tool is
    /// never left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailurePolicy>,
    /// The format of tool calls.
    pub tool_mode: ToolMode,
    /// In text mode, the name of the tags around tool results. It is different in each run, so that text that
    /// a tool reads cannot end its result and pose as another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_mark: Option<String>,
    /// The folder that the run's tools work in; none if they need none, or none was given. Permission rules
    /// for a session hold only in the folder for which they were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// A description of the expected output, for text mode and for checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_output: Option<String>,
    /// The check of the answer against the expected output; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal_check: Option<GoalCheck>,
    /// The check of answers against [`RequestOptions::response_format`]; none by default. In text mode the
    /// schema is then a part of the instructions, and not of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form_check: Option<FormCheck>,
    /// Settings of questions to people; none if nobody can be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals: Option<ApprovalSettings>,
    /// Settings of the context window; without them nothing is compacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextConfig>,
    /// The price of the model's tokens; needed for a limit of money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<ModelPrice>,
    /// The number of a turn's calls that run in parallel.
    #[serde(skip_serializing_if = "ToolExecutionStrategy::is_default")]
    pub tool_execution: ToolExecutionStrategy,
    /// The number of steering messages that the model reads at once.
    #[serde(skip_serializing_if = "QueueMode::is_default")]
    pub steers: QueueMode,
    /// The number of follow-ups that the model reads at once.
    #[serde(skip_serializing_if = "QueueMode::is_default")]
    pub follow_ups: QueueMode,
    /// The absolute paths of files with the project's instructions; the first that exists is used. They are
    /// read again before each request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub project_files: Vec<String>,
    /// The memory of the run; none for a run without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryConfig>,
}

/// The memory of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryConfig {
    /// The collection of its memories.
    pub collection: Collection,
    /// The id of the embedder; none if memories are found by words alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedder: Option<String>,
}

/// The number of waiting messages that the model reads at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum QueueMode {
    /// The oldest one; the next follows after the model has answered it.
    #[default]
    OneAtATime,
    /// All waiting messages.
    All,
}

impl QueueMode {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The format in which tools are described to the model and called by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolMode {
    /// The provider's protocol for tool calls.
    #[default]
    Native,
    /// Text: Thought, Action, Observation, Final Answer.
    Text,
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
    pub refusal: Option<ApiErrorKind>,
    /// True if a part of the answer had been streamed. It does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
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
            refusal: error.refusal(),
            partial: false,
            status: error.status(),
            retry_after_ms: error.retry_after().map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
            jitter,
        }
    }
}
