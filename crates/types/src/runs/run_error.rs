//! The error type of all functions that start, watch, answer, resume or delete runs.

use std::{error::Error as StdError, sync::Arc, time::Duration};

use crate::{
    config::RunKind,
    log::{JournalError, Outcome, OutcomeStatus, RunStatus},
    messages::{AgentMessage, MediaKind, Message},
    models::FailureKind,
    values::{AgentId, RunId, SessionId, TenantId},
};

use super::{called_run::RunRefused, fork::ForkPlace};

/// The reason why there is no answer: the run failed, has no final answer yet, or could not be started,
/// resumed, answered, forked or deleted. The `archon` crate, the run service and every kind of agent use this type.
///
/// If `main` returns a `RunError`, the program prints its [`Debug`](std::fmt::Debug) form: the error, then
/// the advice in brackets.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The run failed. Its log keeps the work so far, and the run can be resumed.
    #[error("run {} failed: {}", outcome.run, failure_text(outcome))]
    Failed {
        /// The outcome from the run's log; see [`RunError::kind`].
        outcome: Box<Outcome>,
    },
    /// A final answer was required, but the run reached a limit, waits or was cancelled.
    #[error("run {} {}", outcome.run, unfinished_text(outcome.status))]
    NotFinished {
        /// The outcome from the run's log.
        outcome: Box<Outcome>,
    },
    /// The answer does not match the requested type.
    #[error("the answer of run {} does not match the requested type: {problem}", outcome.run)]
    NotTyped {
        /// The difference between the answer and the type.
        problem: String,
        /// The outcome from the run's log, with the last answer.
        outcome: Box<Outcome>,
    },
    /// The async task that executed the run ended without an outcome: it panicked, or its runtime was shut
    /// down.
    #[error("the async task that executed run {run} ended without an outcome")]
    Lost {
        /// The run whose async task ended.
        run: RunId,
    },
    /// The run stopped without an outcome, for instance because its log cannot be written. Watchers of the
    /// run get this error.
    #[error("run {run} stopped: {error}")]
    Stopped {
        /// The run that stopped.
        run: RunId,
        /// The reason. It determines the [`kind`](RunError::kind), the cause and the advice of this error.
        error: Arc<RunError>,
    },
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The run cannot be started or resumed as requested.
    #[error(transparent)]
    Refused(#[from] RunRefused),
    /// No run has this id.
    #[error("run {run} does not exist{}", nearest_text(nearest))]
    UnknownRun {
        /// The id that was given.
        run: RunId,
        /// The most similar ids of existing runs, the most similar first.
        nearest: Vec<RunId>,
    },
    /// Runs of this kind do not support the action.
    #[error("run {run} is of kind {kind}, and such runs cannot {action}")]
    Unsupported {
        /// The run that the action was for.
        run: RunId,
        /// The kind of the run.
        kind: RunKind,
        /// The action after `cannot`, as in "be steered".
        action: &'static str,
        /// The alternative, as one line.
        instead: &'static str,
    },
    /// Runs of this kind do not support the setting.
    #[error("runs of kind {kind} cannot have {what}")]
    NotForKind {
        /// The kind of the run.
        kind: RunKind,
        /// The setting after `cannot have`, as in "tools for one run".
        what: &'static str,
        /// The alternative, as one line.
        instead: &'static str,
    },
    /// No agent is registered for the run.
    #[error("no agent {agent} is registered for runs of kind {kind}{}", known_text(known))]
    NoAgent {
        /// The agent that the request or the log of the run names.
        agent: AgentId,
        /// The kind of the run.
        kind: RunKind,
        /// The registered agents, each as `KIND NAME`.
        known: Vec<String>,
    },
    /// The idempotency key belongs to a run that was started with a different request.
    #[error("the idempotency key {key:?} belongs to run {run}, which was started with a different {differs}")]
    KeyUsed {
        /// The idempotency key.
        key: String,
        /// The run that was started with the key.
        run: RunId,
        /// The part of the new request that differs from that of the run, as in "prompt".
        differs: &'static str,
    },
    /// The session is busy: its newest run works, waits or was interrupted. A run that started now would not
    /// see the messages of the newest run.
    #[error("the session is busy: its run {run} is {status}")]
    SessionBusy {
        /// The newest run of the session.
        run: RunId,
        /// The status of that run.
        status: RunStatus,
    },
    /// The session is in plan mode. In this mode only loops may start, because runs of other kinds would
    /// change something.
    #[error("session {session} is in plan mode, and a run of kind {kind} cannot start in it")]
    PlanMode {
        /// The session that is in plan mode.
        session: SessionId,
        /// The kind of the run.
        kind: RunKind,
    },
    /// Another run already continues the session, so an answer of this run would not become part of the
    /// conversation.
    #[error("run {run} cannot be resumed: run {by} already continues its session")]
    WentOn {
        /// The run that was to be resumed.
        run: RunId,
        /// The run that continues the session.
        by: RunId,
    },
    /// The run has no such place for a fork.
    #[error("run {run} has {turns} turns and {records} records, so it cannot be forked {place}")]
    NoForkPlace {
        /// The run that was to be forked.
        run: RunId,
        /// The place that was given.
        place: ForkPlace,
        /// The number of turns of the run.
        turns: u32,
        /// The number of records of the run.
        records: u64,
    },
    /// The prompt is empty.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The prompt has a picture, PDF file or other medium that neither the model nor a tool of the run can read.
    #[error("the model {model} cannot read {kind}, and the message has one: {name}")]
    UnreadableMedia {
        /// The name of the model.
        model: String,
        /// The kind of the medium.
        kind: MediaKind,
        /// The name of the file, or its media type.
        name: String,
    },
    /// The journal, or the session that was given, has no run to continue.
    #[error("there is no run to continue")]
    NothingToContinue,
    /// The run belongs to another tenant.
    #[error("run {run} does not belong to tenant {tenant}")]
    OtherTenant {
        /// The run that was requested.
        run: RunId,
        /// The tenant that requested the run.
        tenant: TenantId,
    },
    /// The run belongs to another folder than the service. Its agent would have the permissions of the wrong
    /// folder.
    #[error("the run belongs to the folder '{folder}', whose permission rules this service does not have")]
    OtherFolder {
        /// The folder in the log of the run.
        folder: String,
    },
    /// The request selects a tool that the agent does not have.
    #[error("the agent has no tool `{name}`{}", meant.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default())]
    UnknownTool {
        /// The name of the selected tool.
        name: String,
        /// The most similar name of a tool of the agent.
        meant: Option<String>,
    },
    /// The request selects a tool of a [source](crate::ToolSource) that does not know its tools now, for
    /// instance a server that is still starting.
    #[error("the tool `{name}` is not known yet: {reason}")]
    ToolNotKnownYet {
        /// The name of the selected tool.
        name: String,
        /// The name of the source, and the source's reason.
        reason: String,
    },
    /// An option was set where it has no effect.
    #[error("`{option}` has no effect on {on}")]
    NoEffect {
        /// The name of the option.
        option: &'static str,
        /// The object that the option was set for, as in "a run of several agents".
        on: &'static str,
    },
    /// A person changed the arguments of a call, and the changed arguments do not fit the tool.
    #[error("the changed arguments do not fit the tool: {problem}")]
    Edit {
        /// The difference between the arguments and the tool's schema.
        problem: String,
    },
    /// An answer trusts a rule that its question does not offer.
    #[error("the answer trusts the permission rule {rule}, which the question {request} does not list")]
    RuleNotOffered {
        /// The id of the question.
        request: String,
        /// The rule of the answer.
        rule: String,
    },
    /// The saved messages of a conversation cannot be read or written.
    #[error("the saved messages cannot be read or written: {problem}")]
    Messages {
        /// The problem.
        problem: String,
    },
    /// The process uses too much memory, so no run is started.
    #[error("the process uses {used} bytes of memory, and no run starts above the limit of {max} bytes")]
    MemoryPressure {
        /// The memory that the process uses, in bytes.
        used: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// The holder of an access token has started too many runs, so no run is started.
    #[error("too many runs were started: the next one can start in {} s", wait.as_millis().div_ceil(1_000))]
    TooManyStarts {
        /// The time after which the next run can start.
        wait: Duration,
    },
    /// The agent refused the run, or could not be built.
    #[error("{source}")]
    Agent {
        /// The agent's error.
        source: Box<dyn StdError + Send + Sync>,
        /// The agent's advice for a person, as one line.
        advice: String,
    },
}

impl RunError {
    /// Creates an error from an agent's own error and advice.
    pub fn agent(source: impl StdError + Send + Sync + 'static, advice: impl Into<String>) -> Self {
        Self::Agent { source: Box::new(source), advice: advice.into() }
    }

    /// Returns the kind of the failure; `None` if the run did not fail.
    pub fn kind(&self) -> Option<FailureKind> {
        match self {
            Self::Failed { outcome } => outcome.failure_kind(),
            Self::Stopped { error, .. } => error.kind(),
            _ => None,
        }
    }

    /// Returns the run that the error names, for instance to resume it; `None` if the error names no run.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::Failed { outcome } | Self::NotFinished { outcome } | Self::NotTyped { outcome, .. } => {
                Some(&outcome.run)
            }
            Self::Lost { run }
            | Self::Stopped { run, .. }
            | Self::UnknownRun { run, .. }
            | Self::Unsupported { run, .. }
            | Self::KeyUsed { run, .. }
            | Self::SessionBusy { run, .. }
            | Self::WentOn { run, .. }
            | Self::NoForkPlace { run, .. }
            | Self::OtherTenant { run, .. } => Some(run),
            Self::Journal(error) => error.run(),
            Self::Refused(refused) => refused.run(),
            _ => None,
        }
    }

    /// Returns the error of the agent from [`Agent`](Self::Agent), if that error has the type `E`.
    pub fn cause<E: StdError + 'static>(&self) -> Option<&E> {
        match self {
            Self::Agent { source, .. } => source.downcast_ref(),
            Self::Stopped { error, .. } => Self::cause(error),
            _ => None,
        }
    }

    /// Returns the HTTP status of a service's response for this error.
    ///
    /// | status | meaning for the client |
    /// |---|---|
    /// | 404 | the run does not exist, or the client may not know that it exists |
    /// | 409 | the state of the run or of the session does not allow the request now |
    /// | 422 | the request must be changed |
    /// | 429 | the client has started too many runs |
    /// | 502 | the run failed, mostly because of its model: see [`kind`](Self::kind) |
    /// | 503 | the same request may succeed later |
    /// | 500 | the service must be repaired |
    ///
    /// ```
    /// use archon_types::{RunError, RunId, RunStatus};
    ///
    /// let busy = RunError::SessionBusy { run: RunId::new("run_7"), status: RunStatus::Running };
    /// assert_eq!(busy.http_status(), 409);
    /// ```
    pub fn http_status(&self) -> u16 {
        match self {
            Self::UnknownRun { .. } | Self::OtherTenant { .. } => 404,
            Self::SessionBusy { .. }
            | Self::PlanMode { .. }
            | Self::WentOn { .. }
            | Self::KeyUsed { .. }
            | Self::OtherFolder { .. }
            | Self::Unsupported { .. }
            | Self::Refused(_)
            | Self::NotFinished { .. }
            | Self::NothingToContinue => 409,
            Self::EmptyPrompt
            | Self::UnreadableMedia { .. }
            | Self::NoForkPlace { .. }
            | Self::UnknownTool { .. }
            | Self::NoEffect { .. }
            | Self::NotForKind { .. }
            | Self::Edit { .. }
            | Self::RuleNotOffered { .. }
            | Self::Messages { .. } => 422,
            Self::Failed { .. } | Self::NotTyped { .. } => 502,
            Self::TooManyStarts { .. } => 429,
            Self::MemoryPressure { .. } | Self::ToolNotKnownYet { .. } => 503,
            Self::Journal(error) => match error {
                JournalError::UnknownRun { .. } | JournalError::BadId { .. } => 404,
                JournalError::Locked { .. }
                | JournalError::Exists { .. }
                | JournalError::Needed { .. }
                | JournalError::Posted { .. } => 409,
                JournalError::Storage { .. } => 503,
                _ => 500,
            },
            Self::Stopped { error, .. } => error.http_status(),
            Self::Lost { .. } | Self::NoAgent { .. } | Self::Agent { .. } => 500,
        }
    }

    /// Returns advice for a person on how to deal with the error, as one line.
    pub fn advice(&self) -> &str {
        match self {
            Self::Failed { outcome } => outcome.failure_kind().unwrap_or(FailureKind::Other).advice(),
            Self::NotFinished { outcome } => unfinished_advice(outcome.status),
            Self::NotTyped { .. } => {
                "check the answer in the outcome; resume the run, or request a simpler type"
            }
            Self::Lost { .. } => "resume the run: it continues at the end of its log",
            Self::Stopped { error, .. } => error.advice(),
            Self::Journal(error) => error.advice(),
            Self::Refused(refused) => refused.advice(),
            Self::UnknownRun { .. } => "`archon runs list` lists the existing runs",
            Self::Unsupported { instead, .. } | Self::NotForKind { instead, .. } => instead,
            Self::NoAgent { .. } => "register the agent that started the run, under the same id",
            Self::KeyUsed { .. } => "use a new idempotency key for each request",
            Self::SessionBusy { status: RunStatus::Suspended, .. } => {
                "answer the run's questions and resume it (`AnswerRuns::answer` does both), or cancel it; or send the message with `WhenBusy::Queue`, so that the run reads it, or with `WhenBusy::Branch` or `RunOptions::branch` in a parallel run"
            }
            Self::SessionBusy { status: RunStatus::Interrupted, .. } => {
                "resume the run, or cancel and resume it, which ends it; or send the message with `WhenBusy::Queue`, so that the run reads it, or with `WhenBusy::Branch` or `RunOptions::branch` in a parallel run"
            }
            Self::WentOn { .. } => {
                "send a new message to the session, or fork the run with `ManageRuns::fork`"
            }
            Self::SessionBusy { .. } => {
                "wait until the run has ended; or send the message with `WhenBusy::Queue`, so that the run reads it, or with `WhenBusy::Branch` or `RunOptions::branch` in a parallel run"
            }
            Self::PlanMode { .. } => {
                "set another mode of the session (`Runs::set_mode`), or send the task as a loop, which ends with a plan"
            }
            Self::NoForkPlace { .. } => "choose an earlier turn or record, or none for the end of the run",
            Self::EmptyPrompt => "say what is to be done",
            Self::UnreadableMedia { .. } => {
                "choose a model that reads such files, or set `vision` or `pdf` in the settings of the model if it does"
            }
            Self::NothingToContinue => "start a run first",
            Self::OtherFolder { .. } => "use `archon approvals` or `archon resume RUN` in that folder",
            Self::OtherTenant { .. } => "use the tenant for which the run was started",
            Self::UnknownTool { .. } => "select only tools that the agent was built with",
            Self::ToolNotKnownYet { .. } => {
                "wait for the tool's server before the run starts (`McpServers::settled`), or leave the tool out"
            }
            Self::NoEffect { option: "media", .. } => "name the file in the text, or start a loop with it",
            Self::NoEffect { option: "run" | "session" | "branch" | "tenant", .. } => "leave the option out",
            Self::NoEffect { .. } => {
                "set the option where each agent is built; `Archon::to_builder` begins with an agent's parts"
            }
            Self::Edit { .. } => {
                "change the arguments so that they fit the tool, or approve or cancel the call"
            }
            Self::RuleNotOffered { .. } => {
                "approve this call only, or trust rules that the question has in `rules`"
            }
            Self::Messages { .. } => "restore messages that `save_messages` wrote",
            Self::MemoryPressure { .. } => "wait until other runs have ended, or cancel one",
            Self::TooManyStarts { .. } => "wait, and send the request again",
            Self::Agent { advice, .. } => advice,
        }
    }
}

