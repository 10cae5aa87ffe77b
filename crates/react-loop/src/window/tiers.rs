//! The built-in compaction strategies, and the steps of recovery after a request was refused as too long.

use std::ops::Range;

use archon_types::{
    CompactionInput, CompactionLevel, CompactionPolicy, CompactionStrategy, ViewPart, WindowItem,
};

use super::draft::Draft;

type View = (CompactionLevel, Vec<ViewPart>);

/// The strategy that removes as little as possible and stops as soon as the rest fits: repeated reads of
/// files first, then long tool results, then the wording of old turns (replaced by a model's summary if there
/// is one), then the middle of the conversation.
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
    pub(crate) fn wants_summary(input: CompactionInput<'_>) -> Option<(Range<u64>, Vec<WindowItem>)> {
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

/// The strategy that keeps the last messages and a summary of those before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trim;

impl CompactionStrategy for Trim {
    fn compact(&self, input: CompactionInput<'_>) -> Option<View> {
        let mut draft = Draft::new(input);
        draft.trim(input.config.max_history_messages as usize, SUMMARY_LINES);
        Some((CompactionLevel::Trim, draft.view()))
    }
}

/// The strategy that, for 20 messages and more, keeps the last 5 and a summary of the actions and
/// observations before them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summarize;

impl CompactionStrategy for Summarize {
    fn compact(&self, input: CompactionInput<'_>) -> Option<View> {
        let mut draft = Draft::new(input);
        if draft.len() < 20 {
            return None;
        }
        draft.trim(5, SUMMARY_LINES);
        Some((CompactionLevel::DropMiddle, draft.view()))
    }
}

/// Returns the built-in strategy of a policy.
pub(crate) fn of(policy: CompactionPolicy) -> &'static dyn CompactionStrategy {
    match policy {
        CompactionPolicy::Trim => &Trim,
        CompactionPolicy::Summarize => &Summarize,
        _ => &Tiered,
    }
}

/// Makes the view for step `step` (from 0) of recovery: first trim, then cut every tool result, then keep
/// only a few messages.
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

/// Lines of the summary that replaces removed messages.
const SUMMARY_LINES: usize = 20;
