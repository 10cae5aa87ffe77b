//! Checks the words of a command against its table row: options, letter by letter, and operands.

use super::{
    harmless::{Harmless, Operands, TABLE},
    known_word::KnownWord,
};

/// Git formats that run another program to check signatures.
const RUN_BY_FORMAT: &[&str] = &["%G", "%(signature"];

/// Characters of sed scripts that only print lines by number.
const LINE_NUMBERS: &str = "0123456789,$p;=q \t";

/// Characters with which an awk script can call functions, or write to files and programs.
const MORE_THAN_COLUMNS: &str = "|<>()@\\";

/// Returns the row of a command if the command is harmless: the row has all options of the command, and no
/// word with unknown parts could be an option. The permission rule contains the first `named` words of the
/// command.
pub(super) fn harmless(words: &[KnownWord], named: usize) -> Option<&'static Harmless> {
    let (row, length) = row(words).filter(|(row, length)| !row.is_named || named >= *length)?;
    let mut command = Command { row, named, at: length, operands: Vec::new(), is_behind: false };
    command.read(words)?;
    command.has_harmless_operands().then_some(row)
}

/// Returns the first words of a command for a rule about it: its row's words, and the names of the targets
/// or scripts that it runs.
pub(super) fn name(words: &[KnownWord]) -> Option<Vec<String>> {
    let (row, length) = row(words)?;
    let is_chosen = matches!(row.operands, Operands::Chosen(_));
    let more = words.iter().skip(length).take_while(|word| is_chosen && !word.beginning().starts_with('-'));
    words.iter().take(length).chain(more).map(KnownWord::known).collect()
}

/// Returns the operands of a harmless command.
pub(super) fn operands(words: &[KnownWord]) -> Vec<&KnownWord> {
    let Some((row, length)) = row(words) else { return Vec::new() };
    let mut command = Command { row, named: 0, at: length, operands: Vec::new(), is_behind: false };
    let _ = command.read(words);
    command.operands.iter().filter_map(|(at, _)| words.get(*at)).collect()
}

/// Returns the row with the most words that the command begins with, and the number of these words.
fn row(words: &[KnownWord]) -> Option<(&'static Harmless, usize)> {
    let begins = |row: &'static str| {
        let mut length = 0;
        let mut said = words.iter();
        let is_named = row.split(' ').all(|wanted| {
            length += 1;
            said.next().is_some_and(|word| word.is(wanted))
        });
        is_named.then_some(length)
    };
    let rows = TABLE.iter().flat_map(|row| row.words.split(", ").map(move |words| (row, words)));
    rows.filter_map(|(row, words)| Some((row, begins(words)?))).max_by_key(|(_, length)| *length)
}

/// The way in which an option of the table takes a value.
enum Takes {
    Nothing,
    /// The option has a value, attached to it or in the next word.
    Value,
    /// The option may have a value, which is always attached to it.
    Here,
}

struct Command<'a> {
    row: &'static Harmless,
    named: usize,
    at: usize,
    /// The operands, each with its index in the command.
    operands: Vec<(usize, &'a KnownWord)>,
    /// True after the word `--` of the command.
    is_behind: bool,
}

impl<'a> Command<'a> {
    /// Reads all words of the command, or returns `None` if a word is not harmless.
    fn read(&mut self, words: &'a [KnownWord]) -> Option<()> {
        while let Some(word) = words.get(self.at) {
            if self.row.options == "*" {
                self.operands.push((self.at, word));
            } else if self.is_operand(word) {
                self.operands.push((self.at, word));
            // `find` also accepts options after operands and after `--`.
            } else if word.is("--") && !self.is_behind && !self.row.whole {
                self.is_behind = true;
            } else if self.option(&word.known()?)? {
                self.at += 1;
                // The value must not be an option for another version of the program.
                let value = words.get(self.at)?;
                if !(is_plain(value) && value.known().is_none_or(|value| is_harmless_value(&value))) {
                    return None;
                }
            }
            self.at += 1;
        }
        Some(())
    }

