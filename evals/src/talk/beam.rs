//! The files of BEAM: `chats/100K/N/…` of the repository `mohammadtavakoli78/BEAM` (Tavakoli and others, "Beyond a
//! Million Tokens: Benchmarking and Enhancing Long-Term Memory in LLMs", 2025). A person talks with an assistant.
//! Questions that the chat does not answer have no evidence, and are left out.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Result, bail};
use archon_types::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{Conversation, Question, Turn};

/// The number of chats.
const CHATS: usize = 20;

#[derive(Deserialize)]
struct RawBatch {
    /// Messages in groups.
    turns: Vec<Vec<RawMessage>>,
}

#[derive(Deserialize)]
struct RawMessage {
    id: u32,
    role: String,
    content: String,
    /// `March-15-2024`: the time from here on.
    time_anchor: Option<String>,
}

#[derive(Deserialize)]
struct RawQuestion {
    question: String,
    /// The numbers of messages, in lists and objects.
    #[serde(default)]
    source_chat_ids: Value,
}

/// Reads all chats.
pub(super) fn read(folder: &Path) -> Result<Vec<Conversation>> {
    (1..=CHATS).map(|number| chat(&folder.join(format!("chats/100K/{number}")), number)).collect()
}

fn chat(folder: &Path, number: usize) -> Result<Conversation> {
    // The questions are about the cut text, where there is one.
    let cut = folder.join("chat_trunecated.json");
    let file = if cut.is_file() { cut } else { folder.join("chat.json") };
    let batches: Vec<RawBatch> = super::json(&file)?;
    let mut at = Timestamp::default();
    let mut turns = Vec::new();
    for (number, batch) in (1..).zip(batches) {
        for message in batch.turns.into_iter().flatten() {
            if let Some(anchor) = &message.time_anchor {
                at = time(anchor)?;
            }
            turns.push(Turn {
                id: message.id.to_string(),
                session: format!("session_{number}"),
                speaker: message.role,
                text: without_index(&message.content).to_owned(),
                at,
            });
        }
    }
    let kinds: BTreeMap<String, Vec<RawQuestion>> =
        super::json(&folder.join("probing_questions/probing_questions.json"))?;
    let question = |kind: &str, asked: RawQuestion| Question {
        text: asked.question,
        evidence: numbers(&asked.source_chat_ids).iter().map(u64::to_string).collect(),
        kind: kind.replace('_', " "),
    };
    let questions = kinds
        .into_iter()
        .flat_map(|(kind, asked)| asked.into_iter().map(|asked| question(&kind, asked)).collect::<Vec<_>>());
    super::conversation(&format!("chat {number}"), turns, questions.collect())
}

/// Leaves out the mark `->-> 1,4` at the end of a message, which numbers the person's plan.
fn without_index(text: &str) -> &str {
    text.rsplit_once("->->").map_or(text, |(text, _)| text).trim_end()
}

/// All numbers in a value.
fn numbers(value: &Value) -> Vec<u64> {
    match value {
        Value::Array(all) => all.iter().flat_map(numbers).collect(),
        Value::Object(all) => all.values().flat_map(numbers).collect(),
        Value::String(text) => text.parse().into_iter().collect(),
        other => other.as_u64().into_iter().collect(),
    }
}

fn time(text: &str) -> Result<Timestamp> {
    let words: Vec<&str> = text.split('-').collect();
    let [month, day, year] = words.as_slice() else { bail!("`{text}` is no date") };
    super::utc(year, super::month(month)?, day.parse()?, "00:00:00")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn beam_dates_marks_and_evidence_are_read_as_they_stand_in_the_file() {
        assert_eq!(time("March-05-2024").unwrap().to_string(), "2024-03-05T00:00:00.000Z");
        assert_eq!(without_index("Can you help me? ->-> 1,1"), "Can you help me?");
        assert_eq!(without_index("a -> b"), "a -> b");
        assert_eq!(numbers(&json!({"first": [2], "second": ["0", {"x": 7}]})), [2, 0, 7]);
    }
}
