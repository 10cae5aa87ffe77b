//! Checks that the things that pages name exist: files and headings behind links, names of docs/vocabulary.md, and the
//! crates of the tables in the README and in docs/architecture.md.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use crate::markdown;
use crate::repository::{self, TextFile};

const VOCABULARY: &str = "docs/vocabulary.md";

/// Pages with a table of all crates.
const CRATE_TABLES: &[&str] = &["README.md", "docs/architecture.md"];

/// Returns one line for each link or name without a target.
pub(crate) fn check(files: &[TextFile]) -> Vec<String> {
    let root = repository::root();
    let mut problems = Vec::new();
    let pages = || files.iter().filter(|file| file.path.ends_with(".md"));
    let headings = pages().map(|page| (PathBuf::from(&page.path), markdown::anchors(&page.text))).collect();
    for file in pages() {
        problems.extend(broken_links(file, |path| root.join(path).exists()));
        problems.extend(unknown_anchors(file, &headings));
    }
    let crates: Vec<&str> = files
        .iter()
        .filter(|file| file.path.starts_with("crates/") && file.path.matches('/').count() == 2)
        .filter(|file| file.path.ends_with("/Cargo.toml"))
        .filter_map(|file| package_name(&file.text))
        .collect();
    for page in files.iter().filter(|file| CRATE_TABLES.contains(&file.path.as_str())) {
        problems.extend(wrong_crate_table(page, &crates));
    }
    if let Some(page) = files.iter().find(|file| file.path == VOCABULARY) {
        let words: HashSet<&str> =
            files.iter().filter(|file| file.is_rust()).flat_map(|file| words(&file.text)).collect();
        problems.extend(unknown_names(page, &words));
    }
    problems
}

fn broken_links(file: &TextFile, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let links = markdown::links(&file.text).into_iter();
    let broken = links.filter(|link| !link.path.is_empty() && !exists(&target(&file.path, link.path)));
    broken
        .map(|link| {
            format!("{}:{}: the link leads to {}, which is not there", file.path, link.line, link.path)
        })
        .collect()
}

/// Links to a heading that its page does not have; `headings` has the anchors of each page.
fn unknown_anchors(file: &TextFile, headings: &HashMap<PathBuf, Vec<String>>) -> Vec<String> {
    let mut problems = Vec::new();
    for link in markdown::links(&file.text) {
        let to = if link.path.is_empty() { PathBuf::from(&file.path) } else { target(&file.path, link.path) };
        let (Some(anchor), Some(there)) = (link.anchor, headings.get(&to)) else { continue };
        if !there.iter().any(|known| known == anchor) {
            let to = to.display();
            problems.push(format!("{}:{}: {to} has no heading for #{anchor}", file.path, link.line));
        }
    }
    problems
}

/// Returns the file behind a link of the page, from the top of the repository.
pub(crate) fn target(page: &str, link: &str) -> PathBuf {
    plain(&Path::new(page).parent().unwrap_or(Path::new("")).join(link))
}

/// Returns the name in a manifest.
pub(crate) fn package_name(manifest: &str) -> Option<&str> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("name = "))?;
    Some(line.trim_matches('"'))
}

/// A crate without a place in a table of the page, or a place without a crate.
fn wrong_crate_table(page: &TextFile, crates: &[&str]) -> Vec<String> {
    let first_columns = page.text.lines().filter(|line| line.starts_with("| `archon"));
    let named: Vec<&str> = first_columns
        .filter_map(|line| line.split('|').nth(1))
        .flat_map(|column| column.split('`').skip(1).step_by(2))
        .filter(|name| !name.contains([' ', ':']))
        .collect();
    let missing = crates.iter().filter(|name| !named.contains(name));
    let unknown = named.iter().filter(|name| !crates.contains(name));
    missing
        .map(|name| format!("{}: no row of the table of crates names {name}", page.path))
        .chain(unknown.map(|name| format!("{}: there is no crate {name}", page.path)))
        .collect()
}

/// Resolves `..` and `.` in a path.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Returns types in the third column of the page's tables that no Rust file contains.
fn unknown_names(page: &TextFile, known: &HashSet<&str>) -> Vec<String> {
    let mut problems = Vec::new();
    for (number, line) in page.text.lines().enumerate().filter(|(_, line)| line.starts_with('|')) {
        let column = line.split('|').nth(3).unwrap_or_default();
        for name in column.split('`').skip(1).step_by(2).flat_map(words) {
            if name.starts_with(char::is_uppercase) && !known.contains(name) {
                problems.push(format!("{}:{}: no Rust file has the name {name}", page.path, number + 1));
            }
        }
    }
    problems
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn link_to_a_file_that_is_not_there_is_a_problem_with_its_line() {
        let text =
            "[a](b.md) [c](../README.md#top) [d](https://x.y/z) [e](#f)\n```\n[g](no.md)\n```\n[h](no.md)";
        let there = [Path::new("docs/b.md"), Path::new("README.md")];
        let problems = broken_links(&page("docs/x.md", text), |path| there.contains(&path));
        assert_eq!(problems, ["docs/x.md:5: the link leads to no.md, which is not there"]);
    }

    #[test]
    fn unknown_anchors_heading_that_is_not_there_is_a_problem_with_its_line() {
        let page =
            page("docs/a.md", "# Top\n[a](b.md#two) [b](b.md#three) [c](#top) [d](#end) [e](c.rs#L1)\n");
        let headings = HashMap::from([
            (PathBuf::from("docs/a.md"), vec!["top".to_owned()]),
            (PathBuf::from("docs/b.md"), vec!["two".to_owned()]),
        ]);
        assert_eq!(
            unknown_anchors(&page, &headings),
            [
                "docs/a.md:2: docs/b.md has no heading for #three",
                "docs/a.md:2: docs/a.md has no heading for #end"
            ]
        );
    }

    #[test]
    fn wrong_crate_table_missing_and_unknown_crates_are_problems() {
        let text = "| `archon-a`, `archon-b` | both |\n| `archon run` | no crate |";
        assert_eq!(
            wrong_crate_table(&page("README.md", text), &["archon-a", "archon-c"]),
            [
                "README.md: no row of the table of crates names archon-c",
                "README.md: there is no crate archon-b"
            ]
        );
    }

    #[test]
    fn name_of_the_vocabulary_that_no_file_has_is_a_problem() {
        let text = "| run | a piece of work | `RunId`, `Runs::steer`, `Gone` | `Old` |";
        let problems = unknown_names(&page(VOCABULARY, text), &HashSet::from(["RunId", "Runs", "steer"]));
        assert_eq!(problems, ["docs/vocabulary.md:1: no Rust file has the name Gone"]);
    }
}
