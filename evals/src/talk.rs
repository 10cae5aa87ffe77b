//! Conversations with questions about them, of three public sets: chats of two people (LoCoMo, REALTALK) and of a
//! person with an assistant (BEAM).

mod beam;
mod locomo;
mod realtalk;

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context as _, Result, bail};
use archon_types::Timestamp;
use serde::de::DeserializeOwned;

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
    pub(crate) id: String,
    pub(crate) session: String,
    /// The speaker's name, or the role in a conversation with an assistant.
    pub(crate) speaker: String,
    /// The text of the turn, with the words that stand for a picture.
    pub(crate) text: String,
    pub(crate) at: Timestamp,
}

#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) text: String,
    /// Turns with the answer, by id: at least one.
    pub(crate) evidence: BTreeSet<String>,
    pub(crate) kind: String,
}

/// A set of conversations. The first `development` of them are for choosing settings, the others for judging.
pub(crate) struct Set {
    pub(crate) name: &'static str,
    pub(crate) conversations: Vec<Conversation>,
    pub(crate) development: usize,
}

/// Reads the sets from the folder that `cargo xtask eval memory` fills.
pub(crate) fn read(folder: &Path) -> Result<Vec<Set>> {
    let set = |name, development, conversations| Set { name, conversations, development };
    Ok(vec![
        set("LoCoMo", 5, locomo::read(&folder.join("locomo"))?),
        set("REALTALK", 5, realtalk::read(&folder.join("realtalk"))?),
        set("BEAM 100K", 8, beam::read(&folder.join("beam"))?),
    ])
}

/// Reads a JSON file.
fn json<T: DeserializeOwned>(file: &Path) -> Result<T> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a file of this set", file.display()))
}

/// Makes a conversation. Evidence that names no turn is left out, and so is a question without evidence.
fn conversation(name: &str, turns: Vec<Turn>, questions: Vec<Question>) -> Result<Conversation> {
    let ids: BTreeSet<&str> = turns.iter().map(|turn| turn.id.as_str()).collect();
    if ids.len() < turns.len() {
        bail!("{name} has two turns with one id");
    }
    let known = |mut question: Question| {
        question.evidence.retain(|id| ids.contains(id.as_str()));
        (!question.evidence.is_empty()).then_some(question)
    };
    let questions = questions.into_iter().filter_map(known).collect();
    Ok(Conversation { name: name.to_owned(), questions, turns })
}

/// The turns that an entry of LoCoMo or REALTALK names: mostly one, here and there several in one text, or `D:11:26`
/// for `D11:26`.
fn turns_of(text: &str) -> Vec<String> {
    let numbers: Vec<&str> =
        text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).collect();
    let id =
        |pair: &[&str]| Some(format!("D{}:{}", pair[0].parse::<u32>().ok()?, pair[1].parse::<u32>().ok()?));
    numbers.chunks_exact(2).filter_map(id).collect()
}

/// A time in UTC.
fn utc(year: &str, month: u32, day: u32, time: &str) -> Result<Timestamp> {
    let iso = format!("{year}-{month:02}-{day:02}T{time}Z");
    iso.parse().ok().with_context(|| format!("`{iso}` is no time"))
}

/// The number of an English month, by its first three letters.
fn month(name: &str) -> Result<u32> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let at = name.get(..3).and_then(|short| MONTHS.find(short));
    Ok(u32::try_from(at.with_context(|| format!("`{name}` is no month"))?)? / 3 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_read_as_it_stands_in_the_files() {
        assert_eq!(turns_of("D8:6; D9:17"), ["D8:6", "D9:17"]);
        assert_eq!(turns_of("D:11:26"), ["D11:26"]);
        assert_eq!(turns_of("D30:05"), ["D30:5"]);
        assert_eq!(turns_of("D"), [""; 0]);
    }

    #[test]
    fn a_question_without_evidence_is_left_out() {
        let turn = |id: &str| Turn {
            id: id.to_owned(),
            session: String::new(),
            speaker: String::new(),
            text: String::new(),
            at: Timestamp::default(),
        };
        let question = |ids: &[&str]| Question {
            text: String::new(),
            evidence: ids.iter().map(|id| (*id).to_owned()).collect(),
            kind: String::new(),
        };
        let asked = vec![question(&["a", "x"]), question(&["x"]), question(&[])];
        let read = conversation("c", vec![turn("a"), turn("b")], asked).unwrap();
        assert_eq!(read.questions.len(), 1);
        assert_eq!(read.questions[0].evidence, ["a".to_owned()].into());
        assert!(conversation("c", vec![turn("a"), turn("a")], Vec::new()).is_err());
    }
}
