//! Compares docs/book/reference/environment.md with the sources: every variable that they read has its place there,
//! and every variable there is in the sources.

use std::collections::{BTreeSet, HashSet};

use crate::repository::TextFile;
use crate::rust_source::RustSource;

const PAGE: &str = "docs/book/reference/environment.md";

/// Pages that the page above links to for variables of settings and for keys.
const LINKED: &[&str] = &["docs/reference/settings.md", "docs/providers.md"];

/// Texts before the name of a variable that is read.
const READS: &[&str] = &["var(\"", "var_os(\"", "env(\""];

/// Variables that cargo sets for every program that it builds or starts.
const OF_CARGO: &str = "CARGO_";

/// Returns one line for each variable without a place, and for each place without a variable.
pub(crate) fn check(files: &[TextFile]) -> Vec<String> {
    let text = |path: &str| files.iter().find(|file| file.path == path).map(|file| file.text.as_str());
    let Some(page) = text(PAGE) else { return vec![format!("{PAGE}: it is not there")] };
    let sources = || files.iter().filter(|file| file.is_rust());
    let listed: HashSet<&str> =
        LINKED.iter().filter_map(|path| text(path)).chain([page]).flat_map(words).collect();
    let read = sources().filter(|file| !file.path.contains("tests")).flat_map(|file| variables(&file.text));
    let known: HashSet<&str> = sources().flat_map(|file| words(&file.text)).collect();
    let missing = read.collect::<BTreeSet<_>>().into_iter().filter(|name| !listed.contains(name.as_str()));
    let gone = spans(page).filter(|name| !known.contains(name));
    missing
        .map(|name| format!("{PAGE}: it does not name {name}, which a source reads"))
        .chain(gone.map(|name| format!("{PAGE}: it names {name}, which no source has")))
        .collect()
}

/// Returns the variables that a source reads outside of its tests.
fn variables(text: &str) -> Vec<String> {
    let tests = RustSource::parse(text).test_modules();
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(at, _)| !tests.iter().any(|(start, end)| (start..=end).contains(&at)));
    let mut names = Vec::new();
    for (_, line) in lines {
        for read in READS {
            let after = line.match_indices(read).map(|(at, read)| &line[at + read.len()..]);
            names.extend(after.filter_map(|rest| rest.split_once("\")")).map(|(name, _)| name.to_owned()));
        }
    }
    names.retain(|name| is_variable(name) && !name.starts_with(OF_CARGO));
    names
}

/// Returns the variables in the code spans of a page.
fn spans(page: &str) -> impl Iterator<Item = &str> {
    let spans = page.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    spans.map(|span| span.split('=').next().unwrap_or(span)).filter(|name| is_variable(name))
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.contains('_')
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn check_of_a_variable_that_is_read_and_not_listed_names_it() {
        let code = "//! Reads.\nfn read() {\n    let _ = std::env::var(\"A_B\");\n    set().env(\"C_D\", \"1\");\n}\n";
        let files = [file(PAGE, "`E_F=1`"), file("crates/a/src/lib.rs", code)];
        let expected = [
            format!("{PAGE}: it does not name A_B, which a source reads"),
            format!("{PAGE}: it names E_F, which no source has"),
        ];
        assert_eq!(check(&files), expected);
    }

    #[test]
    fn check_of_variables_that_are_listed_or_read_by_tests_finds_nothing() {
        let code = "//! Reads.\n/// Uses E_F.\nfn read() {\n    app.env(\"A_B\")\n}\n#[cfg(test)]\nmod tests {\n    fn t() {\n        env(\"G_H\");\n    }\n}\n";
        let files = [file(PAGE, "`E_F`, `NO`"), file(LINKED[0], "A_B"), file("crates/a/src/lib.rs", code)];
        assert_eq!(check(&files), [""; 0]);
    }
}
