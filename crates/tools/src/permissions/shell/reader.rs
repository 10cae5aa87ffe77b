//! Parses a command line by the grammar that bash, dash and other shells share: lists, pipelines, groups,
//! `if`, loops and redirections. Words are in [`word`](super::word).
//!
//! It refuses all syntax that it does not know, and all syntax that two shells read differently, so that
//! every command that runs is found. That is why it is our own and small: a parser of all of bash's grammar
//! would have to follow each new version, while this one refuses new syntax. It refuses functions, `case`,
//! `select`, `coproc`, `[[`, arithmetic, assignments and backquotes.

use super::{Line, Part, known_word::KnownWord};

/// Maximum number of command lists in a command line, nested or in sequence.
const MOST_LISTS: usize = 64;

/// Words with a special meaning at the beginning of a command, in any shell.
const KEYWORDS: &[&str] = &[
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
];

/// Keywords that end a list of commands.
const CLOSERS: &[&str] = &["}", "do", "done", "elif", "else", "fi", "then"];

/// The kind of a redirection.
#[derive(Clone, Copy)]
enum Redirection {
    Read,
    Write,
    Both,
    /// Input from another descriptor, or else from a file.
    Input,
    /// Output to another descriptor, or else to a file.
    Output,
    /// A here-document, whose leading tabs may be dropped.
    Here(Tabs),
    Text,
}

#[derive(Clone, Copy, PartialEq)]
enum Tabs {
    Kept,
    Dropped,
}

/// The operators of redirections; longer ones come before their prefixes.
const REDIRECTIONS: &[(&str, Redirection)] = &[
    ("&>>", Redirection::Write),
    ("&>", Redirection::Write),
    ("<<<", Redirection::Text),
    ("<<-", Redirection::Here(Tabs::Dropped)),
    ("<<", Redirection::Here(Tabs::Kept)),
    ("<&", Redirection::Input),
    ("<>", Redirection::Both),
    ("<", Redirection::Read),
    (">>", Redirection::Write),
    (">|", Redirection::Write),
    (">&", Redirection::Output),
    (">", Redirection::Write),
];

/// Returns whether an unquoted word ends before this character.
pub(super) fn ends_word(c: char) -> bool {
    " \t\n;&|<>()".contains(c)
}

/// A word as it is written in the line, and its possible values.
pub(super) struct Word<'a> {
    pub(super) source: &'a str,
    pub(super) said: KnownWord,
}

/// A here-document that was announced; its text begins on the next line.
struct HereDocument {
    end: String,
    tabs: Tabs,
    /// True if the shell expands nothing in the text.
    quoted: bool,
}

/// The unread rest of a command line, and the commands and files that were found in the line so far.
/// Functions return `None` if the line cannot be parsed.
pub(super) struct Reader<'a> {
    pub(super) rest: &'a str,
    found: Line,
    awaited: Vec<HereDocument>,
    lists: usize,
    /// Depth of nested substitutions at the current position.
    substitutions: usize,
}

/// Parses a whole command line.
pub(super) fn read(line: &str) -> Option<Line> {
    let mut reader =
        Reader { rest: line, found: Line::default(), awaited: Vec::new(), lists: 0, substitutions: 0 };
    reader.newlines()?;
    if !reader.rest.is_empty() {
        reader.list()?;
    }
    (reader.rest.is_empty() && !reader.awaits_text()).then_some(reader.found)
}

impl<'a> Reader<'a> {
    /// Parses a list of commands, up to the end of the command line or of the list.
    fn list(&mut self) -> Option<()> {
        self.lists += 1;
        if self.lists > MOST_LISTS {
            return None;
        }
        self.newlines()?;
        loop {
            self.and_or()?;
            if !(self.eat(";") || self.eat("&") || self.rest.starts_with('\n')) {
                return Some(());
            }
            self.newlines()?;
            if self.ends_list() {
                return Some(());
            }
        }
    }

    fn ends_list(&self) -> bool {
        self.rest.is_empty() || self.rest.starts_with(')') || CLOSERS.iter().any(|word| self.is_at(word))
    }

    fn and_or(&mut self) -> Option<()> {
        self.pipeline()?;
        while self.eat("&&") || self.eat("||") {
            self.newlines()?;
            self.pipeline()?;
        }
        Some(())
    }

