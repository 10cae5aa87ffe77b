//! Parses one word of a command line: quotes, escapes, variables and substitutions.
//!
//! Shells differ most in what may follow `$`, and keep adding to it: bash 5.3 made `${ command; }` a
//! substitution. Only names, digits and special parameters are accepted as variables, with or without braces;
//! everything else after `$` is refused.

use super::{
    known_word::KnownWord,
    reader::{Reader, Word, ends_word},
};

/// Special parameters of a shell, such as `$?`. `$$` is not among them: shells disagree on `"$${x}"`.
const SPECIAL: &str = "@*?-!";

/// Characters that make a word a pattern of file names or a user's home.
const PATTERN: &str = "*?[]{}~";

#[derive(Clone, Copy, PartialEq)]
enum Quotes {
    None,
    Double,
}

impl<'a> Reader<'a> {
    /// Parses the word with which the unread rest of the line begins; returns `None` if there is no word, or
    /// if the word is refused.
    pub(super) fn word(&mut self) -> Option<Word<'a>> {
        let begin = self.rest;
        let mut word = Word { source: "", said: KnownWord::default() };
        while let Some(c) = self.rest.chars().next().filter(|&c| !ends_word(c)) {
            self.skip(c.len_utf8());
            match c {
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word)?,
                '\\' => word.said.push(self.take().filter(|&c| c != '#')?),
                '$' => self.dollar(&mut word, Quotes::None)?,
                // The meaning of a backslash or quote within it depends on the shell, and so does the
                // beginning of a comment.
                '`' | '#' => return None,
                c if PATTERN.contains(c) => word.said.pattern(c),
                c => word.said.push(c),
            }
        }
        word.source = begin.get(..begin.len() - self.rest.len())?;
        // A single bracket is not a pattern, but a command or its end.
        if ["[", "]"].contains(&word.source) {
            word.said = KnownWord::literal(word.source);
        }
        (!word.source.is_empty() && self.ends_plainly(word.source)).then_some(word)
    }

    /// Returns whether the word `source` ends here. Before a redirection it may not: some shells read a
    /// number or a name in braces as the redirection's descriptor, and a process substitution is part of the
    /// word.
    fn ends_plainly(&self, source: &str) -> bool {
        let is_number = source.chars().all(|c| c.is_ascii_digit());
        match self.rest.strip_prefix(['<', '>']) {
            Some(behind) => !is_number && !source.starts_with('{') && !behind.starts_with('('),
            None => true,
        }
    }

    fn single_quoted(&mut self, word: &mut Word<'a>) -> Option<()> {
        let (text, behind) = self.rest.split_once('\'')?;
        self.rest = behind;
        word.said.push_str(text);
        let is_plain = !text.contains('\n') || !self.awaits_text();
        (is_plain && (!text.contains('#') || self.takes_hashes())).then_some(())
    }

    fn double_quoted(&mut self, word: &mut Word<'a>) -> Option<()> {
        loop {
            match self.take()? {
                '"' => return Some(()),
                '$' => self.dollar(word, Quotes::Double)?,
                '`' => return None,
                '\n' if self.awaits_text() => return None,
                '#' if !self.takes_hashes() => return None,
                '\\' => {
                    let escaped = self.take().filter(|&c| c != '#')?;
                    if !"$`\"\\".contains(escaped) {
                        word.said.push('\\');
                    }
                    word.said.push(escaped);
                }
                c => word.said.push(c),
            }
        }
    }

    /// Parses the text after `$`.
    fn dollar(&mut self, word: &mut Word<'a>, quotes: Quotes) -> Option<()> {
        let name = self.rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let next = self.rest.chars().next();
        // Quoted `$@` still becomes several words.
        let mut is_split = quotes == Quotes::None || next == Some('@');
        if self.rest.starts_with('(') {
            self.substitution()?;
        } else if self.eat("{") {
            is_split |= self.rest.starts_with('@');
            self.braces()?;
        } else if next.is_some_and(|c| c.is_ascii_digit() || SPECIAL.contains(c)) {
            self.skip(1);
        } else if name.len() < self.rest.len() {
            self.rest = name;
        } else if stands_alone(next, quotes) {
            word.said.push('$');
            return Some(());
        } else {
            return None;
        }
        match is_split {
            true => word.said.split(),
            false => word.said.quoted(),
        }
        Some(())
    }

    /// Parses the text after `${`: a name, a number or a special parameter, without any operation on it.
    fn braces(&mut self) -> Option<()> {
        let (name, behind) = self.rest.split_once('}')?;
        self.rest = behind;
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit());
        let is_number = name.chars().all(|c| c.is_ascii_digit());
        let is_sign = name.chars().count() == 1 && SPECIAL.contains(name);
        (!name.is_empty() && (is_name || is_number || is_sign)).then_some(())
    }

    fn take(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.skip(next.len_utf8());
        Some(next)
    }
}

/// Returns whether a `$` before the character `next` is an ordinary character in every shell.
fn stands_alone(next: Option<char>, quotes: Quotes) -> bool {
    match quotes {
        Quotes::None => next.is_none_or(|c| ends_word(c) && !"<>(".contains(c)),
        Quotes::Double => next.is_some_and(|c| " \t\n\"|/)".contains(c)),
    }
}
