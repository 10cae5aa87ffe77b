//! Errors of starting, resuming and driving a run.

use archon_types::{
    EvaluationError, FailureKind, JournalError, RunError, RunId, RunKind, RunRefused, format_money,
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
    /// There is nothing to work on.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The log does not begin as the log of a run does.
    #[error("run {run} has a log that does not begin as a run's log does")]
    NotARun {
        /// The run.
        run: RunId,
    },
    /// The process died before the prompt was in the log.
    #[error("run {run} was cut off before its prompt was kept")]
    NothingAsked {
        /// The run.
        run: RunId,
    },
    /// The run has fewer turns than the fork needs.
    #[error("run {run} has {turns} turns: it cannot be forked after turn {asked}")]
    NoSuchTurn {
        /// The run.
        run: RunId,
        /// The turn after which the fork was to begin.
        asked: u32,
        /// The number of turns of the run.
        turns: u32,
    },
    /// The conversation ends with an answer, so there is nothing to continue.
    #[error("the conversation ends with the model's answer")]
    NothingToAnswer,
    /// A restored conversation has a tool call without its result, or a result without its call.
    #[error(
        "the messages cannot be restored: a tool call is without its result, or a result without its call"
    )]
    Unpaired,
    /// The cost is limited and the price of the model is unknown.
    #[error("the run may cost at most {}, and the price of {model} is unknown", format_money(*max_cost_micros))]
    UnknownPrice {
        /// The model.
        model: String,
        /// The limit, in millionths of a currency unit.
        max_cost_micros: u64,
    },
    /// A fallback model has no native tool calling, which the run uses.
    #[error("the fallback {model} of {provider} cannot call tools")]
    FallbackWithoutTools {
        /// The provider's id.
        provider: String,
        /// The model.
        model: String,
    },
    /// A run with this id exists, and another call or none started it.
    #[error("run {run} exists already, and was not started by this call of run {caller}")]
    NotOfThisCall {
        /// The run.
        run: RunId,
        /// The run that calls.
        caller: RunId,
    },
    /// The schema for answers cannot be used.
    #[error("the schema for answers is not valid: {problem}")]
    InvalidSchema {
        /// The problem of the schema.
        problem: String,
    },
    /// Agents that call agents are nested too deeply.
    #[error("a run at depth {depth} is not started: the limit is {max}")]
    TooDeep {
        /// The depth of the run that was to start.
        depth: u32,
        /// [`ExecutionLimits::max_depth`].
        max: u32,
    },
    /// A parallel loop was given no branch.
    #[error("a parallel loop needs at least one branch")]
    NoBranch,
    /// The strategy cannot choose among so many branches.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
    /// The run is of a kind that does not allow this.
    #[error("run {run} is of kind {kind}")]
    OtherKind {
        /// The run.
        run: RunId,
        /// Its kind.
        kind: RunKind,
    },
    /// The run is no parallel loop, or has another number of branches.
    #[error("run {run} has {found} branches, and it was to be resumed with {given}")]
    OtherBranches {
        /// The run.
        run: RunId,
        /// The number of branches in its log; 0 if it is no parallel loop.
        found: usize,
        /// The number of branches that were given.
        given: usize,
    },
    /// Processes that the run started before it was cut off cannot be ended.
    #[error("run {run} cannot go on while its process group {group} is at work, and that cannot be ended")]
    ProcessesLeft {
        /// The run.
        run: RunId,
        /// The id of the process group.
        group: u32,
    },
    /// Code that the run was given panicked, for instance a hook. The records until then are kept.
    #[error("run {run} was cut off by a panic: {message}; it can be resumed")]
    Panicked {
        /// The run.
        run: RunId,
        /// The text of the panic.
        message: String,
    },
    /// The run has ended, or is at a limit that the resume does not raise enough.
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

    /// Returns advice for a person, in one line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Journal(e) => e.advice(),
            Self::EmptyPrompt => "say what is to be done",
            Self::NotARun { .. } => "`archon runs list` shows the runs there are",
            Self::NothingAsked { .. } => "start it again",
            Self::NoSuchTurn { .. } => "choose an earlier turn, or none to keep them all",
            Self::NothingToAnswer => "say something to go on",
            Self::Unpaired => "put every tool call's result right behind it",
            Self::UnknownPrice { .. } => "give the model's price, or set no limit on money",
            Self::FallbackWithoutTools { .. } => "leave it out, or use text mode",
            Self::NotOfThisCall { .. } => "look at the run that is there, and remove it if it is of no use",
            Self::InvalidSchema { .. } => "give a schema of JSON Schema's draft 2020-12",
            Self::TooDeep { .. } => "let fewer agents call agents, or raise `max_depth`",
            Self::NoBranch => "give it the agents that are to work side by side",
            Self::Evaluation(e) => e.advice(),
            Self::OtherKind { .. } => {
                "resume it with the agent of its kind; steer the runs that it called; begin a new session for another task"
            }
            Self::OtherBranches { .. } => "give as many branches, in the same order, as when it was started",
            Self::ProcessesLeft { .. } => "end the group by hand, then resume the run",
            Self::Panicked { .. } => "fix what panicked, then resume the run",
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
