//! The reply of a run that did not fail. The reply must be matched before its text can be used.

use crate::{
    config::LimitReached,
    log::{Outcome, OutcomeStatus},
    messages::Usage,
    values::RunId,
};

use super::run_error::RunError;

/// The reply of a run that did not fail. A run that failed is a [`RunError::Failed`].
///
/// For the answer alone, use [`into_text`](Self::into_text), which returns an error unless the run finished.
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
/// `Reply` does not implement `Display`, so that a question or a limit is not shown as an answer by mistake:
///
/// ```compile_fail,E0277
/// fn show(reply: archon_types::Reply) {
///     println!("{reply}");
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "the run may wait, have reached a limit or be cancelled: match the reply, or call `into_text()`"]
#[non_exhaustive]
pub enum Reply {
    /// The run has its final answer.
    Finished(FinalAnswer),
    /// The run reached a limit. It can be resumed with larger limits: [`MoreLimits`](crate::MoreLimits).
    AtLimit(LimitReached, Unfinished),
    /// The run waits for a person or a timer, and goes on when its questions are answered or the timer ends.
    Waiting(Unfinished),
    /// The run was cancelled; it can be resumed.
    Cancelled(Unfinished),
}

impl Reply {
    /// Creates the reply from an outcome.
    ///
    /// # Errors
    /// [`RunError::Failed`] if the run failed.
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

    /// Returns the final answer.
    ///
    /// # Errors
    /// [`RunError::NotFinished`] if the run reached a limit, waits or was cancelled.
    pub fn into_answer(self) -> Result<FinalAnswer, RunError> {
        match self {
            Self::Finished(answer) => Ok(answer),
            Self::AtLimit(_, rest) | Self::Waiting(rest) | Self::Cancelled(rest) => {
                Err(RunError::NotFinished { outcome: rest.outcome })
            }
        }
    }

    /// Returns the text of the final answer.
    ///
    /// # Errors
    /// As [`into_answer`](Self::into_answer).
    pub fn into_text(self) -> Result<String, RunError> {
        self.into_answer().map(FinalAnswer::into_text)
    }

    /// Returns the id of the run.
    pub fn run(&self) -> &RunId {
        &self.outcome().run
    }

    /// Returns the outcome from the run's log.
    pub fn outcome(&self) -> &Outcome {
        match self {
            Self::Finished(answer) => &answer.outcome,
            Self::AtLimit(_, rest) | Self::Waiting(rest) | Self::Cancelled(rest) => &rest.outcome,
        }
    }

    /// Returns the outcome from the run's log, by value.
    pub fn into_outcome(self) -> Outcome {
        match self {
            Self::Finished(answer) => *answer.outcome,
            Self::AtLimit(_, rest) | Self::Waiting(rest) | Self::Cancelled(rest) => *rest.outcome,
        }
    }
}

/// The final answer of a run. Its `Display` is the text of the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct FinalAnswer {
    outcome: Box<Outcome>,
}

impl FinalAnswer {
    /// Returns the text of the answer; empty only if the model returned no text.
    pub fn text(&self) -> &str {
        self.outcome.last_text().unwrap_or_default()
    }

    /// Returns the text of the answer, by value.
    pub fn into_text(self) -> String {
        self.outcome.into_last_text()
    }

    /// Returns the outcome from the run's log, by value.
    pub fn into_outcome(self) -> Outcome {
        *self.outcome
    }

    /// Returns the id of the run.
    pub fn run(&self) -> &RunId {
        &self.outcome.run
    }

    /// Returns the tokens of all model calls of the run.
    pub fn usage(&self) -> Usage {
        self.outcome.usage
    }

    /// Returns the outcome from the run's log: turns, cost, stop reason.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

impl std::fmt::Display for FinalAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

/// A run that has no final answer and did not fail: it reached a limit, waits or was cancelled.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfinished {
    outcome: Box<Outcome>,
}

impl Unfinished {
    /// Returns the id of the run, for instance to resume it.
    pub fn run(&self) -> &RunId {
        &self.outcome.run
    }

    /// Returns the last text of the agent, which may be a usable partial answer; `None` if there is no text.
    pub fn partial(&self) -> Option<&str> {
        self.outcome.last_text()
    }

    /// Returns the outcome from the run's log: turns, tokens, cost.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

impl Outcome {
    /// Returns the outcome of a run, also of a failed run, for code that treats both alike.
    ///
    /// # Errors
    /// Any error except [`RunError::Failed`] and [`RunError::NotFinished`], unchanged. Most such errors have no
    /// outcome, for instance because the run could not be started.
    pub fn of_result(result: Result<Reply, RunError>) -> Result<Self, RunError> {
        match result {
            Ok(reply) => Ok(reply.into_outcome()),
            Err(RunError::Failed { outcome } | RunError::NotFinished { outcome }) => Ok(*outcome),
            Err(error) => Err(error),
        }
    }
}
