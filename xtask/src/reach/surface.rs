//! Lists the public names that a program uses, from the sources of our crates: the facade with all methods, and
//! the entry points of the crates below it. Sources are searched as text, since nothing here may depend on them.

use std::collections::{BTreeMap, BTreeSet};

use crate::layers;
use crate::repository::TextFile;

/// Crates that no program uses by name: the facade exports the items of some of them, the others stay inside.
const INSIDE: &[&str] = &[
    "archon-macros",
    "archon-memory-rank",
    "archon-vectors",
    "archon-run",
    "archon-process",
    "archon-http-access",
    "archon-testkit",
    "archon-cli",
];
const FACADE: &str = "archon";
/// The words before the name of a type or trait.
const TYPES: &[&str] = &["struct ", "enum ", "union ", "type ", "trait "];
/// Crates whose items are in a module of the facade that has the name of another crate.
const IN_ANOTHER: &[(&str, &str)] = &[("assistant", "orchestrator"), ("bus", "orchestrator")];

/// The names of the facade and of the crates below it.
pub(super) struct Surface {
    /// Names that the facade's root exports.
    pub(super) root: Vec<String>,
    /// `Type::method` of the facade's files.
    pub(super) methods: Vec<String>,
    /// The entry points of the crates below: the module of the facade, and the name in it.
    pub(super) below: Vec<(String, String)>,
    /// All exported names, and the modules of paths to them.
    names: BTreeSet<String>,
    modules: BTreeSet<String>,
    /// The type of the value of each `Type::method`, if it is one of ours.
    results: BTreeMap<String, String>,
}

impl Surface {
    pub(super) fn read(files: &[TextFile]) -> Self {
        let crates: Vec<Crate> = layers::product()
            .filter(|name| !INSIDE.contains(name))
            .map(|name| Crate::read(name, files))
            .collect();
        let names: BTreeSet<String> = crates.iter().flat_map(|one| one.exported.clone()).collect();
        let methods = || crates.iter().flat_map(|one| &one.methods);
        let result = |method: &Method| Some((method.path(), method.result(&names)?.to_owned()));
        let results = methods().filter_map(result).collect();
        let module = |one: &Crate| [one.module.clone(), one.library.clone()];
        let modules = crates.iter().flat_map(module).collect();
        let traits: BTreeSet<&String> = crates.iter().flat_map(|one| &one.traits).collect();
        let (facade, others): (Vec<_>, Vec<_>) = crates.iter().partition(|one| one.module == FACADE);
        let root: Vec<String> = facade.iter().flat_map(|one| one.exported.clone()).collect();
        let own = facade.iter().flat_map(|one| one.methods.iter().map(Method::path)).collect();
        let below = others.iter().flat_map(|one| {
            let new = one.entry_points(&traits).into_iter().filter(|name| !root.contains(name));
            new.map(|name| (one.module.clone(), name)).collect::<Vec<_>>()
        });
        Self { below: below.collect(), methods: own, root, names, modules, results }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Returns the exported name that equals `word`.
    pub(super) fn name(&self, word: &str) -> Option<&str> {
        self.names.get(word).map(String::as_str)
    }

    pub(super) fn is_module(&self, name: &str) -> bool {
        self.modules.contains(name)
    }

    /// Returns the type of a method's value.
    pub(super) fn result(&self, method: &str) -> Option<&str> {
        self.results.get(method).map(String::as_str)
    }
}

/// A crate as its sources show it.
struct Crate {
    /// Its module in the facade: `react_loop`.
    module: String,
    /// Its name in paths: `archon_react_loop`.
    library: String,
    exported: Vec<String>,
    /// Code spans of its front page.
    front: Vec<String>,
    traits: Vec<String>,
    /// The trait and the type of each `impl`.
    implemented: Vec<(String, String)>,
    methods: Vec<Method>,
}

impl Crate {
    fn read(package: &str, files: &[TextFile]) -> Self {
        let folder = layers::folder(package);
        let name = folder.trim_start_matches("crates/");
        let folder = format!("{folder}/src/");
        let sources = || sources(&folder, files);
        let root =
            sources().find(|file| file.path == format!("{folder}lib.rs")).map_or("", |file| &file.text);
        let lines = || sources().flat_map(|file| file.text.lines());
        let module = IN_ANOTHER.iter().find(|(of, _)| *of == name).map_or(name, |(_, module)| *module);
        Self {
            module: module.replace('-', "_"),
            library: format!("archon_{}", name.replace('-', "_")),
            exported: exported(root),
            front: front_page(root),
            traits: lines().filter_map(|line| line.strip_prefix("pub trait ")).map(word).collect(),
            implemented: lines().filter_map(implementation).filter(|(of, _)| !of.is_empty()).collect(),
            methods: sources().flat_map(|file| methods(&file.text)).collect(),
        }
    }

