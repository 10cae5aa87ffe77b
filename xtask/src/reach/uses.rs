//! Finds the public names and methods that a text uses. It follows the types of values through calls and
//! variables, so that `chat.reset()` counts for the type of `chat` alone. A value of an unknown type counts for
//! nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::surface::Surface;
use crate::markdown;
use crate::rust_source::RustSource;

/// Methods of the language whose value has the type of the one before.
const SAME_TYPE: &[&str] = &["clone", "expect", "unwrap"];
/// Words around a type that do not change what its methods are.
const AROUND_TYPES: &[&str] = &["&", "<", "mut", "dyn", "impl", "Arc", "Box", "Option"];

/// Returns the names and `Type::method`s that Rust code uses. It must import a name from our crates.
pub(super) fn of_code(surface: &Surface, code: &str) -> BTreeSet<String> {
    Pass::new(surface, BTreeSet::new()).over(code)
}

/// Returns the names and `Type::method`s in the Rust blocks and the code spans of a page.
pub(super) fn of_page(surface: &Surface, page: &str) -> BTreeSet<String> {
    let blocks = markdown::fences(page).into_iter().filter(|block| block.language() == "rust");
    let mut used =
        of_code(surface, &blocks.map(|block| block.lines.join("\n")).collect::<Vec<_>>().join("\n"));
    let types = || surface.names().filter(|name| name.starts_with(char::is_uppercase)).collect();
    for (_, line) in markdown::prose(page) {
        // A span of several words is a message or a command line.
        for span in line.split('`').skip(1).step_by(2).filter(|span| !span.contains(' ')) {
            used.extend(Pass::new(surface, types()).over(span));
        }
    }
    used
}

/// The expression to the left of a token.
#[derive(Clone, Copy)]
enum Left<'a> {
    Unknown,
    /// A value of this type, or the path of the type.
    Type(&'a str),
    /// The path of a module of ours.
    Module,
}

/// One walk over a code, from left to right.
struct Pass<'a> {
    surface: &'a Surface,
    imported: BTreeSet<&'a str>,
    variables: BTreeMap<String, &'a str>,
    left: Left<'a>,
    /// The expressions in front of the open brackets.
    outer: Vec<Left<'a>>,
    /// The variable of the last `let`, and the number of open brackets there.
    bound: Option<(String, usize)>,
    used: BTreeSet<String>,
}

impl<'a> Pass<'a> {
    fn new(surface: &'a Surface, imported: BTreeSet<&'a str>) -> Self {
        let (variables, used) = (BTreeMap::new(), BTreeSet::new());
        Self { surface, imported, variables, left: Left::Unknown, outer: Vec::new(), bound: None, used }
    }

    fn over(mut self, code: &str) -> BTreeSet<String> {
        let source = RustSource::parse(code);
        let tokens = tokens(source.code());
        let mut at = 0;
        while at < tokens.len() {
            at = self.token(&tokens, at);
        }
        self.used
    }

    /// Takes the token at `at`, and returns the place of the next one.
    fn token(&mut self, tokens: &[&str], at: usize) -> usize {
        let token = |at: usize| tokens.get(at).copied().unwrap_or_default();
        match token(at) {
            "use" if is_word(token(at + 1)) => return self.import(tokens, at + 1),
            "let" => {
                let name = if token(at + 1) == "mut" { at + 2 } else { at + 1 };
                self.bound = (token(name + 1) == "=").then(|| (token(name).to_owned(), self.outer.len()));
                return name;
            }
            // A pattern may give a known name to another value.
            "for" | "|" => {
                self.variables.remove(token(at + 1));
                self.left = Left::Unknown;
            }
            "(" | "[" => self.outer.push(std::mem::replace(&mut self.left, Left::Unknown)),
            "{" => {
                self.outer.push(Left::Unknown);
                self.left = Left::Unknown;
            }
            ")" | "]" | "}" => self.left = self.outer.pop().unwrap_or(Left::Unknown),
            "::" if token(at + 1) == "<" => return after_generics(tokens, at + 1),
            "::" | "." | "?" | "await" => {}
            ";" => self.end_statement(),
            word if is_word(word) => self.word(tokens, at),
            _ => self.left = Left::Unknown,
        }
        at + 1
    }

