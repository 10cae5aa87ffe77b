//! Memories as lines of a prompt, each with its date and who said it.

use archon_types::{MemoryEntry, MemoryKind, Recalled, TokenCounter, Trust};

use super::Turns;
use crate::{
    MemoryOptions,
    marks::marked_line,
    rank::{Analyzer, ends_of, only_asks},
};

/// The lines that fit into the prompt.
#[derive(Default)]
pub(super) struct Lines(Vec<Line>);

struct Line {
    text: String,
    tokens: u64,
    memory: Recalled,
}

impl Lines {
    /// Returns lines for as many memories as fit, in their order. A longer memory that does not fit makes room for
    /// the next. What a person only asked an assistant is left out, since it says nothing. What an assistant or a tool
    /// said has to be relevant by itself, since an answer is believed no more than what its prompt was told. The
    /// memories at the positions `outdated` state a fact that has ended, and their lines say so.
    pub(super) fn fitting(
        memories: Vec<Recalled>,
        outdated: &[u64],
        question: &str,
        options: &MemoryOptions,
        room: u64,
        counter: &dyn TokenCounter,
    ) -> Self {
        let analyzer = Analyzer::default();
        let asked = analyzer.terms(&ends_of(question));
        let mut remaining = room;
        let helps = |hit: &Recalled| match hit.entry.role() {
            Some("user") => !only_asks(&hit.entry.content),
            Some("assistant" | "tool") => hit.score >= options.threshold,
            _ => true,
        };
        let line = |memory: Recalled| {
            let part = best_part(&memory.entry.content, &asked, options.part, &analyzer);
            let text = line(&memory.entry, &part, outdated.contains(&memory.entry.position));
            let tokens = counter.count(&text) + 1;
            remaining = remaining.checked_sub(tokens)?;
            Some(Line { text, tokens, memory })
        };
        Self(memories.into_iter().filter(helps).filter_map(line).collect())
    }

    pub(super) fn tokens(&self) -> u64 {
        self.0.iter().map(|line| line.tokens).sum()
    }

    /// Returns the indices of the turns, from `first` on, that are among the memories.
    pub(super) fn repeated<'a>(&'a self, turns: &'a Turns, first: usize) -> impl Iterator<Item = usize> + 'a {
        self.0.iter().filter_map(move |line| turns.find_from(first, &line.memory))
    }

    /// Removes the memories that are among the turns from `first` on.
    pub(super) fn remove_repeated(&mut self, turns: &Turns, first: usize) {
        self.0.retain(|line| turns.find_from(first, &line.memory).is_none());
    }

    /// Returns the text and its memories, oldest first.
    pub(super) fn oldest_first(mut self) -> (String, Vec<Recalled>) {
        self.0.sort_by_key(|line| (time(&line.memory.entry), line.memory.entry.position));
        let text = self.0.iter().flat_map(|line| [&line.text, "\n"]).collect();
        (text, self.0.into_iter().map(|line| line.memory).collect())
    }
}

/// Formats a memory as one line of a prompt: `[2026-11-23, the person] …`. The line is data for the model, not
/// instructions.
fn line(entry: &MemoryEntry, text: &str, is_outdated: bool) -> String {
    let date = time(entry).to_string();
    let day = date.get(..10).unwrap_or_default();
    let who = match (entry.kind, entry.role()) {
        (MemoryKind::Fact, _) => "a fact".to_owned(),
        (MemoryKind::Summary, _) => "a summary".to_owned(),
        (_, Some("user")) => "the person".to_owned(),
        (_, Some("assistant")) => "the assistant".to_owned(),
        (_, Some("tool")) => "a tool".to_owned(),
        // A name may come from anywhere, so it must not look like the end of the mark.
        (_, Some(name)) => {
            name.replace(['[', ']', ','], " ").split_whitespace().collect::<Vec<_>>().join(" ")
        }
        (_, None) => "a note".to_owned(),
    };
    let source = match entry.trust {
        Trust::Untrusted => ", untrusted data",
        Trust::Model if entry.role() != Some("assistant") => ", an assistant said",
        _ => "",
    };
    let outdated = if is_outdated { ", no longer so" } else { "" };
    marked_line(&format!("[{day}, {who}{source}{outdated}] "), text)
}

/// Returns the time from which a memory holds, or at which it was said.
fn time(entry: &MemoryEntry) -> archon_types::Timestamp {
    entry.valid_from.unwrap_or(entry.timestamp)
}

/// Returns the text as one line. Of a text with more than `most` characters, returns the part with the most words of
/// the question, with `…` where something is left out.
fn best_part(text: &str, asked: &[String], most: usize, analyzer: &Analyzer) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let length = |word: &&str| word.chars().count() + 1;
    if words.iter().map(length).sum::<usize>() <= most.saturating_add(1) {
        return words.join(" ");
    }
    // For each word the question's words in it, as bits: a part counts each of them once.
    let bits = |word: &&str| {
        let place = |term: String| asked.iter().take(64).position(|asked| *asked == term);
        analyzer.terms(word).into_iter().filter_map(place).fold(0u64, |bits, place| bits | 1 << place)
    };
    let bits: Vec<u64> = words.iter().map(bits).collect();
    let begins =
        |at: &usize| *at == 0 || words[at - 1].ends_with(['.', '!', '?', ':', ';']) || bits[*at] != 0;
    let part_from = |first: usize| {
        let mut room = most;
        let fits = |word: &&&str| room.checked_sub(length(word)).map(|rest| room = rest).is_some();
        first..first + words[first..].iter().take_while(fits).count()
    };
    let covered = |part: &std::ops::Range<usize>| {
        bits[part.clone()].iter().fold(0, |all, bits| all | bits).count_ones()
    };
    // Of equal parts the first.
    let parts = (0..words.len()).filter(begins).map(part_from);
    let best = parts.rev().max_by_key(covered).unwrap_or(0..0);
    if best.is_empty() {
        // A word that is longer than a part.
        return words[best.start].chars().take(most).chain(" …".chars()).collect();
    }
    let before = if best.start > 0 { "… " } else { "" };
    let after = if best.end < words.len() { " …" } else { "" };
    format!("{before}{}{after}", words[best].join(" "))
}
