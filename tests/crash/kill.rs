//! Kill and resume: a run that was killed at any record goes on where it was, and no side effect is
//! applied twice.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Output},
    sync::Arc,
};

use archon::{
    store::{JsonlJournal, SqliteJournal},
    types::{Journal, JournalError, Record, RecordBody, RunId, ToolResult, Usage},
};

/// What a log says, without ids, times, attempts, and the records that only tell of the kill.
pub(crate) fn essence(records: &[Arc<Record>]) -> Vec<String> {
    let shown = |kind: &str, result: &ToolResult| format!("{kind} {:?} {}", result.status, result.text());
    records
        .iter()
        .filter_map(|r| match &r.body {
            RecordBody::MessageAdded { message, .. } => {
                Some(format!("prompt {:?}", message.as_llm().map(|m| m.text())))
            }
            RecordBody::ModelCallFinished { message, .. } => {
                let calls: Vec<_> = message.tool_calls().collect();
                Some(format!("answer {} {calls:?} for {}", message.text(), message.usage.total()))
            }
            RecordBody::ToolCallFinished { call, result } => {
                Some(format!("{} {}", call.index, shown("result", result)))
            }
            RecordBody::ToolCallRefused { call, result } => {
                Some(format!("{} {}", call.index, shown("refused", result)))
            }
            RecordBody::RunFinished(outcome) => {
                let (turns, usage) = (outcome.turns, outcome.usage);
                Some(format!(
                    "{:?} {} in {turns} turns for {usage:?}",
                    outcome.status,
                    outcome.last_text().unwrap_or_default()
                ))
            }
            _ => None,
        })
        .collect()
}

pub(crate) fn killable(dir: &Path, kind: &str, mode: &str, kill_at: Option<u64>) -> Output {
    run_killable(env!("CARGO_BIN_EXE_killable"), dir, kind, mode, kill_at)
}

/// Runs one of the programs that kill themselves at a record, to its end or to that record.
pub(crate) fn run_killable(
    program: &str,
    dir: &Path,
    kind: &str,
    mode: &str,
    kill_at: Option<u64>,
) -> Output {
    let mut command = Command::new(program);
    command.arg(dir).arg(kind).arg(mode).args(kill_at.map(|n| n.to_string()));
    command.output().expect("the program runs")
}

pub(crate) fn log(dir: &Path, kind: &str) -> Vec<Arc<Record>> {
    block_on(open(dir, kind).read(&RunId::new("victim"))).expect("the log can be read")
}

/// All logs of a killed program, by the names of their runs.
pub(crate) type Logs = BTreeMap<String, Vec<Arc<Record>>>;

pub(crate) fn logs(dir: &Path, kind: &str) -> Logs {
    let journal = open(dir, kind);
    block_on(async {
        let mut logs = Logs::new();
        for head in journal.list(&archon::types::RunFilter::all()).await.expect("the runs can be listed") {
            match journal.read(&head.run_id).await {
                Ok(records) => _ = logs.insert(head.run_id.to_string(), records),
                // Its process died before it began the log.
                Err(JournalError::UnknownRun { .. }) => {}
                Err(e) => panic!("the log cannot be read: {e}"),
            }
        }
        logs
    })
}

/// The journal that a killed program left behind: `jsonl` or `sqlite`.
pub(crate) fn open(dir: &Path, kind: &str) -> Box<dyn Journal> {
    match kind {
        "jsonl" => Box::new(JsonlJournal::open(dir).expect("the journal opens")),
        _ => Box::new(SqliteJournal::open(dir.join("runs.db")).expect("the journal opens")),
    }
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(work)
}

fn effects(dir: &Path) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for line in std::fs::read_to_string(dir.join("effects")).unwrap_or_default().lines() {
        *counted.entry(line.to_owned()).or_default() += 1;
    }
    counted
}

fn in_doubt(line: &str) -> bool {
    line.contains("the effect of this call is unknown")
}

/// Kills a run at `kill_at`, resumes it, and compares it with one that was left alone.
fn check_kill(kind: &str, kill_at: u64, undisturbed: &[String]) {
    let dir = tempfile::tempdir().expect("a directory");
    let killed = killable(dir.path(), kind, "start", Some(kill_at));
    assert!(!killed.status.success(), "{kind}, record {kill_at}: it was not killed");
    let before = log(dir.path(), kind);
    let resumed = killable(dir.path(), kind, "resume", None);
    if matches!(before.last().map(|r| &r.body), Some(RecordBody::RunFinished(_))) {
        // Only the report to the caller was lost; the outcome is in the log.
        assert_eq!(essence(&before), undisturbed);
        return;
    }
    let stderr = String::from_utf8_lossy(&resumed.stderr);
    if before.len() == 1 {
        assert!(stderr.contains("stopped before its prompt was recorded"), "{stderr}");
        return;
    }
    assert!(resumed.status.success(), "{kind}, record {kill_at}: {stderr}");
    let after = log(dir.path(), kind);
    assert_eq!(&after[..before.len()], &before[..], "{kind}, record {kill_at}: the log was rewritten");
    check_resumed(&format!("{kind}, record {kill_at}"), dir.path(), &after, undisturbed);
}

