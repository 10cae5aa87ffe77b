//! Two processes that take up one run at once: exactly one goes on, and the other is told why it does not.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use archon::types::RecordBody;

use crate::crash::kill::{check_resumed, essence, is_full, killable, log, undisturbed};

// spec: S-14
#[test]
fn kill_and_a_race_to_resume_with_the_file_journal_has_one_winner() {
    race("jsonl");
}

// spec: S-14
#[test]
fn kill_and_a_race_to_resume_with_the_sqlite_journal_has_one_winner() {
    race("sqlite");
}

/// 200 races, of which CI takes a tenth. The run is killed near its start, so the winner is at work for as long as
/// the other takes to open it, and each race goes on from a copy of the same files.
fn race(kind: &str) {
    let expected = essence(&undisturbed(kind));
    let killed = tempfile::tempdir().expect("a directory");
    assert!(!killable(killed.path(), kind, "start", Some(9)).status.success());
    for n in 0..if is_full() { 200 } else { 20 } {
        let dir = tempfile::tempdir().expect("a directory");
        copy(killed.path(), dir.path());
        let outputs = resume_twice(dir.path(), kind);
        let errors: Vec<_> = outputs
            .iter()
            .filter(|output| !output.status.success())
            .map(|output| String::from_utf8_lossy(&output.stderr).into_owned())
            .collect();
        let [error] = &errors[..] else { panic!("{kind}, race {n}: {errors:?}") };
        // The slower of the two may find the run at work, or its end.
        let told = ["is in use by another process", "has ended"].iter().any(|text| error.contains(text));
        assert!(told, "{kind}, race {n}: {error}");
        let after = log(dir.path(), kind);
        let resumed = after.iter().filter(|r| matches!(r.body, RecordBody::Resumed)).count();
        assert_eq!(resumed, 1, "{kind}, race {n}");
        check_resumed(&format!("{kind}, race {n}"), dir.path(), &after, &expected);
    }
}

fn resume_twice(dir: &Path, kind: &str) -> Vec<Output> {
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_killable"));
        command.arg(dir).args([kind, "resume"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program runs")
    };
    let both = [start(), start()];
    both.map(|child| child.wait_with_output().expect("it ends")).into()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a list").map(|entry| entry.expect("an entry")) {
        let to = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).expect("a copy")),
        }
    }
}