    fn pipeline(&mut self) -> Option<()> {
        if self.eat_keyword("time") {
            self.blanks();
            // An option for bash, a command for others.
            if self.rest.starts_with('-') {
                return None;
            }
        }
        self.eat_keyword("!");
        self.command()?;
        while !self.rest.starts_with("||") && (self.eat("|&") || self.eat("|")) {
            self.newlines()?;
            self.command()?;
        }
        Some(())
    }

    /// Parses one command of a pipeline, and the blanks after it.
    fn command(&mut self) -> Option<()> {
        self.blanks();
        if self.rest.starts_with('(') {
            self.brackets()?;
        } else if self.eat_keyword("{") {
            self.list()?;
            self.expect("}")?;
        } else if self.eat_keyword("if") {
            self.branches()?;
        } else if self.eat_keyword("for") {
            self.each()?;
        } else if self.eat_keyword("while") || self.eat_keyword("until") {
            self.list()?;
            self.body()?;
        } else {
            return self.simple_command();
        }
        self.blanks();
        while self.redirection()? {}
        Some(())
    }

    /// Parses an `if` command after its keyword `if`.
    fn branches(&mut self) -> Option<()> {
        loop {
            self.list()?;
            self.expect("then")?;
            self.list()?;
            if self.eat_keyword("else") {
                self.list()?;
            } else if self.eat_keyword("elif") {
                continue;
            }
            return self.expect("fi");
        }
    }

    /// Parses a `for` loop after its keyword `for`.
    fn each(&mut self) -> Option<()> {
        self.blanks();
        // Names with other characters may have a meaning for the commands in the loop.
        let name = self.word()?;
        if !name.source.chars().all(|c| c.is_ascii_lowercase()) {
            return None;
        }
        self.expect("in")?;
        self.blanks();
        while !self.rest.starts_with([';', '\n']) {
            self.word()?;
            self.blanks();
        }
        self.eat(";");
        self.newlines()?;
        self.body()
    }

    /// Parses the body of a loop.
    fn body(&mut self) -> Option<()> {
        self.expect("do")?;
        self.list()?;
        self.expect("done")
    }

    /// Parses a list in brackets. Two brackets are arithmetic for most shells, and for some only if the text
    /// looks like it.
    fn brackets(&mut self) -> Option<()> {
        if !self.eat("(") || self.rest.starts_with('(') {
            return None;
        }
        self.list()?;
        self.eat(")").then_some(())
    }

    /// Parses a command substitution from its bracket on. A here-document around or in it is refused, because
    /// shells disagree on where its text is.
    pub(super) fn substitution(&mut self) -> Option<()> {
        if self.awaits_text() {
            return None;
        }
        self.substitutions += 1;
        self.brackets()?;
        self.substitutions -= 1;
        Some(())
    }

    /// Parses words and redirections up to the end of the command. A variable assignment before them is
    /// refused, as it may change what the command does.
    fn simple_command(&mut self) -> Option<()> {
        let mut words = Vec::new();
        let (mut redirected, mut ended) = (false, false);
        loop {
            self.blanks();
            // For dash, `a &> b` is two commands, and words after it belong to the second.
            ended |= self.rest.starts_with("&>");
            if ended && words.is_empty() {
                return None;
            }
            if self.redirection()? {
                redirected = true;
            } else if self.rest.is_empty() || self.rest.starts_with(['\n', ';', '&', '|', ')']) {
                break;
            } else if ended {
                return None;
            } else if words.is_empty() {
                words.push(self.program()?);
            } else if self.process_substitution()? {
                words.push(KnownWord::process());
            } else {
                words.push(self.word()?.said);
            }
        }
        if words.is_empty() {
            return redirected.then_some(());
        }
        self.found.parts.push(Part { words });
        Some(())
    }

    /// Parses the first word of a command; an assignment or keyword is refused.
    fn program(&mut self) -> Option<KnownWord> {
        let word = self.word()?;
        let is_other = word.source.contains('=') || KEYWORDS.contains(&word.source);
        (!is_other).then_some(word.said)
    }

    /// Parses a process substitution, whose file counts as a word. Returns whether there was one.
    fn process_substitution(&mut self) -> Option<bool> {
        if !(self.rest.starts_with("<(") || self.rest.starts_with(">(")) {
            return Some(false);
        }
        self.skip(1);
        self.substitution()?;
        let is_whole = |c: char| ends_word(c) && !"<>(".contains(c);
        self.rest.chars().next().is_none_or(is_whole).then_some(true)
    }

