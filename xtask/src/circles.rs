//! Finds the files of a crate that import each other in a circle. In each folder the files are siblings: a file
//! counts together with the folder of its name, and `lib.rs` or the file named like a folder is its face, which
//! may import all of it. An import counts for the module that defines the item; a `pub use` is only followed.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::slice::Iter;

use crate::repository::TextFile;
use crate::rust_source::RustSource;

/// Words before the name of an item. `mod` and `use` are read apart.
const ITEMS: &[&str] = &["fn", "struct", "enum", "trait", "type", "const", "static", "macro_rules"];

/// The most imports that are followed for one name; some of them name each other.
const MOST_IMPORTS: u8 = 8;

type Path<'a> = Vec<&'a str>;

/// A module, also one that is written inside a file. Paths of modules are like `a::b`; the crate's is empty.
#[derive(Default)]
struct Module<'a> {
    /// The path of the module that is the whole file.
    file: String,
    items: BTreeSet<&'a str>,
    /// Imported names and their paths; the name of a glob is `*`.
    imports: Vec<(&'a str, Path<'a>)>,
    /// Paths in the code, and those of imports that are not public.
    mentions: Vec<Path<'a>>,
}

/// The thing that a path names.
enum Target<'a> {
    Module(String),
    Item { module: String, name: &'a str },
}

/// The items that a file takes from another file of its folder, by both.
type Siblings = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Returns a text for each circle of the crates in these folders.
pub(crate) fn check(files: &[TextFile], crates: impl Iterator<Item = String>) -> Vec<String> {
    let mut circles = Vec::new();
    for folder in crates {
        let top = format!("{folder}/src/");
        let inside = files.iter().filter_map(|file| Some((file.path.strip_prefix(&top)?, &*file.text)));
        for (under, edges) in edges(&inside.collect()) {
            let place = format!("{top}{}", under.replace("::", "/"));
            circles.extend(circles_of(&edges).iter().map(|nodes| report(&place, nodes, &edges)));
        }
    }
    circles
}

/// Returns the edges between the siblings of each folder of a crate; `texts` are by path under `src`.
fn edges(texts: &BTreeMap<&str, &str>) -> BTreeMap<String, Siblings> {
    let code: BTreeMap<String, String> = texts
        .iter()
        .filter_map(|(path, text)| Some((path.strip_suffix(".rs")?.replace('/', "::"), code_of(text))))
        .collect();
    let mut modules = Modules(BTreeMap::new());
    let root = if code.contains_key("lib") { "lib" } else { "main" };
    modules.read(&code, root, String::new());
    let mut edges: BTreeMap<String, Siblings> = BTreeMap::new();
    for (path, module) in &modules.0 {
        for mention in &module.mentions {
            let Some(Target::Item { module: of, name }) = modules.resolve(path, mention, MOST_IMPORTS) else {
                continue;
            };
            if let Some((folder, from, to)) = siblings(&module.file, &modules.0[&of].file) {
                let of_file = edges.entry(folder).or_default().entry(from).or_default();
                of_file.entry(to).or_default().insert(name.to_owned());
            }
        }
    }
    edges
}

/// Returns the folder where the ways to two files part, and their files there; `None` if one is a face of the other.
fn siblings(from: &str, to: &str) -> Option<(String, String, String)> {
    let (from, to): (Vec<&str>, Vec<&str>) = (segments(from).collect(), segments(to).collect());
    let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let (one, other) = (from.get(common)?, to.get(common)?);
    Some((from[..common].join("::"), (*one).to_owned(), (*other).to_owned()))
}

/// Returns the code without comments, texts and test modules.
fn code_of(text: &str) -> String {
    let source = RustSource::parse(text);
    let tests = source.test_modules();
    let is_test = |number| tests.iter().any(|(first, last)| (*first..=*last).contains(&number));
    let lines = source.code().lines().enumerate().filter(|(number, _)| !is_test(*number));
    lines.flat_map(|(_, line)| [line, "\n"]).collect()
}

