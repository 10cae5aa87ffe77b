//! `docs/reference/reach.md`: lists where docs and examples show each cargo feature, each entry point and each
//! tool. `cargo xtask codegen` writes it from manifests, code, examples and pages; it fails for a part that none
//! of them shows.

mod features;
mod surface;
mod uses;

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command_line::CommandLine;
use crate::repository::{self, TextFile};
use surface::Surface;
pub(crate) use surface::{exported, own_types};

/// Pages that name everything and explain nothing.
const INDEXES: &[&str] = &["docs/SUMMARY.md", "docs/spec.md", "docs/benchmarks.md", "docs/architecture.md"];
/// Pages about other frameworks, terms and kinds of errors, which may have the name of a part: they are named if no
/// other page shows it.
const LAST: &[&str] = &["docs/book/coming-from/", "docs/book/reference/errors.md", "docs/vocabulary.md"];
/// Examples that measure, and are not for learning.
const MEASURES: &[&str] = &["bench_driver.rs", "counted.rs", "floor.rs"];
const TOOLS: &str = "docs/tools.md";

/// Returns the page; `program` is the built command.
pub(crate) fn page(program: &str) -> Result<String> {
    let files = repository::text_files()?;
    let surface = Surface::read(&files);
    let shown = Shown::read(&files, &surface);
    let names = surface.root.iter().chain(&surface.methods);
    let below = surface.below.iter().map(|(module, name)| (format!("{module}::{name}"), name));
    let sections = [
        ("Cargo features", features::rows(&shown)?),
        ("The facade", names.map(|name| shown.row(name.clone(), name)).collect()),
        ("The crates below", below.map(|(part, name)| shown.row(part, name)).collect()),
        ("Tools that models call", tool_rows(&command_tools(program)?, &tool_names(&files), &shown)),
    ];
    let mut missing = Vec::new();
    let mut text = String::from(
        "# Uses of each part\n\nWritten by `cargo xtask codegen` from manifests, code, examples and pages; edits \
         here are overwritten. Of the crates below the facade, it lists the traits, the types that implement one of our \
         traits, and the names on the crate's own front page and in its table of files.\n",
    );
    for (title, rows) in sections {
        text.push_str(&format!("\n## {title}\n\n| part | where |\n|---|---|\n"));
        for Row { part, place } in rows {
            match place {
                Some(place) => text.push_str(&format!("| `{part}` | {place} |\n")),
                None => missing.push(format!("`{part}`")),
            }
        }
    }
    if !missing.is_empty() {
        bail!("no example, page or API example shows {}; add one, or delete the part", missing.join(", "));
    }
    Ok(text)
}

struct Row {
    part: String,
    place: Option<String>,
}

/// The texts that show users how, in order of preference.
struct Shown(Vec<Place>);

struct Place {
    preference: Preference,
    /// The link to it.
    link: String,
    text: String,
    /// The public names and methods that it uses.
    used: BTreeSet<String>,
}

/// The kind of a place; the first is the best.
#[derive(Clone, Copy, PartialEq, PartialOrd, Eq, Ord)]
enum Preference {
    Example,
    Page,
    LastPage,
    ApiExample,
}

impl Place {
    fn read(file: &TextFile, surface: &Surface) -> Option<Self> {
        let path = file.path.as_str();
        let name = path.rsplit('/').next().unwrap_or_default();
        let preference = match () {
            () if path.contains("/examples/") && file.is_rust() && !MEASURES.contains(&name) => {
                Preference::Example
            }
            () if is_page(path) && LAST.iter().any(|start| path.starts_with(start)) => Preference::LastPage,
            () if is_page(path) => Preference::Page,
            () if path.contains("/src/") && file.is_rust() && !file.is_test_code() => Preference::ApiExample,
            () => return None,
        };
        let (link, text) = match preference {
            Preference::ApiExample => (format!("API example in {}", link(path)), documented_code(&file.text)),
            _ => (link(path), file.text.clone()),
        };
        let used = if file.is_rust() { uses::of_code(surface, &text) } else { uses::of_page(surface, &text) };
        Some(Self { preference, link, text, used })
    }
}

impl Shown {
    fn read(files: &[TextFile], surface: &Surface) -> Self {
        let mut places: Vec<Place> = files.iter().filter_map(|file| Place::read(file, surface)).collect();
        places.sort_by_key(|place| place.preference);
        Self(places)
    }

    /// Returns the first place whose text satisfies `is_there`.
    fn find(&self, is_there: impl Fn(&str) -> bool) -> Option<String> {
        self.0.iter().find(|place| is_there(&place.text)).map(|place| place.link.clone())
    }

    /// Returns the row of a part, with the first place that uses `name`.
    fn row(&self, part: String, name: &str) -> Row {
        let place = self.0.iter().find(|place| place.used.contains(name));
        Row { part, place: place.map(|place| place.link.clone()) }
    }
}

