//! Limits of a run: counts turns, tokens, time and cost, and reports when a limit is reached.

use archon_run::Ledger;
use archon_types::{
    AssistantMessage, ExecutionLimits, Lease, LimitReached, Message, ModelErrorCode, ModelFailure,
    ModelPrice, OnLimit, SnapshotSpending, Spending, Timestamp, TokenCounter, TokenEstimate, Usage,
};
use serde::{Deserialize, Serialize};

/// The resources that a run has used so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Meter {
    pub(crate) turns: u32,
    pub(crate) usage: Usage,
    /// Number of answers in a row that could not be parsed.
    pub(crate) parse_failures: u32,
    /// Spending of earlier runs from the same budget.
    #[serde(default)]
    carried: SnapshotSpending,
    pub(crate) money: Money,
    #[serde(default)]
    pub(crate) uncounted: Uncounted,
    /// Number of requests that were open when the process died. At most `max_turns` of them are allowed,
    /// so that a process which dies in each request does not ask forever.
    #[serde(default)]
    calls_lost: u32,
    /// The leases and the spending of child runs.
    #[serde(default)]
    pub(crate) ledger: Ledger,
    started_at: Timestamp,
    /// Time in ms that does not count, because no process worked on the run.
    idle_ms: u64,
    last_seen: Timestamp,
}

impl Meter {
    /// Counts the spending of earlier runs against the limits of this run.
    pub(crate) fn carry(&mut self, spent: SnapshotSpending) {
        self.carried = spent;
    }

    /// Returns the spending of this run, of its child runs, and of earlier runs from the same budget.
    pub(crate) fn spent(&self) -> SnapshotSpending {
        SnapshotSpending {
            turns: self.carried.turns.saturating_add(self.turns),
            tokens: sum([self.carried.tokens, self.tokens(), self.ledger.spent().tokens]),
            cost_micros: sum([self.carried.cost_micros, self.money.spent, self.ledger.spent().cost_micros]),
        }
    }

    /// Returns the maximum spending of this run: open model calls count with the amount reserved for them.
    pub(crate) fn spending(&self) -> Spending {
        let tokens = sum([self.tokens(), self.uncounted.reservation(), 0]);
        let mut all = Spending::new(tokens, sum([self.money.spent, self.money.reserved, 0]));
        all += self.ledger.spent();
        all += self.ledger.held();
        all
    }

    /// Returns the tokens of the run's own model calls: the tokens that services reported, and estimates for
    /// calls without a report.
    fn tokens(&self) -> u64 {
        self.usage.total().saturating_add(self.uncounted.tokens)
    }

    /// Reserves the `cost` of a model call, and the tokens of its request (about `request`) and its answer.
    pub(crate) fn begin_call(&mut self, cost: u64, request: u64, max_output: Option<u32>) {
        self.money.reserve(cost);
        self.uncounted.begin_call(request, max_output);
    }

    /// Counts the whole reserved amount as spent, because the real amount is unknown.
    pub(crate) fn forfeit(&mut self) {
        self.money.forfeit();
        self.uncounted.forfeit();
    }

    /// Counts a model call whose answer was lost because the process died.
    pub(crate) fn count_lost_call(&mut self) {
        self.forfeit();
        self.calls_lost += 1;
    }

    /// Counts a failed model call.
    pub(crate) fn failed(&mut self, failure: &ModelFailure) {
        self.money.failed(failure);
        match may_have_worked(failure) {
            true => self.uncounted.forfeit(),
            false => self.uncounted.counted(),
        }
    }

    /// Counts the end of an auxiliary request, such as a summary. If the request was answered and the
    /// service reported no tokens, the reserved amount counts.
    pub(crate) fn end_auxiliary_call(
        &mut self,
        usage: &Usage,
        price: Option<&ModelPrice>,
        is_answered: bool,
    ) {
        self.usage += *usage;
        match (usage.total(), is_answered) {
            (0, true) => self.forfeit(),
            _ => {
                self.money.charge(usage, price);
                self.uncounted.counted();
            }
        }
    }

    /// Returns an equal part of the remaining budget, for one of `shares` child runs.
    pub(crate) fn lease(&self, shares: u64, limits: &ExecutionLimits) -> Lease {
        let spent = self.spent();
        let left = millis_between(self.last_seen, self.deadline(limits));
        // A child run ends a little before its caller, so that the caller can use its result.
        let time = left.saturating_sub(CALLER_MARGIN_MS.min(left / 10));
        self.ledger.share(shares, limits, Spending::new(spent.tokens, spent.cost_micros), time)
    }

    pub(crate) fn start(&mut self, at: Timestamp) {
        self.started_at = at;
        self.last_seen = at;
    }

