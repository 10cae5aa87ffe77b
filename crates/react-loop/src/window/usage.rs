//! Usage of the context window: corrects token estimates by the reports of the service, and makes notices.

use archon_types::{ContextConfig, ContextLevel, Usage, percentage};
use serde::{Deserialize, Serialize};

/// Corrects token estimates by the usage that the service reported for the latest request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContextTracker {
    /// Reported tokens per thousand estimated ones. An integer, so that the ratio is stored exactly.
    ratio_permille: u64,
    /// The estimated tokens of the request that was sent last.
    asked: u64,
}

impl Default for ContextTracker {
    fn default() -> Self {
        Self { ratio_permille: 1_000, asked: 0 }
    }
}

impl ContextTracker {
    /// Records that a request of `estimate` tokens was sent.
    pub(crate) fn note_request(&mut self, estimate: u64) {
        self.asked = estimate;
    }

    /// Records the usage that the service reported. A usage of 0 means no report, and is ignored.
    pub(crate) fn answered(&mut self, usage: Usage) {
        let reported = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        if reported > 0 && self.asked > 0 {
            let ratio = u128::from(reported) * 1_000 / u128::from(self.asked);
            // A ratio beyond these bounds is not about this request.
            self.ratio_permille = u64::try_from(ratio.clamp(500, 4_000)).unwrap_or(1_000);
        }
    }

    /// Converts estimated tokens to tokens as the service counts them.
    pub(crate) fn corrected(&self, estimate: u64) -> u64 {
        let tokens = u128::from(estimate) * u128::from(self.ratio_permille) / 1_000;
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }

    /// Converts tokens of the service to estimated tokens.
    pub(crate) fn uncorrected(&self, tokens: u64) -> u64 {
        let estimate = u128::from(tokens) * 1_000 / u128::from(self.ratio_permille.max(1));
        u64::try_from(estimate).unwrap_or(u64::MAX)
    }
}

/// Usage of the window, in tokens as the service counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextUsage {
    /// Number of tokens of the messages that the model sees.
    pub tokens: u64,
    /// Maximum number of tokens of these messages: the context window without the system prompt and the tools.
    /// `u64::MAX` if the window is not configured.
    pub budget: u64,
}

impl ContextUsage {
    /// Returns the usage in whole percent, at most 100.
    pub fn percent(self) -> u8 {
        percentage(self.tokens, self.budget)
    }

    /// Returns the usage as a fraction. Above 1.0, the conversation does not fit.
    pub fn ratio(self) -> f64 {
        self.tokens as f64 / self.budget.max(1) as f64
    }

    /// Returns the level of the usage, from normal to critical, which decides about notices to the model.
    pub fn level(self) -> ContextLevel {
        ContextLevel::at(self.percent())
    }

    /// Returns the urgency of a compaction, and a sentence for people about it.
    pub fn urgency(self) -> (Urgency, String) {
        let ratio = self.ratio();
        let (urgency, advice) = match ratio {
            _ if ratio > 0.95 => (Urgency::Critical, "immediate compaction needed"),
            _ if ratio > 0.90 => (Urgency::High, "compaction recommended soon"),
            _ if ratio > 0.85 => (Urgency::Medium, "approaching limit"),
            _ if ratio > 0.70 => (Urgency::Low, "consider compaction"),
            _ => (Urgency::None, "no compaction needed"),
        };
        (urgency, format!("Context at {:.1}% - {advice}", ratio * 100.0))
    }

    /// Returns how many more results of `average` tokens fit (at most 50) if a tenth of the budget stays
    /// unused.
    pub(crate) fn remaining_calls(self, average: u64) -> u64 {
        let free = self.budget.saturating_sub(self.tokens).saturating_sub(self.budget / 10);
        (free / average.max(1)).min(50)
    }

    /// Returns one line for people about the change of the usage since `before`; `None` for a change of up to 100
    /// tokens.
    pub fn change_since(self, before: Self) -> Option<String> {
        let change = i128::from(self.tokens) - i128::from(before.tokens);
        (change.abs() > 100).then(|| {
            format!("Token usage: {} ({}% of context) [{change:+} tokens]", self.tokens, self.percent())
        })
    }
}

/// The urgency of a compaction. Each usage is a percentage of [`ContextUsage::budget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Usage up to 70 %.
    None,
    /// Usage above 70 %.
    Low,
    /// Usage above 85 %.
    Medium,
    /// Usage above 90 %.
    High,
    /// Usage above 95 %.
    Critical,
}