fn is_page(path: &str) -> bool {
    let of_docs =
        path.strip_prefix("docs/").is_some_and(|name| !name.contains('/') || name.starts_with("book/"));
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

/// Returns the tools that the command lists without a model and keys.
fn command_tools(program: &str) -> Result<Vec<String>> {
    let line = CommandLine::new(program).args(["tools", "list", "--tools", "all", "--json"]);
    let printed = line.output()?;
    let listed = printed.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>();
    let listed = listed.context("`archon tools list --json` printed a line that is no JSON")?;
    Ok(listed.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect())
}

/// Returns the names of the tools in our sources: in a file that implements a tool, a name stands before its
/// label or description.
fn tool_names(files: &[TextFile]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let sources = files.iter().filter(|file| file.is_rust() && file.path.contains("/src/"));
    for file in sources.filter(|file| !file.is_test_code()) {
        let code = file.text.split("#[cfg(test)]").next().unwrap_or_default();
        let code: Vec<&str> = code.lines().map(str::trim).filter(|line| !line.starts_with("//")).collect();
        if code.contains(&"fn spec(&self) -> &ToolSpec {") {
            names.extend(code.concat().split("(\"").skip(1).filter_map(tool_name).map(str::to_owned));
        }
    }
    names
}

/// Returns the name at the start of `name", "Description…` or `name",about, …`.
fn tool_name(rest: &str) -> Option<&str> {
    let (name, after) = rest.split_once("\",")?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let after = after.trim_start();
    let describes = after.strip_prefix('"').is_some_and(|text| text.starts_with(char::is_uppercase));
    let refers = after.split(',').next().is_some_and(|word| word.eq_ignore_ascii_case("about"));
    (is_name && (describes || refers)).then_some(name)
}

/// Returns the tools with the command or the page that shows each.
fn tool_rows(listed: &[String], named: &BTreeSet<String>, shown: &Shown) -> Vec<Row> {
    let page = link(TOOLS);
    let all: BTreeSet<&String> = listed.iter().chain(named).collect();
    let row = |name: &String| {
        let is_there = |text: &str| text.contains(&format!("`{name}`"));
        let tools = shown.0.iter().find(|place| place.link == page && is_there(&place.text));
        let place = match tools {
            Some(_) if listed.contains(name) => Some(format!("`archon tools call {name}`, {page}")),
            Some(_) => Some(page.clone()),
            None if listed.contains(name) => None,
            None => shown.find(is_there),
        };
        Row { part: name.clone(), place }
    };
    all.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_of_the_docs_and_the_book() {
        for (path, expected) in [
            ("README.md", true),
            ("docs/library.md", true),
            ("docs/book/how-to/costs.md", true),
            ("docs/reference/cli.md", false),
            ("docs/spec.md", false),
            ("CHANGELOG.md", false),
        ] {
            assert_eq!(is_page(path), expected, "{path}");
        }
    }

    #[test]
    fn documented_code_is_the_text_between_fences() {
        let source = "//! text\n//! ```\n//! a.b()\n//! ```\n/// text\n/// ```no_run\n/// c.d()\nfn e() {}\n/// f.g()\n";
        assert_eq!(documented_code(source), " a.b()\n c.d()\n");
    }

    #[test]
    fn row_has_the_first_place_that_uses_the_part() {
        let files = [
            (
                "crates/archon/src/lib.rs",
                "\npub use a::{Chat};\nimpl Chat {\n    pub fn reset(&self) {}\n}\n",
            ),
            ("docs/book/a.md", "```rust\nuse archon::Chat;\nother.reset()\n```\n"),
            ("docs/book/coming-from/b.md", "`Chat::reset`"),
            ("docs/c.md", "`Chat::reset`"),
        ]
        .map(|(path, text)| TextFile::new(path, text));
        let shown = Shown::read(&files, &Surface::read(&files));
        let place = |name: &str| shown.row(name.to_owned(), name).place;
        assert_eq!(place("Chat"), Some(link("docs/book/a.md")));
        assert_eq!(place("Chat::reset"), Some(link("docs/c.md")));
        assert_eq!(place("Chat::other"), None);
    }

    #[test]
    fn tools_are_named_where_they_are_implemented() {
        let tool = "// (\"no\", \"Comment.\")\nfn spec(&self) -> &ToolSpec {\nToolSpec::new(\n    \"look_up\",\n    \"Finds.\")\n\
                    (\"ask\", about, x)\n(\"type\", \"string\")\n#[cfg(test)]\nmod tests { f(\"test\", \"A test.\") }";
        let files = [
            TextFile::new("crates/a/src/b.rs", tool),
            TextFile::new("crates/a/src/c.rs", "f(\"other\", \"Other.\")"),
        ];
        assert_eq!(tool_names(&files), ["ask", "look_up"].map(str::to_owned).into());
    }

    #[test]
    fn tool_without_the_command_has_the_page_that_names_it() {
        let place = |path: &str, text: &str| Place {
            preference: Preference::Page,
            link: link(path),
            text: text.to_owned(),
            used: BTreeSet::new(),
        };
        let shown = Shown(vec![place("docs/teams.md", "`share` `lost`"), place(TOOLS, "`bash` `code`")]);
        let rows = tool_rows(
            &["bash".to_owned(), "lost".to_owned()],
            &["code", "share", "nowhere"].map(str::to_owned).into(),
            &shown,
        );
        let places: Vec<_> = rows.iter().map(|row| (row.part.as_str(), row.place.as_deref())).collect();
        let (teams, tools) = (link("docs/teams.md"), link(TOOLS));
        let call = format!("`archon tools call bash`, {tools}");
        assert_eq!(
            places,
            [
                ("bash", Some(call.as_str())),
                ("code", Some(&tools)),
                ("lost", None),
                ("nowhere", None),
                ("share", Some(&teams)),
            ]
        );
    }
}