    pub(crate) fn see(&mut self, at: Timestamp) {
        self.last_seen = self.last_seen.max(at);
    }

    /// Counts the time since the last record as idle: a process resumed the run at `at`.
    pub(crate) fn resume(&mut self, at: Timestamp) {
        self.idle_ms += u64::try_from(at.since(self.last_seen).as_millis()).unwrap_or(u64::MAX);
        self.see(at);
    }

    /// Returns the deadline: the time at which the run reaches its time limit, less the time reserved for a
    /// final summary if one is wanted.
    pub(crate) fn deadline(&self, limits: &ExecutionLimits) -> Timestamp {
        let reserve = match limits.on_limit {
            OnLimit::ForceSummary => (limits.max_duration_ms / SUMMARY_PART).min(SUMMARY_MS),
            _ => 0,
        };
        Timestamp::from_millis(self.end(limits).as_millis().saturating_sub(reserve))
    }

    /// Returns the time at which the run reaches its time limit.
    pub(crate) fn end(&self, limits: &ExecutionLimits) -> Timestamp {
        let all = limits.max_duration_ms.saturating_add(self.idle_ms);
        Timestamp::from_millis(self.started_at.as_millis().saturating_add(all))
    }

    /// Returns the latest time in the records.
    pub(crate) fn now(&self) -> Timestamp {
        self.last_seen
    }

    /// Counts the answer of a turn.
    pub(crate) fn answered(&mut self, answer: &AssistantMessage, price: Option<&ModelPrice>) {
        self.turns += 1;
        self.usage += answer.usage;
        self.money.answered(&answer.usage, price);
        match answer.usage.total() {
            0 => self.uncounted.answered(answer),
            _ => self.uncounted.counted(),
        }
    }

    /// Returns the limit that forbids a retry in the same turn; `None` if no limit is reached.
    pub(crate) fn reached_again(&self, limits: &ExecutionLimits) -> Option<LimitReached> {
        if self.calls_lost > limits.max_turns {
            Some(LimitReached::Turns { max: limits.max_turns })
        } else if self.spent().tokens >= limits.max_total_tokens {
            Some(LimitReached::Tokens { max: limits.max_total_tokens })
        } else {
            None
        }
    }

    /// Returns the cost limit if a call that may cost `estimate` would exceed it.
    pub(crate) fn reached_by(&self, estimate: u64, limits: &ExecutionLimits) -> Option<LimitReached> {
        let max = limits.max_cost_micros?;
        (self.spent().cost_micros.saturating_add(estimate) > max)
            .then_some(LimitReached::Cost { max_cost_micros: max })
    }

    /// Returns the limit that forbids another turn; `None` if no limit is reached.
    pub(crate) fn reached(&self, limits: &ExecutionLimits) -> Option<LimitReached> {
        let spent = self.spent();
        if spent.turns >= limits.max_turns {
            Some(LimitReached::Turns { max: limits.max_turns })
        } else if spent.tokens >= limits.max_total_tokens {
            Some(LimitReached::Tokens { max: limits.max_total_tokens })
        } else if self.last_seen >= self.deadline(limits) {
            Some(LimitReached::Duration { max_ms: limits.max_duration_ms })
        } else {
            None
        }
    }
}

fn sum(parts: [u64; 3]) -> u64 {
    parts.into_iter().fold(0, u64::saturating_add)
}

fn millis_between(from: Timestamp, to: Timestamp) -> u64 {
    to.as_millis().saturating_sub(from.as_millis())
}

/// The final summary gets one part in `SUMMARY_PART` of a run's time limit, but at most `SUMMARY_MS`.
const SUMMARY_PART: u64 = 10;
const SUMMARY_MS: u64 = 30_000;

/// Time in ms by which a child run ends before its caller.
const CALLER_MARGIN_MS: u64 = 1_000;

/// Cost so far and the amount reserved for the open model call, in millionths of a currency unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Money {
    pub(crate) spent: u64,
    reserved: u64,
    /// Number of tokens of the latest request and its answer. The next request is assumed to be at least as
    /// long.
    last_tokens: u64,
}

impl Money {
    /// Returns the estimated cost of a model call whose request has about `tokens` tokens.
    pub(crate) fn estimate(&self, price: &ModelPrice, tokens: u64, max_output: Option<u32>) -> u64 {
        let output = max_output.map_or(ASSUMED_OUTPUT, u64::from);
        price.at_most(tokens.max(self.last_tokens), output)
    }

    /// Reserves the estimated cost of a call.
    pub(crate) fn reserve(&mut self, estimate: u64) {
        self.reserved = estimate;
    }