impl std::fmt::Debug for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self} ({})", self.advice())
    }
}

fn failure_text(outcome: &Outcome) -> &str {
    outcome.error.as_deref().unwrap_or_else(|| outcome.failure_kind().unwrap_or(FailureKind::Other).as_str())
}

/// Returns advice on a run without a final answer.
fn unfinished_advice(status: OutcomeStatus) -> &'static str {
    match status {
        OutcomeStatus::Limit(_) => "resume the run with larger limits, `MoreLimits`; or match the `Reply`",
        OutcomeStatus::Suspended => "answer the run's questions, then resume the run; or match the `Reply`",
        _ => "resume the run, or match the `Reply`",
    }
}

fn unfinished_text(status: OutcomeStatus) -> String {
    match status {
        OutcomeStatus::Limit(limit) => format!("reached a limit: {limit}"),
        OutcomeStatus::Suspended => "waits for a person or a timer".to_owned(),
        _ => "was cancelled".to_owned(),
    }
}

fn nearest_text(nearest: &[RunId]) -> String {
    match nearest {
        [] => String::new(),
        nearest => {
            let names: Vec<_> = nearest.iter().map(RunId::as_str).collect();
            format!("; the most similar ids are {}", names.join(", "))
        }
    }
}

fn known_text(known: &[String]) -> String {
    match known {
        [] => String::new(),
        known => format!("; registered agents: {}", known.join(", ")),
    }
}

