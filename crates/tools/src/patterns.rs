//! How a model uses its tools: what could be done better is said beside a result, each thing once.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{CallId, CommandId, Content, RunId, ToolCall, ToolResult, metadata};

use crate::execute::contain;

/// Runs whose calls are remembered, and calls of each.
const RUNS: usize = 64;
const CALLS: usize = 50;

/// A call that a run made.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CallMade {
    /// The answer of the model that asked for it.
    pub answer: CommandId,
    /// What was called.
    pub call: ToolCall,
}

/// What a model is told about how it uses its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// What was noticed, by a name: it is said once in a run.
    pub pattern: String,
    /// What the model reads.
    pub message: String,
}

/// Looks at how a run uses its tools. One that panics has nothing to say.
pub trait PatternAnalyzer: Send + Sync {
    /// What could be done better, given the latest calls of a run, oldest first.
    fn analyze(&self, calls: &[CallMade]) -> Vec<Suggestion>;
}

/// Notices answers in a row that have one and the same call each, where one answer could have them all.
#[derive(Clone, Debug)]
pub struct SingleCalls {
    tools: BTreeSet<String>,
}

impl SingleCalls {
    /// Of these tools: they should only read.
    pub fn of<T: Into<String>>(tools: impl IntoIterator<Item = T>) -> Self {
        Self { tools: tools.into_iter().map(Into::into).collect() }
    }
}

impl Default for SingleCalls {
    /// Of `read_file`.
    fn default() -> Self {
        Self::of(["read_file"])
    }
}

impl PatternAnalyzer for SingleCalls {
    fn analyze(&self, calls: &[CallMade]) -> Vec<Suggestion> {
        let mut answers = calls.chunk_by(|one, next| one.answer == next.answer).rev();
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

/// The calls of runs, and what was suggested. Clones share them.
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

    /// A call of the run is about to be made.
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
        seen.calls.push(CallMade { answer: id.command, call: call.clone() });
    }

    /// Puts into a result of the run what was not said before.
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
