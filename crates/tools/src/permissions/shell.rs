//! Parses a command line: the commands that it runs, and the files of its redirections. The table of harmless
//! arguments is in `shell/harmless.rs`.
//!
//! Nothing is guessed: a line with anything that could run more than is visible (arithmetic, functions,
//! assignments, here-documents that expand) is not parsed at all, and then only a rule with the exact line
//! allows it.

pub(crate) mod harmless;
pub(crate) mod known_word;
mod options;
mod reader;
#[cfg(test)]
mod tests;
mod word;

use harmless::{Effect, Harmless};
use known_word::KnownWord;

/// The commands, files and texts of a command line.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// All commands that may run, including those in substitutions.
    pub(crate) parts: Vec<Part>,
    /// Files that are read by redirection.
    pub(crate) reads: Vec<KnownWord>,
    /// Files that are written by redirection.
    pub(crate) writes: Vec<KnownWord>,
    /// Texts in the line that commands read, such as here-strings.
    pub(crate) texts: Vec<KnownWord>,
}

/// One command of a command line.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) words: Vec<KnownWord>,
}

/// Maximum length of a line that is parsed, in bytes.
const LONGEST: usize = 4_096;

/// Parses a command line; returns `None` if it is not certain which commands the line may run.
pub(crate) fn analyse(line: &str) -> Option<Line> {
    // Shells and people read joined lines and invisible characters differently.
    let is_strange =
        |c: char| (c.is_control() && c != '\n' && c != '\t') || (!c.is_ascii() && c.is_whitespace());
    if line.len() > LONGEST || line.contains(is_strange) || line.contains("\\\n") {
        return None;
    }
    reader::read(line)
}

impl Line {
    /// Returns whether a deny or ask rule matches a command of the line. If a command can run others, all
    /// texts of the line are searched, because they may name the others.
    pub(crate) fn holds(&self, rule: &[&str]) -> bool {
        let rows = self.parts.iter().map(|part| Some((part, part.harmless()?)));
        match rows.collect::<Option<Vec<_>>>() {
            Some(rows) => rows.into_iter().any(|(part, row)| part.holds(row, rule)),
            None => are_among(rule, &self.all_words()),
        }
    }

    /// Returns every word and every text of the line, whole and in pieces.
    pub(crate) fn all_words(&self) -> Vec<KnownWord> {
        let mut all = Vec::new();
        for word in self.parts.iter().flat_map(|part| &part.words).chain(&self.texts) {
            all.push(word.clone());
            let known = word.known().unwrap_or_default();
            all.extend(pieces(&known).into_iter().filter(|piece| !piece.is(&known)));
        }
        all
    }
}

impl Part {
    /// Returns the table row by which a rule with these words allows the command: it begins with them, and
    /// everything after them is harmless.
    pub(crate) fn allowed_by(&self, rule: &[&str]) -> Option<&'static Harmless> {
        let begins = self.words.len() >= rule.len()
            && self.words.iter().zip(rule).all(|(word, wanted)| word.is(wanted));
        (begins && !rule.is_empty()).then(|| options::harmless(&self.words, rule.len())).flatten()
    }

    /// Returns the table row by which the command is harmless without a rule that names it.
    pub(crate) fn harmless(&self) -> Option<&'static Harmless> {
        options::harmless(&self.words, 0)
    }

    /// Returns the words of a suggested rule for commands like this one.
    pub(crate) fn suggestion(&self) -> Option<String> {
        Some(options::name(&self.words)?.join(" "))
    }

    /// Returns whether a deny or ask rule matches the command, which is harmless by this row. The rule's
    /// first word matches the program in any folder, and the other words may be anywhere after it.
    fn holds(&self, row: &Harmless, rule: &[&str]) -> bool {
        let [program, rest @ ..] = rule else { return true };
        let others = &self.words[1..];
        // A program that runs others gets their names as arguments.
        let known: Vec<KnownWord> = others.iter().filter(|word| word.known().is_some()).cloned().collect();
        let runs = row.effect == Effect::RunsProject && are_among(rule, &known);
        runs || is_program(program, &self.words[0]) && come_in_order(rest, others)
    }

    /// Returns the folders that the command walks: given ones, or the current folder if perhaps none
    /// is given. Returns `None` if the command walks no folders.
    pub(crate) fn walks(&self, row: &Harmless) -> Option<Walk> {
        let (letters, patterns) = row.walks;
        let is_asked = |word: &KnownWord| {
            let known = word.known().unwrap_or_else(|| "-".to_owned() + letters);
            match known.strip_prefix("--") {
                Some(name) => name.contains("recur") || name.contains("archive"),
                None => known.starts_with('-') && known.contains(|c| letters.contains(c)),
            }
        };
        let walks = letters == "*" || !letters.is_empty() && self.words.iter().any(is_asked);
        let is_path = |word: &&&KnownWord| !word.beginning().starts_with('-');
        let operands = options::operands(&self.words);
        let paths = operands.iter().filter(is_path).count();
        walks.then_some(if paths > patterns { Walk::Given } else { Walk::Current })
    }
}

