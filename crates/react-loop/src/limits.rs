//! When a run ends whatever the model says: turns, tokens, time and money.

use archon_types::{
    AssistantMessage, CarriedSpending, ExecutionLimits, Lease, LimitReached, Message, ModelErrorCode,
    ModelFailure, ModelPrice, OnLimit, Spending, Timestamp, TokenCounter, TokenEstimate, Usage,
};
use serde::{Deserialize, Serialize};

use crate::leases::Leases;

/// What a run has used so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Meter {
    pub(crate) turns: u32,
    pub(crate) usage: Usage,
    /// Answers in a row that could not be understood.
    pub(crate) parse_failures: u32,
    /// What was spent before the run began, of the same budget.
    #[serde(default)]
    carried: CarriedSpending,
    pub(crate) money: Money,
    #[serde(default)]
    pub(crate) uncounted: Uncounted,
    /// Calls that were with the model when the process died. There may be as many of them as turns: a process that dies in
    /// each does not ask for ever.
    #[serde(default)]
    calls_lost: u32,
    /// What the runs that this one calls may use, and used.
    #[serde(default)]
    pub(crate) leases: Leases,
    started_at: Timestamp,
    /// Time that does not count: the run was not being worked on.
    idle_ms: u64,
    last_seen: Timestamp,
}

impl Meter {
    /// Counts what was spent before against the limits, too.
    pub(crate) fn carry(&mut self, spent: CarriedSpending) {
        self.carried = spent;
    }

    /// All that was spent of the budget.
    pub(crate) fn spent(&self) -> CarriedSpending {
        CarriedSpending {
            turns: self.carried.turns.saturating_add(self.turns),
            tokens: sum([self.carried.tokens, self.tokens(), self.leases.spent.tokens]),
            money: sum([self.carried.money, self.money.spent, self.leases.spent.cost]),
        }
    }

    /// What this run used, at most: what is under way counts as what was set aside for it.
    pub(crate) fn spending(&self) -> Spending {
        let tokens = sum([self.tokens(), self.uncounted.set_aside(), 0]);
        let mut all = Spending::new(tokens, sum([self.money.spent, self.money.reserved, 0]));
        all += self.leases.spent;
        all += self.leases.held();
        all
    }

    /// Tokens of the run's own calls: those that services counted, and what was set aside for the others.
    fn tokens(&self) -> u64 {
        self.usage.total().saturating_add(self.uncounted.tokens)
    }

    /// A call is on its way that may cost `cost`, and whose request has about `request` tokens.
    pub(crate) fn begin_call(&mut self, cost: u64, request: u64, max_output: Option<u32>) {
        self.money.reserve(cost);
        self.uncounted.begin_call(request, max_output);
    }

    /// Nobody knows what the call took: all of what was set aside counts as spent.
    pub(crate) fn forfeit(&mut self) {
        self.money.forfeit();
        self.uncounted.forfeit();
    }

    /// The call never came back, because its process died.
    pub(crate) fn lost(&mut self) {
        self.forfeit();
        self.calls_lost += 1;
    }

    /// The call failed.
    pub(crate) fn failed(&mut self, failure: &ModelFailure) {
        self.money.failed(failure);
        match may_have_worked(failure) {
            true => self.uncounted.forfeit(),
            false => self.uncounted.counted(),
        }
    }

    /// A question beside the run's own was answered, or failed. One whose tokens the service does not report is charged
    /// as was set aside for it, if it was answered.
    pub(crate) fn answered_beside(&mut self, usage: &Usage, price: Option<&ModelPrice>, is_answered: bool) {
        self.usage += *usage;
        match (usage.total(), is_answered) {
            (0, true) => self.forfeit(),
            _ => {
                self.money.charge(usage, price);
                self.uncounted.counted();
            }
        }
    }