    /// Charges an answer. If the service reports no tokens, the reserved amount counts.
    pub(crate) fn answered(&mut self, usage: &Usage, price: Option<&ModelPrice>) {
        self.last_tokens = usage.total();
        match usage.total() {
            0 => self.forfeit(),
            _ => self.charge(usage, price),
        }
    }

    /// Charges reported tokens.
    fn charge(&mut self, usage: &Usage, price: Option<&ModelPrice>) {
        self.reserved = 0;
        self.spent = self.spent.saturating_add(price.map_or(0, |price| price.cost(usage)));
    }

    /// Charges a failed call: the reserved amount if the service may have done work, otherwise nothing.
    pub(crate) fn failed(&mut self, failure: &ModelFailure) {
        match may_have_worked(failure) {
            true => self.forfeit(),
            false => self.reserved = 0,
        }
    }

    /// Counts the whole reserved amount as spent, because the real cost is unknown.
    fn forfeit(&mut self) {
        self.spent = self.spent.saturating_add(std::mem::take(&mut self.reserved));
    }
}

/// Returns true if the service may have done work: it started to answer, or the failure does not show
/// that the call was refused or never reached the service.
fn may_have_worked(failure: &ModelFailure) -> bool {
    use ModelErrorCode::{Api, Auth, ContextOverflow, Overloaded, RateLimited, Unreachable};
    let no_work = [RateLimited, Overloaded, Auth, Api, ContextOverflow, Unreachable];
    failure.had_output || !no_work.contains(&failure.code)
}

/// Estimated tokens of model calls for which no tokens were reported: the service reports none, or the answer
/// was lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Uncounted {
    pub(crate) tokens: u64,
    /// Tokens reserved for the open call: for its request and for its answer.
    request: u64,
    answer: u64,
}

impl Uncounted {
    fn begin_call(&mut self, request: u64, max_output: Option<u32>) {
        (self.request, self.answer) = (request, max_output.map_or(ASSUMED_OUTPUT, u64::from));
    }

    fn reservation(&self) -> u64 {
        self.request.saturating_add(self.answer)
    }

    /// Drops the reservation: the service reported the tokens, or did no work.
    fn counted(&mut self) {
        (self.request, self.answer) = (0, 0);
    }

    /// Counts the answer with its estimated length.
    fn answered(&mut self, answer: &AssistantMessage) {
        self.answer = TokenEstimate.count_message(&Message::Assistant(answer.clone()));
        self.forfeit();
    }

    fn forfeit(&mut self) {
        self.tokens = self.tokens.saturating_add(self.reservation());
        self.counted();
    }
}

/// Assumed maximum number of tokens of an answer whose request has no limit.
const ASSUMED_OUTPUT: u64 = 4_096;

#[cfg(test)]
mod tests {
    use archon_types::ProviderError;

    use super::*;

    // spec: R-14
    #[test]
    fn auxiliary_call_without_usage_costs_its_reserved_amount() {
        let price = ModelPrice::new(1_000_000, 2_000_000);
        let mut meter = Meter::default();
        let usage = Usage { input: 10, output: 5, ..Usage::default() };
        meter.begin_call(1_000, 300, Some(100));
        meter.end_auxiliary_call(&usage, Some(&price), true);
        assert_eq!((meter.money.spent, meter.spent().tokens), (20, 15));
        meter.begin_call(1_000, 300, Some(100));
        meter.end_auxiliary_call(&Usage::default(), Some(&price), true);
        assert_eq!((meter.money.spent, meter.spent().tokens), (1_020, 415));
    }

    #[test]
    fn failed_of_a_call_that_reached_no_service_costs_nothing() {
        let mut meter = Meter::default();
        for (error, cost) in [
            (ProviderError::Unreachable("refused".into()), (0, 0)),
            (ProviderError::Network("cut".into()), (1_000, 400)),
        ] {
            meter.begin_call(1_000, 300, Some(100));
            meter.failed(&ModelFailure::new(&error, 0.0));
            assert_eq!((meter.money.spent, meter.spent().tokens), cost, "{error}");
        }
    }

    #[test]
    fn meter_of_a_branch_counts_earlier_spending() {
        let mut limits = ExecutionLimits::default();
        limits.max_cost_micros = Some(100);
        let mut before = Meter::default();
        before.money.reserve(60);
        before.money.forfeit();
        let mut branch = Meter::default();
        branch.carry(before.spent());
        assert_eq!(branch.reached_by(40, &limits), None);
        assert_eq!(branch.reached_by(41, &limits), Some(LimitReached::Cost { max_cost_micros: 100 }));
        assert_eq!(branch.money.spent, 0, "what it cost itself");
    }
}