/// Splits code into words, `::`, and single other characters. Lifetimes are left out.
fn tokens(code: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), code.trim_start());
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let tail = rest.strip_prefix('\'').unwrap_or(rest);
        let word = tail.len() - tail.trim_start_matches(is_part).len() + rest.len() - tail.len();
        let length = if rest.starts_with("::") { 2 } else { word.max(first.len_utf8()) };
        let (token, tail) = rest.split_at(length);
        if first != '\'' {
            found.push(token);
        }
        rest = tail.trim_start();
    }
    found
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split("::").filter(|segment| !segment.is_empty())
}

fn child(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

fn parent(module: &str) -> &str {
    module.rsplit_once("::").map_or("", |(parent, _)| parent)
}

/// The modules of a crate, by path.
struct Modules<'a>(BTreeMap<String, Module<'a>>);

impl<'a> Modules<'a> {
    /// Reads a file and those that it declares. Test files are declared by nothing that is left here.
    fn read(&mut self, code: &'a BTreeMap<String, String>, key: &str, file: String) {
        let Some(text) = code.get(key).filter(|_| !self.0.contains_key(&file)) else { return };
        let tokens = tokens(text);
        let token = |at: usize| tokens.get(at).copied().unwrap_or_default();
        let before = |at: usize| at.checked_sub(1).map_or("", token);
        self.at(&file).file.clone_from(&file);
        // Open modules, each with the depth of brackets inside.
        let mut open = vec![(file.clone(), 0_usize)];
        let (mut depth, mut at) = (0_usize, 0);
        while at < tokens.len() {
            let Some((path, base)) = open.last().cloned() else { return };
            let (word, next) = (token(at), token(at + 1));
            let is_method = before(at) == "." && before(at - 1) != ".";
            at += 1;
            match word {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => {
                    depth = depth.saturating_sub(1);
                    if depth < base {
                        open.pop();
                    }
                }
                "mod" if depth == base && is_word(next) => {
                    let inner = child(&path, next);
                    if token(at + 1) == "{" {
                        // There may be another one of this name, for another platform or feature.
                        self.at(&inner).file.clone_from(&file);
                        open.push((inner, depth + 1));
                    } else {
                        self.read(code, &inner.clone(), inner);
                    }
                    at += 1;
                }
                "use" if is_word(next) || next == "{" || next == "::" => {
                    let length = tokens[at..].iter().take_while(|token| **token != ";").count();
                    let is_public = matches!(before(at - 1), "pub" | ")");
                    self.import(&path, &tokens[at..at + length], is_public);
                    at += length;
                }
                _ if ITEMS.contains(&word) && depth == base => {
                    let name = tokens[at..].iter().find(|token| !matches!(**token, "mut" | "!"));
                    self.at(&path).items.extend(name.filter(|name| is_word(name)));
                }
                _ if is_word(word) => {
                    let mut mention = vec![word];
                    let is_path =
                        !is_method && before(at - 1) != "::" && (before(at - 1) != "$" || word == "crate");
                    while token(at) == "::" && is_word(token(at + 1)) {
                        mention.push(token(at + 1));
                        at += 2;
                    }
                    self.at(&path).mentions.extend(is_path.then_some(mention));
                }
                _ => {}
            }
        }
    }

