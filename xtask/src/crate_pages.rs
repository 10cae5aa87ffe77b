//! Writes `README.md` of each published crate from the documentation of its `lib.rs`, so that a registry shows what
//! docs.rs shows. The facade's page is the README of the workspace. A check requires what each page opens with.

use std::fs;

use anyhow::{Context, Result};

use crate::metadata::{Metadata, Package};
use crate::repository::{self, TextFile};

const FACADE: &str = "archon-agents";

/// The `lib.rs` whose page is the README of the workspace.
const FACADE_SOURCE: &str = "crates/archon/src/lib.rs";

/// The last column of a table of files. A reader of docs.rs or of a registry has no files.
const FILE_COLUMN: &str = "| file |";

/// The lines with which docs.rs shows the feature of each item.
const DOCS_MANIFEST: &str = "\n[package.metadata.docs.rs]\n";
const DOCS_ATTRIBUTE: &str = "\n#![cfg_attr(docsrs, feature(doc_cfg))]\n";

/// The files that each package contains: a registry gets only files of the crate's folder.
const LICENSES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// Returns one line for each library that does not say when to use it alone, has no example, or has features that
/// docs.rs does not show, and for each published crate without a licence.
pub(crate) fn check(files: &[TextFile]) -> Vec<String> {
    let sources = files.iter().filter_map(|file| Some((file, file.path.strip_suffix("src/lib.rs")?)));
    let mut problems = missing_licenses(files);
    for (source, folder) in sources.filter(|(_, folder)| folder.starts_with("crates/")) {
        let (path, text) = (&source.path, &source.text);
        let page = as_page(text);
        if path != FACADE_SOURCE && !page.contains("Use this crate ") {
            problems.push(format!("{path}: the page has no sentence \"Use this crate … to …\""));
        }
        if !page.contains("\n```rust\n") {
            problems.push(format!("{path}: the page has no example"));
        }
        if page.lines().any(|line| line.starts_with('|') && line.ends_with(FILE_COLUMN)) {
            problems.push(format!("{path}: a table of files goes below the page, in `//` comments"));
        }
        let manifest = files.iter().find(|file| file.path == format!("{folder}Cargo.toml"));
        let manifest = manifest.map_or("", |file| file.text.as_str());
        let shows_features = manifest.contains(DOCS_MANIFEST) && text.contains(DOCS_ATTRIBUTE);
        if manifest.contains("\n[features]\n") && !shows_features {
            let (of_manifest, of_source) = (DOCS_MANIFEST.trim(), DOCS_ATTRIBUTE.trim());
            problems.push(format!("{path}: a crate with features has `{of_manifest}` and `{of_source}`"));
        }
    }
    problems
}

