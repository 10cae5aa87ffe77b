//! Why a run could not be started or went no further.

use archon_types::{
    EvaluationError, FailureKind, JournalError, LimitReached, RunError, RunId, RunKind, RunRefused,
};
#[cfg(doc)]
use archon_types::{ExecutionLimits, Outcome};

/// Why a run could not be started or taken up. What goes wrong inside a run is an [`Outcome`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoopError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// There is nothing to work on.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The log is there and is not the log of a run.
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
    /// The run has fewer turns.
    #[error("run {run} has {turns} turns: it cannot be forked after turn {asked}")]
    NoSuchTurn {
        /// The run.
        run: RunId,
        /// After which turn the fork was to be.
        asked: u32,
        /// The turns that the run has.
        turns: u32,
    },
    /// The conversation ends with an answer, so there is nothing to go on with.
    #[error("the conversation ends with the model's answer")]
    NothingToAnswer,
    /// A conversation from elsewhere holds a tool call without its result, or a result without its call.
    #[error(
        "the messages cannot be restored: a tool call is without its result, or a result without its call"
    )]
    Unpaired,
    /// Money is limited and nobody knows what the model costs.
    #[error("the run may cost {max_cost} millionths at most and the price of {model} is unknown")]
    UnknownPrice {
        /// The model.
        model: String,
        /// The limit.
        max_cost: u64,
    },
    /// A model that stands in cannot call tools in the way that the run does.
    #[error("the fallback {model} of {provider} cannot call tools")]
    FallbackWithoutTools {
        /// The provider's id.
        provider: String,
        /// The model.
        model: String,
    },
    /// A run of this name is there, and another call started it, or none.
    #[error("run {run} is there already and was not started by this call of run {caller}")]
    NotOfThisCall {
        /// The run.
        run: RunId,
        /// The run that calls.
        caller: RunId,
    },
    /// Nothing can be held against the form that answers must have.
    #[error("answers cannot be held against their form: {problem}")]
    Form {
        /// What is wrong with it.
        problem: String,
    },
    /// Agents called agents too often.
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
    /// The run is of another kind: it asks no model itself.
    #[error("run {run} is of kind {kind}")]
    OtherKind {
        /// The run.
        run: RunId,
        /// Its kind.
        kind: RunKind,
    },
    /// The run is no parallel loop, or one with other branches.
    #[error("run {run} has {found} branches, and it was to be resumed with {given}")]
    OtherBranches {
        /// The run.
        run: RunId,
        /// The branches that its log names; 0 if it is no parallel loop.
        found: usize,
        /// The branches that were given.
        given: usize,
    },
    /// Processes that the run started before it was cut off cannot be ended.
    #[error("run {run} cannot go on while its process group {group} is at work, and that cannot be ended")]
    ProcessesLeft {
        /// The run.
        run: RunId,
        /// The number of the group.
        group: u32,
    },
    /// Something that the run was given panicked, for instance a hook. What it did until then is kept.
    #[error("run {run} was cut off by a panic: {message}; it can be resumed")]
    Panicked {
        /// The run.
        run: RunId,
        /// What the panic said.
        message: String,
    },
    /// The run has met a limit, and is to be taken up with no more of it.
    #[error("run {run} has ended: {limit}")]
    AtLimit {
        /// The run.
        run: RunId,
        /// The limit.
        limit: LimitReached,
    },
    /// The run has its outcome.
    #[error("run {run} has ended")]
    Ended {
        /// The run.
        run: RunId,
    },
}

impl LoopError {
    /// The kind of failure that it is where a run of this agent was called.
    pub(crate) fn kind(&self) -> FailureKind {
        match self {
            Self::Panicked { .. } => FailureKind::Panicked,
            Self::AtLimit { .. } => FailureKind::Limit,
            _ => FailureKind::Refused,
        }
    }

    /// What a person can do about it, in a line.
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
            Self::Form { .. } => "give a schema of JSON Schema's draft 2020-12",
            Self::TooDeep { .. } => "let fewer agents call agents, or raise `max_depth`",
            Self::NoBranch => "give it the agents that are to work side by side",
            Self::Evaluation(e) => e.advice(),
            Self::OtherKind { .. } => {
                "resume it with the agent of its kind; steer the runs that it called; begin a new session for another task"
            }
            Self::OtherBranches { .. } => "give as many branches, in the same order, as when it was started",
            Self::ProcessesLeft { .. } => "end the group by hand, then resume the run",
            Self::Panicked { .. } => "mend what panicked, then resume the run",
            Self::AtLimit { .. } => "take it up with more of that, or continue its session with a new prompt",
            Self::Ended { .. } => "continue its session with a new prompt",
        }
    }
}

impl From<LoopError> for RunError {
    fn from(error: LoopError) -> Self {
        match error {
            LoopError::Journal(error) => error.into(),
            LoopError::EmptyPrompt => Self::EmptyPrompt,
            LoopError::Ended { run } => RunRefused::Ended { run }.into(),
            LoopError::AtLimit { run, limit } => RunRefused::AtLimit { run, limit }.into(),
            LoopError::OtherKind { run, kind } => Self::Unsupported {
                run,
                kind,
                action: "do what a loop can",
                instead: "resume it with the agent of its kind; steer, fork or replay the runs that it called",
            },
            error => {
                let advice = error.advice();
                Self::agent(error, advice)
            }
        }
    }
}
