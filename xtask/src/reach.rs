//! `docs/reference/reach.md`: lists where docs and examples show each cargo feature, each entry point of the
//! facade and each tool. `cargo xtask codegen` writes it from manifests, code, examples and pages; it fails
//! for a part that none of them shows. Code is searched as text: a method is found by its name, on any type.

use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use toml::Table;

use crate::command_line::CommandLine;
use crate::layers;
use crate::repository::{self, TextFile};

/// Pages that name everything and explain nothing.
const INDEXES: &[&str] = &["docs/SUMMARY.md", "docs/spec.md", "docs/benchmarks.md", "docs/architecture.md"];
/// Examples that measure, and are not for learning.
const MEASURES: &[&str] = &["bench_driver.rs", "counted.rs", "floor.rs"];
const TOOLS: &str = "docs/tools.md";
const FACADE: &str = "crates/archon/src/";
/// Packages whose features a program or the command turns on.
const DOORS: &[&str] = &["archon", "archon-cli"];

/// Returns the page; `program` is the built command.
pub(crate) fn page(program: &str) -> Result<String> {
    let shown = Shown::read()?;
    let mut missing = Vec::new();
    let features = features(&shown)?;
    let sections = [
        ("Cargo features", features),
        ("The facade", entry_points(&shown)),
        ("Tools of the command", tools(program, &shown)?),
    ];
    let mut text = String::from(
        "# Where each part is used\n\nWritten by `cargo xtask codegen` from manifests, code, examples and pages; edits \
         here are overwritten.\n",
    );
    for (title, rows) in sections {
        text.push_str(&format!("\n## {title}\n\n| part | where |\n|---|---|\n"));
        for Row { part, place } in rows {
            match place {
                Some(place) => text.push_str(&format!("| `{part}` | {place} |\n")),
                None => missing.push(part),
            }
        }
    }
    if !missing.is_empty() {
        bail!(
            "no example, page or API example shows {}; add one, or delete the part",
            missing.iter().map(|part| format!("`{part}`")).collect::<Vec<_>>().join(", ")
        );
    }
    Ok(text)
}

struct Row {
    part: String,
    place: Option<String>,
}

/// The texts that show users how, in order of preference.
struct Shown {
    examples: Vec<TextFile>,
    pages: Vec<TextFile>,
    /// Examples in the facade's documentation, with the path of their source.
    api: Vec<TextFile>,
    sources: Vec<TextFile>,
}

impl Shown {
    fn read() -> Result<Self> {
        let (mut examples, mut pages, mut api, mut sources) = (vec![], vec![], vec![], vec![]);
        for file in repository::text_files()? {
            let name = file.path.rsplit('/').next().unwrap_or_default();
            if file.path.contains("/examples/") && file.is_rust() && !MEASURES.contains(&name) {
                examples.push(file);
            } else if is_page(&file.path) {
                pages.push(file);
            } else if file.path.starts_with(FACADE) && file.is_rust() && !file.is_test_code() {
                api.push(TextFile { path: file.path.clone(), text: documented_code(&file.text) });
                sources.push(file);
            }
        }
        Ok(Self { examples, pages, api, sources })
    }

    /// Returns the first place whose text satisfies `is_there`.
    fn find(&self, is_there: impl Fn(&str) -> bool) -> Option<String> {
        let holds = |file: &&TextFile| is_there(&file.text);
        let linked = |file: &TextFile| link(&file.path);
        self.examples.iter().chain(&self.pages).find(holds).map(linked).or_else(|| {
            self.api.iter().find(holds).map(|file| format!("API example in {}", link(&file.path)))
        })
    }
}

fn is_page(path: &str) -> bool {
    let of_docs = path.strip_prefix("docs/").is_some_and(|name| !name.contains('/'));
    path.ends_with(".md") && (of_docs || path == "README.md") && !INDEXES.contains(&path)
}

/// Formats a link from the page, which is two folders deep.
fn link(path: &str) -> String {
    format!("[{path}](../../{path})")
}

/// Returns the code between the fences of doc comments.
fn documented_code(source: &str) -> String {
    let mut inside = false;
    let mut code = String::new();
    for line in source.lines().map(str::trim_start) {
        let Some(doc) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            inside = false;
            continue;
        };
        if doc.trim_start().starts_with("```") {
            inside = !inside;
        } else if inside {
            code.push_str(doc);
            code.push('\n');
        }
    }
    code
}

/// Returns the names that the facade's root exports, and the public methods of its types.
fn entry_points(shown: &Shown) -> Vec<Row> {
    let mut rows = Vec::new();
    for file in &shown.sources {
        let root = file.path == format!("{FACADE}lib.rs");
        let names = if root { exported(&file.text) } else { methods(&file.text) };
        for part in names {
            let name = part.rsplit("::").next().unwrap_or_default();
            let place = shown.find(|text| if root { has_word(text, name) } else { is_called(text, name) });
            rows.push(Row { part, place });
        }
    }
    rows
}