/// The decision whether tools may run, by the usage of the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolGate {
    /// Tools may run: the usage is below 90 %.
    Open,
    /// Tools may run, and people should see this warning: the usage is at least 90 %.
    Warn(String),
    /// No tool may run, and each call gets this text as its result: the usage is at least 95 %.
    Blocked(String),
}

/// Returns whether `calls` tool calls may run.
pub(crate) fn gate(usage: ContextUsage, calls: usize, average: u64) -> ToolGate {
    let pct = usage.percent();
    match pct {
        95.. => ToolGate::Blocked(format!(
            "CRITICAL CONTEXT LIMIT: {pct}% used.\n\
             Tool execution has been BLOCKED to prevent context overflow.\n\
             You MUST provide a summary of work completed so far and conclude your response now.\n\
             Do NOT attempt further tool calls - they will fail."
        )),
        90.. => ToolGate::Warn(format!(
            "Context at {pct}% - only ~{} tool calls remaining.\nExecuting {calls} tool(s)...",
            usage.remaining_calls(average)
        )),
        _ => ToolGate::Open,
    }
}

/// A notice for people while calls run one after the other and further calls wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueNotice {
    /// A notice to show always: the usage is at least 90 %.
    Warning(String),
    /// A notice to show in verbose output only: the usage is at least 85 %.
    Verbose(String),
}

/// Returns the notice after a call while `queued` other calls wait.
pub(crate) fn queue_notice(usage: ContextUsage, queued: usize) -> Option<QueueNotice> {
    let pct = usage.percent();
    match pct {
        _ if queued == 0 => None,
        90.. => Some(QueueNotice::Warning(format!("Context at {pct}% with {queued} tool(s) still queued"))),
        85.. => Some(QueueNotice::Verbose(format!("Context at {pct}% ({queued} tools remaining)"))),
        _ => None,
    }
}

