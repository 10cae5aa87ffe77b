//! A word of a command as far as it is known before it runs: its letters, and where others may stand.

/// One place of a word or of a pattern of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// This character.
    Is(char),
    /// One character that does not divide folders.
    One,
    /// Any number of characters that do not divide folders.
    Name,
    /// Any text.
    Text,
}

/// How many words a shell makes of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Words {
    #[default]
    One,
    /// One or more, each of the form: the names of files.
    Files,
    /// None, one or more, and each may be anything.
    Any,
}

/// What a word may become. Every word that a shell makes of it has its form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    form: Vec<Place>,
    words: Words,
    /// Text of any kind ends it: nothing behind is told apart.
    is_open: bool,
}

impl Said {
    /// The file of a substituted process.
    pub(super) fn process() -> Self {
        Self { form: vec![Place::Is('/'), Place::Text], words: Words::One, is_open: true }
    }

    /// A word that is known.
    pub(crate) fn literal(text: &str) -> Self {
        let mut said = Self::default();
        said.push_str(text);
        said
    }

    /// A word of a line that nobody took apart: it may be a pattern, and not more is known of it than stands
    /// there.
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

    /// A character that the names of files or of users are put in for.
    pub(super) fn pattern(&mut self, c: char) {
        match c {
            // Where classes and braces end depends on what is in them.
            '[' | ']' | '{' | '}' | '~' => self.text(Words::Files),
            '*' if !self.is_open => self.form.push(Place::Name),
            '?' if !self.is_open => self.form.push(Place::One),
            _ => {}
        }
        self.becomes(Words::Files);
    }

    /// A parameter or a substitution, in quotes.
    pub(super) fn quoted(&mut self) {
        self.text(Words::One);
    }

    /// The same without quotes: it is split.
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

    /// The word, if it is known to the letter.
    pub(crate) fn known(&self) -> Option<String> {
        let letter = |place: &Place| match place {
            Place::Is(c) => Some(*c),
            _ => None,
        };
        self.form.iter().map(letter).collect::<Option<String>>().filter(|_| self.words == Words::One)
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        self.words == Words::One && self.form.iter().copied().eq(text.chars().map(Place::Is))
    }

    /// Whether it becomes one word, whatever that is.
    pub(super) fn is_one(&self) -> bool {
        self.words == Words::One
    }

    /// The text that every word that it becomes begins with.
    pub(crate) fn beginning(&self) -> String {
        let letter = |place: &Place| match place {
            Place::Is(c) => Some(*c),
            _ => None,
        };
        match self.words {
            Words::Any => String::new(),
            _ => self.form.iter().map_while(letter).collect(),
        }
    }

    /// Its form; one place for any text if not even that is known.
    pub(crate) fn form(&self) -> &[Place] {
        match self.words {
            Words::Any => &[Place::Text],
            _ => &self.form,
        }
    }

    /// Whether it may become this word, alone or among others.
    pub(crate) fn may_be(&self, word: &str) -> bool {
        meet(self.form(), &literal(word))
    }
}

/// A text as a form that means only itself.
pub(crate) fn literal(text: &str) -> Vec<Place> {
    text.chars().map(Place::Is).collect()
}

/// Whether there is a text that has both forms.
pub(crate) fn meet(one: &[Place], other: &[Place]) -> bool {
    // `reached[j]`: the places of `one` so far and the first `j` of `other` have a text in common.
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
    fn repeats(self) -> bool {
        matches!(self, Place::Name | Place::Text)
    }

    /// Whether there is a character that may stand in both.
    fn meets(self, other: Self) -> bool {
        match (self, other) {
            (Place::Is(a), Place::Is(b)) => a == b,
            (Place::Is(c), Place::One | Place::Name) | (Place::One | Place::Name, Place::Is(c)) => c != '/',
            _ => true,
        }
    }
}
