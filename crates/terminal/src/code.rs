//! Colors of code, line by line: for comments, string literals, numbers and keywords.

mod languages;

use crate::theme::Look;

pub(crate) use languages::Language;

/// The construct that is open at the end of a line of code and continues in the next line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CodeState {
    /// Nothing is open.
    #[default]
    Code,
    /// A block comment is open.
    Comment,
    /// A string literal is open; the number is the index of its quotes in the language.
    Text(usize),
}

/// The maximum size of a line that gets colors, in bytes; a longer line is seldom written by hand.
const MOST_BYTES: usize = 4_096;

/// Splits a line of code, without its line end, into pieces with their looks, and advances the state to the next line.
pub(crate) fn pieces<'a>(line: &'a str, language: &Language, state: &mut CodeState) -> Vec<(&'a str, Look)> {
    if line.len() > MOST_BYTES {
        return vec![(line, Look::Plain)];
    }
    if language.is_diff {
        return vec![(line, look_in_diff(line))];
    }
    let mut lexer = Lexer { language, line, at: 0, pieces: Vec::new() };
    while lexer.at < line.len() {
        lexer.step(state);
    }
    lexer.pieces
}

fn look_in_diff(line: &str) -> Look {
    match line.as_bytes() {
        [b'+', ..] => Look::Added,
        [b'-', ..] => Look::Removed,
        [b'@', b'@', ..] => Look::Keyword,
        _ => Look::Plain,
    }
}

struct Lexer<'a, 'l> {
    language: &'l Language,
    line: &'a str,
    at: usize,
    pieces: Vec<(&'a str, Look)>,
}

impl Lexer<'_, '_> {
    fn step(&mut self, state: &mut CodeState) {
        match *state {
            CodeState::Comment => {
                let close = self.language.block_comment.map_or("", |(_, close)| close);
                self.until(close, 0, CodeState::Comment, state);
            }
            CodeState::Text(number) => self.text(number, 0, state),
            CodeState::Code => self.code(state),
        }
    }

    fn code(&mut self, state: &mut CodeState) {
        let rest = self.line.get(self.at..).unwrap_or_default();
        if self.begins_line_comment(rest) {
            return self.push(rest.len(), Look::Comment);
        }
        if let Some((open, close)) = self.language.block_comment.filter(|(open, _)| rest.starts_with(open)) {
            return self.until(close, open.len(), CodeState::Comment, state);
        }
        let quotes = self.language.quotes.iter();
        let quote = quotes.enumerate().find(|(_, quote)| {
            rest.starts_with(quote.open)
                && (quote.has_lines || end_of_text(rest, quote.open.len(), quote).is_some())
        });
        if let Some((number, quote)) = quote {
            return self.text(number, quote.open.len(), state);
        }
        let is_in_word = |c: char| c.is_alphanumeric() || c == '_';
        let word = rest.find(|c| !is_in_word(c)).unwrap_or(rest.len());
        let first = rest.chars().next().unwrap_or(' ');
        let (length, look) = match word {
            0 => (first.len_utf8(), Look::Plain),
            _ if first.is_ascii_digit() => {
                let is_in_number = |c: char| is_in_word(c) || c == '.';
                (rest.find(|c| !is_in_number(c)).unwrap_or(rest.len()), Look::Number)
            }
            _ => (word, self.language.look_of_word(rest.get(..word).unwrap_or_default())),
        };
        self.push(length, look);
    }

    /// Returns true if the rest of the line is a comment. A `#` within a word does not begin a comment.
    fn begins_line_comment(&self, rest: &str) -> bool {
        let is_apart =
            self.line.get(..self.at).is_none_or(|before| !before.ends_with(|c: char| !c.is_whitespace()));
        let signs = self.language.line_comments;
        signs.iter().any(|sign| rest.starts_with(sign) && (is_apart || *sign != "#"))
    }

    /// Adds the comment up to `close`, or up to the end of the line; then the state becomes `open`. The search for
    /// `close` skips the first `from` bytes, which open the comment.
    fn until(&mut self, close: &str, from: usize, open: CodeState, state: &mut CodeState) {
        let rest = self.line.get(self.at..).unwrap_or_default();
        let end = rest.get(from..).and_then(|inner| inner.find(close)).map(|at| from + at + close.len());
        *state = if end.is_some() { CodeState::Code } else { open };
        self.push(end.unwrap_or(rest.len()), Look::Comment);
    }

    fn text(&mut self, number: usize, from: usize, state: &mut CodeState) {
        let rest = self.line.get(self.at..).unwrap_or_default();
        let end = self.language.quotes.get(number).and_then(|quote| end_of_text(rest, from, quote));
        *state = if end.is_some() { CodeState::Code } else { CodeState::Text(number) };
        self.push(end.unwrap_or(rest.len()), Look::Literal);
    }