    /// An equal part of what is left of the budget, for one of `shares` runs.
    pub(crate) fn lease(&self, shares: u64, limits: &ExecutionLimits) -> Lease {
        let (spent, held) = (self.spent(), self.leases.held());
        let part =
            |most: u64, spent: u64, held: u64| most.saturating_sub(sum([spent, held, 0])) / shares.max(1);
        let left = millis_between(self.last_seen, self.deadline(limits));
        // A run that is called ends a little before its caller, which then hears of it.
        let mut lease = Lease::new(
            part(limits.max_total_tokens, spent.tokens, held.tokens),
            left.saturating_sub(TO_HEAR_MS.min(left / 10)),
        );
        lease.cost = limits.max_cost.map(|most| part(most, spent.money, held.cost));
        lease
    }

    pub(crate) fn start(&mut self, at: Timestamp) {
        self.started_at = at;
        self.last_seen = at;
    }

    pub(crate) fn see(&mut self, at: Timestamp) {
        self.last_seen = self.last_seen.max(at);
    }

    /// A process took the run up at `at`; the time since the last record was nobody's.
    pub(crate) fn resume(&mut self, at: Timestamp) {
        self.idle_ms += u64::try_from(at.since(self.last_seen).as_millis()).unwrap_or(u64::MAX);
        self.see(at);
    }

    /// When the time is up, but for what is kept for the last words where they are wanted.
    pub(crate) fn deadline(&self, limits: &ExecutionLimits) -> Timestamp {
        let reserve = match limits.on_limit {
            OnLimit::ForceSummary => (limits.max_duration_ms / LAST_WORDS_PART).min(LAST_WORDS_MS),
            _ => 0,
        };
        Timestamp::from_millis(self.end(limits).as_millis().saturating_sub(reserve))
    }

    /// When all of the time is up.
    pub(crate) fn end(&self, limits: &ExecutionLimits) -> Timestamp {
        let all = limits.max_duration_ms.saturating_add(self.idle_ms);
        Timestamp::from_millis(self.started_at.as_millis().saturating_add(all))
    }

    /// The latest time that a record told.
    pub(crate) fn now(&self) -> Timestamp {
        self.last_seen
    }

    /// A turn was answered.
    pub(crate) fn answered(&mut self, answer: &AssistantMessage, price: Option<&ModelPrice>) {
        self.turns += 1;
        self.usage += answer.usage;
        self.money.answered(&answer.usage, price);
        match answer.usage.total() {
            0 => self.uncounted.answered(answer),
            _ => self.uncounted.counted(),
        }
    }

    /// The limit that forbids that the model is asked once more in the same turn.
    pub(crate) fn reached_again(&self, limits: &ExecutionLimits) -> Option<LimitReached> {
        if self.calls_lost > limits.max_turns {
            Some(LimitReached::Turns { max: limits.max_turns })
        } else if self.spent().tokens >= limits.max_total_tokens {
            Some(LimitReached::Tokens { max: limits.max_total_tokens })
        } else {
            None
        }
    }

    /// The limit that forbids a call that may cost `estimate`.
    pub(crate) fn reached_by(&self, estimate: u64, limits: &ExecutionLimits) -> Option<LimitReached> {
        let max = limits.max_cost?;
        (self.spent().money.saturating_add(estimate) > max).then_some(LimitReached::Cost { max })
    }

    /// The limit that forbids another turn.
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

/// Of a run's time this part is kept for its last words, and no more than so long.
const LAST_WORDS_PART: u64 = 10;
const LAST_WORDS_MS: u64 = 30_000;

/// How much earlier than its caller a run is out of time.
const TO_HEAR_MS: u64 = 1_000;

/// What was spent, and what is set aside for the call that is under way, in millionths of a unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Money {
    pub(crate) spent: u64,
    reserved: u64,
    /// Tokens of the latest request and its answer: where nobody counts, the next is at least as long.
    last_tokens: u64,
}

impl Money {
    /// What a call may cost whose request has about `tokens`.
    pub(crate) fn estimate(&self, price: &ModelPrice, tokens: u64, max_output: Option<u32>) -> u64 {
        let output = max_output.map_or(ASSUMED_OUTPUT, u64::from);
        price.at_most(tokens.max(self.last_tokens), output)
    }

