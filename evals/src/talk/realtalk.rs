//! The files of REALTALK: `data/Chat_N_*.json` of the repository `danny911kr/REALTALK` (Lee and others, "REALTALK: A
//! 21-Day Real-World Dataset for Long-Term Conversation", 2025). Two people chat for three weeks.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};
use archon_types::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Conversation, Question, Turn};

const KINDS: [&str; 3] = ["several turns", "time", "inference"];

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
    clean_text: String,
    date_time: String,
    /// Captions of the pictures: a text or a list.
    #[serde(default)]
    blip_caption: Value,
}

/// Reads all conversations, in the order of their numbers.
pub(super) fn read(folder: &Path) -> Result<Vec<Conversation>> {
    let folder = folder.join("data");
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let file = entry?.path();
        let name = file.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.strip_prefix("Chat_").and_then(|rest| rest.split('_').next()?.parse::<u32>().ok());
        if let Some(number) = number {
            files.push((number, name.to_owned(), file));
        }
    }
    files.sort();
    files.iter().map(|(_, name, file)| conversation(name, &super::json(file)?)).collect()
}

fn conversation(name: &str, raw: &Map<String, Value>) -> Result<Conversation> {
    let mut turns = Vec::new();
    for number in 1.. {
        let session = format!("session_{number}");
        let Some(said) = raw.get(&session) else { break };
        for said in Vec::<RawTurn>::deserialize(said)? {
            turns.push(turn(said, session.clone())?);
        }
    }
    let asked = Vec::<RawQuestion>::deserialize(raw.get("qa").context("it has no questions")?)?;
    let question = |asked: RawQuestion| Question {
        text: asked.question,
        evidence: asked.evidence.iter().flat_map(|text| super::turns_of(text)).collect(),
        kind: KINDS.get(asked.category.wrapping_sub(1)).copied().unwrap_or("other").to_owned(),
    };
    super::conversation(name, turns, asked.into_iter().map(question).collect())
}

fn turn(raw: RawTurn, session: String) -> Result<Turn> {
    let captions: Vec<&str> = match &raw.blip_caption {
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().filter(|text| !text.is_empty()).collect(),
    };
    let text = match captions.as_slice() {
        [] => raw.clean_text,
        captions => format!("{} (shows {})", raw.clean_text, captions.join("; ")),
    };
    Ok(Turn { id: raw.dia_id, session, speaker: raw.speaker, text, at: time(&raw.date_time)? })
}

/// `29.12.2023, 22:42:04`, as if it were UTC.
fn time(text: &str) -> Result<Timestamp> {
    let words: Vec<&str> = text.split(['.', ',', ' ']).filter(|word| !word.is_empty()).collect();
    let [day, month, year, time] = words.as_slice() else { bail!("`{text}` is no date") };
    super::utc(year, month.parse()?, day.parse()?, time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn realtalk_dates_are_read_as_they_stand_in_the_file() {
        assert_eq!(time("29.12.2023, 22:42:04").unwrap().to_string(), "2023-12-29T22:42:04.000Z");
        assert!(time("yesterday").is_err());
    }
}
