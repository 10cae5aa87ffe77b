//! The usage of a conversation: tokens, money, and the filled share of the context window.

use std::collections::HashMap;

use archon_types::{
    AssistantMessage, CallId, Compaction, FallbackStep, ModelPrice, MoreLimits, RunId, RunStarted, Spending,
    format_money,
};

/// The usage of a conversation: tokens, money, and the filled share of the context window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Meter {
    /// The model that was used last, as its provider names it; empty if no run had a model yet.
    pub model: String,
    /// The tokens and the money of all runs, their child runs included.
    pub spent: Spending,
    /// The tokens and the money of the newest run, its child runs included.
    pub run_spent: Spending,
    /// The maximum cost of the newest run in millionths of a currency unit; `None` without a limit.
    pub max_cost_micros: Option<u64>,
    /// True if the model of any run has a price, so that money is counted.
    pub has_price: bool,
    /// The number of tokens in the context window: those of the last request and its answer, or those left after a
    /// compaction.
    pub filled: u64,
    /// The context window in tokens; `None` if it is not known.
    pub window: Option<u64>,
    price: Option<ModelPrice>,
    settled: HashMap<(RunId, CallId), Spending>,
}

impl Meter {
    /// Returns how full the context window is, in percent; `None` if that is not known.
    pub fn share(&self) -> Option<u64> {
        let window = self.window.filter(|window| *window > 0 && self.filled > 0)?;
        Some(self.filled.saturating_mul(100) / window)
    }

    /// Returns the cost as text. With a maximum cost, it is the cost of the newest run and the maximum; otherwise it
    /// is the cost of the whole conversation, or `None` if no price is known.
    pub fn money(&self) -> Option<String> {
        match self.max_cost_micros {
            Some(most) => Some(format!("${} of {}", cents(self.run_spent.cost_micros), format_money(most))),
            None if self.has_price => Some(format!("${}", cents(self.spent.cost_micros))),
            None => None,
        }
    }

    pub(super) fn run_started(&mut self, started: &RunStarted) {
        let config = &started.config;
        if !config.model.is_empty() {
            self.model.clone_from(&config.model);
        }
        self.price = config.price;
        self.has_price |= config.price.is_some();
        self.max_cost_micros = config.limits.max_cost_micros;
        self.window = config.context.as_ref().map(|context| context.max_context_tokens).or(self.window);
        self.run_spent = Spending::default();
    }

    pub(super) fn model_call_finished(&mut self, message: &AssistantMessage) {
        // An answer without a model, such as that to a line of a person, says nothing about the window.
        if message.usage.total() > 0 {
            self.filled = message.usage.total();
        }
        let cost = self.price.map_or(0, |price| price.cost(&message.usage));
        self.add(Spending::new(message.usage.total(), cost));
    }

    /// Adds the tokens and the money that a child run used. A second record for the same call replaces the first.
    pub(super) fn lease_settled(&mut self, run: &RunId, call: CallId, spent: Spending) {
        let before = self.settled.insert((run.clone(), call), spent).unwrap_or_default();
        let more = |now: u64, before: u64| now.saturating_sub(before);
        self.add(Spending::new(
            more(spent.tokens, before.tokens),
            more(spent.cost_micros, before.cost_micros),
        ));
    }

    pub(super) fn compacted(&mut self, compaction: &Compaction) {
        self.filled = compaction.tokens_after;
    }

    pub(super) fn fall_back(&mut self, step: &FallbackStep) {
        if let FallbackStep::NextModel { model, .. } = step {
            self.model.clone_from(model);
        }
    }

    pub(super) fn limits_raised(&mut self, more: &MoreLimits) {
        let raised = more.max_cost_micros.unwrap_or_default();
        self.max_cost_micros = self.max_cost_micros.map(|cost| cost.max(raised));
    }

    fn add(&mut self, spent: Spending) {
        self.spent += spent;
        self.run_spent += spent;
    }
}

/// Formats an amount in currency units, rounded up to two decimals, or to four decimals if it is less than a cent.
fn cents(micros: u64) -> String {
    match micros {
        0 => "0".to_owned(),
        1..10_000 => format!("0.{:04}", micros.div_ceil(100)),
        _ => {
            let cents = micros.div_ceil(10_000);
            format!("{}.{:02}", cents / 100, cents % 100)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cents_shows_four_digits_only_below_a_cent() {
        for (micros, text) in [
            (0, "0"),
            (1, "0.0001"),
            (9_999, "0.0100"),
            (10_000, "0.01"),
            (120_000, "0.12"),
            (1_234_567, "1.24"),
        ] {
            assert_eq!(cents(micros), text);
        }
    }
}
