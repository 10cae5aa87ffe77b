//! Errors of starting, resuming and driving a plan's run.

use archon_types::{CallId, JournalError, PlanError, RunError, RunId, RunRefused, Spending};

use crate::problem::{PlanProblem, all_with_remedies};

/// Reason why a run has no outcome. A plan that fails is an outcome, not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanRunError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The planner gave no plan, or a person's edited plan cannot be parsed.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The planner gave no draft of a plan.
    #[error("{error}")]
    NoDraft {
        /// The reason.
        error: PlanError,
        /// The spending of the planner.
        spent: Spending,
    },
    /// The plan has errors, so it cannot be followed.
    #[error("the plan cannot be followed: {}", all(problems))]
    Problems {
        /// All problems of the plan, including its warnings.
        problems: Vec<PlanProblem>,
    },
    /// The log does not belong to a run of a plan.
    #[error("run {run} is not the run of a plan")]
    NotAPlan {
        /// The id of the run.
        run: RunId,
    },
    /// The question does not accept an answer of this kind, such as changed arguments or a text.
    #[error("the question about call {call} of run {run} can only be approved or cancelled, without changes")]
    NotChangeable {
        /// The id of the run.
        run: RunId,
        /// The call that the question is about.
        call: CallId,
    },
    /// No open question has this id.
    #[error("run {run} has no open question with the id {question}")]
    NoSuchQuestion {
        /// The id of the run.
        run: RunId,
        /// The id of the question.
        question: String,
    },
    /// Several open questions are about the same call.
    #[error("run {run} has {} open questions about call {call}: {}", questions.len(), questions.join(", "))]
    SeveralQuestions {
        /// The id of the run.
        run: RunId,
        /// The call that the questions are about.
        call: CallId,
        /// The ids of the questions.
        questions: Vec<String>,
    },
    /// The question has expired.
    #[error("the question about call {call} of run {run} has expired")]
    Expired {
        /// The id of the run.
        run: RunId,
        /// The call that the question is about.
        call: CallId,
    },
    /// The JSON Schema of the answer is invalid.
    #[error("the JSON Schema of the answer is invalid: {problem}")]
    InvalidSchema {
        /// The problem of the schema.
        problem: String,
    },
    /// The run cannot be started or resumed.
    #[error(transparent)]
    Refused(#[from] RunRefused),
    /// Processes of the run that outlived a crash cannot be ended.
    #[error("processes of run {run} are still running and cannot be ended: process group {group}")]
    ProcessesLeft {
        /// The id of the run.
        run: RunId,
        /// The id of one of the process groups.
        group: u32,
    },
}

impl PlanRunError {
    /// Returns advice for a person on how to deal with the error, as one line.
    pub fn advice(&self) -> String {
        match self {
            Self::Journal(error) => error.advice().to_owned(),
            Self::Refused(refused) => refused.advice().to_owned(),
            Self::Plan(error) | Self::NoDraft { error, .. } => error.advice().to_owned(),
            Self::Problems { problems } => problems.first().map(PlanProblem::remedy).unwrap_or_default(),
            Self::NotChangeable { .. } => "approve or cancel the call without changes".to_owned(),
            Self::NoSuchQuestion { .. } => "list the open questions of the run first".to_owned(),
            Self::SeveralQuestions { .. } => "answer one of the questions by its id".to_owned(),
            Self::Expired { .. } => "resume the run: an expired question counts as refused".to_owned(),
            Self::InvalidSchema { .. } => {
                "use a schema that is valid by JSON Schema draft 2020-12".to_owned()
            }
            Self::NotAPlan { .. } => "resume the run with the agent that started it".to_owned(),
            Self::ProcessesLeft { group, .. } => {
                format!("end the processes yourself (kill -9 -{group}), then resume the run")
            }
        }
    }
}

fn all(problems: &[PlanProblem]) -> String {
    all_with_remedies(problems.iter().filter(|problem| problem.is_error()))
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