    /// Takes the names of a `use` item of our crates.
    fn import(&mut self, tokens: &[&str], at: usize) -> usize {
        let item: Vec<&str> = tokens[at..].iter().copied().take_while(|token| *token != ";").collect();
        if self.surface.is_module(item[0]) {
            let named: Vec<&str> = item.iter().filter_map(|name| self.surface.name(name)).collect();
            self.used.extend(named.iter().map(|name| (*name).to_owned()));
            self.imported.extend(named);
            if item.contains(&"*") {
                self.imported.extend(self.surface.names());
            }
        }
        at + item.len() + 1
    }

    fn word(&mut self, tokens: &[&str], at: usize) {
        let token = |at: usize| tokens.get(at).copied().unwrap_or_default();
        let (word, next) = (tokens[at], token(at + 1));
        let before = at.checked_sub(1).map_or("", token);
        let is_call = next == "(" || (next == "::" && token(at + 2) == "<");
        self.left = match (before, self.left) {
            (".", Left::Type(of)) if is_call => self.call(of, word),
            // The field of a value often has the name and the type of a variable.
            (".", _) if !is_call => self.variable(word),
            ("::", Left::Type(of)) => self.call(of, word),
            ("::", Left::Module) => self.name(word).unwrap_or(Left::Module),
            ("." | "::", _) => Left::Unknown,
            _ if next == ":" => self.declare(word, &tokens[at + 2..]),
            _ if next == "::" && self.surface.is_module(word) => Left::Module,
            _ if self.imported.contains(word) => self.name(word).unwrap_or(Left::Unknown),
            _ => self.variable(word),
        };
    }

    /// Notes a method of a type and the type of its value, and returns the value.
    fn call(&mut self, of: &'a str, method: &str) -> Left<'a> {
        let path = format!("{of}::{method}");
        let same = SAME_TYPE.contains(&method) || matches!(method, "new" | "default");
        let value = self.surface.result(&path).or(same.then_some(of));
        self.used.insert(path);
        self.used.extend(value.map(str::to_owned));
        value.map_or(Left::Unknown, Left::Type)
    }

    fn name(&mut self, word: &str) -> Option<Left<'a>> {
        let name = self.surface.name(word)?;
        self.used.insert(name.to_owned());
        Some(Left::Type(name))
    }

    fn variable(&self, word: &str) -> Left<'a> {
        self.variables.get(word).map_or(Left::Unknown, |of| Left::Type(of))
    }

    /// Takes `name: Type` of a parameter, a field or a `let`.
    fn declare(&mut self, name: &str, after: &[&str]) -> Left<'a> {
        let mut rest = after.iter().copied().skip_while(|token| AROUND_TYPES.contains(token)).peekable();
        let mut of = rest.next().unwrap_or_default();
        while rest.next_if_eq(&"::").is_some() {
            of = rest.next().unwrap_or_default();
        }
        match self.surface.name(of) {
            Some(of) => self.variables.insert(name.to_owned(), of),
            None => self.variables.remove(name),
        };
        Left::Unknown
    }

    fn end_statement(&mut self) {
        if let Some((name, _)) = self.bound.take_if(|(_, depth)| *depth == self.outer.len()) {
            match self.left {
                Left::Type(of) => self.variables.insert(name, of),
                _ => self.variables.remove(&name),
            };
        }
        self.left = Left::Unknown;
    }
}

