//! Records: the entries of a run's log. A run is its log; everything else is a fold over it.
//!
//! A record is an **input** (it carries something from outside: a prompt, an answer, a result, the
//! clock) or **derived** (it follows from the inputs before it and is written so that readers need
//! not compute it). [`RecordBody::is_input`] tells them apart. Nothing reaches a model unless an
//! input record carries it.

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
    /// Place in the log, from 0, without gaps.
    pub seq: u64,
    /// When it happened, Unix milliseconds.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub body: RecordBody,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "a prompt is the largest, and records are kept behind pointers")]
#[non_exhaustive]
pub enum RecordBody {
    /// First record of every run.
    RunStarted(Box<RunStarted>),
    /// Somebody said something to the agent. The model reads it in its next request.
    Prompted {
        /// What was said.
        message: AgentMessage,
        /// In which way it came.
        source: PromptSource,
    },
    /// The next record came through the run's inbox. Without a next record it did not arrive.
    Received {
        /// [`InboxEntry::id`](crate::InboxEntry::id).
        id: String,
    },
    /// The run begins with this conversation, which somebody had kept elsewhere. Messages in which a
    /// tool call lacks its result, or a result its call, change nothing.
    Restored {
        /// The messages, oldest first.
        messages: Vec<Message>,
    },
    /// What the runs before this one left, so that their logs need not be read to fold this one. Derived: it is what the
    /// fold of those logs is. It changes nothing in this run.
    Carried(Box<Carried>),
    /// An [`InputFilter`](crate::InputFilter) refused what was said; the model never sees it.
    InputRejected {
        /// Why.
        reason: String,
    },
    /// A hook stopped the run.
    Vetoed {
        /// Which.
        hook: HookPoint,
    },
    /// The storage failed when the run began, and the run goes on without being kept. Only watchers see
    /// this record: no log ever holds it.
    NotKept {
        /// What failed.
        reason: String,
    },
    /// A request is on its way to the model. Derived.
    ModelAsked {
        /// The command that this carries out.
        command: CommandId,
        /// From 0; grows with each retry of the same request.
        attempt: u32,
        /// The turn, from 0.
        turn: u32,
        /// [`Request::content_hash`](crate::Request::content_hash) of the request; empty in logs of
        /// versions that did not keep it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        request_hash: String,
    },
    /// The model answered. The tool calls in the answer are hereby requested.
    ModelAnswered {
        /// The command that this answers.
        command: CommandId,
        /// Which attempt.
        attempt: u32,
        /// The whole answer.
        message: Box<AssistantMessage>,
    },
    /// The model gave no answer. Voids the deltas of the attempt.
    ModelFailed {
        /// The command that failed.
        command: CommandId,
        /// Which attempt.
        attempt: u32,
        /// Why.
        failure: ModelFailure,
    },
    /// After a failure that another try would not mend the run asks differently from here on. Derived.
    SteppedDown {
        /// The command that is asked again.
        command: CommandId,
        /// The attempt that failed.
        attempt: u32,
        /// What is different.
        step: FailureStep,
        /// [`ModelFailure::code`] of the failure that led to it.
        code: ModelErrorCode,
        /// The failure's text.
        reason: String,
    },
    /// A model call was under way when the process died; its answer is lost.
    CallLost {
        /// The command that is asked again.
        command: CommandId,
        /// Which attempt was lost.
        attempt: u32,
    },
    /// A guard refused a call, or it was skipped: this is its result.
    ToolRefused {
        /// Which call.
        call: CallId,
        /// What the model reads.
        result: Arc<ToolResult>,
    },
    /// A call is about to start a run, and this part of what is left is set aside for it. Derived.
    Granted {
        /// Which call.
        call: CallId,
        /// The run.
        child: RunId,
        /// What the run may use.
        lease: Lease,
    },
    /// A run that a call started used this; what its lease has left comes back. A second one for the same
    /// call replaces the first: the run went on after a crash.
    Settled {
        /// Which call.
        call: CallId,
        /// The run.
        child: RunId,
        /// What it used.
        spent: Spending,
    },
    /// A question beside the run's own is on its way to a model. Derived, but for a choice.
    AskedBeside {
        /// What is asked.
        question: SideQuestion,
        /// What it may cost, millionths of a currency unit: set aside until the answer is there, and spent
        /// if it never comes because the process died. 0 where tokens have no price.
        reserved: u64,
    },
    /// A person is asked about a call.
    ToolAsked {
        /// Which call.
        call: CallId,
        /// The question.
        request: Box<ApprovalRequest>,
    },
    /// A person answered.
    ToolAnswered {
        /// Which call.
        call: CallId,
        /// The answer.
        answer: Answer,
    },
    /// A tool is about to run; on disk before the tool starts.
    ToolStarted {
        /// Which call.
        call: CallId,
        /// From 0; each retry writes its own start.
        attempt: u32,
        /// What a second run would do.
        effect: Effect,
        /// The run of a sub-agent, if the call starts one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child_run: Option<RunId>,
    },
    /// A running tool started processes; in the log before they do anything.
    ToolSpawned {
        /// Which call.
        call: CallId,
        /// The processes.
        group: ProcessGroup,
    },
    /// The run that a call started has a log, and has done nothing yet. If that log is missing later it is lost, and what
    /// the run did is unknown.
    ChildBegun {
        /// Which call.
        call: CallId,
        /// The run.
        child: RunId,
    },
    /// A tool failed in a way that may pass, and its call is tried again after a while. Only calls that may
    /// be repeated are.
    ToolFailed {
        /// Which call.
        call: CallId,
        /// Which start failed.
        attempt: u32,
        /// How. The model reads it if there is no other try after all.
        result: Arc<ToolResult>,
        /// The jitter that was drawn for the delay, -1.0 to 1.0.
        #[serde(default)]
        jitter: f64,
    },
    /// A tool ended.
    ToolFinished {
        /// Which call.
        call: CallId,
        /// How.
        result: Arc<ToolResult>,
    },
    /// The run was asked to stop.
    CancelRequested {
        /// Who or what asked, for people.
        reason: String,
    },
    /// Whoever takes the run up again lets it go further. The record is followed by `resumed`.
    LimitsRaised(MoreLimits),
    /// A process took up the run again.
    Resumed,
    /// The time, where the machine had to learn it: a deadline passed or a wait is over.
    ClockRead,
    /// The loop itself tells the model something: a hint, a reminder, why it was stopped. Derived.
    Noted {
        /// What the model reads, as a user message.
        text: String,
    },
    /// A model was asked to sum up old turns, for a compaction that follows.
    Summarized(Summary),
    /// What the project says to its agents is new, or has changed. The model reads it behind its standing
    /// instructions from here on.
    InstructionsRead {
        /// All of it; empty if there is nothing any more.
        text: String,
    },
    /// A model was asked whether the answer is what was expected; see [`RunConfig::goal_check`].
    GoalChecked(GoalVerdict),
    /// The answer was held against the form that it must have; see [`RunConfig::form_check`].
    FormChecked {
        /// What does not fit; nothing if the answer stands.
        problems: Vec<FormProblem>,
    },
    /// The model sees less of the conversation from here on. Derived.
    Compacted(Compaction),
    /// The model is told how full its window is, as a user message. Derived.
    ContextStatus {
        /// The level that was reached.
        level: ContextLevel,
        /// What the model reads.
        text: String,
    },
    /// Several configurations begin side by side, each as a run of its own. The run that has this in its
    /// log asks no model itself.
    ParallelStarted {
        /// What is said to every branch.
        prompts: Vec<AgentMessage>,
        /// The branches, in the order of their configurations.
        branches: Vec<ParallelBranch>,
    },
    /// The branches have ended, and one of them was chosen if there was a choice.
    ParallelEnded(Box<ParallelChoice>),
    /// The run follows a plan, and this became of it. A run that has such records asks no model itself.
    Plan(Box<PlanRecord>),
    /// The run is that of a team, and this became of it. A run that has such records asks no model itself.
    Team(Box<TeamRecord>),
    /// A limit was reached. Derived.
    LimitReached(LimitReached),
    /// The run waits for answers and nothing is in flight. Derived.
    Suspended {
        /// The calls that wait.
        waiting: Vec<CallId>,
    },
    /// Last record of a run that ended. Derived.
    RunFinished(Box<Outcome>),
}

