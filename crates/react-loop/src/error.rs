//! Errors of starting, resuming and driving a run.

use archon_types::{
    EvaluationError, FailureKind, ForkPlace, JournalError, MediaKind, RunError, RunId, RunKind, RunRefused,
    format_money,
};
#[cfg(doc)]
use archon_types::{ExecutionLimits, Outcome};

/// An error of starting or resuming a run. Failures inside a run are part of its [`Outcome`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoopError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The run has no prompt, or only empty ones.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The first record of the log is not `RunStarted`.
    #[error("the log of run {run} does not start with a `run_started` record")]
    NotARun {
        /// Id of the run.
        run: RunId,
    },
    /// The process died, or hooks refused the run, before the prompt was recorded.
    #[error("run {run} stopped before its prompt was recorded")]
    NothingAsked {
        /// Id of the run.
        run: RunId,
    },
    /// The run has no turn or record with the number at which it should be forked.
    #[error("run {run} has {turns} turns and {records} records, so it cannot be forked {place}")]
    NoForkPlace {
        /// Id of the run.
        run: RunId,
        /// The place that was given.
        place: ForkPlace,
        /// Number of turns of the run.
        turns: u32,
        /// Number of records of the run.
        records: u64,
    },
    /// The record is no message of a person, so no other text can take its place.
    #[error("record {seq} of run {run} is no message of a person in this session")]
    NoSuchMessage {
        /// Id of the run.
        run: RunId,
        /// Sequence number of the record.
        seq: u64,
    },
    /// The message came between a tool call and its result, or into a plan or a team at work.
    #[error(
        "message {seq} of run {run} came between a tool call and its result, so no other text can take its place"
    )]
    BetweenCallAndResult {
        /// Id of the run.
        run: RunId,
        /// Sequence number of the record.
        seq: u64,
    },
    /// The conversation is empty or ends with an answer, so the run has nothing to answer.
    #[error("the conversation is empty or ends with the model's answer, so there is nothing to answer")]
    NothingToAnswer,
    /// A restored conversation has a tool call without its result, or a result without its call.
    #[error("the messages cannot be restored: a tool call has no result, or a result has no call")]
    Unpaired,
    /// The cost is limited, and the price of a model is unknown.
    #[error("the cost of the run is limited to {}, but the price of {model} is unknown", format_money(*max_cost_micros))]
    UnknownPrice {
        /// Name of the model.
        model: String,
        /// The cost limit, in millionths of a currency unit.
        max_cost_micros: u64,
    },
    /// A fallback model does not support native tool calling, which the run uses.
    #[error("the fallback model {model} of {provider} does not support native tool calling")]
    FallbackWithoutTools {
        /// Id of the provider.
        provider: String,
        /// Name of the model.
        model: String,
    },
    /// A run with this id exists, and this call did not start it.
    #[error("run {run} already exists, but this call of run {caller} did not start it")]
    NotOfThisCall {
        /// Id of the existing run.
        run: RunId,
        /// Id of the run that makes the call.
        caller: RunId,
    },
    /// The JSON Schema of the answer is invalid.
    #[error("the JSON Schema of the answer is invalid: {problem}")]
    InvalidSchema {
        /// The problem with the schema.
        problem: String,
    },
    /// The prompt has a picture, a PDF or another file that neither the model nor a tool of the run can read.
    #[error("the model {model} cannot read {kind}, and the message has one: {name}")]
    UnreadableMedia {
        /// Name of the model.
        model: String,
        /// Kind of the file.
        kind: MediaKind,
        /// Name of the file, or its media type.
        name: String,
    },
    /// Agents that call agents are nested too deeply.
    #[error("a run at depth {depth} cannot start: the maximum depth is {max}")]
    TooDeep {
        /// Depth of the refused run: 0 for a run that no other run called, 1 for its child runs, and so on.
        depth: u32,
        /// [`ExecutionLimits::max_depth`].
        max: u32,
    },
    /// A parallel loop has no branch.
    #[error("a parallel loop needs at least one branch")]
    NoBranch,
    /// The strategy cannot choose a branch.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
    /// The kind of the run does not allow the operation.
    #[error("run {run} is of kind {kind}, which does not allow this operation")]
    OtherKind {
        /// Id of the run.
        run: RunId,
        /// Kind of the run.
        kind: RunKind,
    },
    /// The log of the parallel loop has another number of branches than the loop that resumes it.
    #[error("run {run} has {found} branches, so it cannot be resumed with {given}")]
    OtherBranches {
        /// Id of the run.
        run: RunId,
        /// Number of branches in the run's log; 0 if the log has no branches.
        found: usize,
        /// Number of branches of the loop that should resume the run.
        given: usize,
    },
    /// Processes of the run that outlived a crash cannot be ended.
    #[error("run {run} cannot continue: its process group {group} is still running and cannot be ended")]
    ProcessesLeft {
        /// Id of the run.
        run: RunId,
        /// Id of the process group.
        group: u32,
    },
    /// Code of the program panicked, for instance a hook. The records up to the panic are kept.
    #[error("a panic interrupted run {run}: {message}; the run can be resumed")]
    Panicked {
        /// Id of the run.
        run: RunId,
        /// Text of the panic.
        message: String,
    },
    /// The run has ended, or has reached a limit that the resume does not raise enough.
    #[error(transparent)]
    Refused(#[from] RunRefused),
}

