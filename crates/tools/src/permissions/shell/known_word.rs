//! A word of a command as far as it is known before it runs: known characters, and places for unknown ones.

/// One place of a form. A form is a list of places, and describes all texts that a word or a path pattern
/// stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Exactly this character.
    Is(char),
    /// One character except `/`.
    One,
    /// Any number of characters except `/`.
    Name,
    /// Any text.
    Text,
}

/// The number of words that a shell makes of one written word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Words {
    #[default]
    One,
    /// One or more, each matching the form: file names.
    Files,
    /// None, one or more, each with any text.
    Any,
}

/// The possible values of a word of a command line. Each word that a shell makes of it matches `form`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownWord {
    form: Vec<Place>,
    words: Words,
    /// True if the form ends with any text; later characters are not recorded.
    is_open: bool,
}

impl KnownWord {
    /// Returns the word of a process substitution: the path of a file.
    pub(super) fn process() -> Self {
        Self { form: vec![Place::Is('/'), Place::Text], words: Words::One, is_open: true }
    }

    /// Returns a word with exactly this text.
    pub(crate) fn literal(text: &str) -> Self {
        let mut said = Self::default();
        said.push_str(text);
        said
    }

    /// Returns a word of a line that was not parsed: each character of a pattern or an expansion stands for
    /// unknown text.
    pub(crate) fn guessed(text: &str) -> Self {
        let mut said = Self::default();
        for c in text.chars() {
            match c {
                '*' | '?' | '[' | ']' | '{' | '}' | '~' => said.pattern(c),
                '$' | '`' => said.text(Words::One),
                c => said.push(c),
            }
        }
        said
    }

    pub(super) fn push(&mut self, c: char) {
        if !self.is_open {
            self.form.push(Place::Is(c));
        }
    }

    pub(super) fn push_str(&mut self, text: &str) {
        text.chars().for_each(|c| self.push(c));
    }

    /// Appends a character that a shell expands to names of files or users, such as `*` or `~`.
    pub(super) fn pattern(&mut self, c: char) {
        match c {
            // The end of classes and braces depends on their content.
            '[' | ']' | '{' | '}' | '~' => self.text(Words::Files),
            '*' if !self.is_open => self.form.push(Place::Name),
            '?' if !self.is_open => self.form.push(Place::One),
            _ => {}
        }
        self.becomes(Words::Files);
    }

    /// Appends a parameter or substitution in quotes: any text, but within the same word.
    pub(super) fn quoted(&mut self) {
        self.text(Words::One);
    }

    /// Appends a parameter or substitution without quotes: any text, which a shell splits into words.
    pub(super) fn split(&mut self) {
        self.text(Words::Any);
    }

    fn text(&mut self, words: Words) {
        if !self.is_open {
            self.form.push(Place::Text);
        }
        self.is_open = true;
        self.becomes(words);
    }

    fn becomes(&mut self, words: Words) {
        self.words = match (self.words, words) {
            (Words::Any, _) | (_, Words::Any) => Words::Any,
            (Words::Files, _) | (_, Words::Files) => Words::Files,
            _ => Words::One,
        };
    }

    /// Returns the word if all its characters are known.
    pub(crate) fn known(&self) -> Option<String> {
        let known: Option<String> = self.form.iter().map(|place| place.letter()).collect();
        known.filter(|_| self.words == Words::One)
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        self.words == Words::One && self.form.iter().copied().eq(text.chars().map(Place::Is))
    }

    /// Returns whether a shell makes exactly one word of this word.
    pub(super) fn is_one(&self) -> bool {
        self.words == Words::One
    }

    /// Returns the known prefix of every word that a shell makes of this word.
    pub(crate) fn beginning(&self) -> String {
        match self.words {
            Words::Any => String::new(),
            _ => self.form.iter().map_while(|place| place.letter()).collect(),
        }
    }

    /// Returns a form that matches every word that a shell makes of this word.
    pub(crate) fn form(&self) -> &[Place] {
        match self.words {
            Words::Any => &[Place::Text],
            _ => &self.form,
        }
    }

    /// Returns whether a shell may make `word` of this word, alone or among others.
    pub(crate) fn may_be(&self, word: &str) -> bool {
        meet(self.form(), &literal(word))
    }
}

/// Returns a form that matches only this text.
pub(crate) fn literal(text: &str) -> Vec<Place> {
    text.chars().map(Place::Is).collect()
}

/// Returns whether some text matches both forms.
pub(crate) fn meet(one: &[Place], other: &[Place]) -> bool {
    // `reached[j]`: some text matches the places of `one` so far and the first `j` places of `other`.
    let mut reached = vec![false; other.len() + 1];
    reached[0] = true;
    for at in 0..=one.len() {
        let mut next = vec![false; other.len() + 1];
        for by in 0..=other.len() {
            if !reached[by] {
                continue;
            }
            let (a, b) = (one.get(at), other.get(by));
            if b.is_some_and(|b| b.repeats()) {
                reached[by + 1] = true;
            }
            let Some(a) = a else { continue };
            if a.repeats() {
                next[by] = true;
            }
            if b.is_some_and(|b| a.meets(*b)) {
                let b_repeats = b.is_some_and(|b| b.repeats());
                match (a.repeats(), b_repeats) {
                    (true, _) => reached[by + 1] = true,
                    (false, true) => next[by] = true,
                    (false, false) => next[by + 1] = true,
                }
            }
        }
        if at < one.len() {
            reached = next;
        }
    }
    reached[other.len()]
}

impl Place {
    fn letter(self) -> Option<char> {
        if let Self::Is(c) = self { Some(c) } else { None }
    }

    fn repeats(self) -> bool {
        matches!(self, Place::Name | Place::Text)
    }

    /// Returns whether some character matches both places.
    fn meets(self, other: Self) -> bool {
        match (self, other) {
            (Place::Is(a), Place::Is(b)) => a == b,
            (Place::Is(c), Place::One | Place::Name) | (Place::One | Place::Name, Place::Is(c)) => c != '/',
            _ => true,
        }
    }
}
