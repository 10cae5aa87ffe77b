//! Checks the names in docs: targets of links, and the code names in docs/vocabulary.md.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use crate::repository::{self, TextFile};

const VOCABULARY: &str = "docs/vocabulary.md";

/// Returns one line for each link or name without a target.
pub(crate) fn check(files: &[TextFile]) -> Vec<String> {
    let root = repository::root();
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        problems.extend(broken_links(file, |path| root.join(path).exists()));
    }
    if let Some(page) = files.iter().find(|file| file.path == VOCABULARY) {
        let words: HashSet<&str> =
            files.iter().filter(|file| file.is_rust()).flat_map(|file| words(&file.text)).collect();
        problems.extend(unknown_names(page, &words));
    }
    problems
}

fn broken_links(file: &TextFile, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
    let mut problems = Vec::new();
    let mut is_code = false;
    for (number, line) in file.text.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code {
            continue;
        }
        for target in
            line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
        {
            let path = target.split('#').next().unwrap_or_default();
            let is_elsewhere = path.contains(':') || path.contains(' ');
            if !path.is_empty() && !is_elsewhere && !exists(&plain(&folder.join(path))) {
                problems.push(format!(
                    "{}:{}: the link leads to {path}, which is not there",
                    file.path,
                    number + 1
                ));
            }
        }
    }
    problems
}

/// Resolves `..` and `.` in a path.
fn plain(path: &Path) -> PathBuf {
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
    fn name_of_the_vocabulary_that_no_file_has_is_a_problem() {
        let text = "| run | a piece of work | `RunId`, `Runs::steer`, `Gone` | `Old` |";
        let problems = unknown_names(&page(VOCABULARY, text), &HashSet::from(["RunId", "Runs", "steer"]));
        assert_eq!(problems, ["docs/vocabulary.md:1: no Rust file has the name Gone"]);
    }
}