/// Returns the words and signs of a code, without lifetimes.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_lifetime = first == '\'';
        let after = &rest[first.len_utf8()..];
        let length = match first {
            ':' if after.starts_with(':') => 2,
            _ if is_lifetime || is_word(&rest[..first.len_utf8()]) => {
                first.len_utf8()
                    + after.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(after.len())
            }
            _ => first.len_utf8(),
        };
        if !is_lifetime {
            tokens.push(&rest[..length]);
        }
        rest = rest[length..].trim_start();
    }
    tokens
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Returns the place after the `>` that closes the `<` at `open`.
fn after_generics(tokens: &[&str], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match *token {
            "<" => depth += 1,
            ">" if tokens[at - 1] != "-" => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::TextFile;

    const SOURCE: &str = "\npub use a::{Archon, Builder, Chat, Run, Context};\npub use b::replay;\n\
        impl Archon {\n    pub fn builder() -> Builder {}\n    pub fn chat(&self) -> Chat {}\n    pub fn id(&self) -> u8 {}\n}\n\
        impl Builder {\n    pub fn name(self) -> Self {}\n    pub fn build(self) -> Result<Archon, E> {}\n}\n\
        impl Chat {\n    pub async fn prompt(&self) -> Result<Run, RunError> {}\n    pub fn reset(&self) {}\n}\n\
        impl Run {\n    pub fn text(&self) {}\n}\n";

    fn surface() -> Surface {
        Surface::read(&[TextFile::new("crates/archon/src/lib.rs", SOURCE)])
    }

    #[track_caller]
    fn check(code: &str, expected: &[&str]) {
        let used = of_code(&surface(), &format!("use archon::{{Archon, Chat}};\n{code}"));
        let methods: Vec<_> = used.iter().filter(|name| name.contains("::")).collect();
        assert_eq!(methods, expected, "{code}");
    }

    #[test]
    fn method_counts_for_the_type_of_its_value() {
        for (code, expected) in [
            (
                "Archon::builder().name(x.text()).build()?",
                &["Archon::builder", "Builder::build", "Builder::name"][..],
            ),
            ("let mut a = Archon::builder(); a.name();", &["Archon::builder", "Builder::name"]),
            (
                "async fn f(a: &'x Archon) { a.chat().prompt(\"b.reset()\").await?.text(); }",
                &["Archon::chat", "Chat::prompt", "Run::text"],
            ),
            (
                "fn f(chats: &[u8], chat: Arc<Chat>) { g(chat.clone().reset::<u8>(), 1) }",
                &["Chat::clone", "Chat::reset"],
            ),
            ("struct S { chat: Chat } self.chat.reset()", &["Chat::reset"]),
        ] {
            check(code, expected);
        }
    }

    #[test]
    fn method_of_a_value_of_another_or_an_unknown_type_counts_for_nothing() {
        for (code, expected) in [
            ("other.reset(); Archon::builder().other().name()", &["Archon::builder", "Builder::other"][..]),
            ("let c = Archon::chat(a); let c = 5; c.reset();", &["Archon::chat"]),
            ("fn f(c: Chat) { d(|c| c.reset()); for c in d { c.reset() } }", &[]),
            ("fn f(c: Chat, c: Other) { c.reset() }", &[]),
            ("fn f(a: Archon) { a.id().reset(); (a, b).reset(); // a.chat()\n }", &["Archon::id"]),
        ] {
            check(code, expected);
        }
    }

    #[test]
    fn name_counts_if_it_comes_from_our_crates() {
        let of = |code: &str| of_code(&surface(), code).into_iter().collect::<Vec<_>>();
        assert_eq!(of("use archon::{Archon, b::{Chat}};"), ["Archon", "Chat"]);
        assert_eq!(
            of("fn f(a: archon::Archon) { archon::replay(a.id()) }"),
            ["Archon", "Archon::id", "replay"]
        );
        assert_eq!(of("use archon::*; Context::x;"), ["Context", "Context::x"]);
        assert!(
            of("use anyhow::Context; x.context(Context::y); rig::Archon::builder(); replay()").is_empty()
        );
    }

    #[test]
    fn page_counts_with_its_rust_blocks_and_code_spans() {
        let page = "An Archon, `Run` or `rig::Chat`, by\n`Builder::name` and `reset`: `Chat is full`.\n\n```rust\n# use archon::Archon;\n\
                    Archon::builder()\n```\n\n```sh\nChat\n```\n";
        let used: Vec<_> = of_page(&surface(), page).into_iter().collect();
        assert_eq!(used, ["Archon", "Archon::builder", "Builder", "Builder::name", "Run"]);
    }
}
