//! Parses just enough of Rust to count lines and find functions: it separates code from comments. A full
//! parser would be a heavy dependency, and would refuse files that are being edited.

/// A source file split into code and comments. Both keep the layout of the file, line for line, with
/// everything else blanked; the text of string literals is in neither.
pub(crate) struct RustSource {
    code: String,
    code_lines: Vec<String>,
    comment_lines: Vec<String>,
}

/// A function with a body. Lines are counted from 0.
#[derive(Debug, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// First line of the comments and attributes directly above.
    pub(crate) header: usize,
    /// Line of the `fn` keyword.
    pub(crate) start: usize,
    /// Line of the closing brace.
    pub(crate) end: usize,
    pub(crate) is_test: bool,
}

impl RustSource {
    pub(crate) fn parse(text: &str) -> Self {
        let (code, comments) = separate(text);
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        Self { code_lines: lines(&code), comment_lines: lines(&comments), code }
    }

    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    pub(crate) fn comment_lines(&self) -> &[String] {
        &self.comment_lines
    }

    /// Number of lines outside of `#[cfg(test)] mod`.
    pub(crate) fn lines_without_tests(&self) -> usize {
        let in_tests: usize = self.test_modules().iter().map(|(first, last)| last - first + 1).sum();
        self.code_lines.len() - in_tests
    }

    /// Returns the first and last line of each `#[cfg(test)] mod`.
    pub(crate) fn test_modules(&self) -> Vec<(usize, usize)> {
        let mut modules = Vec::new();
        for (at, _) in self.code.match_indices("#[cfg(") {
            let Some(close) = self.code[at..].find(")]").map(|offset| at + offset + 2) else { continue };
            let condition = &self.code[at..close];
            // A module behind `any(test, …)` is also in builds without tests.
            let is_elsewhere = condition.contains("not(test") || condition.starts_with("#[cfg(any(");
            if is_elsewhere || !words(condition).any(|(_, word)| word == "test") {
                continue;
            }
            let Some(item) = self.code[close..].find(['{', ';']).map(|offset| close + offset) else {
                continue;
            };
            if words(&self.code[close..item]).any(|(_, word)| word == "mod") {
                let end = if self.code[item..].starts_with('{') { self.closing(item) } else { item };
                modules.push((self.line_of(at), self.line_of(end)));
            }
        }
        modules
    }

    /// Returns the names of the modules that the file declares, each with its line.
    pub(crate) fn modules(&self) -> Vec<(usize, String)> {
        let mut words = words(&self.code).peekable();
        let mut found = Vec::new();
        while let Some((at, word)) = words.next() {
            if word == "mod"
                && let Some((_, name)) = words.peek()
            {
                found.push((self.line_of(at), (*name).to_owned()));
            }
        }
        found
    }

    /// Returns every function with a body, in the order of their first lines.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let trials = self.trials();
        let starts = words(&self.code).filter(|(_, word)| *word == "fn");
        starts.filter_map(|(at, _)| self.function(at, &trials)).collect()
    }

    /// Returns the names of the tests in tables of `trial!(name)`, which have no attribute.
    fn trials(&self) -> Vec<&str> {
        let after = self.code.match_indices(TRIAL).map(|(at, _)| &self.code[at + TRIAL.len()..]);
        after.filter_map(|rest| words(rest).next()).map(|(_, name)| name).collect()
    }

    fn function(&self, at: usize, trials: &[&str]) -> Option<Function> {
        let rest = &self.code[at + 2..];
        // `fn(u8)` is a type and `fn $name` belongs to a macro: a function's name comes after one space.
        let name = rest.trim_start();
        let (0, name) = words(name).next()? else { return None };
        let open = at + self.body_start(at)?;
        let (start, end) = (self.line_of(at), self.line_of(self.closing(open)));
        let header = self.header(start);
        let is_test = trials.contains(&name)
            || self.code_lines[header..=start].iter().any(|line| is_test_attribute(line));
        Some(Function { name: name.to_owned(), header, start, end, is_test })
    }

    /// Returns the distance to the `{` of the body, or `None` for a declaration that ends with `;`.
    fn body_start(&self, at: usize) -> Option<usize> {
        let mut depth = 0_i32;
        for (offset, byte) in self.code[at..].bytes().enumerate() {
            match byte {
                b'(' | b'[' => depth += 1,
                b')' | b']' => depth -= 1,
                b'{' if depth == 0 => return Some(offset),
                b';' | b'}' if depth == 0 => return None,
                _ => {}
            }
        }
        None
    }

    /// Returns the position of the brace that closes the one at `open`, or the end of the file.
    fn closing(&self, open: usize) -> usize {
        let mut depth = 0_i32;
        for (offset, byte) in self.code[open..].bytes().enumerate() {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                _ => continue,
            }
            if depth == 0 {
                return open + offset;
            }
        }
        self.code.len()
    }

    /// Goes up over attributes and comments to a blank line or the end of the item before.
    fn header(&self, start: usize) -> usize {
        let mut first = start;
        while first > 0 {
            let code = self.code_lines[first - 1].trim();
            let comment = self.comment_lines[first - 1].trim();
            if (code.is_empty() && comment.is_empty()) || code.ends_with(['}', '{', ';']) {
                break;
            }
            first -= 1;
        }
        first
    }

    fn line_of(&self, at: usize) -> usize {
        let line = self.code.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
        line.min(self.code_lines.len().saturating_sub(1))
    }
}

/// Makes a test of a function: see `archon_testkit::trial`.
const TRIAL: &str = "trial!(";

fn is_test_attribute(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("#[") && ["#[test", "::test", "#[rstest"].iter().any(|mark| line.contains(mark))
}