/// Returns the notice to the model about a new level of window usage; `None` for the normal level.
pub(crate) fn status_text(usage: ContextUsage, config: &ContextConfig, average: u64) -> Option<String> {
    let (pct, remaining) = (usage.percent(), usage.remaining_calls(average));
    let level = usage.level();
    let max_tokens = super::truncate::ResultLimit::of(config, level).tokens();
    match level {
        ContextLevel::Normal => None,
        ContextLevel::Moderate => Some(format!(
            "Notice: {pct}% context used | ~{remaining} tools remaining\n\
             Context filling up. Consider:\n\
             \x20  1. Prioritizing essential operations\n\
             \x20  2. Wrapping up non-critical work\n\
             Tool results now limited to {max_tokens} tokens."
        )),
        ContextLevel::Aggressive => Some(format!(
            "WARNING: {pct}% context used | ~{remaining} tools remaining\n\
             Context approaching limits. You should:\n\
             \x20  1. Complete ONLY your current task\n\
             \x20  2. Avoid starting new investigations\n\
             \x20  3. Provide a summary soon\n\
             Tool results are heavily truncated ({max_tokens} tokens max)."
        )),
        ContextLevel::Critical => Some(format!(
            "CRITICAL: {pct}% context used | {remaining} tools remaining\n\
             STOP TOOL USE NOW. You MUST:\n\
             \x20  1. Summarize work completed so far\n\
             \x20  2. Conclude your response immediately\n\
             \x20  3. Do NOT make additional tool calls\n\
             Further tool calls will likely be BLOCKED due to context overflow."
        )),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn at(percent: u64) -> ContextUsage {
        ContextUsage { tokens: percent * 100, budget: 10_000 }
    }

    // spec: C-05
    #[test]
    fn token_estimates_are_corrected_by_reported_usage() {
        let mut tracker = ContextTracker::default();
        let reported =
            |input, cache_read| Usage { input, cache_read, cache_write: 100, output: 9_999, total_tokens: 0 };
        assert_eq!(tracker.corrected(1_000), 1_000);
        tracker.note_request(1_000);
        tracker.answered(reported(400, 1_000));
        assert_eq!((tracker.corrected(1_000), tracker.uncorrected(1_500)), (1_500, 1_000));
        // A report of 0 changes nothing; the effect of an extreme report is limited.
        tracker.answered(Usage::default());
        assert_eq!(tracker.corrected(1_000), 1_500);
        tracker.answered(reported(1_000_000, 0));
        assert_eq!(tracker.corrected(1_000), 4_000);
        tracker.answered(reported(1, 0));
        assert_eq!(tracker.corrected(1_000), 500);
    }

    // spec: C-10
    #[test]
    fn urgency_has_a_level_and_a_sentence() {
        let table = [
            (9_510, Urgency::Critical, "Context at 95.1% - immediate compaction needed"),
            (9_500, Urgency::High, "Context at 95.0% - compaction recommended soon"),
            (9_010, Urgency::High, "Context at 90.1% - compaction recommended soon"),
            (9_000, Urgency::Medium, "Context at 90.0% - approaching limit"),
            (8_500, Urgency::Low, "Context at 85.0% - consider compaction"),
            (7_000, Urgency::None, "Context at 70.0% - no compaction needed"),
            (12_000, Urgency::Critical, "Context at 120.0% - immediate compaction needed"),
        ];
        for (tokens, urgency, text) in table {
            let usage = ContextUsage { tokens, budget: 10_000 };
            assert_eq!(usage.urgency(), (urgency, text.to_owned()));
        }
    }

    // spec: C-11
    #[test]
    fn tools_are_warned_of_and_then_blocked() {
        assert_eq!(gate(at(89), 2, 100), ToolGate::Open);
        let warning = "Context at 90% - only ~0 tool calls remaining.\nExecuting 2 tool(s)...";
        assert_eq!(gate(at(90), 2, 100), ToolGate::Warn(warning.into()));
        let ToolGate::Blocked(text) = gate(at(95), 2, 100) else { panic!("tools run at 95 %") };
        expect![[r#"
            CRITICAL CONTEXT LIMIT: 95% used.
            Tool execution has been BLOCKED to prevent context overflow.
            You MUST provide a summary of work completed so far and conclude your response now.
            Do NOT attempt further tool calls - they will fail."#]]
        .assert_eq(&text);
        // A tenth stays free: of 10,000 tokens 4,000 are left for 10 results of 400.
        let calls = [(50, 400, 10), (50, 10, 50), (95, 400, 0), (0, 0, 50)];
        for (percent, average, expected) in calls {
            assert_eq!(at(percent).remaining_calls(average), expected, "{percent} % {average}");
        }
    }

    // spec: C-13
    #[test]
    fn context_notice_is_shown_while_calls_are_pending() {
        assert_eq!(queue_notice(at(84), 2), None);
        assert_eq!(queue_notice(at(99), 0), None);
        let text = "Context at 85% (2 tools remaining)";
        assert_eq!(queue_notice(at(85), 2), Some(QueueNotice::Verbose(text.into())));
        let text = "Context at 90% with 2 tool(s) still queued";
        assert_eq!(queue_notice(at(90), 2), Some(QueueNotice::Warning(text.into())));
    }

    // spec: C-15
    #[test]
    fn a_change_of_more_than_100_tokens_is_worth_a_line() {
        let usage = |tokens| ContextUsage { tokens, budget: 10_000 };
        assert_eq!(usage(5_100).change_since(usage(5_000)), None);
        let line = |now, before| usage(now).change_since(usage(before)).unwrap();
        assert_eq!(line(5_101, 5_000), "Token usage: 5101 (51% of context) [+101 tokens]");
        assert_eq!(line(2_000, 5_000), "Token usage: 2000 (20% of context) [-3000 tokens]");
    }

    // spec: C-12
    #[test]
    fn each_level_but_the_normal_one_has_a_text() {
        let check = |percent, expected: Expect| {
            let text = status_text(at(percent), &ContextConfig::new(16_384), 400);
            expected.assert_eq(&text.unwrap_or_else(|| "nothing".into()));
        };
        check(69, expect!["nothing"]);
        check(
            70,
            expect![[r#"
                Notice: 70% context used | ~5 tools remaining
                Context filling up. Consider:
                   1. Prioritizing essential operations
                   2. Wrapping up non-critical work
                Tool results now limited to 750 tokens."#]],
        );
        check(
            85,
            expect![[r#"
                WARNING: 85% context used | ~1 tools remaining
                Context approaching limits. You should:
                   1. Complete ONLY your current task
                   2. Avoid starting new investigations
                   3. Provide a summary soon
                Tool results are heavily truncated (500 tokens max)."#]],
        );
        check(
            95,
            expect![[r#"
                CRITICAL: 95% context used | 0 tools remaining
                STOP TOOL USE NOW. You MUST:
                   1. Summarize work completed so far
                   2. Conclude your response immediately
                   3. Do NOT make additional tool calls
                Further tool calls will likely be BLOCKED due to context overflow."#]],
        );
    }
}
