//! Errors of starting, resuming and driving a plan's run.

use archon_types::{CallId, JournalError, PlanError, RunError, RunId, RunRefused, Spending};

use crate::problem::{PlanProblem, with_remedy};

/// The reason why there is no outcome. A failed plan is an outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanRunError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no draft of a plan.
    #[error("{error}")]
    NoDraft {
        /// The reason.
        error: PlanError,
        /// The spending in spite of that.
        spent: Spending,
    },
    /// The plan cannot be followed.
    #[error("the plan cannot be followed: {}", all(problems))]
    Problems {
        /// All problems of the plan.
        problems: Vec<PlanProblem>,
    },
    /// The log is not the log of a plan.
    #[error("run {run} follows no plan")]
    NotAPlan {
        /// The run.
        run: RunId,
    },
    /// The answer changes something that only another plan can change, or is more than a yes or no.
    #[error("question {call} of run {run} takes a yes or a no, and nothing else")]
    NotChangeable {
        /// The run.
        run: RunId,
        /// The call of the question.
        call: CallId,
    },
    /// There is no such open question.
    #[error("run {run} has no open question {question}")]
    NoSuchQuestion {
        /// The run.
        run: RunId,
        /// The id of the question.
        question: String,
    },
    /// Several questions are about one call.
    #[error("run {run} has {} open questions about call {call}: {}", questions.len(), questions.join(", "))]
    SeveralQuestions {
        /// The run.
        run: RunId,
        /// The call.
        call: CallId,
        /// The ids of the questions.
        questions: Vec<String>,
    },
    /// The question has expired.
    #[error("question {call} of run {run} has expired")]
    Expired {
        /// The run.
        run: RunId,
        /// The call of the question.
        call: CallId,
    },
    /// The schema for the answer cannot be used.
    #[error("the schema for the answer is not valid: {problem}")]
    InvalidSchema {
        /// The problem of the schema.
        problem: String,
    },
    /// The run cannot be started or resumed.
    #[error(transparent)]
    Refused(#[from] RunRefused),
    /// Processes that the run started before its own process died cannot be ended.
    #[error("processes of run {run} are still at work: group {group}")]
    ProcessesLeft {
        /// The run.
        run: RunId,
        /// The id of one of their groups.
        group: u32,
    },
}

impl PlanRunError {
    /// Returns advice in one line.
    pub fn advice(&self) -> String {
        match self {
            Self::Journal(error) => error.advice().to_owned(),
            Self::Refused(refused) => refused.advice().to_owned(),
            Self::Plan(error) | Self::NoDraft { error, .. } => error.advice().to_owned(),
            Self::Problems { problems } => problems.first().map(PlanProblem::remedy).unwrap_or_default(),
            Self::NotChangeable { .. } => "approve it or cancel it as it is".to_owned(),
            Self::NoSuchQuestion { .. } => "look at the run's questions first".to_owned(),
            Self::SeveralQuestions { .. } => "answer one of them by its id".to_owned(),
            Self::Expired { .. } => "resume the run: that nobody answered counts as a no".to_owned(),
            Self::InvalidSchema { .. } => "give a schema of JSON Schema's draft 2020-12".to_owned(),
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

impl From<PlanRunError> for RunError {
    fn from(error: PlanRunError) -> Self {
        match error {
            PlanRunError::Journal(error) => error.into(),
            PlanRunError::Refused(refused) => refused.into(),
            error => {
                let advice = error.advice();
                Self::agent(error, advice)
            }
        }
    }
}