    /// Returns what its front page names, its traits, and the types that implement one of `traits`. `Dyn…` are
    /// forms of traits that every implementation gets by itself.
    fn entry_points(&self, traits: &BTreeSet<&String>) -> Vec<String> {
        let is_exported = |name: &&String| {
            let head = name.split("::").next().unwrap_or_default();
            self.exported.iter().any(|there| there == head) && !head.starts_with("Dyn")
        };
        let types = self.implemented.iter().filter(|(of, _)| traits.contains(of)).map(|(_, of)| of);
        let rest: BTreeSet<&String> = self.traits.iter().chain(types).collect();
        let mut listed: Vec<String> = Vec::new();
        for name in self.front.iter().chain(rest).filter(is_exported) {
            if !listed.contains(name) {
                listed.push(name.clone());
            }
        }
        listed
    }
}

/// Returns the types and traits that a package declares itself and exports from its root or from a public module below
/// the root.
pub(crate) fn own_types(package: &str, files: &[TextFile]) -> BTreeSet<String> {
    let folder = format!("{}/src/", layers::folder(package));
    let text = |module: &str| {
        let path = format!("{folder}{module}.rs");
        sources(&folder, files).find(|file| file.path == path).map_or("", |file| file.text.as_str())
    };
    let root = text("lib");
    let texts = modules(root).map(|module| text(&module)).chain([root]);
    let names: BTreeSet<String> =
        texts.flat_map(|text| exported(text).into_iter().chain(types(text))).collect();
    sources(&folder, files).flat_map(|file| types(&file.text)).filter(|name| names.contains(name)).collect()
}

/// Returns the Rust files in `folder` that are not tests.
fn sources<'a>(folder: &'a str, files: &'a [TextFile]) -> impl Iterator<Item = &'a TextFile> {
    let own = files.iter().filter(move |file| file.path.starts_with(folder) && file.is_rust());
    own.filter(|file| !file.is_test_code())
}

/// A public method or function of a type.
struct Method {
    owner: String,
    name: String,
    /// The signature behind `->`.
    returns: String,
}

impl Method {
    fn path(&self) -> String {
        format!("{}::{}", self.owner, self.name)
    }

    /// Returns the first of our types in the result, without the error.
    fn result<'a>(&'a self, names: &BTreeSet<String>) -> Option<&'a str> {
        let words = self.returns.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let mut words = words.map(|word| if word == "Self" { self.owner.as_str() } else { word });
        words.find(|word| names.contains(*word) && !word.ends_with("Error"))
    }
}

/// Returns the names of a root's `pub use` and `pub mod` items, without its prelude, which repeats them.
pub(crate) fn exported(source: &str) -> Vec<String> {
    let root = without_prelude(source);
    let items = root.split("\npub use ").skip(1).filter_map(|rest| rest.split(';').next());
    let uses = items.flat_map(|item| item.split(['{', '}', ','])).map(str::trim);
    let named = uses.filter(|path| !path.is_empty() && !path.ends_with("::"));
    let last = |path: &str| path.rsplit([' ', ':']).next().unwrap_or(path).to_owned();
    named.map(last).chain(modules(root)).collect()
}

/// Returns the names of a root's `pub mod` items, without its prelude.
fn modules(source: &str) -> impl Iterator<Item = String> {
    without_prelude(source).lines().filter_map(|line| line.strip_prefix("pub mod ")).map(word)
}

fn without_prelude(source: &str) -> &str {
    source.split("pub mod prelude").next().unwrap_or_default()
}

/// Returns the public types and traits of a file, without those inside of its modules.
fn types(source: &str) -> impl Iterator<Item = String> {
    let items = source.lines().filter_map(|line| line.strip_prefix("pub "));
    items.filter_map(|item| TYPES.iter().find_map(|kind| item.strip_prefix(kind))).map(word)
}

