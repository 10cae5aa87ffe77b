//! Analyses how a model uses its tools, and adds advice to a result. The same advice is given once in a run.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{CallId, CommandId, Content, RunId, ToolCall, ToolResult, metadata};

use crate::execute::contain;

/// Maximum number of runs that are remembered; [`CALLS`] is the maximum number of calls of each run.
const RUNS: usize = 64;
const CALLS: usize = 50;

/// A tool call that a run made.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CallMade {
    /// An id that all calls from the same answer of the model share.
    pub command: CommandId,
    /// The call.
    pub call: ToolCall,
}

/// Advice for the model on the use of its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// Name of the detected pattern, for instance `many searches`. Each name is used only once in a run:
    /// later advice with the same name is left out.
    pub pattern: String,
    /// The advice, as the model reads it.
    pub message: String,
}

/// Finds bad patterns in the tool calls of a run, and gives the model advice. A panic of the analyzer counts
/// as no advice.
///
/// ```
/// use archon_tools::{CallMade, PatternAnalyzer, Suggestion};
///
/// /// Advises against many searches.
/// struct FewSearches;
///
/// impl PatternAnalyzer for FewSearches {
///     fn analyze(&self, calls: &[CallMade]) -> Vec<Suggestion> {
///         let searches = calls.iter().filter(|made| made.call.name == "web_search").count();
///         if searches <= 10 {
///             return Vec::new();
///         }
///         let message = "Read the pages that you found.".to_owned();
///         vec![Suggestion { pattern: "many searches".to_owned(), message }]
///     }
/// }
/// ```
pub trait PatternAnalyzer: Send + Sync {
    /// Returns advice on the latest calls of a run; empty for none. `calls` has at most the latest 50 calls,
    /// the oldest first.
    fn analyze(&self, calls: &[CallMade]) -> Vec<Suggestion>;
}

/// Detects that three answers of the model in a row each had a single call of the same tool. Its advice is to
/// make such calls in one answer, where they run at the same time.
#[derive(Clone, Debug)]
pub struct SingleCalls {
    tools: BTreeSet<String>,
}

impl SingleCalls {
    /// Creates an analyzer for calls of these tools. Name only tools that read, since their calls may run at
    /// the same time.
    pub fn of<T: Into<String>>(tools: impl IntoIterator<Item = T>) -> Self {
        Self { tools: tools.into_iter().map(Into::into).collect() }
    }
}

impl Default for SingleCalls {
    /// Creates an analyzer for calls of `read_file`.
    fn default() -> Self {
        Self::of(["read_file"])
    }
}

impl PatternAnalyzer for SingleCalls {
    fn analyze(&self, calls: &[CallMade]) -> Vec<Suggestion> {
        let mut answers = calls.chunk_by(|one, next| one.command == next.command).rev();
        let Some([last]) = answers.next() else { return Vec::new() };
        let tool = &last.call.name;
        let is_alike = |answer: &[CallMade]| matches!(answer, [one] if one.call.name == *tool);
        let mut is_next_alike = || answers.next().is_some_and(is_alike);
        let is_pattern = self.tools.contains(tool) && is_next_alike() && is_next_alike();
        if !is_pattern {
            return Vec::new();
        }
        let message = format!(
            "The last three answers had one call of '{tool}' each. Calls that do not need each other's results can \
             stand in one answer: they run side by side."
        );
        vec![Suggestion { pattern: format!("single_calls:{tool}"), message }]
    }
}

/// The latest calls of each run, and the advice that the run was given. Clones share them.
#[derive(Clone)]
pub(crate) struct Patterns {
    analyzer: Arc<dyn PatternAnalyzer>,
    runs: Arc<Mutex<VecDeque<Seen>>>,
}

struct Seen {
    run: RunId,
    calls: Vec<CallMade>,
    suggested: BTreeSet<String>,
}

impl Patterns {
    pub(crate) fn new(analyzer: Arc<dyn PatternAnalyzer>) -> Self {
        Self { analyzer, runs: Arc::default() }
    }

    /// Records a call of the run, before it is made.
    pub(crate) fn called(&self, run: &RunId, id: CallId, call: &ToolCall) {
        let mut runs = self.lock();
        if runs.iter().all(|seen| seen.run != *run) {
            runs.truncate(RUNS - 1);
            runs.push_front(Seen { run: run.clone(), calls: Vec::new(), suggested: BTreeSet::new() });
        }
        let Some(seen) = runs.iter_mut().find(|seen| seen.run == *run) else { return };
        if seen.calls.len() == CALLS {
            seen.calls.remove(0);
        }
        seen.calls.push(CallMade { command: id.command, call: call.clone() });
    }

    /// Adds new advice to a result of the run.
    pub(crate) fn suggest(&self, run: &RunId, result: &mut ToolResult) {
        let mut runs = self.lock();
        let Some(seen) = runs.iter_mut().find(|seen| seen.run == *run) else { return };
        let found = contain(|| self.analyzer.analyze(&seen.calls)).unwrap_or_default();
        let new = found.into_iter().filter(|found| seen.suggested.insert(found.pattern.clone()));
        let messages: Vec<String> = new.map(|found| found.message).collect();
        if !messages.is_empty() {
            let text = messages.join("\n");
            result.content.push(Content::text(format!("[Suggestion: {text}]")));
            result.metadata.insert(metadata::SUGGESTION.to_owned(), text.into());
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Seen>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
