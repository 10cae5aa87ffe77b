//! The outcome of a run, as its log stores it.

use serde::{Deserialize, Serialize};

use crate::{
    config::{LimitReached, Spending},
    messages::{StopReason, Usage},
    models::FailureKind,
    values::RunId,
};

/// The outcome of a run, as its log stores it. A program that starts a run gets a [`Reply`](crate::Reply), or
/// a [`RunError`](crate::RunError) if the run failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Outcome {
    /// The run.
    pub run: RunId,
    /// The status: finished, failed, at a limit, cancelled or suspended.
    #[serde(flatten)]
    pub status: OutcomeStatus,
    /// The last text of the agent; read it with [`Outcome::answer`] or [`Outcome::last_text`].
    pub(crate) answer: String,
    /// The model's stop reason for the final answer. [`StopReason::Length`]: a token limit cut the answer
    /// off. [`StopReason::Refusal`]: the model declined, so the text is not an answer.
    #[serde(default, skip_serializing_if = "crate::values::is_default")]
    pub stop_reason: StopReason,
    /// The error text of a failed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The kind of the error; see [`Outcome::failure_kind`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureKind>,
    /// The number of turns.
    pub turns: u32,
    /// The tokens of all model calls.
    pub usage: Usage,
    /// The estimated number of tokens of lost calls, and of calls for which the service reported no usage.
    #[serde(default, skip_serializing_if = "crate::values::is_default")]
    pub estimated_tokens: u64,
    /// The cost of the run's model calls in millionths of a currency unit; `None` if the run's model has no
    /// price. A call without reported tokens counts as the amount that was reserved for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// The tokens and the money that child runs used.
    #[serde(default, skip_serializing_if = "Spending::is_zero")]
    pub child_spending: Spending,
}

impl Outcome {
    /// Creates an outcome without an answer.
    pub fn new(run: RunId, status: OutcomeStatus) -> Self {
        Self {
            run,
            status,
            answer: String::new(),
            stop_reason: StopReason::Stop,
            error: None,
            failure: None,
            turns: 0,
            usage: Usage::default(),
            estimated_tokens: 0,
            cost_micros: None,
            child_spending: Spending::default(),
        }
    }

    /// Creates the outcome of a run that failed.
    pub fn failed(run: RunId, failure: FailureKind, error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), failure: Some(failure), ..Self::new(run, OutcomeStatus::Failed) }
    }

    /// Sets the answer, or a partial answer, and returns the outcome.
    ///
    /// ```
    /// use archon_types::{Outcome, OutcomeStatus};
    ///
    /// let outcome = Outcome::new("run_1".into(), OutcomeStatus::Finished).with_answer("42");
    /// assert_eq!(outcome.answer(), Some("42"));
    /// ```
    pub fn with_answer(mut self, answer: impl Into<String>) -> Self {
        self.answer = answer.into();
        self
    }

    /// Sets the answer, or a partial answer.
    pub fn set_answer(&mut self, answer: impl Into<String>) {
        self.answer = answer.into();
    }

    /// Returns the final answer, or the last text of a run that waits, was cancelled or reached a limit.
    /// `None` if the run failed or has no text.
    pub fn answer(&self) -> Option<&str> {
        self.last_text().filter(|_| self.status != OutcomeStatus::Failed)
    }

    /// Returns the last text of the agent, also after a failure: a plan or team then has a partial result.
    pub fn last_text(&self) -> Option<&str> {
        Some(self.answer.as_str()).filter(|said| !said.is_empty())
    }

    pub(crate) fn into_last_text(self) -> String {
        self.answer
    }

    /// Returns the kind of the failure; `None` if the run did not fail.
    pub fn failure_kind(&self) -> Option<FailureKind> {
        (self.status == OutcomeStatus::Failed).then(|| self.failure.unwrap_or(FailureKind::Other))
    }

    /// Returns the tokens and the money that the run's own model calls and its child runs used.
    pub fn spending(&self) -> Spending {
        let mut all = Spending::new(
            self.usage.total().saturating_add(self.estimated_tokens),
            self.cost_micros.unwrap_or_default(),
        );
        all += self.child_spending;
        all
    }

    /// Returns true if the model declined to answer, as its stop reason or the words of its answer show. Such
    /// an answer is shown unchanged; the model is not asked again.
    pub fn is_refusal(&self) -> bool {
        self.stop_reason == StopReason::Refusal || crate::values::is_refusal(&self.answer)
    }

    /// Returns true if a token limit cut the answer off.
    pub fn is_cut(&self) -> bool {
        self.stop_reason == StopReason::Length
    }

    /// Returns true if the run has its final answer. To tell the other cases apart, match a
    /// [`Reply`](crate::Reply).
    pub fn is_finished(&self) -> bool {
        self.status == OutcomeStatus::Finished
    }
}

/// The status of a run that ended or waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status", content = "detail", rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutcomeStatus {
    /// The run has a final answer.
    Finished,
    /// The run failed; [`Outcome::error`] has the reason.
    Failed,
    /// The run reached a limit.
    Limit(LimitReached),
    /// The run was cancelled; it can be resumed.
    Cancelled,
    /// The run waits for a person or a timer.
    Suspended,
}