impl RecordBody {
    /// Whether the record carries something from outside; the others follow from these.
    pub fn is_input(&self) -> bool {
        match self {
            Self::Plan(plan) => return plan.is_input(),
            Self::Team(team) => return team.is_input(),
            // What a choice may cost is what its strategy says.
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

    /// Whether the record is one with which a process takes the run up: nobody worked on it before.
    pub fn is_taking_up(&self) -> bool {
        matches!(self, Self::Resumed | Self::LimitsRaised(_))
    }

    /// Whether the record must be on the medium before anything else happens. The start of a
    /// read-only tool need not: without it the tool simply runs again.
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
    /// What happened in old turns; answered by [`RecordBody::Summarized`].
    Summary,
    /// Whether the answer is what was expected; answered by [`RecordBody::GoalChecked`].
    Goal,
    /// Which branch of a parallel loop is best; answered by [`RecordBody::ParallelEnded`].
    Choice,
}

/// How a run began: who asked whom, with which model, tools and limits.
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
    /// On whose behalf.
    pub tenant: TenantId,
    /// Where the run comes from.
    pub origin: Origin,
    /// The parallel loop that it is a branch of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<RunId>,
    /// What makes the first turn.
    pub first_turn: TurnTrigger,
    /// Model, tools, limits.
    pub config: RunConfig,
}

impl RunStarted {
    /// A loop that begins with a prompt, in format [`LOG_FORMAT`].
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

    /// The first record of a log.
    pub fn of(records: &[Arc<Record>]) -> Option<&Self> {
        match &records.first()?.body {
            RecordBody::RunStarted(started) => Some(started),
            _ => None,
        }
    }

