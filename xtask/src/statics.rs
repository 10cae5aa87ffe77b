//! Checks the process-wide state: each `static` is listed here with its reason. A second agent in the process
//! must not notice any of it.

use crate::repository::{self, TextFile};
use crate::rust_source::RustSource;

/// File, name, and the reason why no value can hold it.
const STATICS: &[(&str, &str, &str)] = &[
    ("crates/archon/src/run_clock.rs", "PULSE", "the process stops and goes on, with all of its runs"),
    ("crates/cli/src/ask.rs", "TURN", "there is one terminal"),
    ("crates/local-model/src/llama/library.rs", "OPENED", "a library is loaded once by the system"),
    ("crates/local-model/src/llama/linked.rs", "STARTED", "a library is set up once"),
    ("crates/process/src/kept_group.rs", "KEPT", "processes belong to the whole process that started them"),
    ("crates/process/src/orphans.rs", "DONE", "what a dead process left is removed once"),
    ("crates/memory-rank/src/words.rs", "STOP_WORDS", "a list of words that does not change"),
    ("crates/tools/src/control.rs", "REASONS", "a list of file names that does not change"),
    ("crates/macros/src/expand.rs", "SPEC", "what a function says of itself does not change"),
    ("crates/server/src/route.rs", "ROUTES", "a table of routes that does not change"),
    ("crates/providers/src/wire_fixture.rs", "CANNED", "answers for the tests, by thread"),
    ("crates/store/src/database_file.rs", "CREATING", "SQLite's files are locked by process"),
    ("crates/tools/src/sandbox/cgroup.rs", "ONCE", "what dead processes left is removed once"),
    ("crates/tools/src/sandbox/mounts.rs", "MAKER", "a helper process is started once"),
    ("crates/tools/src/sandbox/scratch.rs", "LOOKED", "what dead processes left is removed once"),
    (
        "crates/types/src/messages/redactor.rs",
        "CHANGES",
        "counts, so that copies know that secrets were added",
    ),
];

/// Returns the statics of non-test code, by file and name.
fn statics(files: &[TextFile]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && !file.is_test_code()) {
        let source = RustSource::parse(&file.text);
        let in_tests = source.test_modules();
        for (number, line) in source.code().lines().enumerate() {
            let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && !"_'".contains(c)).collect();
            let after = words.iter().position(|word| *word == "static").map(|at| &words[at + 1..]);
            let name = after.and_then(|rest| rest.iter().find(|word| !matches!(**word, "" | "mut" | "ref")));
            let is_name = |name: &&&str| name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
            if let Some(name) = name.filter(is_name)
                && !in_tests.iter().any(|(first, last)| (*first..=*last).contains(&number))
            {
                found.push((file.path.clone(), (*name).to_owned()));
            }
        }
    }
    found
}

// spec: Q-07
#[test]
fn statics_of_the_workspace_are_listed_with_a_reason() {
    let files = repository::text_files().unwrap();
    let ours: Vec<_> = files.into_iter().filter(|file| file.path.starts_with("crates/")).collect();
    let found = statics(&ours);
    let is_listed =
        |file: &str, name: &str| STATICS.iter().any(|(of, known, _)| (*of, *known) == (file, name));
    let unknown: Vec<_> = found.iter().filter(|(file, name)| !is_listed(file, name)).collect();
    assert!(unknown.is_empty(), "global state without a reason: {unknown:?}");
    let is_there = |of: &str, known: &str| found.iter().any(|(file, name)| file == of && name == known);
    let stale: Vec<_> = STATICS.iter().filter(|(file, name, _)| !is_there(file, name)).collect();
    assert!(stale.is_empty(), "no longer there: {stale:?}");
}

#[test]
fn statics_are_found_and_lifetimes_ignored() {
    let text =
        "static A: u8 = 0;\npub(crate) static mut B_C: u8 = 0;\nfn f(x: &'static str) {}\n// static D\n";
    let found = statics(&[TextFile::new("crates/x/src/a.rs", text)]);
    assert_eq!(found.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["A", "B_C"]);
}