/// Whether a run that was cut off and taken up says what an undisturbed one says, and did what it says: a side
/// effect once, or nobody knows.
pub(crate) fn check_resumed(place: &str, dir: &Path, after: &[Arc<Record>], undisturbed: &[String]) {
    let essence = essence(after);
    assert_eq!(essence.len(), undisturbed.len(), "{place}");
    let different: Vec<_> = essence.iter().zip(undisturbed).filter(|(a, b)| a != b).collect();
    assert!(different.len() <= 1, "{place}: {different:#?}");
    assert!(different.iter().all(|(a, _)| in_doubt(a)), "{place}: {different:#?}");
    for (effect, times) in effects(dir) {
        let may_repeat = !effect.starts_with("send");
        assert!(times == 1 || may_repeat && times == 2, "{place}: {effect} was applied {times} times");
    }
    // A side effect that the log calls done was done; one in doubt may or may not have been.
    let sent = effects(dir).keys().filter(|e| e.starts_with("send")).count();
    assert!(sent + different.len() >= TURNS, "{place}: {sent} sent");
    check_charged(place, after);
}

/// Whether every answer was counted and paid for once. A call that was lost has no answer, takes no turn and
/// adds no tokens, but is paid for as it was set aside.
fn check_charged(place: &str, after: &[Arc<Record>]) {
    let answers = after.iter().filter_map(|r| match &r.body {
        RecordBody::ModelCallFinished { message, .. } => Some(message.usage),
        _ => None,
    });
    let (mut turns, mut usage) = (0, Usage::default());
    for answer in answers {
        turns += 1;
        usage += answer;
    }
    let lost = after.iter().any(|r| matches!(r.body, RecordBody::ModelCallLost { .. }));
    let Some(RecordBody::RunFinished(outcome)) = after.last().map(|r| &r.body) else {
        panic!("{place}: the run has not ended");
    };
    assert!(usage.total() > 0, "{place}: nothing was charged");
    assert_eq!((outcome.turns, outcome.usage), (turns, usage), "{place}");
    // A token costs one millionth.
    let cost = outcome.cost_micros.expect("the price is known");
    let is_right = if lost { cost > usage.total() } else { cost == usage.total() };
    assert!(is_right, "{place}: {cost} for {} tokens, a call was lost: {lost}", usage.total());
}

/// Tool turns of the run.
const TURNS: usize = 30;

// spec: S-14
#[test]
fn kill_at_any_record_and_resume_loses_nothing_and_repeats_no_side_effect() {
    kill_at_any_record("jsonl", 20);
}

// spec: S-14
#[test]
fn kill_at_any_record_and_resume_is_the_same_with_sqlite() {
    kill_at_any_record("sqlite", 35);
}

/// The log of a run that was left alone.
pub(crate) fn undisturbed(kind: &str) -> Vec<Arc<Record>> {
    let dir = tempfile::tempdir().expect("a directory");
    let output = killable(dir.path(), kind, "start", None);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    log(dir.path(), kind)
}

/// Whether nothing is sampled.
pub(crate) fn is_full() -> bool {
    std::env::var_os("ARCHON_ACCEPT").is_some_and(|v| v == "full")
}

/// Where random cases start.
pub(crate) fn seed() -> u64 {
    std::env::var("ARCHON_ACCEPT_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0)
}

/// CI takes one record of every kind and each `step`th of the rest, from a seeded start.
fn kill_at_any_record(kind: &str, step: u64) {
    let records = undisturbed(kind);
    let undisturbed = essence(&records);
    let last = records.len() as u64 - 1;
    let step = if is_full() { 1 } else { step };
    for kill_at in (seed() % step..=last).step_by(usize::try_from(step).expect("small")) {
        check_kill(kind, kill_at, &undisturbed);
    }
    if !is_full() {
        // Around the first side effect, where it matters most.
        let start = records.iter().position(|r| {
            matches!(&r.body, RecordBody::ToolCallStarted { effect: archon::types::Effect::SideEffect, .. })
        });
        let start = start.expect("a side effect") as u64;
        for kill_at in start - 1..=start + 1 {
            check_kill(kind, kill_at, &undisturbed);
        }
    }
}