    fn push(&mut self, length: usize, look: Look) {
        let end = self.at + length.max(1);
        let piece = self.line.get(self.at..end).unwrap_or_default();
        // Plain pieces that follow each other are one piece.
        match self.pieces.last_mut() {
            Some((last, known)) if *known == look => {
                let begin = self.at - last.len();
                *last = self.line.get(begin..end).unwrap_or_default();
            }
            _ => self.pieces.push((piece, look)),
        }
        self.at = end;
    }
}

/// Returns the offset after the closing quote of a string literal; `None` if the literal does not end in this line.
/// The search begins at `from`, which is after the opening quote.
fn end_of_text(rest: &str, from: usize, quote: &languages::Quote) -> Option<usize> {
    let mut at = from;
    loop {
        let inner = rest.get(at..)?;
        if inner.starts_with(quote.close) {
            return Some(at + quote.close.len());
        }
        let mut characters = inner.chars();
        let character = characters.next()?;
        at += character.len_utf8();
        if character == '\\' && quote.has_escapes {
            at += characters.next().map_or(0, char::len_utf8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces with a look, line by line.
    fn looks(name: &str, code: &str) -> Vec<(String, Look)> {
        let language = Language::of(name).unwrap();
        let mut state = CodeState::default();
        let mut all = Vec::new();
        for line in code.lines() {
            let pieces = pieces(line, language, &mut state);
            assert_eq!(pieces.iter().map(|(text, _)| *text).collect::<String>(), line);
            all.extend(pieces.into_iter().map(|(text, look)| (text.to_owned(), look)));
        }
        all.retain(|(_, look)| *look != Look::Plain);
        all
    }

    fn check(name: &str, code: &str, expected: &[(&str, Look)]) {
        let expected: Vec<(String, Look)> =
            expected.iter().map(|(text, look)| ((*text).to_owned(), *look)).collect();
        assert_eq!(looks(name, code), expected, "{name}: {code}");
    }

    #[test]
    fn pieces_of_each_family_have_comments_texts_numbers_and_keywords() {
        use Look::{Added, Comment, Keyword, Literal, Number, Removed};
        check(
            "rust",
            "let a = 1_000u32; // one",
            &[("let", Keyword), ("1_000u32", Number), ("// one", Comment)],
        );
        check("rs", "fn f<'a>(s: &'a str) { \"\\\"x\" }", &[("fn", Keyword), ("\"\\\"x\"", Literal)]);
        check(
            "python",
            "def f(): return 'a' # no",
            &[("def", Keyword), ("return", Keyword), ("'a'", Literal), ("# no", Comment)],
        );
        check("ts", "const a = `b`", &[("const", Keyword), ("`b`", Literal)]);
        check("sh", "if [ $# -gt 2 ]; then", &[("if", Keyword), ("2", Number), ("then", Keyword)]);
        check(
            "json",
            "{\"a\": true, \"b\": 1.5}",
            &[("\"a\"", Literal), ("true", Keyword), ("\"b\"", Literal), ("1.5", Number)],
        );
        check("sql", "Select 1 -- one", &[("Select", Keyword), ("1", Number), ("-- one", Comment)]);
        check("html", "<a href=\"x\">don't</a><!-- c -->", &[("\"x\"", Literal), ("<!-- c -->", Comment)]);
        check("diff", "-a\n+b\n c", &[("-a", Removed), ("+b", Added)]);
    }

    #[test]
    fn pieces_of_a_comment_and_a_text_of_several_lines_go_on() {
        use Look::{Comment, Keyword, Literal};
        check("c", "/* a\nb */ int", &[("/* a", Comment), ("b */", Comment), ("int", Keyword)]);
        check("py", "\"\"\"a\nb\"\"\"\nif", &[("\"\"\"a", Literal), ("b\"\"\"", Literal), ("if", Keyword)]);
        check("js", "`a\nb`", &[("`a", Literal), ("b`", Literal)]);
    }

    #[test]
    fn language_of_an_unknown_name_is_none() {
        assert!(Language::of("brainfuck").is_none() && Language::of("").is_none());
        assert!(Language::of("Rust,ignore").is_some() && Language::of("rust {.line}").is_some());
    }

    #[test]
    fn pieces_of_any_text_are_the_whole_line() {
        for language in languages::ALL {
            let mut state = CodeState::default();
            for line in ["\"日本 \\", "'''", "/*é", "*/ 1.é", "#\u{301}`", "\\", "<!--", "", "\t-->\u{1b}[2J"]
            {
                let whole: String =
                    pieces(line, language, &mut state).iter().map(|(text, _)| *text).collect();
                assert_eq!(whole, line);
            }
        }
    }
}