/// The folders that a command walks: it reads all files below them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    /// The folders among the command's operands.
    Given,
    /// Possibly the current folder.
    Current,
}

/// Returns whether all words of a rule are among these words, the first as a program.
fn are_among(rule: &[&str], words: &[KnownWord]) -> bool {
    let [program, rest @ ..] = rule else { return true };
    let has = |wanted: &&str| come_in_order(&[wanted], words);
    words.iter().any(|word| is_program(program, word)) && rest.iter().all(has)
}

/// Returns whether a word may be this program, in any folder and version.
fn is_program(wanted: &str, word: &KnownWord) -> bool {
    let bare = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or(word).to_owned();
        let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned();
        if unversioned.is_empty() { name } else { unversioned }
    };
    match word.known() {
        Some(word) => super::wildcard(wanted, &word) || super::wildcard(&bare(wanted), &bare(&word)),
        None => word.may_be(wanted) || known_word::meet(word.form(), &in_any_folder(&bare(wanted))),
    }
}

fn in_any_folder(program: &str) -> Vec<known_word::Place> {
    [known_word::Place::Text]
        .into_iter()
        .chain(known_word::literal(program))
        .chain([known_word::Place::Text])
        .collect()
}

/// Returns whether the words of a rule occur in this order, with others between them; options in any order.
fn come_in_order(rule: &[&str], words: &[KnownWord]) -> bool {
    let mut rest = words;
    rule.iter().all(|wanted| {
        if wanted.starts_with('-') && wanted.len() > 1 {
            return is_among_options(wanted, words);
        }
        let Some(at) = rest.iter().position(|word| is_word(wanted, word)) else { return false };
        // A word that is not known may become several words.
        let used = usize::from(rest[at].known().is_some());
        rest = &rest[at + used..];
        true
    })
}

fn is_word(wanted: &str, word: &KnownWord) -> bool {
    match word.known() {
        Some(word) => super::wildcard(wanted, &word),
        None => word.may_be(wanted),
    }
}

/// Returns whether an option of a rule is among the words: in full, abbreviated, with a value, or as a letter
/// among others. A long option and a letter match if they begin alike.
fn is_among_options(wanted: &str, words: &[KnownWord]) -> bool {
    let is_in = |word: &KnownWord| {
        let Some(word) = word.known() else { return word.may_be(wanted) };
        let word = word.split('=').next().unwrap_or_default().to_owned();
        match (wanted.strip_prefix("--"), word.strip_prefix("--")) {
            (Some(wanted), Some(word)) => {
                word.starts_with(wanted) || !word.is_empty() && wanted.starts_with(word)
            }
            (Some(wanted), None) => {
                word.starts_with('-') && wanted.chars().next().is_some_and(|letter| word.contains(letter))
            }
            (None, _) => false,
        }
    };
    let has_letter = |letter: char| {
        words.iter().any(|word| match word.known() {
            Some(word) => match word.strip_prefix("--") {
                Some(name) => name.starts_with(letter),
                None => word.starts_with('-') && word.contains(letter),
            },
            None => word.may_be(wanted),
        })
    };
    match wanted.starts_with("--") {
        true => words.iter().any(is_in),
        false => words.iter().any(|word| is_word(wanted, word)) || wanted.chars().skip(1).all(has_letter),
    }
}

/// Returns the pieces of a text that may be words if a program uses it as a command or setting: split at
/// separators, with quotes and again without them.
pub(crate) fn pieces(text: &str) -> Vec<KnownWord> {
    let divides = |c: char| c.is_whitespace() || c.is_control() || "\"'`;&|<>()=,:@!#\\".contains(c);
    let unquoted = text.replace(['\'', '"', '\\'], "");
    let all = text.split(divides).chain(unquoted.split(divides));
    all.filter(|piece| !piece.is_empty()).map(KnownWord::guessed).collect()
}