/// Returns the names in the `pub use` items of a root, without its prelude, which repeats them.
fn exported(source: &str) -> Vec<String> {
    let root = source.split("pub mod prelude").next().unwrap_or_default();
    let items = root.split("\npub use ").skip(1).filter_map(|rest| rest.split(';').next());
    let mut names = Vec::new();
    for item in items {
        let listed = item.rsplit_once("::").map_or(item, |(_, last)| last);
        let listed = item.split_once("::{").map_or(listed, |(_, list)| list.trim_end().trim_end_matches('}'));
        let each = listed.split(',').map(|name| name.rsplit(" as ").next().unwrap_or(name).trim());
        names.extend(each.filter(|name| !name.is_empty()).map(str::to_owned));
    }
    names
}

/// Returns `Type::method` for each public method, by the `impl` around it.
fn methods(source: &str) -> Vec<String> {
    let mut owner = String::new();
    let mut names = Vec::new();
    for line in source.lines() {
        if let Some(header) = line.strip_prefix("impl") {
            let of = header.rsplit(" for ").next().unwrap_or(header);
            let of = if of.starts_with('<') { of.split_once("> ").map_or(of, |(_, rest)| rest) } else { of };
            let path: String =
                of.trim_start().chars().take_while(|c| c.is_alphanumeric() || "_:".contains(*c)).collect();
            owner = path.rsplit("::").next().unwrap_or_default().to_owned();
        }
        let signature = line.strip_prefix("    pub ").map(|rest| {
            let rest = rest.strip_prefix("async ").unwrap_or(rest);
            rest.strip_prefix("const ").unwrap_or(rest)
        });
        if let Some(rest) = signature.and_then(|rest| rest.strip_prefix("fn ")) {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            names.push(format!("{owner}::{name}"));
        }
    }
    names
}

fn is_called(text: &str, method: &str) -> bool {
    [".", "::"].iter().any(|mark| {
        let called = format!("{mark}{method}");
        text.match_indices(&called).any(|(at, _)| {
            text[at + called.len()..].starts_with(['(', ':', '`', ')', ']'])
                || text[at + called.len()..].starts_with("::<")
        })
    })
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|there| there == word)
}

/// Finds the place of each feature: a feature of the facade or the command that turns it on, an example that
/// needs it, or a page.
fn features(shown: &Shown) -> Result<Vec<Row>> {
    let packages = packages()?;
    let mut rows = Vec::new();
    for package in &packages {
        for (feature, _) in &package.features {
            let place = turned_on_by(&packages, package, feature)
                .or_else(|| package.example_that_needs(feature))
                .or_else(|| shown.find(|text| names_feature(text, feature)));
            rows.push(Row { part: format!("{}/{feature}", package.name), place });
        }
    }
    Ok(rows)
}

/// Returns whether a paragraph calls the name a feature, or a command line turns it on.
fn names_feature(text: &str, feature: &str) -> bool {
    let quoted = format!("`{feature}`");
    let paragraphs = text.split("\n\n").any(|part| part.contains("feature") && part.contains(&quoted));
    paragraphs
        || text.match_indices("--features ").any(|(at, flag)| {
            let list = text[at + flag.len()..].split([' ', '\n', '`']).next().unwrap_or_default();
            list.split(',').any(|asked| asked.rsplit('/').next() == Some(feature))
        })
}

fn turned_on_by(packages: &[Package], package: &Package, feature: &str) -> Option<String> {
    let by_name = format!("{}/{feature}", package.name);
    let doors = || packages.iter().filter(|other| DOORS.contains(&other.name.as_str()));
    let from_outside = doors().find_map(|door| {
        let (name, _) = door.features.iter().find(|(_, on)| on.contains(&by_name))?;
        Some(format!("feature `{name}` of `{}`", door.name))
    });
    let (false, inside) = (DOORS.contains(&package.name.as_str()), package.features.iter()) else {
        return None;
    };
    from_outside.or_else(|| {
        let (name, _) = inside.clone().find(|(_, on)| on.iter().any(|named| named == feature))?;
        Some(format!("feature `{name}` of `{}`", package.name))
    })
}

struct Package {
    name: String,
    folder: String,
    /// Features, each with what it turns on; without `default`.
    features: Vec<(String, Vec<String>)>,
    /// Examples, each with the features that it needs.
    examples: Vec<(String, Vec<String>)>,
}

