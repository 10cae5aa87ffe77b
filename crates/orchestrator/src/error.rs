//! Why a team's run could not be begun, gone on with, or kept.

use archon_types::{JournalError, RunError, RunId, RunRefused};

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
    /// Nothing can be held against the form that the answer must have.
    #[error("the answer cannot be held against its form: {problem}")]
    Form {
        /// What is wrong with it.
        problem: String,
    },
    /// The run is neither begun nor taken up.
    #[error(transparent)]
    Refused(#[from] RunRefused),
}

impl TeamError {
    /// What can be done about it, in a line.
    pub fn advice(&self) -> String {
        match self {
            Self::Journal(error) => error.advice().to_owned(),
            Self::Refused(refused) => refused.advice().to_owned(),
            Self::Problems { problems } => problems.first().map(TeamProblem::advice).unwrap_or_default(),
            Self::Form { .. } => "give a schema of JSON Schema's draft 2020-12".to_owned(),
            Self::NotATeam { .. } => "resume it with the agent that began it".to_owned(),
        }
    }
}

impl From<TeamError> for RunError {
    fn from(error: TeamError) -> Self {
        match error {
            TeamError::Journal(error) => error.into(),
            TeamError::Refused(refused) => refused.into(),
            error => {
                let advice = error.advice();
                Self::agent(error, advice)
            }
        }
    }
}
