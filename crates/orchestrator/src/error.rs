//! Errors of starting, resuming and storing a team's run.

use archon_types::{JournalError, RunError, RunId, RunRefused};

use crate::check::TeamProblem;

/// Reason why a team's run has no outcome. A failure of the team's work is an outcome, not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TeamError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The configuration of the team has problems.
    #[error("the team cannot work: {}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Problems {
        /// All problems of the configuration.
        problems: Vec<TeamProblem>,
    },
    /// The log does not belong to a run of a team.
    #[error("run {run} is not the run of a team")]
    NotATeam {
        /// Id of the run.
        run: RunId,
    },
    /// The JSON Schema of the answer is invalid.
    #[error("the JSON Schema of the answer is invalid: {problem}")]
    InvalidSchema {
        /// The problem with the schema.
        problem: String,
    },
    /// The run cannot be started or resumed.
    #[error(transparent)]
    Refused(#[from] RunRefused),
}

impl TeamError {
    /// Returns advice for a person on how to deal with the error, as one line.
    pub fn advice(&self) -> String {
        match self {
            Self::Journal(error) => error.advice().to_owned(),
            Self::Refused(refused) => refused.advice().to_owned(),
            Self::Problems { problems } => problems.first().map(TeamProblem::advice).unwrap_or_default(),
            Self::InvalidSchema { .. } => {
                "use a schema that is valid by JSON Schema draft 2020-12".to_owned()
            }
            Self::NotATeam { .. } => "resume the run with the agent that started it".to_owned(),
        }
    }
}

impl From<TeamError> for RunError {
    fn from(error: TeamError) -> Self {
        let advice = error.advice();
        match error {
            TeamError::Journal(error) => error.into(),
            TeamError::Refused(refused) => refused.into(),
            error => Self::agent(error, advice),
        }
    }
}
