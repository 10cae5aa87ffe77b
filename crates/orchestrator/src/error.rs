//! Why a team's run could not be begun, gone on with, or kept.

use archon_types::{CallId, JournalError, RunId};

use crate::check::TeamProblem;

/// Why there is no outcome. That a team failed is an outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TeamError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The team cannot work.
    #[error("the team cannot work: {}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Problems {
        /// Everything that is wrong with it.
        problems: Vec<TeamProblem>,
    },
    /// The log is not one of a team.
    #[error("run {run} is not a team's")]
    NotATeam {
        /// The run.
        run: RunId,
    },
    /// The run is there and works for another call.
    #[error("run {run} is there and does not work for this call of {caller}")]
    NotOfThisCall {
        /// The run.
        run: RunId,
        /// Who calls.
        caller: RunId,
    },
    /// The run has ended.
    #[error("run {run} has ended")]
    Ended {
        /// The run.
        run: RunId,
    },
    /// Nobody asked what was answered.
    #[error("run {run} has no question {call} that is open")]
    NoQuestion {
        /// The run.
        run: RunId,
        /// The call that the answer names.
        call: CallId,
    },
    /// The run is too deep below the one that a person started to begin others.
    #[error("a team begins runs of its own, and at depth {depth} there may be none below {max}")]
    TooDeep {
        /// Where the run is.
        depth: u32,
        /// The deepest that a run may be.
        max: u32,
    },
}

impl TeamError {
    /// What can be done about it, in a line.
    pub fn advice(&self) -> String {
        match self {
            Self::Journal(error) => error.advice().to_owned(),
            Self::Problems { problems } => problems.first().map(TeamProblem::advice).unwrap_or_default(),
            Self::NotATeam { .. } => "resume it with the agent that began it".to_owned(),
            Self::NotOfThisCall { .. } => "choose another id for one of them".to_owned(),
            Self::Ended { .. } => "begin another run".to_owned(),
            Self::NoQuestion { .. } => "look at the run's questions first".to_owned(),
            Self::TooDeep { .. } => "raise max_depth".to_owned(),
        }
    }
}