/// Returns identifiers and keywords with their positions.
fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let base = code.as_ptr() as usize;
    code.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .map(move |word| (word.as_ptr() as usize - base, word))
}

/// Kind of a piece of text.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// Separates code and comments, each in the layout of the whole.
fn separate(text: &str) -> (String, String) {
    let (mut code, mut comments) = (String::new(), String::new());
    let mut rest = text;
    while !rest.is_empty() {
        let before = text[..text.len() - rest.len()].bytes().next_back();
        let (kind, length) = stretch(rest, before);
        let (piece, tail) = rest.split_at(length);
        copy(piece, kind == Kind::Code, &mut code);
        copy(piece, kind == Kind::Comment, &mut comments);
        rest = tail;
    }
    (code, comments)
}

/// Copies a piece, or only its layout. Blanks are counted in bytes, so that positions agree in both copies.
fn copy(piece: &str, visible: bool, into: &mut String) {
    if visible {
        into.push_str(piece);
    } else {
        into.extend(piece.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
    }
}

/// Returns kind and length in bytes of the next piece; `before` is the byte in front of it.
fn stretch(rest: &str, before: Option<u8>) -> (Kind, usize) {
    let after_word = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if rest.starts_with("//") {
        return (Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Kind::Comment, block_comment(rest));
    }
    if rest.starts_with('"') {
        return (Kind::Literal, quoted(rest, '"'));
    }
    if let Some(length) = raw_string(rest).filter(|_| !after_word) {
        return (Kind::Literal, length);
    }
    if rest.starts_with('\'') && is_char_literal(rest) {
        return (Kind::Literal, quoted(rest, '\''));
    }
    (Kind::Code, rest.chars().next().map_or(1, char::len_utf8))
}

/// Returns the length of a block comment; they nest.
fn block_comment(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// Returns the length of a literal up to its closing quote; a backslash skips the next character.
fn quoted(rest: &str, quote: char) -> usize {
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == quote {
            return at + 1;
        }
    }
    rest.len()
}

/// Returns the length of `r"…"`, `r#"…"#` and their byte and C forms.
fn raw_string(rest: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"]
        .into_iter()
        .find(|prefix| rest.strip_prefix(prefix).is_some_and(|tail| tail.starts_with(['"', '#'])))?;
    let tail = &rest[prefix.len()..];
    let hashes = tail.len() - tail.trim_start_matches('#').len();
    let body = tail[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let opening = prefix.len() + hashes + 1;
    Some(body.find(&close).map_or(rest.len(), |at| opening + at + close.len()))
}

/// Returns whether this is a literal such as `'a'` or `'\n'`, not a lifetime such as `'a`.
fn is_char_literal(rest: &str) -> bool {
    let mut chars = rest.chars().skip(1);
    matches!((chars.next(), chars.next()), (Some('\\'), _) | (Some(_), Some('\'')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_comments_hide_code() {
        for hidden in [
            "\"fn a() { }\"",
            "r#\"fn \" a() {\"#",
            "br\"fn {\"",
            "'{'",
            "'\\''",
            "'\\u{7b}'",
            "// fn a() {",
            "/* fn /* { */ fn */",
            "\"\\\" fn {\"",
        ] {
            let text = format!("let r#fn = {hidden}\n;");
            let source = RustSource::parse(&text);
            assert!(!source.code().contains('{'), "{hidden}: {}", source.code());
            assert!(source.code().ends_with("\n;"), "{hidden}: {}", source.code());
        }
        let source = RustSource::parse("fn a<'x>(y: &'x str) -> &'x str { y }");
        assert_eq!(source.functions().len(), 1);
    }

    #[test]
    fn functions_know_their_header_body_and_whether_they_test() {
        let text = "\
struct S;

/// Doc.
#[inline]
fn plain(f: fn(u8), n: [u8; 2]) -> u8 {
    if true { 1 } else { 2 }
}
trait T { fn declared(&self); }

// spec: A-01
#[tokio::test]
async fn tests() {}
";
        let functions = RustSource::parse(text).functions();
        let found: Vec<_> =
            functions.iter().map(|f| (f.name.as_str(), f.header, f.start, f.end, f.is_test)).collect();
        assert_eq!(found, [("plain", 2, 4, 6, false), ("tests", 9, 11, 11, true)]);
    }

    #[test]
    fn functions_in_a_table_of_trials_are_tests() {
        let text = "static TRIALS: &[Trial] = &[trial!(one).needs(&REDIS)];\nfn one() {}\nfn other() {}\n";
        let functions = RustSource::parse(text).functions();
        let found: Vec<_> = functions.iter().map(|f| (f.name.as_str(), f.is_test)).collect();
        assert_eq!(found, [("one", true), ("other", false)]);
    }

    #[test]
    fn test_modules_do_not_count() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[cfg(not(test))]\nmod c {}\n";
        let source = RustSource::parse(text);
        assert_eq!(source.test_modules(), [(2, 5)]);
        assert_eq!(source.lines_without_tests(), 4);
        assert_eq!(RustSource::parse("#[cfg(test)]\nmod tests;\n").test_modules(), [(0, 1)]);
        assert_eq!(RustSource::parse("#[cfg(all(test, unix))]\nmod tests;\n").test_modules(), [(0, 1)]);
        assert!(RustSource::parse("#[cfg(any(feature = \"a\", test))]\nmod a;\n").test_modules().is_empty());
    }

    #[test]
    fn declared_modules_are_listed() {
        let modules = RustSource::parse("mod a;\n// mod b;\npub(crate) mod c {}\n").modules();
        assert_eq!(modules, [(0, "a".to_owned()), (2, "c".to_owned())]);
    }
}