/// Returns one line for each licence that a published crate lacks.
fn missing_licenses(files: &[TextFile]) -> Vec<String> {
    let published = files.iter().filter(|file| !file.text.contains("\npublish = false\n"));
    let folders = published.filter_map(|file| file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml"));
    let mut problems = Vec::new();
    for folder in folders.filter(|folder| !folder.contains('/')) {
        for name in LICENSES {
            let path = format!("crates/{folder}/{name}");
            if !files.iter().any(|file| file.path == path) {
                problems.push(format!("{path} is missing: make it a link to ../../{name}"));
            }
        }
    }
    problems
}

/// Returns the path and the text of each page.
pub(crate) fn pages() -> Result<Vec<(String, String)>> {
    let metadata = Metadata::load()?;
    metadata.published().filter(|package| package.name != FACADE).map(page).collect()
}

fn page(package: &Package) -> Result<(String, String)> {
    let folder = &package.folder;
    let source =
        ["src/lib.rs", "src/main.rs"].iter().find_map(|file| fs::read_to_string(folder.join(file)).ok());
    let source =
        source.with_context(|| format!("{} has neither src/lib.rs nor src/main.rs", folder.display()))?;
    let text = format!(
        "# {}\n\n{}\n\nA crate of Archon, a framework for agents that plan, act with tools, remember and survive a crash. \
         `{FACADE}` combines all of its crates.\n\nLicensed under MIT or Apache-2.0, as you choose.\n",
        package.name,
        as_page(&source)
    );
    let path = folder.strip_prefix(repository::root()).unwrap_or(folder).join("README.md");
    Ok((path.display().to_string(), text))
}

/// Turns the documentation at the start of a source file into a page of its own.
fn as_page(source: &str) -> String {
    let docs =
        source.lines().skip_while(|line| !line.starts_with("//!")).map_while(|line| line.strip_prefix("//!"));
    let mut in_code = false;
    let mut lines = Vec::new();
    for line in docs.map(|line| line.strip_prefix(' ').unwrap_or(line)) {
        if let Some(language) = line.strip_prefix("```") {
            in_code = !in_code;
            let is_rust = in_code && !["text", "toml", "sh", "console", "json"].contains(&language);
            lines.push(if is_rust { "```rust".to_owned() } else { line.to_owned() });
        } else if in_code {
            // Lines that rustdoc hides.
            lines.extend((line != "#" && !line.starts_with("# ")).then(|| line.to_owned()));
        } else if line.starts_with('#') {
            lines.push(format!("#{line}"));
        } else if !is_link_definition(line) {
            lines.push(without_links(line));
        }
    }
    lines.join("\n").trim_end().to_owned()
}

/// A line such as ``[`Provider`]: archon_types::Provider``.
fn is_link_definition(line: &str) -> bool {
    line.starts_with('[') && line.contains("]: ")
}

/// Replaces links to items, which only rustdoc resolves, by their text.
fn without_links(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else { break };
        let name = name.split_once('@').map_or(name, |(_, name)| name);
        text.push_str(&format!("{before}`{name}`"));
        rest = after
            .strip_prefix('(')
            .and_then(|target| target.split_once(')'))
            .map_or(after, |(_, after)| after);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_of_a_library_names_a_missing_opening_example_and_attribute() {
        let check_of = |source: &str| {
            let manifest =
                "[package]\n\n[package.metadata.docs.rs]\nall-features = true\n\n[features]\na = []\n";
            let mut files = Vec::from(LICENSES.map(|name| TextFile::new(&format!("crates/a/{name}"), "")));
            files.push(TextFile::new("crates/a/Cargo.toml", manifest));
            files.push(TextFile::new("crates/a/src/lib.rs", source));
            check(&files)
        };
        let whole = "//! A.\n//!\n//! Use this crate alone to b.\n//!\n//! ```no_run\n//! b();\n//! ```\n\n\
                     #![cfg_attr(docsrs, feature(doc_cfg))]\n";
        assert_eq!(check_of(whole), [""; 0]);
        let with_files = whole.replace("//! Use", "//! | a | file |\n//!\n//! Use");
        let expected = "crates/a/src/lib.rs: a table of files goes below the page, in `//` comments";
        assert_eq!(check_of(&with_files), [expected]);
        let problems = check_of("//! A.\n");
        let [opening, example, features] = &problems[..] else { panic!("{problems:?}") };
        assert!(opening.contains("Use this crate") && example.contains("no example"), "{problems:?}");
        assert!(features.contains("a crate with features has `[package.metadata.docs.rs]`"), "{problems:?}");
    }

    #[test]
    fn check_of_a_published_crate_names_a_missing_licence() {
        let check_of = |manifest: &str| {
            check(&[
                TextFile::new("crates/a/Cargo.toml", manifest),
                TextFile::new("crates/a/LICENSE-MIT", ""),
                // Data of an example.
                TextFile::new("crates/a/examples/b/Cargo.toml", ""),
            ])
        };
        let missing = "crates/a/LICENSE-APACHE is missing: make it a link to ../../LICENSE-APACHE";
        assert_eq!(check_of("[package]\n"), [missing]);
        assert_eq!(check_of("[package]\npublish = false\n"), [""; 0]);
    }

    #[test]
    fn as_page_of_crate_docs_keeps_text_and_code_and_drops_links_to_items() {
        let source = "//! Reads [`Page`](a::Page)s with [`macro@tool`].\n//!\n//! # Example\n//!\n//! ```no_run\n\
                      //! # use a::b;\n//! b();\n//! ```\n//!\n//! [`b`]: a::b\n\nmod page;\n//! not this\n";
        assert_eq!(as_page(source), "Reads `Page`s with `tool`.\n\n## Example\n\n```rust\nb();\n```");
    }
}
