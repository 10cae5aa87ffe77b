//! What a long history costs: a prompt in a session, a message to an assistant, and a look for what waits for a person,
//! cost as much beside thousands of runs as beside ten; and a prompt costs as much in a session of a thousand runs as in
//! one of ten.

#![allow(clippy::print_stderr, reason = "a test says what it counted")]

use std::{path::Path, process::Command};

use archon_testkit::{Need, Trial, cases, instructions, trial};

static VALGRIND: Need = Need::new(
    || match instructions(&Command::new("true")) {
        Some(_) => Ok(()),
        None => Err("no valgrind; install it".to_owned()),
    },
    "ARCHON_ACCEPT",
);

pub(crate) static TRIALS: &[Trial] = &[
    trial!(prompt_in_a_session_beside_a_long_history_of_files_costs_as_beside_a_short_one).needs(&VALGRIND),
    trial!(prompt_in_a_session_beside_a_long_history_in_sqlite_costs_as_beside_a_short_one).needs(&VALGRIND),
    trial!(approvals_beside_a_long_history_of_files_cost_as_beside_a_short_one).needs(&VALGRIND),
    trial!(approvals_beside_a_long_history_in_sqlite_cost_as_beside_a_short_one).needs(&VALGRIND),
    trial!(prompt_in_a_long_session_of_files_costs_as_in_a_short_one).needs(&VALGRIND),
    trial!(prompt_in_a_long_session_in_sqlite_costs_as_in_a_short_one).needs(&VALGRIND),
    trial!(message_to_an_assistant_beside_a_long_history_of_files_costs_as_beside_a_short_one)
        .needs(&VALGRIND),
    trial!(message_to_an_assistant_beside_a_long_history_in_sqlite_costs_as_beside_a_short_one)
        .needs(&VALGRIND),
];

const PROGRAM: &str = env!("CARGO_BIN_EXE_history");

/// Runs of the short history.
const FEW: u64 = 10;

fn command(what: &str, store: &str, dir: &Path, numbers: &[u64]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args([what, store]).arg(dir).args(numbers.iter().map(u64::to_string));
    command
}

/// Instructions of one more of a thing: two processes differ by so many of them, so no start is in it.
fn cost(what: &str, store: &str, dir: &Path) -> u64 {
    let count = |numbers: &[u64]| instructions(&command(what, store, dir, numbers)).unwrap().0;
    let (few, many) = match what {
        // Each in a session of its own that nobody went on with.
        "prompt" => (count(&[0, 2]), count(&[2, 7])),
        // Some prompts read more logs than others.
        "say" => return (count(&[26]) - count(&[2])) / 24,
        _ => (count(&[2]), count(&[7])),
    };
    (many - few) / 5
}

fn check(what: &str, store: &str) {
    let mut costs = Vec::new();
    let (make, many) = match what {
        "say" => ("session", cases(200, 1_000)),
        "message" => ("make", cases(5_000, 100_000)),
        _ => ("make", cases(400, 4_000)),
    };
    for runs in [FEW, many] {
        let dir = tempfile::tempdir().unwrap();
        let made = command(make, store, dir.path(), &[runs]).status().unwrap();
        assert!(made.success(), "{what}, {store}");
        costs.push((runs, cost(what, store, dir.path())));
    }
    let [(few, least), (many, most)] = costs[..] else { unreachable!() };
    let ratio = most as f64 / least as f64;
    eprintln!(
        "{what}, {store}: {least} instructions beside {few} runs, {most} beside {many}: {ratio:.2} times"
    );
    assert!(ratio <= 1.2, "{what}, {store}: {ratio:.2} times the instructions, of 1.2 that are allowed");
}

async fn prompt_in_a_session_beside_a_long_history_of_files_costs_as_beside_a_short_one() {
    check("prompt", "jsonl");
}

async fn prompt_in_a_session_beside_a_long_history_in_sqlite_costs_as_beside_a_short_one() {
    check("prompt", "sqlite");
}

async fn approvals_beside_a_long_history_of_files_cost_as_beside_a_short_one() {
    check("approvals", "jsonl");
}

async fn approvals_beside_a_long_history_in_sqlite_cost_as_beside_a_short_one() {
    check("approvals", "sqlite");
}

async fn prompt_in_a_long_session_of_files_costs_as_in_a_short_one() {
    check("say", "jsonl");
}

async fn prompt_in_a_long_session_in_sqlite_costs_as_in_a_short_one() {
    check("say", "sqlite");
}

async fn message_to_an_assistant_beside_a_long_history_of_files_costs_as_beside_a_short_one() {
    check("message", "jsonl");
}

async fn message_to_an_assistant_beside_a_long_history_in_sqlite_costs_as_beside_a_short_one() {
    check("message", "sqlite");
}