impl LoopError {
    /// Returns the kind of failure for the caller of a run of this agent.
    pub(crate) fn kind(&self) -> FailureKind {
        match self {
            Self::Panicked { .. } => FailureKind::Panicked,
            Self::Refused(RunRefused::AtLimit { .. }) => FailureKind::Limit,
            _ => FailureKind::Refused,
        }
    }

    /// Returns advice for a person on how to deal with the error, as one line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Journal(e) => e.advice(),
            Self::EmptyPrompt => "write a prompt",
            Self::NotARun { .. } => "`archon runs list` lists the runs",
            Self::NothingAsked { .. } => "start a new run with the prompt",
            Self::NoForkPlace { .. } => "choose an earlier turn or record, or none for the end of the run",
            Self::NoSuchMessage { .. } => "choose one of the session's messages",
            Self::BetweenCallAndResult { .. } => "go back to an earlier message",
            Self::NothingToAnswer => "continue with a new prompt",
            Self::Unpaired => "put the result of every tool call directly after the message with the call",
            Self::UnknownPrice { .. } => "set the model's price, or no cost limit",
            Self::FallbackWithoutTools { .. } => "remove the fallback, or use text mode",
            Self::NotOfThisCall { .. } => "inspect the existing run, and delete it if it is not needed",
            Self::InvalidSchema { .. } => "use a schema that is valid by JSON Schema draft 2020-12",
            Self::UnreadableMedia { .. } => {
                "choose a model that reads such files, or set `vision` or `pdf` in the settings of the model if it does"
            }
            Self::TooDeep { .. } => "nest fewer agents, or raise `max_depth`",
            Self::NoBranch => "add at least one agent to the parallel loop",
            Self::Evaluation(e) => e.advice(),
            Self::OtherKind { .. } => {
                "resume it with the agent of its kind; steer the runs that it called; begin a new session for another task"
            }
            Self::OtherBranches { .. } => "give as many branches, in the same order, as when it was started",
            Self::ProcessesLeft { .. } => "end the process group yourself, then resume the run",
            Self::Panicked { .. } => "correct the code that panicked, then resume the run",
            Self::Refused(RunRefused::AtLimit { .. }) => {
                "resume it with a higher limit, or continue its session with a new prompt"
            }
            Self::Refused(RunRefused::Ended { .. }) => "continue its session with a new prompt",
            Self::Refused(refused) => refused.advice(),
        }
    }
}

impl From<LoopError> for RunError {
    fn from(error: LoopError) -> Self {
        match error {
            LoopError::Journal(error) => error.into(),
            LoopError::EmptyPrompt => Self::EmptyPrompt,
            LoopError::NoForkPlace { run, place, turns, records } => {
                Self::NoForkPlace { run, place, turns, records }
            }
            LoopError::UnreadableMedia { model, kind, name } => Self::UnreadableMedia { model, kind, name },
            LoopError::Refused(refused) => refused.into(),
            LoopError::OtherKind { run, kind } => Self::Unsupported {
                run,
                kind,
                action: "be used as a loop",
                instead: "resume it with the agent of its kind; steer, fork or replay the runs that it called",
            },
            error => {
                let advice = error.advice();
                Self::agent(error, advice)
            }
        }
    }
}
