//! Ends runs and continues ended ones: limits, cost, outcomes and resume.

use archon_types::{
    AuxiliaryCall, FailureKind, LimitReached, Message, MoreLimits, OnLimit, Outcome, OutcomeStatus,
    ParallelChoice, RecordBody, Speaker, Timestamp, Usage, problems_line,
};

use super::{Machine as _, Phase, ReactMachine, Step};

impl ReactMachine {
    /// Returns the record that a reached limit requires before another request.
    pub(super) fn limit_due(&self) -> Option<Step> {
        let limits = &self.config.limits;
        match self.limit {
            None => {
                let reached = self.meter.reached(limits).or_else(|| self.repetition.reached(limits));
                let due = |limit| Step::Append(RecordBody::LimitReached(limit));
                reached.map(due).or_else(|| self.cost_due())
            }
            Some(_) => self.cost_due(),
        }
    }

    /// Returns the command that the cost limit requires if the next request might cost more than is left.
    pub(super) fn cost_due(&self) -> Option<Step> {
        let estimate = self.cost_estimate();
        // The same amount again is reserved for the final summary, if one is wanted.
        let words = if self.limit.is_none() && self.wants_summary() { estimate } else { 0 };
        let limit = self.meter.reached_by(estimate.saturating_add(words), &self.config.limits)?;
        Some(match self.limit {
            None => Step::Append(RecordBody::LimitReached(limit)),
            // The budget does not cover the final summary.
            Some(_) => self.finish(self.outcome_at_limit()),
        })
    }

    fn wants_summary(&self) -> bool {
        self.config.limits.on_limit == OnLimit::ForceSummary
    }

    /// Returns the estimated cost of the next request.
    pub(super) fn cost_estimate(&self) -> u64 {
        let Some(price) = self.price() else { return 0 };
        self.meter.money.estimate(price, self.window.request_tokens(), self.config.options.max_tokens)
    }

    /// Returns the command of an auxiliary request, or the record that must be written before the request.
    pub(super) fn auxiliary_command(&self, question: AuxiliaryCall, ask: Step) -> Step {
        match self.auxiliary_call == Some(question) {
            true => ask,
            false => Step::Append(RecordBody::AuxiliaryCallStarted {
                purpose: question,
                reserved_cost_micros: self.cost_estimate(),
            }),
        }
    }

    /// Applies the record that an auxiliary request was sent, if exactly this record is due.
    pub(super) fn auxiliary_call_started(&mut self, record: &RecordBody) {
        if let RecordBody::AuxiliaryCallStarted { purpose: question, reserved_cost_micros: reserved } = record
            && matches!(self.next(), Step::Append(due) if due == *record)
        {
            self.auxiliary_call = Some(*question);
            self.reserve_cost(*reserved);
        }
    }

    /// Charges an auxiliary request, such as a summary. Without an answer, the request costs the amount
    /// that the service reported.
    pub(super) fn pay_auxiliary_call(&mut self, usage: &Usage, is_answered: bool) {
        self.auxiliary_call = None;
        let price = self.price().copied();
        self.meter.end_auxiliary_call(usage, price.as_ref(), is_answered);
    }

    /// Reserves the cost of a request that is sent.
    pub(super) fn reserve_cost(&mut self, cost: u64) {
        let (tokens, max_output) = (self.window.request_tokens(), self.config.options.max_tokens);
        self.meter.begin_call(cost, tokens, max_output);
    }

    /// Returns the record that a reached limit requires before a retry; `None` if no limit is reached.
    pub(super) fn limit_of_tries(&self) -> Option<Step> {
        let reached = self.meter.reached_again(&self.config.limits).filter(|_| self.limit.is_none());
        reached.map(|limit| Step::Append(RecordBody::LimitReached(limit))).or_else(|| self.cost_due())
    }

    pub(super) fn limit_reached(&mut self, limit: LimitReached) {
        if matches!(self.phase, Phase::Ended(_)) {
            return;
        }
        self.limit = Some(limit);
        let has_time = self.meter.now() < self.meter.end(&self.config.limits);
        let (text, then) = match self.wants_summary() && has_time {
            true => (FORCE_SUMMARY.to_owned(), Phase::Ready),
            false => {
                (format!("[Agent stopped: {limit}]"), Phase::Finishing(Box::new(self.outcome_at_limit())))
            }
        };
        self.phase = Phase::Noting { text, then: Box::new(then) };
    }

    /// Returns the limit that ended the run, if the limit is still reached after `more` is added.
    pub(crate) fn ended_at(&self, more: &MoreLimits) -> Option<LimitReached> {
        let mut limits = self.config.limits.clone();
        limits.raise(more);
        self.limit.filter(|limit| match limit {
            LimitReached::Cost { .. } => self.meter.reached_by(self.cost_estimate(), &limits).is_some(),
            LimitReached::Repeats { .. } => true,
            _ => self.meter.reached(&limits).or(self.meter.reached_again(&limits)).is_some(),
        })
    }

