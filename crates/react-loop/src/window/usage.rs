//! How full the window is: estimates, corrected by what the service reports, and what follows in words.

use archon_types::{ContextConfig, ContextLevel, Usage, percentage};
use serde::{Deserialize, Serialize};

/// Corrects estimates by what the service reported for the latest request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContextTracker {
    /// Reported tokens for a thousand estimated ones. A whole number, so that it is stored exactly.
    ratio_permille: u64,
    /// The estimate of the request that is with the model.
    asked: u64,
}

impl Default for ContextTracker {
    fn default() -> Self {
        Self { ratio_permille: 1_000, asked: 0 }
    }
}

impl ContextTracker {
    /// A request of `estimate` tokens is on its way.
    pub(crate) fn asked(&mut self, estimate: u64) {
        self.asked = estimate;
    }

    /// The service told what the request took. Services that tell nothing report 0.
    pub(crate) fn answered(&mut self, usage: Usage) {
        let reported = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        if reported > 0 && self.asked > 0 {
            let ratio = u128::from(reported) * 1_000 / u128::from(self.asked);
            // Beyond these the report is about something else.
            self.ratio_permille = u64::try_from(ratio.clamp(500, 4_000)).unwrap_or(1_000);
        }
    }

    /// What `estimate` tokens are likely to be for the service.
    pub(crate) fn corrected(&self, estimate: u64) -> u64 {
        let tokens = u128::from(estimate) * u128::from(self.ratio_permille) / 1_000;
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }

    /// How many estimated tokens `tokens` of the service are likely to be.
    pub(crate) fn uncorrected(&self, tokens: u64) -> u64 {
        let estimate = u128::from(tokens) * 1_000 / u128::from(self.ratio_permille.max(1));
        u64::try_from(estimate).unwrap_or(u64::MAX)
    }
}

/// How full the window is, as the service counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextUsage {
    /// Tokens of the messages.
    pub tokens: u64,
    /// Tokens that the messages may take.
    pub budget: u64,
}

impl ContextUsage {
    /// In whole percent, 100 at most.
    pub fn percent(self) -> u8 {
        percentage(self.tokens, self.budget)
    }

    /// As a fraction; above 1.0 the conversation no longer fits.
    pub fn ratio(self) -> f64 {
        self.tokens as f64 / self.budget.max(1) as f64
    }

    /// In the words that the model is told.
    pub fn level(self) -> ContextLevel {
        ContextLevel::at(self.percent())
    }

    /// How pressing a compaction is, and the sentence that says so.
    pub fn urgency(self) -> (Urgency, String) {
        let ratio = self.ratio();
        let (urgency, advice) = if ratio > 0.95 {
            (Urgency::Critical, "immediate compaction needed")
        } else if ratio > 0.90 {
            (Urgency::High, "compaction recommended soon")
        } else if ratio > 0.85 {
            (Urgency::Medium, "approaching limit")
        } else if ratio > 0.70 {
            (Urgency::Low, "consider compaction")
        } else {
            (Urgency::None, "no compaction needed")
        };
        (urgency, format!("Context at {:.1}% - {advice}", ratio * 100.0))
    }

    /// How many more tool results of `average` tokens fit, with a tenth kept free; 50 at most.
    pub(crate) fn remaining_calls(self, average: u64) -> u64 {
        let free = self.budget.saturating_sub(self.tokens).saturating_sub(self.budget / 10);
        (free / average.max(1)).min(50)
    }

    /// One line for people after the messages changed; `None` for a change of up to 100 tokens.
    pub fn change_since(self, before: Self) -> Option<String> {
        let change = i128::from(self.tokens) - i128::from(before.tokens);
        (change.abs() > 100).then(|| {
            format!("Token usage: {} ({}% of context) [{change:+} tokens]", self.tokens, self.percent())
        })
    }
}

/// How pressing a compaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Up to 70 %.
    None,
    /// Above 70 %.
    Low,
    /// Above 85 %.
    Medium,
    /// Above 90 %.
    High,
    /// Above 95 %.
    Critical,
}

/// Whether tools may run, by how full the window is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolGate {
    /// They may.
    Open,
    /// They may; people should know this.
    Warn(String),
    /// None may: each call gets this for a result.
    Blocked(String),
}

/// Decides about `calls` tool calls.
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

/// What people should know while calls run one after the other and `queued` still wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueNotice {
    /// For everybody.
    Warning(String),
    /// For who wants to know everything.
    Verbose(String),
}

/// The notice after a call while `queued` others wait.
pub(crate) fn queue_notice(usage: ContextUsage, queued: usize) -> Option<QueueNotice> {
    let pct = usage.percent();
    match pct {
        _ if queued == 0 => None,
        90.. => Some(QueueNotice::Warning(format!("Context at {pct}% with {queued} tool(s) still queued"))),
        85.. => Some(QueueNotice::Verbose(format!("Context at {pct}% ({queued} tools remaining)"))),
        _ => None,
    }
}

/// What the model is told when the level has changed; nothing at the normal level.
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