impl Package {
    fn parse(folder: &str, manifest: &str) -> Result<Self> {
        let table: Table =
            toml::from_str(manifest).with_context(|| format!("{folder}/Cargo.toml cannot be read"))?;
        let texts = |value: &toml::Value| -> Vec<String> {
            let list = value.as_array().into_iter().flatten();
            list.filter_map(toml::Value::as_str).map(str::to_owned).collect()
        };
        let features = table.get("features").and_then(toml::Value::as_table).into_iter().flatten();
        let examples = table.get("example").and_then(toml::Value::as_array).into_iter().flatten();
        let name = table.get("package").and_then(|package| package.get("name")).and_then(toml::Value::as_str);
        Ok(Self {
            name: name.with_context(|| format!("{folder}/Cargo.toml names no package"))?.to_owned(),
            folder: folder.to_owned(),
            features: features
                .filter(|(name, _)| *name != "default")
                .map(|(name, on)| (name.clone(), texts(on)))
                .collect(),
            examples: examples
                .filter_map(|one| {
                    Some((one.get("name")?.as_str()?.to_owned(), texts(one.get("required-features")?)))
                })
                .collect(),
        })
    }

    fn example_that_needs(&self, feature: &str) -> Option<String> {
        let (name, _) = self.examples.iter().find(|(_, needed)| needed.iter().any(|name| name == feature))?;
        let folder = format!("{}/examples/{name}", self.folder);
        let is_folder = repository::root().join(&folder).is_dir();
        Some(link(&if is_folder { format!("{folder}/main.rs") } else { format!("{folder}.rs") }))
    }
}

fn packages() -> Result<Vec<Package>> {
    let read = |name: &str| {
        let folder = format!("crates/{}", name.strip_prefix("archon-").unwrap_or(name));
        let manifest = fs::read_to_string(repository::root().join(&folder).join("Cargo.toml"));
        Package::parse(&folder, &manifest.with_context(|| format!("cannot read {folder}/Cargo.toml"))?)
    };
    layers::product().map(read).collect()
}

/// Returns the tools of the command; each must be on the page about tools.
fn tools(program: &str, shown: &Shown) -> Result<Vec<Row>> {
    let line = CommandLine::new(program).args(["tools", "list", "--tools", "all", "--json"]);
    let printed = line.output()?;
    let listed = printed.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>();
    let listed = listed.context("`archon tools list --json` printed a line that is no JSON")?;
    let page = shown.pages.iter().find(|page| page.path == TOOLS).map_or("", |page| &page.text);
    let names = listed.iter().filter_map(|tool| tool["name"].as_str());
    let row = |name: &str| Row {
        part: name.to_owned(),
        place: page
            .contains(&format!("`{name}`"))
            .then(|| format!("`archon tools call {name}`, {}", link(TOOLS))),
    };
    Ok(names.map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exported_names_are_those_of_the_root_and_not_of_its_prelude() {
        let source = "mod a;\npub use a::{B,\n    c as D};\n#[doc = \"x\"]\npub use crate::e::F as tool;\npub mod prelude {\n\
                      \n    pub use crate::G;\n}\npub use h as i;\n";
        assert_eq!(exported(source), ["B", "D", "tool"]);
    }

    #[test]
    fn methods_have_the_name_of_the_type_they_are_of() {
        let source = "impl<T: X> Deref for Typed<T> {\n}\nimpl Archon {\n    pub async fn run(&self) {}\n    fn own() {}\n\
                      \n    pub(crate) fn ours() {}\n}\nimpl crate::Planning {\n    pub const fn x() {}\n}\n";
        assert_eq!(methods(source), ["Archon::run", "Planning::x"]);
    }

    #[test]
    fn documented_code_is_what_stands_between_fences() {
        let source = "//! text\n//! ```\n//! a.b()\n//! ```\n/// text\n/// ```no_run\n/// c.d()\nfn e() {}\n/// f.g()\n";
        assert_eq!(documented_code(source), " a.b()\n c.d()\n");
    }

    #[test]
    fn a_feature_is_named_in_a_paragraph_on_features_or_on_a_command_line() {
        assert!(names_feature("x\n\n| feature | brings |\n|---|---|\n| `tls` | https |\n", "tls"));
        assert!(names_feature("cargo run -p a --features b/tls,c --example d", "tls"));
        assert!(!names_feature("one feature\n\nthe `tls` of others", "tls"));
    }

    #[test]
    fn a_feature_below_is_reached_by_the_one_of_a_door_that_turns_it_on() {
        let parse = |folder: &str, text: &str| Package::parse(folder, text).unwrap();
        let door =
            "[package]\nname = \"archon\"\n[features]\ndefault = [\"web\"]\nweb = [\"archon-tools/web\"]\n";
        let below =
            "[package]\nname = \"archon-tools\"\n[features]\nweb = [\"http\"]\nhttp = []\nlost = []\n";
        let packages = [parse("crates/archon", door), parse("crates/tools", below)];
        let by = |feature| turned_on_by(&packages, &packages[1], feature);
        assert_eq!(by("web").as_deref(), Some("feature `web` of `archon`"));
        assert_eq!(by("http").as_deref(), Some("feature `web` of `archon-tools`"));
        assert_eq!(by("lost"), None);
        assert_eq!(turned_on_by(&packages, &packages[0], "web"), None);
    }
}