    pub(super) fn limits_raised(&mut self, more: &MoreLimits) {
        self.limit = self.ended_at(more);
        self.config.limits.raise(more);
    }

    pub(super) fn resumed(&mut self, at: Timestamp) {
        self.meter.resume(at);
        self.cancelled = false;
        self.suspended = false;
        self.snapshots.cut_off();
        if self.auxiliary_call.take().is_some() {
            // The answer is lost and may have cost something. If the answer is still needed, the request
            // is sent again.
            self.meter.forfeit();
        }
        match &mut self.phase {
            Phase::Acting { calls, .. } => {
                for call in calls {
                    call.lose();
                    // The question of the child run may have been answered in the child run.
                    if call.is_asked_by_child_run() {
                        call.restart();
                    }
                }
            }
            Phase::Ended(outcome)
                if matches!(outcome.status, OutcomeStatus::Cancelled | OutcomeStatus::Failed) =>
            {
                if outcome.status == OutcomeStatus::Failed {
                    self.forget_failures();
                }
                self.ready_again();
            }
            Phase::Finishing(outcome) if outcome.status == OutcomeStatus::Cancelled => self.ready_again(),
            Phase::Ended(outcome) | Phase::Finishing(outcome)
                if matches!(outcome.status, OutcomeStatus::Limit(_)) && self.limit.is_none() =>
            {
                self.ready_again();
            }
            _ => {}
        }
    }

    /// Ends a parallel loop with the outcome that `choice` has for the loop's own run.
    pub(super) fn chosen(&mut self, choice: &ParallelChoice) {
        if !matches!(self.phase, Phase::Ended(_)) {
            self.phase = Phase::Finishing(Box::new(choice.outcome.clone()));
        }
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.phase = Phase::Noting { text: text.into(), then: Box::new(Phase::Ready) };
    }

    pub(super) fn noted(&mut self, text: &str, at: Timestamp) {
        if let Phase::Noting { then, .. } = &mut self.phase {
            let then = std::mem::replace(&mut **then, Phase::Ready);
            self.phase = then;
            self.window.push(Message::user(text, at), Speaker::Program);
            if matches!(self.phase, Phase::Ready) {
                self.ready();
            }
        } else if matches!(self.phase, Phase::Ready) && self.mode_hint().is_some() {
            // The state decides, not the text: another release may have other words for the hint.
            self.window.push(Message::user(text, at), Speaker::Program);
            self.note_mode_hint();
        }
    }

    /// Ends the run with this outcome. Reuses the machine's own copy if it is equal, because the answer
    /// may be long.
    pub(super) fn ended_with(&mut self, outcome: &Outcome) {
        let ended = match std::mem::replace(&mut self.phase, Phase::Ready) {
            Phase::Finishing(ours) if *ours == *outcome => ours,
            _ => Box::new(outcome.clone()),
        };
        self.phase = Phase::Ended(ended);
    }

    pub(super) fn outcome(&self, status: OutcomeStatus) -> Outcome {
        let mut outcome = Outcome::new(self.run.clone(), status);
        outcome.turns = self.meter.turns;
        outcome.usage = self.meter.usage;
        outcome.estimated_tokens = self.meter.uncounted.tokens;
        outcome.cost_micros = self.is_priced().then_some(self.meter.money.spent);
        outcome.child_spending = self.meter.ledger.spent();
        outcome.set_answer(self.last_answer.as_str());
        outcome.stop_reason = self.last_stop;
        outcome
    }

    pub(super) fn failure(&self, kind: FailureKind, error: String) -> Outcome {
        let mut outcome = self.outcome(OutcomeStatus::Failed);
        (outcome.failure, outcome.error) = (Some(kind), Some(error));
        outcome
    }

    pub(super) fn outcome_at_limit(&self) -> Outcome {
        let Some(limit) = self.limit else { return self.outcome(OutcomeStatus::Finished) };
        match self.config.limits.on_limit {
            OnLimit::Error => self.failure(FailureKind::Limit, limit.to_string()),
            _ => {
                let mut outcome = self.outcome(OutcomeStatus::Limit(limit));
                let problems = problems_line(&self.misfits);
                outcome.error = (!self.misfits.is_empty())
                    .then(|| format!("the answer does not fit its schema: {problems}"));
                outcome
            }
        }
    }
}

const FORCE_SUMMARY: &str = "You have executed enough steps. Please provide a final answer based on the \
                             information gathered so far.";
