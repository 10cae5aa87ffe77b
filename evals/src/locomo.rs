//! The file of the LoCoMo conversations: `data/locomo10.json` of the repository `snap-research/locomo` (Maharana and
//! others, "Evaluating Very Long-Term Conversational Memory of LLM Agents", 2024).

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context as _, Result, bail};
use archon_types::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A conversation and its questions.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) name: String,
    /// All turns, in order.
    pub(crate) turns: Vec<Turn>,
    pub(crate) questions: Vec<Question>,
}

#[derive(Debug)]
pub(crate) struct Turn {
    /// `D3:7` is turn 7 of session 3.
    pub(crate) id: String,
    pub(crate) session: String,
    pub(crate) speaker: String,
    /// What was said, with the words that stand for a picture.
    pub(crate) text: String,
    pub(crate) at: Timestamp,
}

#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) text: String,
    /// Turns with the answer, by id: at least one.
    pub(crate) evidence: BTreeSet<String>,
    /// 1 several turns, 2 time, 3 inference, 4 one turn, 5 asked of the wrong speaker.
    pub(crate) category: u8,
}

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
    category: u8,
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

/// All conversations of the file.
pub(crate) fn read(file: &Path) -> Result<Vec<Conversation>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let raw: Vec<RawConversation> =
        serde_json::from_str(&text).with_context(|| format!("{} is not locomo10.json", file.display()))?;
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
    let ids: BTreeSet<&str> = turns.iter().map(|turn| turn.id.as_str()).collect();
    let questions = raw.qa.into_iter().filter_map(|asked| {
        let evidence: BTreeSet<String> = asked.evidence.iter().flat_map(|text| evidence(text)).collect();
        let evidence: BTreeSet<String> =
            evidence.into_iter().filter(|id| ids.contains(id.as_str())).collect();
        let question = Question { text: asked.question, category: asked.category, evidence };
        (!question.evidence.is_empty()).then_some(question)
    });
    let questions = questions.collect();
    Ok(Conversation { name: raw.sample_id, questions, turns })
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

/// The turns that an entry names: mostly one, here and there several in one text, or `D:11:26` for `D11:26`.
fn evidence(text: &str) -> Vec<String> {
    let numbers: Vec<&str> =
        text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).collect();
    let id =
        |pair: &[&str]| Some(format!("D{}:{}", pair[0].parse::<u32>().ok()?, pair[1].parse::<u32>().ok()?));
    numbers.chunks_exact(2).filter_map(id).collect()
}

/// `1:56 pm on 8 May, 2023`, as if it were UTC.
fn time(text: &str) -> Result<Timestamp> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let words: Vec<&str> = text.split([' ', ',', ':']).filter(|word| !word.is_empty()).collect();
    let [hour, minute, half, "on", day, month, year] = words.as_slice() else { bail!("`{text}` is no date") };
    let hour = hour.parse::<u32>()? % 12 + if *half == "pm" { 12 } else { 0 };
    let month = month.get(..3).and_then(|short| MONTHS.find(short)).context("no month")? / 3 + 1;
    let iso = format!("{year}-{month:02}-{:02}T{hour:02}:{minute}:00Z", day.parse::<u32>()?);
    iso.parse().ok().with_context(|| format!("`{text}` is no date"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_evidence_are_read_as_they_stand_in_the_file() {
        assert_eq!(time("1:56 pm on 8 May, 2023").unwrap().to_string(), "2023-05-08T13:56:00.000Z");
        assert_eq!(time("12:09 am on 13 September, 2023").unwrap().to_string(), "2023-09-13T00:09:00.000Z");
        assert!(time("yesterday").is_err());
        assert_eq!(evidence("D8:6; D9:17"), ["D8:6", "D9:17"]);
        assert_eq!(evidence("D:11:26"), ["D11:26"]);
        assert_eq!(evidence("D30:05"), ["D30:5"]);
        assert_eq!(evidence("D"), [""; 0]);
    }
}
