//! Why a plan's run could not be begun, gone on with, or kept.

use archon_types::{CallId, JournalError, PlanError, RunError, RunId, RunRefused, Spending};

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
    /// There is no draft of a plan.
    #[error("{error}")]
    NoDraft {
        /// Why.
        error: PlanError,
        /// What it took all the same.
        spent: Spending,
    },
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
    /// An answer changes what only another plan can change, or says more than was asked.
    #[error("question {call} of run {run} takes a yes or a no, and nothing else")]
    NotChangeable {
        /// The run.
        run: RunId,
        /// The question.
        call: CallId,
    },
    /// Nobody asked what was answered.
    #[error("run {run} has no open question {question}")]
    NoSuchQuestion {
        /// The run.
        run: RunId,
        /// The question's id.
        question: String,
    },
    /// Several questions are about one call.
    #[error("run {run} has {} open questions about call {call}: {}", questions.len(), questions.join(", "))]
    SeveralQuestions {
        /// The run.
        run: RunId,
        /// The call.
        call: CallId,
        /// Their ids.
        questions: Vec<String>,
    },
    /// Nobody answered in time.
    #[error("question {call} of run {run} has expired")]
    Expired {
        /// The run.
        run: RunId,
        /// The question.
        call: CallId,
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
            Self::Plan(error) | Self::NoDraft { error, .. } => error.advice().to_owned(),
            Self::Problems { problems } => problems.first().map(PlanProblem::remedy).unwrap_or_default(),
            Self::NotChangeable { .. } => "approve it or cancel it as it is".to_owned(),
            Self::NoSuchQuestion { .. } => "look at the run's questions first".to_owned(),
            Self::SeveralQuestions { .. } => "answer one of them by its id".to_owned(),
            Self::Expired { .. } => "resume the run: that nobody answered counts as a no".to_owned(),
            Self::Form { .. } => "give a schema of JSON Schema's draft 2020-12".to_owned(),
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
