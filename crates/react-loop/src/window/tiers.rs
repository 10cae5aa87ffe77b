//! The built-in compaction strategies, and the steps of recovery after a request was refused as too long.

use std::ops::Range;

use archon_types::{
    CompactionInput, CompactionLevel, CompactionPolicy, CompactionStrategy, ViewPart, WindowItem,
};

use super::draft::Draft;

type View = (CompactionLevel, Vec<ViewPart>);

/// The strategy that removes as little as possible and stops as soon as the rest fits. It first removes
/// repeated reads of files, then shortens long tool results. Then it replaces old turns by a model's summary
/// or, without one, by one line each. At last it removes the middle of the conversation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tiered;

impl CompactionStrategy for Tiered {
    fn compact(&self, input: CompactionInput<'_>) -> Option<View> {
        let mut draft = Draft::new(input);
        draft.deduplicate();
        if draft.fits() {
            return Some((CompactionLevel::Deduplicate, draft.view()));
        }
        let middle = draft.middle();
        draft.truncate_results(middle.clone());
        if draft.fits() {
            return Some((CompactionLevel::TruncateResults, draft.view()));
        }
        if let Some(summarized) = draft.summarized(input.summary).filter(Draft::fits) {
            return Some((CompactionLevel::Summarize, summarized.view()));
        }
        let mut digested = draft.clone();
        digested.digest(middle.clone());
        if digested.fits() {
            return Some((CompactionLevel::DigestTurns, digested.view()));
        }
        draft.drop_range(middle, SUMMARY_LINES);
        if draft.fits() {
            return Some((CompactionLevel::DropMiddle, draft.view()));
        }
        draft.truncate_results(0..draft.len());
        Some((CompactionLevel::TruncateAll, draft.view()))
    }
}

impl Tiered {
    /// Returns the old turns to summarize, if shortening tool results is not enough.
    fn wants_summary(input: CompactionInput<'_>) -> Option<(Range<u64>, Vec<WindowItem>)> {
        let mut draft = Draft::new(input);
        draft.deduplicate();
        let middle = draft.middle();
        draft.truncate_results(middle);
        if draft.fits() {
            return None;
        }
        draft.old_turns()
    }
}

/// The strategy that keeps the last `ContextConfig::max_history_messages` messages. A summary replaces the messages
/// before them: a model's summary if there is one, or else up to 20 lines about the latest calls and results.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trim;

impl CompactionStrategy for Trim {
    fn compact(&self, input: CompactionInput<'_>) -> Option<View> {
        Some(trim(input, input.config.max_history_messages as usize, CompactionLevel::Trim))
    }
}

/// The strategy that, if there are at least 20 messages, keeps the last 5. A summary replaces the messages before
/// them, as in [`Trim`]. Fewer than 20 messages stay unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summarize;

impl CompactionStrategy for Summarize {
    fn compact(&self, input: CompactionInput<'_>) -> Option<View> {
        (input.items.len() >= FULL).then(|| trim(input, LAST, CompactionLevel::DropMiddle))
    }
}

/// Returns the view of the last messages and a summary of the messages before them: a model's summary if
/// there is one.
fn trim(input: CompactionInput<'_>, keep: usize, level: CompactionLevel) -> View {
    let mut draft = Draft::new(input);
    if let Some(summarized) = draft.trimmed(keep, SUMMARY_LINES, input.summary) {
        return (CompactionLevel::Summarize, summarized.view());
    }
    draft.trim(keep, SUMMARY_LINES);
    (level, draft.view())
}

/// Returns the old turns to summarize for the built-in strategy of the policy, if it needs a summary.
pub(crate) fn wants_summary(input: CompactionInput<'_>) -> Option<(Range<u64>, Vec<WindowItem>)> {
    match input.config.policy {
        CompactionPolicy::Trim => Draft::new(input).to_trim(input.config.max_history_messages as usize),
        CompactionPolicy::Summarize if input.items.len() < FULL => None,
        CompactionPolicy::Summarize => Draft::new(input).to_trim(LAST),
        _ => Tiered::wants_summary(input),
    }
}

/// Returns the old turns to summarize for a compaction that a person asked for; `None` if they are shorter than
/// a summary of `max_tokens` tokens.
pub(crate) fn wants_summary_on_request(
    input: CompactionInput<'_>,
    max_tokens: u32,
) -> Option<(Range<u64>, Vec<WindowItem>)> {
    let (range, items) = shortened(input).old_turns()?;
    let tokens = items.iter().map(|item| item.tokens).fold(0, u64::saturating_add);
    (tokens > u64::from(max_tokens)).then_some((range, items))
}

/// Returns the view after a compaction that a person asked for. The view does not depend on the size of the window.
/// Repeated reads and long results are shortened; old turns are replaced by a model's summary or, without one, by
/// one line each.
pub(crate) fn on_request(input: CompactionInput<'_>) -> View {
    let mut draft = shortened(input);
    if let Some(summarized) = draft.summarized(input.summary) {
        return (CompactionLevel::Summarize, summarized.view());
    }
    draft.digest(draft.middle());
    (CompactionLevel::DigestTurns, draft.view())
}

