//! How a run that did not fail stands, for whoever started it: a value that has to be matched before there is a text.

use crate::{LimitReached, Outcome, OutcomeStatus, RunError, RunId, Usage};

/// How a run that did not fail stands. A run that failed is a [`RunError::Failed`].
///
/// Who needs the answer alone takes [`into_text`](Self::into_text): everything that is not finished is an error then.
///
/// ```
/// use archon_types::{Reply, RunError};
///
/// fn page(reply: Result<Reply, RunError>) -> (u16, String) {
///     match reply {
///         Ok(Reply::Finished(answer)) => (200, answer.into_text()),
///         Ok(Reply::Waiting(run)) => (202, format!("{} waits for an approval", run.run())),
///         Ok(Reply::AtLimit(limit, run)) => (402, run.partial().map_or(limit.to_string(), str::to_owned)),
///         Ok(Reply::Cancelled(_)) => (409, "it was stopped".to_owned()),
///         Ok(_) => (500, "this version does not know how the run ended".to_owned()),
///         Err(error) => (500, format!("{error} ({})", error.advice())),
///     }
/// }
/// ```
///
/// It cannot be printed, so that nobody takes a question or a limit for an answer:
///
/// ```compile_fail,E0277
/// fn show(reply: archon_types::Reply) {
///     println!("{reply}");
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "the run may wait, have met a limit or be cancelled: match it, or take `into_text()`"]
#[non_exhaustive]
pub enum Reply {
    /// The run has its answer.
    Finished(FinalAnswer),
    /// The run met a limit. It can be resumed with more: [`MoreLimits`](crate::MoreLimits).
    AtLimit(LimitReached, Unfinished),
    /// The run waits for somebody, and goes on when its questions are answered.
    Waiting(Unfinished),
    /// The run was cancelled, and can be resumed.
    Cancelled(Unfinished),
}

impl Reply {
    /// The reply of a run with this outcome.
    ///
    /// # Errors
    /// [`RunError::Failed`]: the run failed.
    pub fn of(outcome: impl Into<Box<Outcome>>) -> Result<Self, RunError> {
        let outcome = outcome.into();
        match outcome.status {
            OutcomeStatus::Finished => Ok(Self::Finished(FinalAnswer { outcome })),
            OutcomeStatus::Limit(limit) => Ok(Self::AtLimit(limit, Unfinished { outcome })),
            OutcomeStatus::Suspended => Ok(Self::Waiting(Unfinished { outcome })),
            OutcomeStatus::Cancelled => Ok(Self::Cancelled(Unfinished { outcome })),
            OutcomeStatus::Failed => Err(RunError::Failed { outcome }),
        }
    }

    /// The answer.
    ///
    /// # Errors
    /// [`RunError::NotFinished`]: the run met a limit, waits or was cancelled.
    pub fn into_answer(self) -> Result<FinalAnswer, RunError> {
        match self {
            Self::Finished(answer) => Ok(answer),
            Self::AtLimit(_, rest) | Self::Waiting(rest) | Self::Cancelled(rest) => {
                Err(RunError::NotFinished { outcome: rest.outcome })
            }
        }
    }

    /// The text of the answer.
    ///
    /// # Errors
    /// As [`into_answer`](Self::into_answer).
    pub fn into_text(self) -> Result<String, RunError> {
        self.into_answer().map(FinalAnswer::into_text)
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.outcome().run
    }

    /// What the run's log says of its end.
    pub fn outcome(&self) -> &Outcome {
        match self {
            Self::Finished(answer) => &answer.outcome,
            Self::AtLimit(_, rest) | Self::Waiting(rest) | Self::Cancelled(rest) => &rest.outcome,
        }
    }

    /// As [`outcome`](Self::outcome).
    pub fn into_outcome(self) -> Outcome {
        match self {
            Self::Finished(answer) => *answer.outcome,
            Self::AtLimit(_, rest) | Self::Waiting(rest) | Self::Cancelled(rest) => *rest.outcome,
        }
    }
}

/// The answer of a run that finished. It prints as its text.
#[derive(Clone, Debug, PartialEq)]
pub struct FinalAnswer {
    outcome: Box<Outcome>,
}

impl FinalAnswer {
    /// What the agent says. Empty only if the model said nothing.
    pub fn text(&self) -> &str {
        self.outcome.said().unwrap_or_default()
    }

    /// As [`text`](Self::text).
    pub fn into_text(self) -> String {
        self.outcome.into_said()
    }

    /// As [`outcome`](Self::outcome).
    pub fn into_outcome(self) -> Outcome {
        *self.outcome
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.outcome.run
    }

    /// Tokens of all model calls.
    pub fn usage(&self) -> Usage {
        self.outcome.usage
    }

    /// What the run's log says of its end: turns, cost, why the model ended the answer.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

impl std::fmt::Display for FinalAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

/// A run without a final answer, that did not fail either.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfinished {
    outcome: Box<Outcome>,
}

impl Unfinished {
    /// The run: what `resume` takes.
    pub fn run(&self) -> &RunId {
        &self.outcome.run
    }

    /// What the agent said last: at a limit it may be the best answer there is.
    pub fn partial(&self) -> Option<&str> {
        self.outcome.said()
    }

    /// What the run's log says of its end: turns, tokens, cost.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}