/// Returns the code spans of a root's documentation, and of its table of files.
fn front_page(source: &str) -> Vec<String> {
    let lines = source.lines().filter_map(|line| line.strip_prefix("//!").or(line.strip_prefix("// |")));
    lines.flat_map(|line| line.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// Returns the trait, or nothing, and the type of a line that begins an `impl`.
fn implementation(line: &str) -> Option<(String, String)> {
    let header = line.strip_prefix("impl").filter(|rest| rest.starts_with(['<', ' ']))?;
    let (of, by) = header.rsplit_once(" for ").unwrap_or(("", header));
    let by = if by.starts_with('<') { by.split_once("> ").map_or(by, |(_, rest)| rest) } else { by };
    let path: String =
        by.trim_start().chars().take_while(|c| c.is_alphanumeric() || "_:".contains(*c)).collect();
    let last = |path: &str| path.rsplit([' ', ':']).next().unwrap_or_default().to_owned();
    Some((last(of), last(&path)))
}

/// Returns the public methods of a file, by the `impl` around them.
fn methods(source: &str) -> Vec<Method> {
    let mut owner = String::new();
    let mut methods = Vec::new();
    let mut rest = source;
    while let Some(line) = rest.lines().next() {
        if let Some((_, by)) = implementation(line) {
            owner = by;
        }
        let signature = line.strip_prefix("    pub ").map(|rest| {
            let rest = rest.strip_prefix("const ").unwrap_or(rest);
            rest.strip_prefix("async ").unwrap_or(rest)
        });
        if let Some(name) = signature.and_then(|rest| rest.strip_prefix("fn ")) {
            let whole = rest.split(['{', ';']).next().unwrap_or_default();
            let returns = whole.rsplit_once(") ->").map_or("", |(_, returns)| returns).to_owned();
            methods.push(Method { owner: owner.clone(), name: word(name), returns });
        }
        rest = rest[line.len()..].strip_prefix('\n').unwrap_or_default();
    }
    methods
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exported_names_are_those_of_the_root_and_not_of_its_prelude() {
        let source = "mod a;\npub mod m;\npub use a::{B,\n    c as D};\n#[doc = \"x\"]\npub use crate::e::F as tool;\npub use {\n    g::{H},\n    i::J,\n};\n\
                      pub mod prelude {\n    pub use crate::G;\n}\npub use h as i;\n";
        assert_eq!(exported(source), ["B", "D", "tool", "H", "J", "m"]);
    }

    #[test]
    fn own_types_reexport_and_type_that_is_not_exported_are_left_out() {
        let files = [
            (
                "crates/memory/src/lib.rs",
                "\npub use a::{Memory, fold};\npub mod rank;\npub use archon_types::Agent;\npub struct Here;\n\
                 pub mod prelude {\n    pub use crate::a::Inner;\n}\n",
            ),
            ("crates/memory/src/a.rs", "pub struct Memory;\npub struct Inner;\npub fn fold() {}\n"),
            ("crates/memory/src/a/tests.rs", "pub struct fold;\n"),
            ("crates/memory/src/rank.rs", "mod b;\npub use b::Ranker;\npub enum Weight {}\n"),
            ("crates/memory/src/rank/b.rs", "pub trait Ranker {}\npub type Counts = u8;\n"),
            ("crates/types/src/lib.rs", "pub struct Agent;\n"),
        ]
        .map(|(path, text)| TextFile::new(path, text));
        let types: Vec<String> = own_types("archon-memory", &files).into_iter().collect();
        assert_eq!(types, ["Here", "Memory", "Ranker", "Weight"]);
    }

    #[test]
    fn methods_have_their_type_and_the_type_of_their_value() {
        let source = "impl<T: X> Deref for Typed<T> {\n}\nimpl Archon {\n    pub async fn run(\n        &self,\n    ) -> \
                      Result<Reply, RunError> {}\n    fn own() {}\n    pub(crate) fn ours() {}\n}\nimpl crate::Planning \
                      {\n    pub const fn x(f: impl Fn(u8) -> Archon) -> Self {}\n    pub fn y(&self) -> Result<(), RunError>;\n}\n";
        let names = ["Archon", "Planning", "Reply", "RunError"].map(str::to_owned).into();
        let found = methods(source);
        let found: Vec<_> = found.iter().map(|method| (method.path(), method.result(&names))).collect();
        let expected =
            [("Archon::run", Some("Reply")), ("Planning::x", Some("Planning")), ("Planning::y", None)];
        assert_eq!(found, expected.map(|(path, result)| (path.to_owned(), result)));
    }

    #[test]
    fn entry_points_below_are_traits_what_implements_them_and_names_of_the_front_page() {
        let files = [
            TextFile::new("crates/types/src/lib.rs", "\npub use a::{Store, DynStore};\n"),
            TextFile::new(
                "crates/types/src/a.rs",
                "pub trait Store {}\npub trait DynStore {}\npub trait Inner {}\n",
            ),
            TextFile::new(
                "crates/memory/src/lib.rs",
                "//! | keep | [`Memory::keep`], `Lost` |\n\n// | drop | `Memory::drop`, `b.rs` |\n\npub use b::{Memory, InMemory, Other};\n",
            ),
            TextFile::new(
                "crates/memory/src/b.rs",
                "impl<T: X> Store for InMemory<T> {}\nimpl Clone for Other {}\n",
            ),
            TextFile::new("crates/archon/src/lib.rs", "\npub use archon_memory::Memory as Kept;\n"),
        ];
        let surface = Surface::read(&files);
        let below: Vec<_> = surface.below.iter().map(|(module, name)| format!("{module}::{name}")).collect();
        let expected = ["types::Store", "memory::Memory::keep", "memory::Memory::drop", "memory::InMemory"];
        assert_eq!(below, expected);
        assert_eq!(surface.root, ["Kept"]);
    }
}
