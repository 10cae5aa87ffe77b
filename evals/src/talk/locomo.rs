//! The file of the LoCoMo conversations: `data/locomo10.json` of the repository `snap-research/locomo` (Maharana and
//! others, "Evaluating Very Long-Term Conversational Memory of LLM Agents", 2024).

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use archon_types::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Conversation, Question, Turn};

const KINDS: [&str; 5] = ["several turns", "time", "inference", "one turn", "of the wrong speaker"];

#[derive(Deserialize)]
struct RawConversation {
    sample_id: String,
    conversation: Map<String, Value>,
    qa: Vec<RawQuestion>,
}

#[derive(Deserialize)]
struct RawQuestion {
    question: String,
    evidence: Vec<String>,
    category: usize,
}

#[derive(Deserialize)]
struct RawTurn {
    speaker: String,
    dia_id: String,
    text: String,
    #[serde(default)]
    blip_caption: String,
    #[serde(default)]
    query: String,
}

/// Reads all conversations.
pub(super) fn read(folder: &Path) -> Result<Vec<Conversation>> {
    let raw: Vec<RawConversation> = super::json(&folder.join("data/locomo10.json"))?;
    raw.into_iter().map(conversation).collect()
}

fn conversation(raw: RawConversation) -> Result<Conversation> {
    let mut turns = Vec::new();
    for number in 1.. {
        let session = format!("session_{number}");
        let Some(said) = raw.conversation.get(&session) else {
            // A few numbers are left out at the end, where only dates stand.
            if raw.conversation.contains_key(&format!("{session}_date_time")) {
                continue;
            }
            break;
        };
        let date = raw.conversation.get(&format!("{session}_date_time")).and_then(Value::as_str);
        let at = time(date.unwrap_or_default()).with_context(|| format!("the date of {session}"))?;
        for said in Vec::<RawTurn>::deserialize(said)? {
            turns.push(turn(said, session.clone(), at));
        }
    }
    let question = |asked: RawQuestion| Question {
        text: asked.question,
        evidence: asked.evidence.iter().flat_map(|text| super::turns_of(text)).collect(),
        kind: KINDS.get(asked.category.wrapping_sub(1)).copied().unwrap_or("other").to_owned(),
    };
    super::conversation(&raw.sample_id, turns, raw.qa.into_iter().map(question).collect())
}

fn turn(raw: RawTurn, session: String, at: Timestamp) -> Turn {
    let picture: Vec<&str> =
        [raw.blip_caption.as_str(), &raw.query].into_iter().filter(|text| !text.is_empty()).collect();
    let text = match picture.as_slice() {
        [] => raw.text,
        picture => format!("{} (shows {})", raw.text, picture.join("; ")),
    };
    Turn { id: raw.dia_id, session, speaker: raw.speaker, text, at }
}

/// `1:56 pm on 8 May, 2023`, as if it were UTC.
fn time(text: &str) -> Result<Timestamp> {
    let words: Vec<&str> = text.split([' ', ',', ':']).filter(|word| !word.is_empty()).collect();
    let [hour, minute, half, "on", day, month, year] = words.as_slice() else { bail!("`{text}` is no date") };
    let hour = hour.parse::<u32>()? % 12 + if *half == "pm" { 12 } else { 0 };
    super::utc(year, super::month(month)?, day.parse()?, &format!("{hour:02}:{minute}:00"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locomo_dates_are_read_as_they_stand_in_the_file() {
        assert_eq!(time("1:56 pm on 8 May, 2023").unwrap().to_string(), "2023-05-08T13:56:00.000Z");
        assert_eq!(time("12:09 am on 13 September, 2023").unwrap().to_string(), "2023-09-13T00:09:00.000Z");
        assert!(time("yesterday").is_err());
    }
}
