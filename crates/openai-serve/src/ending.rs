//! The end of a run, and its names in both protocols.

use archon_types::{Outcome, OutcomeStatus, RunError, RunId, RunService, StopReason, pending_approvals};

/// The end of a run: the run has ended, or it waits for a person or a timer.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) outcome: Outcome,
    /// A text for the client if the run waits, or if it reached a limit or was cancelled without an answer. The text
    /// contains the id of the run.
    pub(crate) notice: Option<String>,
}

impl Ending {
    /// Waits until the run ends or waits for a person.
    ///
    /// # Errors
    /// The run stopped without an outcome, or its log cannot be read.
    pub(crate) async fn of(runs: &dyn RunService, run: &RunId) -> Result<Self, RunError> {
        let outcome = Outcome::of_result(runs.reply(run).await)?;
        let has_answer = outcome.answer().is_some();
        let notice = match outcome.status {
            OutcomeStatus::Suspended => Some(notice_of_wait(runs, run).await?),
            OutcomeStatus::Limit(limit) if !has_answer => {
                Some(format!("[Run {run} reached a limit: {limit}. It can be resumed with larger limits.]"))
            }
            OutcomeStatus::Cancelled if !has_answer => {
                Some(format!("[Run {run} was cancelled. It can be resumed.]"))
            }
            _ => None,
        };
        Ok(Self { outcome, notice })
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.outcome.status == OutcomeStatus::Failed
    }

    /// Returns the error text of a failed run, with advice.
    pub(crate) fn failure(&self) -> String {
        let error = RunError::Failed { outcome: Box::new(self.outcome.clone()) };
        format!("{error} ({})", error.advice())
    }

    /// Returns the `finish_reason` of a chat completion. Clients read `length` as an incomplete answer, so it stands
    /// for all ends that the protocol does not know.
    pub(crate) fn finish_reason(&self) -> &'static str {
        match (self.outcome.status, self.outcome.stop_reason) {
            (OutcomeStatus::Finished, StopReason::Length) => "length",
            (OutcomeStatus::Finished, StopReason::Refusal) => "content_filter",
            (OutcomeStatus::Finished, _) => "stop",
            _ => "length",
        }
    }

    /// Returns the `status` of a response.
    pub(crate) fn response_status(&self) -> &'static str {
        match (self.outcome.status, self.outcome.stop_reason) {
            (OutcomeStatus::Finished, StopReason::Length | StopReason::Refusal) => "incomplete",
            (OutcomeStatus::Finished, _) => "completed",
            (OutcomeStatus::Failed, _) => "failed",
            (OutcomeStatus::Cancelled, _) => "cancelled",
            _ => "incomplete",
        }
    }

    /// Returns the reason of an incomplete response; `None` for a run that waits, because the protocol has no reason
    /// for this.
    pub(crate) fn incomplete_reason(&self) -> Option<&'static str> {
        match (self.outcome.status, self.outcome.stop_reason) {
            (OutcomeStatus::Limit(_), _) | (OutcomeStatus::Finished, StopReason::Length) => {
                Some("max_output_tokens")
            }
            (OutcomeStatus::Finished, StopReason::Refusal) => Some("content_filter"),
            _ => None,
        }
    }
}

/// Returns the notice about a run that waits: its questions, and how a person or a client continues the run.
async fn notice_of_wait(runs: &dyn RunService, run: &RunId) -> Result<String, RunError> {
    let records = runs.records(run, None).await?.records;
    let mut lines = vec![format!("[Run {run} waits.")];
    for pending in pending_approvals(&records) {
        let question = &pending.request;
        let options = question.options.join(", ");
        lines.push(format!("Question {}: {} ({options})", question.request_id, question.action_summary));
    }
    lines.push(format!(
        "It goes on once this is answered, for instance by POST /v1/approvals/ID/answer or in the terminal; \
         then GET /v1/responses/resp_{run} has the rest.]"
    ));
    Ok(lines.join("\n"))
}

/// The tokens of a run, as both endpoints report them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tokens {
    /// All tokens except those of the run's own answers. They include all tokens of child runs and of lost calls,
    /// because only their sum is known.
    pub(crate) prompt: u64,
    pub(crate) cached: u64,
    pub(crate) completion: u64,
    pub(crate) total: u64,
}

impl Tokens {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        let (total, completion) = (outcome.spending().tokens, outcome.usage.output);
        let prompt = total.saturating_sub(completion);
        Self { prompt, cached: outcome.usage.cache_read, completion, total }
    }
}

#[cfg(test)]
mod tests {
    use archon_types::{LimitReached, Spending, Usage};

    use super::*;

    fn ending(status: OutcomeStatus, stop: StopReason) -> Ending {
        let mut outcome = Outcome::new("run_1".into(), status);
        outcome.stop_reason = stop;
        Ending { outcome, notice: None }
    }

    #[test]
    fn ending_is_told_in_reasons_and_statuses_of_the_protocols() {
        use OutcomeStatus::{Cancelled, Failed, Finished, Limit, Suspended};
        let limit = Limit(LimitReached::Turns { max: 3 });
        for (status, stop, finish, response, reason) in [
            (Finished, StopReason::Stop, "stop", "completed", None),
            (Finished, StopReason::Length, "length", "incomplete", Some("max_output_tokens")),
            (Finished, StopReason::Refusal, "content_filter", "incomplete", Some("content_filter")),
            (limit, StopReason::Stop, "length", "incomplete", Some("max_output_tokens")),
            (Suspended, StopReason::Stop, "length", "incomplete", None),
            (Cancelled, StopReason::Stop, "length", "cancelled", None),
            (Failed, StopReason::Stop, "length", "failed", None),
        ] {
            let ending = ending(status, stop);
            assert_eq!(
                (ending.finish_reason(), ending.response_status(), ending.incomplete_reason()),
                (finish, response, reason),
                "{status:?}"
            );
        }
    }

    #[test]
    fn tokens_of_child_runs_are_part_of_the_total_and_of_the_prompt() {
        let mut outcome = Outcome::new("run_1".into(), OutcomeStatus::Finished);
        outcome.usage = Usage { input: 100, output: 20, cache_read: 30, ..Usage::default() };
        outcome.child_spending = Spending::new(50, 0);
        assert_eq!(Tokens::of(&outcome), Tokens { prompt: 180, cached: 30, completion: 20, total: 200 });
    }
}