impl AgentMessage {
    /// Joins the texts of `messages`, separated by blank lines, for agents that take a single text. Extension
    /// messages are left out, because no model reads them.
    ///
    /// # Errors
    /// [`RunError::EmptyPrompt`] if there is no text, and [`RunError::NoEffect`] if there is a picture or another
    /// medium.
    pub fn joined_text(messages: &[Self]) -> Result<String, RunError> {
        let mut blocks = messages.iter().filter_map(Self::as_llm).flat_map(Message::content);
        if blocks.any(|block| block.as_media().is_some()) {
            return Err(RunError::NoEffect { option: "media", on: "a plan or a team, which take a text" });
        }
        let texts: Vec<_> = messages.iter().filter_map(Self::as_llm).map(Message::text).collect();
        match texts.join("\n\n") {
            text if text.trim().is_empty() => Err(RunError::EmptyPrompt),
            text => Ok(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::LimitReached,
        messages::{Content, Media, UserMessage},
        values::{CallId, CommandId, Timestamp},
    };

    // spec: EX-16
    #[test]
    fn joined_text_of_a_message_with_a_picture_is_refused() {
        let picture = Media::new(b"GIF89a", None).unwrap();
        let content = vec![Content::text("What is it?"), picture.into()];
        let message = Message::User(UserMessage::new(content, Timestamp::default()));
        let error = AgentMessage::joined_text(&[message.into()]).unwrap_err();
        assert_eq!(error.to_string(), "`media` has no effect on a plan or a team, which take a text");
    }

    #[test]
    fn run_error_names_its_run_for_every_source_of_the_error() {
        let run = RunId::new("run_7");
        let [a, b, c, d, e, f] = std::array::from_fn(|_| run.clone());
        let refused = [
            RunRefused::Ended { run: a },
            RunRefused::AtLimit { run: b, limit: LimitReached::Turns { max: 3 } },
            RunRefused::NoQuestion { run: c, call: CallId::new(CommandId(0), 0) },
            RunRefused::NotOfThisCall { run: d, caller: RunId::new("other") },
        ];
        let journal = [
            JournalError::Locked { run: e },
            JournalError::Corrupt { run: f, record: 3, problem: "a flipped bit".to_owned() },
        ];
        for error in refused.map(RunError::from).into_iter().chain(journal.map(RunError::from)) {
            assert_eq!(error.run(), Some(&run), "{error:?}");
            let (text, advice) = (error.to_string(), error.advice().to_owned());
            let stopped = RunError::Stopped { run: run.clone(), error: Arc::new(error) };
            assert_eq!((stopped.run(), stopped.advice()), (Some(&run), advice.as_str()));
            assert_eq!(stopped.to_string(), format!("run run_7 stopped: {text}"));
        }
        assert_eq!(RunError::from(RunRefused::TooDeep { depth: 6, max: 5 }).run(), None);
    }
}