    fn options(&self) -> &'static str {
        match (self.is_behind, self.row.behind) {
            (true, Some(behind)) => behind,
            _ => self.row.options,
        }
    }

    /// Returns whether the word can only be an operand.
    fn is_operand(&self, word: &KnownWord) -> bool {
        let ends_options = self.is_behind && self.row.behind.is_none();
        let is_text = self.row.operands == Operands::Format && !self.operands.is_empty();
        let begins = word.beginning();
        ends_options
            || is_text
            || word.is("-")
            || word.is("")
            || !begins.is_empty() && !begins.starts_with('-')
    }

    /// Returns whether the option takes the next word as its value, or `None` if the option is not in the
    /// table.
    fn option(&self, word: &str) -> Option<bool> {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        if self.row.whole {
            return self.takes(name, value);
        }
        match word.starts_with("--") {
            // Some options are in the table with their value.
            true => self.takes(word, None).or_else(|| self.takes(name, value)),
            false => self.letters(word.strip_prefix('-')?),
        }
    }

    fn takes(&self, name: &str, value: Option<&str>) -> Option<bool> {
        if !value.is_none_or(is_harmless_value) {
            return None;
        }
        let mut listed = self.options().split_whitespace();
        listed.find_map(|option| {
            let (listed, takes) = parts(option);
            match (takes, value) {
                _ if listed != name => None,
                (Takes::Nothing, None) | (Takes::Here, _) | (Takes::Value, Some(_)) => Some(false),
                (Takes::Value, None) => Some(true),
                (Takes::Nothing, Some(_)) => None,
            }
        })
    }

    /// Reads short options in one word; the last may have a value.
    fn letters(&self, letters: &str) -> Option<bool> {
        let mut rest = letters.chars();
        while let Some(letter) = rest.next() {
            match self.letter(letter)? {
                Takes::Nothing => {}
                Takes::Value => return is_harmless_value(rest.as_str()).then_some(rest.as_str().is_empty()),
                Takes::Here => return is_harmless_value(rest.as_str()).then_some(false),
            }
        }
        (!letters.is_empty()).then_some(false)
    }

    fn letter(&self, letter: char) -> Option<Takes> {
        self.options().split_whitespace().filter(|option| !option.starts_with("--")).find_map(|option| {
            let (listed, takes) = parts(option);
            let letters = listed.strip_prefix('-')?;
            letters.contains(letter).then_some(takes)
        })
    }

    fn has_harmless_operands(&self) -> bool {
        let words = || self.operands.iter().map(|(_, word)| *word);
        let is_one = |word: &KnownWord| word.is_one();
        let first = || words().next().and_then(KnownWord::known);
        match self.row.operands {
            Operands::Any => true,
            Operands::Most(most) => self.operands.len() <= most && words().all(is_one),
            Operands::Chosen(most) => self.are_chosen(most),
            Operands::Inside => words().all(is_inside),
            Operands::TimeFormat => words().all(|word| word.is_one() && word.beginning().starts_with('+')),
            Operands::Format => first().is_some_and(|format| !sets_a_variable(&format)),
            Operands::Printing => first().is_some_and(|script| only_prints(&script)),
            Operands::Columns => {
                first().is_some_and(|script| !script.contains(|c: char| MORE_THAN_COLUMNS.contains(c)))
            }
        }
    }

    /// Returns whether the command may run these targets: the rule contains all operands, or contains none of
    /// them and there are at most `most`. Operands that the rule does not contain must be plain names.
    fn are_chosen(&self, most: usize) -> bool {
        let (by_rule, others): (Vec<_>, Vec<_>) = self.operands.iter().partition(|(at, _)| *at < self.named);
        let most = if by_rule.is_empty() { most } else { 0 };
        let is_name = |word: &KnownWord| {
            let sign = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
            word.known().is_some_and(|word| word.chars().all(sign) && !word.starts_with('-'))
                && is_inside(word)
        };
        others.len() <= most && others.iter().all(|(_, word)| is_name(word))
    }
}

/// Splits an option of the table into its name and the kind of value that the mark at its end (`=` or `[=]`)
/// stands for.
fn parts(option: &str) -> (&str, Takes) {
    if let Some(name) = option.strip_suffix("[=]") {
        (name, Takes::Here)
    } else if let Some(name) = option.strip_suffix('=') {
        (name, Takes::Value)
    } else {
        (option, Takes::Nothing)
    }
}

/// Returns whether the value of an option cannot be read as another option; a negative number is allowed.
fn is_plain(value: &KnownWord) -> bool {
    match value.beginning().strip_prefix('-') {
        Some(number) => value.known().is_some() && number.parse::<u32>().is_ok(),
        None => !value.beginning().is_empty(),
    }
}

fn is_harmless_value(value: &str) -> bool {
    !RUN_BY_FORMAT.iter().any(|format| value.contains(format))
}

/// Returns whether a path, as written, stays within the current folder.
fn is_inside(word: &KnownWord) -> bool {
    let known = word.known().unwrap_or_else(|| word.beginning());
    // Some programs accept options after `--` too.
    !known.starts_with(['/', '~', '-']) && !known.split('/').any(|part| part == "..")
}

/// Returns whether a printf format has `%n`, which sets a variable such as `PATH`.
fn sets_a_variable(format: &str) -> bool {
    let flags = |c: char| c.is_ascii_digit() || "#-+ 0'*.hlLjzt".contains(c);
    format.split('%').skip(1).any(|rest| rest.trim_start_matches(flags).starts_with('n'))
}

/// Returns whether a sed script has one of the three known harmless forms: lines by number, lines by a text,
/// or replacing one text by another.
fn only_prints(script: &str) -> bool {
    let is_plain = |text: &str| !text.contains(['\n', '\\', '[']);
    let parts: Vec<&str> = script.split('/').collect();
    match &parts[..] {
        [numbers] => numbers.chars().all(|c| LINE_NUMBERS.contains(c)),
        ["", text, "p"] => is_plain(text),
        ["", from, ",", to, "p"] => is_plain(from) && is_plain(to),
        ["s", from, to, flags] => {
            is_plain(from) && is_plain(to) && flags.chars().all(|c| "gpI0123456789".contains(c))
        }
        _ => false,
    }
}
