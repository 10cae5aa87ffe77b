//! Why a plan's run could not be begun, gone on with, or kept.

use archon_types::{CallId, JournalError, PlanError, RunId, RunRefused};

use crate::problem::{PlanProblem, with_remedy};

/// Why there is no outcome. That a plan failed is an outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanRunError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The plan cannot be followed.
    #[error("the plan cannot be followed: {}", all(problems))]
    Problems {
        /// Everything that is wrong with it.
        problems: Vec<PlanProblem>,
    },
    /// The log is not one of a plan.
    #[error("run {run} follows no plan")]
    NotAPlan {
        /// The run.
        run: RunId,
    },
    /// An answer changes what only another plan can change.
    #[error("question {call} of run {run} is about a subtask, which no answer changes")]
    NotChangeable {
        /// The run.
        run: RunId,
        /// The question.
        call: CallId,
    },
    /// Nobody answered in time.
    #[error("question {call} of run {run} has expired")]
    Expired {
        /// The run.
        run: RunId,
        /// The question.
        call: CallId,
    },
    /// The run is neither begun nor taken up.
    #[error(transparent)]
    Refused(#[from] RunRefused),
    /// Processes that the run started before its own died cannot be ended.
    #[error("processes of run {run} are still at work: group {group}")]
    ProcessesLeft {
        /// The run.
        run: RunId,
        /// The number of one of their groups.
        group: u32,
    },
}

impl PlanRunError {
    /// What can be done about it, in a line.
    pub fn advice(&self) -> String {
        match self {
            Self::Journal(error) => error.advice().to_owned(),
            Self::Refused(refused) => refused.advice().to_owned(),
            Self::Plan(error) => error.advice().to_owned(),
            Self::Problems { problems } => problems.first().map(PlanProblem::remedy).unwrap_or_default(),
            Self::NotChangeable { .. } => "approve it or cancel it as it is".to_owned(),
            Self::Expired { .. } => "resume the run: that nobody answered counts as a no".to_owned(),
            Self::NotAPlan { .. } => "resume it with the agent that began it".to_owned(),
            Self::ProcessesLeft { group, .. } => {
                format!("end them yourself (kill -9 -{group}), then resume the run")
            }
        }
    }
}

fn all(problems: &[PlanProblem]) -> String {
    problems.iter().filter(|p| p.is_error()).map(with_remedy).collect::<Vec<_>>().join("; ")
}
