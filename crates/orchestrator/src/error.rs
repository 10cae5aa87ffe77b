//! Errors of starting, resuming and storing a team's run.

use archon_types::{JournalError, RunError, RunId, RunRefused};

use crate::check::TeamProblem;

/// The reason why a run has no outcome. A failed team is an outcome, not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TeamError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Something is wrong with the team itself.
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
    /// The schema of the answer is not valid.
    #[error("the schema for the answer is not valid: {problem}")]
    InvalidSchema {
        /// The problem with the schema.
        problem: String,
    },
    /// The run is refused: it cannot be started or resumed.
    #[error(transparent)]
    Refused(#[from] RunRefused),
}

impl TeamError {
    /// Returns one line of advice.
    pub fn advice(&self) -> String {
        match self {
            Self::Journal(error) => error.advice().to_owned(),
            Self::Refused(refused) => refused.advice().to_owned(),
            Self::Problems { problems } => problems.first().map(TeamProblem::advice).unwrap_or_default(),
            Self::InvalidSchema { .. } => "give a schema of JSON Schema's draft 2020-12".to_owned(),
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