    fn at(&mut self, path: &str) -> &mut Module<'a> {
        self.0.entry(path.to_owned()).or_default()
    }

    fn import(&mut self, module: &str, tree: &[&'a str], is_public: bool) {
        let mut found = Vec::new();
        use_tree(&mut tree.iter().peekable(), &[], &mut found);
        let module = self.at(module);
        if !is_public {
            module.mentions.extend(found.iter().map(|(_, path)| path.clone()));
        }
        module.imports.extend(found);
    }

    /// Finds the thing that `path` names inside `module`; `None` if another crate defines it.
    fn resolve(&self, module: &str, path: &[&'a str], left: u8) -> Option<Target<'a>> {
        match path.split_first()? {
            (&"crate", rest) => self.follow("", rest, false, left),
            (&"self" | &"super", _) => self.follow(module, path, false, left),
            _ => self.follow(module, path, true, left),
        }
    }

    /// Goes down from `module`. A name that is unknown there is taken for one that a macro defines, unless
    /// `is_strict`.
    fn follow(&self, module: &str, path: &[&'a str], is_strict: bool, left: u8) -> Option<Target<'a>> {
        let Some((&name, rest)) = path.split_first() else {
            return Some(Target::Module(module.to_owned()));
        };
        match name {
            "self" => return self.follow(module, rest, false, left),
            "super" => return self.follow(parent(module), rest, false, left),
            _ => {}
        }
        let known = self.0.get(module)?;
        let inner = Some(child(module, name)).filter(|inner| self.0.contains_key(inner));
        if let Some(inner) = inner.as_deref().filter(|_| !rest.is_empty()) {
            return self.follow(inner, rest, false, left);
        }
        if known.items.contains(name) {
            return Some(Target::Item { module: module.to_owned(), name });
        }
        let left = left.checked_sub(1)?;
        let mut is_imported = false;
        for (_, path) in known.imports.iter().filter(|(imported, _)| *imported == name) {
            is_imported = true;
            match self.resolve(module, path, left) {
                Some(Target::Module(of)) => return self.follow(&of, rest, false, left),
                Some(item) => return Some(item),
                None => {}
            }
        }
        for (_, glob) in known.imports.iter().filter(|(imported, _)| *imported == "*") {
            if let Some(Target::Module(of)) = self.resolve(module, glob, left)
                && let Some(target) = self.follow(&of, path, true, left)
            {
                return Some(target);
            }
        }
        let unknown = || Target::Item { module: module.to_owned(), name };
        inner.map(Target::Module).or_else(|| (!is_strict && !is_imported).then(unknown))
    }
}

/// Reads `a::{b, c as d, e::*}` into names and paths.
fn use_tree<'a>(
    tokens: &mut Peekable<Iter<'_, &'a str>>,
    prefix: &[&'a str],
    found: &mut Vec<(&'a str, Path<'a>)>,
) {
    let mut path = prefix.to_vec();
    while let Some(&token) = tokens.next_if(|token| !matches!(**token, "," | "}")) {
        match token {
            "::" => {}
            "{" => {
                while tokens.next_if(|token| **token == "}").is_none() && tokens.peek().is_some() {
                    use_tree(tokens, &path, found);
                    tokens.next_if(|token| **token == ",");
                }
                return;
            }
            "*" => return found.push(("*", path)),
            "as" => return found.extend(tokens.next().map(|name| (*name, path))),
            _ => path.push(token),
        }
    }
    if path.last() == Some(&"self") {
        path.pop();
    }
    found.extend(path.last().map(|name| (*name, path.clone())));
}

/// Returns the sets of files that reach each other.
fn circles_of(edges: &Siblings) -> Vec<BTreeSet<&str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        edges.keys().map(|node| (node.as_str(), reached_from(node, edges))).collect();
    let mut circles: Vec<BTreeSet<&str>> = Vec::new();
    for (node, to) in reach.iter().filter(|(node, to)| to.contains(*node)) {
        if !circles.iter().any(|circle| circle.contains(node)) {
            let is_back = |other: &&&str| reach.get(**other).is_some_and(|back| back.contains(node));
            circles.push(to.iter().filter(is_back).copied().collect());
        }
    }
    circles
}

fn reached_from<'a>(from: &'a str, edges: &'a Siblings) -> BTreeSet<&'a str> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(node) = open.pop() {
        let next = edges.get(node).into_iter().flat_map(BTreeMap::keys);
        open.extend(next.map(String::as_str).filter(|node| found.insert(*node)));
    }
    found
}

fn report(place: &str, circle: &BTreeSet<&str>, edges: &Siblings) -> String {
    let names: Vec<&str> = circle.iter().copied().collect();
    let mut text =
        format!("{}: a circle of {} files: {}", place.trim_end_matches('/'), names.len(), names.join(", "));
    for (from, targets) in edges.iter().filter(|(from, _)| circle.contains(from.as_str())) {
        for (to, items) in targets.iter().filter(|(to, _)| circle.contains(to.as_str())) {
            let items: Vec<&str> = items.iter().map(String::as_str).collect();
            text.push_str(&format!("\n  {from} → {to}: {}", items.join(", ")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(texts: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| TextFile::new(&format!("crates/x/src/{path}.rs"), text);
        let files: Vec<TextFile> = texts.iter().map(file).collect();
        check(&files, ["crates/x".to_owned()].into_iter())
    }

    /// Checks two files `a` and `b`, where `b` needs an item of `a`.
    fn with_b_on_a(face: &str, a: &str) -> Vec<String> {
        circles(&[
            ("lib", &format!("mod a; mod b; {face}")),
            ("a", &format!("pub struct A;\n{a}")),
            ("b", "use crate::a::A;\npub struct B;\npub mod inner { pub fn f() {} }\nids! { C }"),
        ])
    }

    const CIRCLE: &str = "crates/x/src: a circle of 2 files: a, b\n  a → b: B\n  b → a: A";

    #[test]
    fn two_files_that_import_each_other_are_a_circle() {
        for a in [
            "use crate::b::B;",
            "use crate::{b::{self, B as Other}};",
            "use super::b;\nfn f(_: b::B) {}",
            "fn f<'b>(_: &'b crate::b::B) {}",
            "use crate::b::*;\nfn f(_: B) {}",
            "use crate::B;",
            "mod inside { fn f(_: super::super::b::B) {} }\nmod inside {}",
            "fn f() { use crate::b::B as _; }",
            "fn f() { for _ in 0..crate::b::B {} }",
        ] {
            assert_eq!(with_b_on_a("pub use b::B;", a), [CIRCLE], "{a}");
        }
        let problem = &with_b_on_a("", "use crate::b::{C, inner::f};")[0];
        assert!(problem.contains("\n  a → b: C, f\n"), "{problem}");
    }

    #[test]
    fn methods_faces_tests_and_public_imports_are_no_edges() {
        for a in [
            "",
            "pub use crate::b::B;",
            "pub(crate) use crate::b::B;",
            "use crate::Face;",
            "use b::B;",
            "use crate::b;",
            "fn f() { x.B(); x.b::<u8>(); }",
            "// use crate::b::B;",
            "const TEXT: &str = \"crate::b::B\";",
            "#[cfg(test)]\nmod tests { use crate::b::B; }",
            "#[cfg(test)]\nmod tests;",
        ] {
            assert_eq!(with_b_on_a("pub struct Face; use b::B;", a), [""; 0], "{a}");
        }
    }

    #[test]
    fn a_public_import_counts_for_the_file_that_defines_the_item() {
        let texts = |c| {
            [
                ("lib", "mod a; mod b; mod c;"),
                ("a", "use crate::b::C;\npub struct A;"),
                ("b", "pub use crate::c::C;\nuse crate::a::A;"),
                ("c", c),
            ]
        };
        assert_eq!(circles(&texts("pub struct C;")), [""; 0]);
        assert_eq!(
            circles(&texts("use crate::b::C as D;\nuse crate::a::A;\npub struct C;")),
            ["crates/x/src: a circle of 2 files: a, c\n  a → c: C\n  c → a: A"]
        );
    }

    #[test]
    fn a_file_counts_with_the_folder_of_its_name() {
        let texts = [
            ("lib", "mod a; mod b;"),
            ("a", "mod one; mod two; use one::One; use two::Two; pub struct A;"),
            ("a/one", "use super::{A, two::Two}; use crate::b::B; pub struct One;"),
            ("a/two", "pub struct Two;"),
            ("b", "use crate::a::two::Two; pub struct B;"),
        ];
        assert_eq!(circles(&texts), ["crates/x/src: a circle of 2 files: a, b\n  a → b: B\n  b → a: Two"]);
        let inside = [
            texts[0],
            texts[1],
            texts[2],
            ("a/two", "use super::one::One; pub struct Two;"),
            ("b", "pub struct B;"),
        ];
        assert_eq!(
            circles(&inside),
            ["crates/x/src/a: a circle of 2 files: one, two\n  one → two: Two\n  two → one: One"]
        );
    }

    #[test]
    fn a_longer_circle_is_one_circle_without_its_neighbours() {
        let texts = [
            ("lib", "mod a; mod b; mod c; mod d;"),
            ("a", "use crate::b::B; pub struct A;"),
            ("b", "use crate::{c::C, d::D}; pub struct B;"),
            ("c", "use crate::a::A; pub struct C;"),
            ("d", "pub struct D;"),
        ];
        assert_eq!(
            circles(&texts),
            ["crates/x/src: a circle of 3 files: a, b, c\n  a → b: B\n  b → c: C\n  c → a: A"]
        );
    }
}
