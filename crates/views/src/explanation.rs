//! Explanations: the final answer of a run, and the tool results that share words with it. An explanation has a
//! paragraph for the person who asked, and the sequence numbers of the records for a developer.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use archon_types::{
    Answer, CallId, Message, OutcomeStatus, Record, RecordBody, RunId, ToolCall, ToolResult,
    ToolResultStatus, one_line,
};
use serde::Serialize;

use crate::text_sources::short_text_in;

/// The final answer of a run, and the tool results that it probably comes from.
///
/// The results are found by their words: a result counts if it shares a word with the answer that no message of this
/// log has before the result. Only words with a digit, or with at least five characters, are compared. The model's
/// reasons are not in the log.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::Record;
/// use archon_views::Explanation;
///
/// /// Returns the numbers of the records behind an answer.
/// fn path(log: &[Arc<Record>]) -> Vec<u64> {
///     let explanation = Explanation::of(log);
///     explanation.iter().flat_map(|found| &found.evidence).map(|result| result.record).collect()
/// }
///
/// assert_eq!(path(&[]), [] as [u64; 0]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The answer.
    pub conclusion: String,
    /// The results of successful calls that share words with the answer, in the order of the log. If there are none,
    /// the results of all successful calls.
    pub evidence: Vec<Evidence>,
    /// True if each result in `evidence` shares words with the answer; false if no result does.
    pub is_quoted: bool,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Evidence {
    /// The name of the tool, and the first short text among the arguments, such as a path.
    pub source: String,
    /// The beginning of the result, as one line.
    pub result: String,
    /// The sequence number of the record with the result.
    pub record: u64,
    /// The child run that gave the result. The explanation of that run shows the sources of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

/// The number of characters of a result that are shown.
const SHOWN: usize = 200;
/// The number of characters of the answer in the paragraph.
const SHOWN_OF_ANSWER: usize = 600;
/// The minimum number of characters of a word that is compared; a word with a digit may be shorter.
const FEWEST: usize = 5;

impl Explanation {
    /// Returns the explanation of a run from its records; `None` if the run did not finish with an answer.
    pub fn of(records: &[Arc<Record>]) -> Option<Self> {
        let last = records.iter().rev().find_map(|record| match &record.body {
            RecordBody::RunFinished(outcome) => Some(outcome),
            _ => None,
        });
        let conclusion = last.filter(|outcome| outcome.status == OutcomeStatus::Finished)?.answer()?;
        let mut fold = Fold { answer: words_in(conclusion).collect(), ..Fold::default() };
        records.iter().for_each(|record| fold.push(record));
        let Fold { quoted, others, .. } = fold;
        let is_quoted = !quoted.is_empty();
        let evidence = if is_quoted { quoted } else { others };
        Some(Self { conclusion: conclusion.to_owned(), evidence, is_quoted })
    }

    /// Returns a paragraph for the person who asked.
    pub fn paragraph(&self) -> String {
        let answer = one_line(&self.conclusion, SHOWN_OF_ANSWER);
        let result = |found: &Evidence| format!("{} gave \"{}\"", found.source, found.result);
        let results = self.evidence.iter().map(result).collect::<Vec<_>>().join("; ");
        let why = match (self.evidence.is_empty(), self.is_quoted) {
            (true, _) => {
                "No tool gave a result in this run: it comes from the model and the conversation before."
                    .to_owned()
            }
            (false, true) => format!("It has words of these results: {results}."),
            (false, false) => format!("It has no words of the results before it: {results}."),
        };
        format!("The answer is \"{answer}\". {why}")
    }
}

#[derive(Default)]
struct Fold {
    /// The words of the answer.
    answer: HashSet<String>,
    /// The words of the messages so far.
    messages: HashSet<String>,
    calls: HashMap<CallId, ToolCall>,
    quoted: Vec<Evidence>,
    others: Vec<Evidence>,
}

impl Fold {
    fn push(&mut self, record: &Record) {
        match &record.body {
            RecordBody::MessageAdded { message, .. } => {
                let text = message.as_llm().map(Message::text).unwrap_or_default();
                self.messages.extend(words_in(&text));
            }
            RecordBody::ConversationRestored { messages } => {
                messages.iter().for_each(|message| self.messages.extend(words_in(&message.text())));
            }
            RecordBody::ModelCallFinished { command, message, .. } => {
                self.messages.extend(words_in(&message.text()));
                let calls = message.tool_calls().map(ToolCall::target);
                self.calls.extend((0..).map(|index| CallId::new(*command, index)).zip(calls));
            }
            RecordBody::ApprovalAnswered { call, answer: Answer::Edit { arguments } } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.arguments = arguments.clone();
                }
            }
            RecordBody::ToolCallFinished { call, result } if result.status == ToolResultStatus::Success => {
                self.add(record.seq, *call, result);
            }
            _ => {}
        }
    }

    fn add(&mut self, record: u64, call: CallId, result: &ToolResult) {
        let text = result.text();
        let is_new = |word: &String| self.answer.contains(word) && !self.messages.contains(word);
        let is_quoted = words_in(&text).any(|word| is_new(&word));
        // The call of a plan's subtask has no name; its child run shows the rest.
        let source =
            self.calls.get(&call).map(|call| format!("{} {}", call.name, short_text_in(&call.arguments)));
        let source = source.as_deref().map_or("a subtask", str::trim_end).to_owned();
        let run = result.child_run.clone();
        let found = Evidence { source, result: one_line(&text, SHOWN), record, run };
        match is_quoted {
            true => self.quoted.push(found),
            false => self.others.push(found),
        }
    }
}

/// Returns the words that are compared, in lower case: words with a digit, and words of at least `FEWEST` characters.
fn words_in(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '.').map(|word| word.trim_matches('.'));
    let tells = |word: &&str| word.contains(char::is_numeric) || word.chars().nth(FEWEST - 1).is_some();
    words.filter(tells).map(str::to_lowercase)
}
