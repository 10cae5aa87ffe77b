//! The decisions of the context manager: when the conversation is compacted, and into which view.
//!
//! The functions here change nothing: only the record of a compaction changes the view.

use archon_types::{
    CleanedUp, Compaction, CompactionInput, CompactionLevel, CompactionPolicy, ContextConfig, RecordBody,
    Timestamp, ViewPart,
};

use super::{ContextManager, Recovery, SummaryDue, sum};
use crate::window::{cleanup, digest, entries::parts, tiers, usage::status_text};

impl ContextManager {
    /// Returns true if the conversation should be compacted before a request at `now`.
    ///
    /// The usage must be above [`ContextConfig::trigger`]. After an earlier compaction, the conversation must
    /// also have grown by a tenth of the budget, because a conversation that cannot be made smaller would
    /// otherwise be compacted in every turn; and [`ContextConfig::min_interval_ms`] must have passed, unless
    /// the window is nearly full. With [`CompactionPolicy::Trim`], any growth is enough.
    pub fn should_compact(&self, now: Timestamp) -> bool {
        let Some(config) = &self.state.config else { return false };
        let usage = self.usage();
        if usage.ratio() <= config.trigger {
            return false;
        }
        let Some(last) = self.state.compacted else { return true };
        if config.policy == CompactionPolicy::Trim {
            return self.state.tokens > last.tokens;
        }
        let step = self.state.tracker.uncorrected(usage.budget / 10).max(1);
        let grown = self.state.tokens >= last.tokens.saturating_add(step);
        let cooled = now.since(last.at).as_millis() >= u128::from(config.min_interval_ms);
        grown && (cooled || usage.ratio() > NEARLY_FULL)
    }

    /// Returns the smaller view that the strategy makes of the current one. Changes nothing, because the
    /// view changes with the record of the compaction. `None` without a [`ContextConfig`].
    pub fn compact(&self) -> Option<Compaction> {
        let config = self.state.config.as_ref()?;
        let target = self.target(config);
        let view = self.items();
        let mut input = CompactionInput::new(&view, target, config, self.counter());
        input.summary = self.state.summary.as_ref();
        let made = self.parts.strategy(config).compact(input);
        let made = made.unwrap_or_else(|| (Default::default(), parts(&view)));
        // A view that breaks the rules of a strategy is not used.
        self.compaction(made).or_else(|| {
            input.summary = None;
            let made = tiers::of(config.policy).compact(input)?;
            self.compaction(made)
        })
    }

    /// Returns the old turns that a model should summarize before the compaction that is due at `now`. `None`
    /// if no summary is needed, without [`ContextConfig::summary_tokens`], or if the summary for this
    /// compaction was already requested.
    pub fn summary_due(&self, now: Timestamp) -> Option<SummaryDue> {
        let config = self.state.config.as_ref()?;
        let max_tokens = config.summary_tokens?;
        if self.state.summary.is_some() || !self.should_compact(now) {
            return None;
        }
        let view = self.items();
        let input = CompactionInput::new(&view, self.target(config), config, self.counter());
        let (range, items) = tiers::wants_summary(input)?;
        // The transcript must fit into the window, too.
        let transcript = digest::transcript(&items, self.usage().budget.saturating_mul(2));
        let (from, to) = (range.start, range.end);
        Some(SummaryDue { from, to, max_tokens, transcript, instructions: String::new() })
    }

    /// Returns the old turns that a model should summarize for a compaction that a person asked for. `None` if
    /// they are shorter than a summary, or the summary is there.
    pub(crate) fn summary_on_request(&self, instructions: &str) -> Option<SummaryDue> {
        let config = self.config_on_request().filter(|_| self.state.summary.is_none())?;
        let max_tokens = config.summary_tokens.unwrap_or(REQUESTED_SUMMARY_TOKENS);
        let view = self.items();
        let input = CompactionInput::new(&view, self.target(&config), &config, self.counter());
        let (range, items) = tiers::wants_summary_on_request(input, max_tokens)?;
        let transcript = digest::transcript(&items, self.usage().budget.saturating_mul(2));
        let (from, to) = (range.start, range.end);
        Some(SummaryDue { from, to, max_tokens, transcript, instructions: instructions.to_owned() })
    }