    /// The run that `context` names, for an agent that has others work for it: its display name is
    /// `{session}.{kind}.{n}`, where `n` grows along a conversation.
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

/// Where a run comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Origin {
    /// The first run of a session.
    Prompt,
    /// Goes on where another run of the session stood; its messages are not repeated here.
    Continues {
        /// The run that went before.
        run: RunId,
        /// How many of its records count.
        records: u64,
        /// In which sense it goes on.
        continuation: ContinuationKind,
    },
    /// A tool call of another run.
    CalledBy {
        /// The caller.
        run: RunId,
        /// Its call.
        call: CallId,
    },
}

/// In which sense a run continues another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContinuationKind {
    /// The next prompt of a conversation.
    #[default]
    Default,
    /// The same again from an equal context.
    Rerun {
        /// RFC 3339 time in UTC, or any other mark.
        tag: String,
    },
    /// Another way from a branching point.
    Branch {
        /// RFC 3339 time in UTC, or any other mark.
        tag: String,
    },
}

/// What made a turn begin.
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
    /// The trigger of a run's first turn: a branch wins over any other continuation, which wins over
    /// `configured`. Later turns are always [`TurnTrigger::Continuation`].
    pub fn first(origin: &Origin, configured: Self) -> Self {
        match origin {
            Origin::Continues { continuation: ContinuationKind::Branch { .. }, .. } => Self::Branch,
            Origin::Continues { .. } => Self::Continuation,
            _ => configured,
        }
    }
}

/// With what a run works: recorded, so that replay needs nothing else.
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
    /// The tools that the model is told of.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<ToolSpec>"))]
    pub tools: Arc<Encoded<Vec<ToolSpec>>>,
    /// Sampling, output length and so on.
    pub options: Arc<RequestOptions>,
    /// How far the run may go.
    pub limits: ExecutionLimits,
    /// How failed model calls are retried.
    pub retry: RetryConfig,
    /// What follows when that does not help; without it the run fails, and tools may fail for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailurePolicy>,
    /// How tools are spoken about.
    pub tool_mode: ToolMode,
    /// In text mode, the name of the tags between which results stand. It is another one in each run, so that nothing
    /// that a tool reads can end its result and go on in the words of another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_mark: Option<String>,
    /// The folder that the run's tools work in; none where they work in no folder, or nobody named it. Rules for a session
    /// hold only in the folder that they were given in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// What the answer should be, for text mode and for checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_output: Option<String>,
    /// Who compares an answer with what was expected; nobody by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal_check: Option<GoalCheck>,
    /// Holds answers against [`RequestOptions::response_format`]; nobody looks by default. In text mode the
    /// form is then a part of the instructions, and not of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form_check: Option<FormCheck>,
    /// How questions to people are treated; none where nobody can be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals: Option<ApprovalSettings>,
    /// How the conversation is kept within the model's window; without it nothing is ever compacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextConfig>,
    /// What the model's tokens cost, where a limit on money needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<ModelPrice>,
    /// How many of a turn's calls are made at once.
    #[serde(skip_serializing_if = "ToolExecutionStrategy::is_default")]
    pub tool_execution: ToolExecutionStrategy,
    /// How many steers the model reads at once.
    #[serde(skip_serializing_if = "QueueMode::is_default")]
    pub steers: QueueMode,
    /// How many follow-ups the model reads at once.
    #[serde(skip_serializing_if = "QueueMode::is_default")]
    pub follow_ups: QueueMode,
    /// The files in which the project says what its agents should know, with their whole paths; the first that is there
    /// counts. They are read anew before each question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub project_files: Vec<String>,
    /// What the run remembers in, and recalls from; none for a run without a memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryConfig>,
}

/// Which memory a run has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryConfig {
    /// Whose memories they are.
    pub collection: Collection,
    /// The id of what makes their vectors; none where they are found by words alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedder: Option<String>,
}

/// How many of the messages that wait the model reads at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum QueueMode {
    /// The oldest; the next one after the model has answered it.
    #[default]
    OneAtATime,
    /// All of them.
    All,
}

impl QueueMode {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How the model is told of tools and asks for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolMode {
    /// As the provider's protocol does.
    #[default]
    Native,
    /// In prose: Thought, Action, Observation, Final Answer.
    Text,
}

/// In which way a prompt came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PromptSource {
    /// The run was started with it.
    #[default]
    Prompt,
    /// Somebody spoke into the running turn.
    Steer,
    /// Somebody queued it for when the run would end.
    FollowUp,
}

/// Why a model gave no answer, as a record keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ModelFailure {
    /// [`ProviderError::code`](crate::ProviderError::code).
    pub code: ModelErrorCode,
    /// The error's text.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// What kind of refusal it was, if the service refused the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<ApiErrorKind>,
    /// A part of the answer had been shown. It does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The HTTP status; none where no answer came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the service asked to wait, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The jitter that was drawn for the next delay, -1.0 to 1.0.
    #[serde(default)]
    pub jitter: f64,
}

impl ModelFailure {
    /// The record of an error, with the jitter that was drawn for it.
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