fn shortened(input: CompactionInput<'_>) -> Draft<'_> {
    let mut draft = Draft::new(input);
    draft.deduplicate();
    draft.truncate_results(draft.middle());
    draft
}

/// Returns the built-in strategy of a policy.
pub(crate) fn of(policy: CompactionPolicy) -> &'static dyn CompactionStrategy {
    match policy {
        CompactionPolicy::Trim => &Trim,
        CompactionPolicy::Summarize => &Summarize,
        _ => &Tiered,
    }
}

/// Returns the view for step `step` (from 0) of recovery: first trim, then cut every tool result, then
/// keep only a few messages.
pub(crate) fn recover(input: CompactionInput<'_>, step: u32) -> View {
    let mut draft = Draft::new(input);
    let config = input.config;
    match step {
        0 => {
            draft.trim(config.max_history_messages as usize, SUMMARY_LINES);
            (CompactionLevel::Trim, draft.view())
        }
        1 => {
            draft.truncate_results(0..draft.len());
            (CompactionLevel::TruncateAll, draft.view())
        }
        _ => {
            draft.trim(config.force_trim_messages as usize, SUMMARY_LINES / 4);
            draft.truncate_results(0..draft.len());
            (CompactionLevel::ForceTrim, draft.view())
        }
    }
}

/// Maximum number of lines of the summary that replaces removed messages.
const SUMMARY_LINES: usize = 20;

/// Minimum number of messages at which [`Summarize`] compacts.
const FULL: usize = 20;
/// Number of messages that [`Summarize`] keeps.
const LAST: usize = 5;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use archon_types::{
        AssistantMessage, Content, ContextConfig, Message, Summary, Timestamp, TokenEstimate, ToolCall,
        ToolResult,
    };
    use serde_json::json;

    use super::*;

    // spec: C-17
    #[test]
    fn trim_with_a_summary_keeps_it_once_and_digests_later_turns() {
        let at = Timestamp::default();
        let call = ToolCall::new("a", "search", json!({"query": "rust"}));
        let answer =
            |content| Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() });
        let words = || answer(vec![Content::text("word ".repeat(40))]);
        let messages = [
            (Message::user("the goal", at), true),
            (words(), false),
            (Message::user("never delete anything", at), true),
            (words(), false),
            (answer(vec![Content::from(call.clone())]), false),
            (Message::tool_result(&call, &ToolResult::success("found"), at), false),
            (words(), false),
        ];
        let items: Vec<WindowItem> = (0..)
            .zip(messages)
            .map(|(from, (message, pinned))| {
                let part = ViewPart::Keep { from, to: from + 1 };
                WindowItem { part, message: Arc::new(message), tokens: 50, pinned }
            })
            .collect();
        let mut config = ContextConfig::new(1_000);
        (config.policy, config.max_history_messages) = (CompactionPolicy::Trim, 1);
        let mut input = CompactionInput::new(&items, 100, &config, &TokenEstimate);
        let summary = Summary { from: 1, to: 4, text: Some("It went on.".into()), ..Summary::default() };
        input.summary = Some(&summary);
        let keep = |from, to| ViewPart::Keep { from, to };
        let text = "[Earlier conversation summarized]\nIt went on.\n## Previous Context Summary\n\
                    - Action: search {\"query\":\"rust\"}\n- Observation: found";
        let digest = ViewPart::Digest { from: 1, to: 2, text: text.into() };
        let view = vec![keep(0, 1), digest, keep(2, 3), keep(6, 7)];
        assert_eq!(Trim.compact(input), Some((CompactionLevel::Summarize, view)));
        // One that is longer than what it stands for, or of other messages, is not used.
        let long = Summary { text: Some("word ".repeat(400)), ..summary.clone() };
        let other = Summary { from: 6, to: 7, ..summary.clone() };
        for unused in [&long, &other] {
            input.summary = Some(unused);
            assert_eq!(Trim.compact(input).map(|(level, _)| level), Some(CompactionLevel::Trim));
        }
    }

    // spec: C-17
    #[test]
    fn wants_summary_is_false_if_the_summary_would_be_longer_than_the_dropped_text() {
        let part = |from| ViewPart::Keep { from, to: from + 1 };
        let message = Arc::new(Message::Assistant(AssistantMessage::default()));
        let item =
            |from| WindowItem { part: part(from), message: message.clone(), tokens: 50, pinned: false };
        for (policy, messages, tokens, expected) in [
            (CompactionPolicy::Trim, 41, 49, Some(0..1)),
            (CompactionPolicy::Trim, 41, 50, None),
            (CompactionPolicy::Trim, 40, 1, None),
            (CompactionPolicy::Summarize, 19, 1, None),
            (CompactionPolicy::Summarize, 20, 749, Some(0..15)),
            (CompactionPolicy::Summarize, 20, 750, None),
        ] {
            let items: Vec<WindowItem> = (0..messages).map(item).collect();
            let mut config = ContextConfig::new(1_000);
            (config.policy, config.summary_tokens) = (policy, Some(tokens));
            let input = CompactionInput::new(&items, 100, &config, &TokenEstimate);
            let wanted = wants_summary(input).map(|(stretch, _)| stretch);
            assert_eq!(wanted, expected, "{policy:?} {messages} {tokens}");
        }
    }
}