    /// Parses a redirection and returns whether there was one. One digit before the operator is a
    /// descriptor in every shell.
    fn redirection(&mut self) -> Option<bool> {
        let digit = self.rest.strip_prefix(|c: char| c.is_ascii_digit());
        let signs = digit.filter(|rest| rest.starts_with(['<', '>'])).unwrap_or(self.rest);
        let found = REDIRECTIONS.iter().find_map(|(sign, kind)| Some((signs.strip_prefix(sign)?, *kind)));
        let Some((behind, kind)) = found.filter(|(behind, _)| !behind.starts_with('(')) else {
            return Some(false);
        };
        self.rest = behind;
        self.blanks();
        self.target(kind)?;
        self.blanks();
        Some(true)
    }

    fn target(&mut self, kind: Redirection) -> Option<()> {
        if matches!(kind, Redirection::Read | Redirection::Write) && self.process_substitution()? {
            return Some(());
        }
        let word = self.word()?;
        // Up to bash 5.2, `>& '$(a)'` runs `a`, because the file name is expanded once more.
        let is_bare = word.said.is(word.source);
        let digits = word.source.strip_suffix('-').unwrap_or(word.source);
        let is_descriptor = digits.chars().all(|c| c.is_ascii_digit());
        match kind {
            Redirection::Text => self.found.texts.push(word.said.clone()),
            Redirection::Here(tabs) => self.await_document(&word, tabs)?,
            Redirection::Input | Redirection::Output if !is_bare => return None,
            Redirection::Input | Redirection::Output if is_descriptor => {}
            Redirection::Read | Redirection::Input => self.found.reads.push(word.said.clone()),
            Redirection::Write | Redirection::Output => self.found.writes.push(word.said.clone()),
            Redirection::Both => {
                self.found.reads.push(word.said.clone());
                self.found.writes.push(word.said.clone());
            }
        }
        Some(())
    }

    /// Registers a here-document, which begins on the next line and ends with the line `word`.
    fn await_document(&mut self, word: &Word<'_>, tabs: Tabs) -> Option<()> {
        let end = word.said.known()?;
        let is_plain = end.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if self.substitutions > 0 || !is_plain || end.is_empty() {
            return None;
        }
        let quoted = word.source != end;
        self.awaited.push(HereDocument { end, tabs, quoted });
        Some(())
    }

    /// Skips the text of here-documents, checking that nothing in it runs.
    fn documents(&mut self) -> Option<()> {
        for document in std::mem::take(&mut self.awaited) {
            loop {
                if self.rest.is_empty() {
                    return None;
                }
                let (line, behind) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
                self.rest = behind;
                let text = match document.tabs {
                    Tabs::Dropped => line.trim_start_matches('\t'),
                    Tabs::Kept => line,
                };
                if text == document.end {
                    break;
                }
                self.found.texts.push(KnownWord::literal(line));
                if line.contains('#') || !document.quoted && line.contains(['$', '`', '\\']) {
                    return None;
                }
            }
        }
        Some(())
    }

    /// Returns whether a quoted `#` is an ordinary character in every shell. Within a substitution it may not
    /// be, because some shells search for the end of the substitution before they read the quotes.
    pub(super) fn takes_hashes(&self) -> bool {
        self.substitutions == 0 && !self.awaits_text()
    }

    /// Returns whether the text of a here-document begins on the next line, so that a quote cannot continue
    /// there.
    pub(super) fn awaits_text(&self) -> bool {
        !self.awaited.is_empty()
    }

    fn newlines(&mut self) -> Option<()> {
        self.blanks();
        while self.eat("\n") {
            self.documents()?;
            self.blanks();
        }
        Some(())
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    pub(super) fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Skips `text` if the unread rest of the line begins with it; returns whether it does.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let behind = self.rest.strip_prefix(text);
        self.rest = behind.unwrap_or(self.rest);
        behind.is_some()
    }

    /// Returns whether the unread rest of the line begins with this keyword. Before a bracket the word is not
    /// a keyword, because it may be part of a pattern.
    fn is_at(&self, keyword: &str) -> bool {
        let behind = self.rest.strip_prefix(keyword);
        behind.is_some_and(|behind| behind.chars().next().is_none_or(|c| ends_word(c) && c != '('))
    }

    fn eat_keyword(&mut self, keyword: &str) -> bool {
        self.blanks();
        self.is_at(keyword) && self.eat(keyword)
    }

    fn expect(&mut self, keyword: &str) -> Option<()> {
        self.eat_keyword(keyword).then_some(())
    }
}