    /// A call is on its way that may cost so much.
    pub(crate) fn reserve(&mut self, estimate: u64) {
        self.reserved = estimate;
    }

    /// What a service does not report is charged as it was set aside.
    pub(crate) fn answered(&mut self, usage: &Usage, price: Option<&ModelPrice>) {
        self.last_tokens = usage.total();
        match usage.total() {
            0 => self.forfeit(),
            _ => self.charge(usage, price),
        }
    }

    /// Tokens were paid for.
    fn charge(&mut self, usage: &Usage, price: Option<&ModelPrice>) {
        self.reserved = 0;
        self.spent = self.spent.saturating_add(price.map_or(0, |price| price.cost(usage)));
    }

    /// The call failed: it costs what was set aside if its service may have done work.
    pub(crate) fn failed(&mut self, failure: &ModelFailure) {
        match may_have_worked(failure) {
            true => self.forfeit(),
            false => self.reserved = 0,
        }
    }

    /// Nobody knows what the call cost: all of what was set aside counts as spent.
    fn forfeit(&mut self) {
        self.spent = self.spent.saturating_add(std::mem::take(&mut self.reserved));
    }
}

/// A service that refused a call did no work; one that was cut off may have, and one that had begun to answer has.
fn may_have_worked(failure: &ModelFailure) -> bool {
    use ModelErrorCode::{Api, Auth, ContextOverflow, Overloaded, RateLimited};
    failure.partial || !matches!(failure.code, RateLimited | Overloaded | Auth | Api | ContextOverflow)
}

/// Tokens of calls whose service reports none, and of calls that were lost: an estimate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Uncounted {
    pub(crate) tokens: u64,
    /// What is set aside for the call that is under way: of its request and of its answer.
    request: u64,
    answer: u64,
}

impl Uncounted {
    fn begin_call(&mut self, request: u64, max_output: Option<u32>) {
        (self.request, self.answer) = (request, max_output.map_or(ASSUMED_OUTPUT, u64::from));
    }

    fn set_aside(&self) -> u64 {
        self.request.saturating_add(self.answer)
    }

    /// The service has counted, or has done nothing.
    fn counted(&mut self) {
        (self.request, self.answer) = (0, 0);
    }

    /// The answer came, so it is known how long it is.
    fn answered(&mut self, answer: &AssistantMessage) {
        self.answer = TokenEstimate.count_message(&Message::Assistant(answer.clone()));
        self.forfeit();
    }

    fn forfeit(&mut self) {
        self.tokens = self.tokens.saturating_add(self.set_aside());
        self.counted();
    }
}

/// Tokens of an answer whose request does not limit them.
const ASSUMED_OUTPUT: u64 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    // spec: R-14
    #[test]
    fn a_question_beside_the_runs_own_is_paid_for_also_if_nobody_says_what_it_took() {
        let price = ModelPrice::new(1_000_000, 2_000_000);
        let mut meter = Meter::default();
        let usage = Usage { input: 10, output: 5, ..Usage::default() };
        meter.begin_call(1_000, 300, Some(100));
        meter.answered_beside(&usage, Some(&price), true);
        assert_eq!((meter.money.spent, meter.spent().tokens), (20, 15));
        meter.begin_call(1_000, 300, Some(100));
        meter.answered_beside(&Usage::default(), Some(&price), true);
        assert_eq!((meter.money.spent, meter.spent().tokens), (1_020, 415));
    }

    #[test]
    fn a_branch_has_only_the_money_that_is_left() {
        let mut limits = ExecutionLimits::default();
        limits.max_cost = Some(100);
        let mut before = Meter::default();
        before.money.reserve(60);
        before.money.forfeit();
        let mut branch = Meter::default();
        branch.carry(before.spent());
        assert_eq!(branch.reached_by(40, &limits), None);
        assert_eq!(branch.reached_by(41, &limits), Some(LimitReached::Cost { max: 100 }));
        assert_eq!(branch.money.spent, 0, "what it cost itself");
    }
}