    /// Returns the compaction that a person asked for; `None` if the conversation cannot be made smaller.
    pub(crate) fn compaction_on_request(&self) -> Option<Compaction> {
        let config = self.config_on_request()?;
        let view = self.items();
        let mut input = CompactionInput::new(&view, self.target(&config), &config, self.counter());
        input.summary = self.state.summary.as_ref();
        let compaction = self.compaction(tiers::on_request(input))?;
        (compaction.tokens_after < compaction.tokens_before).then_some(compaction)
    }

    /// Returns the configuration for a compaction that a person asked for: fewer recent messages stay.
    fn config_on_request(&self) -> Option<ContextConfig> {
        let mut config = self.state.config.clone()?;
        config.keep_recent = config.keep_recent.min(REQUESTED_KEEP_RECENT);
        Some(config)
    }

    /// Returns the compaction or the notice that must be recorded before the model may be asked at `now`.
    pub(crate) fn due(&self, now: Timestamp) -> Option<RecordBody> {
        if self.should_compact(now) {
            return self.compact().map(RecordBody::Compacted);
        }
        let (config, usage) = (self.state.config.as_ref()?, self.usage());
        let level = usage.level();
        if level == self.state.status {
            return None;
        }
        let text = status_text(usage, config, self.state.results.average())?;
        Some(RecordBody::ContextStatus { level, text })
    }

    /// Returns the compaction that puts notes in place of the results that the model gave up; `None` if there
    /// are no such results.
    pub(crate) fn cleanup_due(&self) -> Option<RecordBody> {
        if self.state.cleaned_up.is_empty() {
            return None;
        }
        let (mut items, counter) = (self.items(), self.counter());
        let gone = |result: &&CleanedUp| cleanup::give_up(&mut items, result, counter);
        if self.state.cleaned_up.iter().filter(gone).count() == 0 {
            return None;
        }
        self.compaction((CompactionLevel::CleanUp, parts(&items))).map(RecordBody::Compacted)
    }

    /// Returns the compaction that is due before a request that was refused as too long is sent again.
    pub(crate) fn recovery(&self) -> Option<RecordBody> {
        let Recovery { overflows, steps } = self.state.recovery;
        let config = self.state.config.as_ref().filter(|_| overflows > steps)?;
        let view = self.items();
        let input = CompactionInput::new(&view, self.target(config), config, self.counter());
        let mut compaction = self.compaction(tiers::recover(input, steps))?;
        compaction.overflow = true;
        Some(RecordBody::Compacted(compaction))
    }

    /// Returns the compaction that is due before a request goes to a model with a smaller window.
    pub(crate) fn refit(&self) -> Option<RecordBody> {
        let trigger = self.state.config.as_ref().filter(|_| self.state.shrunk)?.trigger;
        if self.usage().ratio() <= trigger {
            return None;
        }
        self.compact().map(RecordBody::Compacted)
    }

    /// Returns the compaction for a view; `None` if the view breaks a rule.
    fn compaction(&self, (level, view): (CompactionLevel, Vec<ViewPart>)) -> Option<Compaction> {
        let mut compaction = Compaction::new(level, self.state.entries.len() as u64, view);
        let items = self.covered(&compaction)?;
        compaction.tokens_before = self.state.tokens;
        compaction.tokens_after = sum(items.iter().map(|item| item.tokens));
        Some(compaction)
    }

    /// Returns the maximum number of estimated tokens of the messages after a compaction.
    fn target(&self, config: &ContextConfig) -> u64 {
        let tokens = (self.usage().budget as f64 * config.trigger) as u64;
        self.state.tracker.uncorrected(tokens)
    }
}

/// Share of the budget above which a compaction does not wait for the minimum interval.
const NEARLY_FULL: f64 = 0.95;
/// Maximum number of tokens of the summary for a compaction that a person asked for, if the configuration names
/// none.
const REQUESTED_SUMMARY_TOKENS: u32 = 1_500;
/// Maximum number of recent messages that stay unchanged in a compaction that a person asked for.
const REQUESTED_KEEP_RECENT: u32 = 4;
