//! What durability costs: `cargo bench -p archon-store --features sqlite [-- TARGET_DIR]`.
//!
//! Prints, for a turn with one tool call as the loop writes it (four appends, one of them synced),
//! the time beside a bare sync of the same disk, how much the store grows per turn when a state of
//! 10 KiB does not change (goal: at most 1.2 KiB), and how long a run of 100,000 records takes to open
//! (goal: under a second). It fails if a goal is missed; both leave room for a busy machine.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints, and stops where it fails")]

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use archon_store::{JsonlJournal, SqliteJournal};
use archon_types::{Durability, Journal, OpenMode, Record, RunId, RunWriter};
use serde_json::{Value, json};

const KINDS: [&str; 2] = ["jsonl", "sqlite"];
const TURNS: u64 = 500;
const FIRST: u64 = 20;
const LONG: u64 = 100_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    // `cargo bench` passes `--bench`; anything else is where to measure, as the disk decides.
    let dir = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let dir = dir.map_or_else(tempfile::tempdir, tempfile::tempdir_in).unwrap();
    println!("in {}; load average {}", dir.path().display(), load());
    let bytes = lines(&turn(1)).len();
    println!("a turn: 4 records, {bytes} bytes of JSON, 4 appends, one of them synced");
    let mut missed = runtime.block_on(turns(dir.path(), bytes));
    for kind in KINDS {
        if runtime.block_on(resume(kind, &dir.path().join(kind))) > Duration::from_secs(1) {
            missed.push(format!("{kind}: a run of 100,000 records opened in a second"));
        }
    }
    println!("load average {}", load());
    assert!(missed.is_empty(), "missed: {missed:?}");
}

fn journal(kind: &str, dir: &Path) -> Box<dyn Journal> {
    match kind {
        "jsonl" => Box::new(JsonlJournal::open(dir).unwrap()),
        _ => Box::new(SqliteJournal::open(dir.join("runs.db")).unwrap()),
    }
}

/// Turn by turn in every journal and on the bare disk, so that all meet the same load. Returns the goals that are missed.
async fn turns(dir: &Path, bytes: usize) -> Vec<String> {
    let mut bare = File::create(dir.join("bare")).unwrap();
    let bytes = vec![b'x'; bytes];
    let mut runs = Vec::new();
    for kind in KINDS {
        let journal = journal(kind, &dir.join(kind));
        let mut open = journal.open(&RunId::new("turns"), OpenMode::Create).await.unwrap();
        open.writer.append(&[record(0, started("turns"))], Durability::Synced).await.unwrap();
        runs.push((kind, journal, open.writer));
    }
    let mut took = vec![Vec::new(); KINDS.len()];
    let mut took_bare = Vec::new();
    let mut sizes = Vec::new();
    // The first turns make the files and the caches.
    for n in 0..TURNS + FIRST {
        let records = turn(n);
        took_bare.push(
            time(async || {
                bare.write_all(&bytes).unwrap();
                bare.sync_data().unwrap();
            })
            .await,
        );
        for ((_, _, writer), took) in runs.iter_mut().zip(&mut took) {
            took.push(time(async || write_turn(&mut **writer, &records).await).await);
        }
        if n + 1 == FIRST || n + 1 == TURNS + FIRST {
            sizes.push(KINDS.map(|kind| size_after_checkpoint(&dir.join(kind))));
        }
    }
    print("a write and fdatasync, without a journal", took_bare.split_off(FIRST as usize));
    for ((kind, _, _), mut took) in runs.iter().zip(took) {
        print(&format!("{kind}: a journaled turn"), took.split_off(FIRST as usize));
    }
    let mut missed = Vec::new();
    for (n, kind) in KINDS.iter().enumerate() {
        let growth = (sizes[1][n] - sizes[0][n]) as f64 / TURNS as f64 / 1024.0;
        println!("{kind}: growth per turn with an unchanged state of 10 KiB: {growth:.2} KiB");
        if growth > 1.2 {
            missed.push(format!("{kind}: growth per turn of 1.2 KiB"));
        }
    }
    missed
}

/// As the driver does it: one append each, and the start of a tool is on the medium before it runs.
async fn write_turn(writer: &mut dyn RunWriter, records: &[Arc<Record>]) {
    for record in records {
        let durability = if record.body.needs_sync() { Durability::Synced } else { Durability::Buffered };
        writer.append(std::slice::from_ref(record), durability).await.unwrap();
    }
}

/// The median.
async fn resume(kind: &str, dir: &Path) -> Duration {
    let journal = journal(kind, dir);
    let run = RunId::new("long");
    let mut open = journal.open(&run, OpenMode::Create).await.unwrap();
    open.writer.append(&[record(0, started("long"))], Durability::Buffered).await.unwrap();
    let mut bytes = 0;
    let mut next = 1;
    while next < LONG {
        let records: Vec<_> = (next / 4..next / 4 + 250).flat_map(turn).collect();
        next += records.len() as u64;
        bytes += lines(&records).len();
        open.writer.append(&records, Durability::Buffered).await.unwrap();
    }
    drop(open);
    let mut took = Vec::new();
    for _ in 0..7 {
        let open = async || {
            let open = journal.open(&run, OpenMode::Existing).await.unwrap();
            assert_eq!(open.records.len() as u64, next);
        };
        took.push(time(open).await);
    }
    print(&format!("{kind}: open a run of {next} records ({} MB)", bytes / 1_000_000), took)
}

/// The bytes of all files, with SQLite's log moved into its database.
fn size_after_checkpoint(dir: &Path) -> u64 {
    let database = dir.join("runs.db");
    if database.exists() {
        let connection = rusqlite::Connection::open(database).unwrap();
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    }
    size(dir)
}

fn size(path: &Path) -> u64 {
    if path.is_file() {
        // The index of the write-ahead log has one size for every log.
        let index = path.extension().is_some_and(|e| e == "db-shm");
        return if index { 0 } else { fs::metadata(path).unwrap().len() };
    }
    fs::read_dir(path).unwrap().map(|entry| size(&entry.unwrap().path())).sum()
}

fn lines(records: &[Arc<Record>]) -> String {
    records.iter().map(|r| serde_json::to_string(r).unwrap() + "\n").collect()
}

fn record(seq: u64, mut body: Value) -> Arc<Record> {
    body["seq"] = json!(seq);
    body["at"] = json!(1_767_225_600_000_u64 + seq * 250);
    Arc::new(serde_json::from_value(body).unwrap())
}

/// A start with 10 KiB of standing instructions.
fn started(run: &str) -> Value {
    json!({
        "type": "run_started", "format": 2, "kind": "loop", "run": run, "session": "s1", "agent": "a1", "loop_id": "s1.0.0",
        "tenant": "local", "origin": {"kind": "prompt"}, "first_trigger": "user",
        "config": {"provider": "openai", "model": "m", "system": "Be brief. ".repeat(1024)},
    })
}

/// The records of turn `n`: asked, answered with a call, started, finished.
fn turn(n: u64) -> Vec<Arc<Record>> {
    let call = json!({"command": n, "index": 0});
    let answer = json!({
        "role": "assistant", "timestamp": 1_767_225_600_000_u64 + n * 1000, "model": "m", "provider": "openai",
        "stop_reason": "toolUse",
        "usage": {"input": 2000 + n, "output": 40, "total_tokens": 2040 + n},
        "content": [
            {"type": "text", "text": "I will look at the next file of the list."},
            {"type": "toolCall", "id": format!("call_{n:024}"), "name": "read_file",
             "arguments": {"path": format!("src/module_{n}.rs"), "line": n}},
        ],
    });
    let result =
        json!({"content": [{"type": "text", "text": format!("fn function_{n}() {{}}\n").repeat(4)}]});
    let bodies = [
        json!({"type": "model_call_started", "command": n, "attempt": 0, "turn": n, "request_hash": format!("{n:016x}")}),
        json!({"type": "model_call_finished", "command": n, "attempt": 0, "message": answer}),
        json!({"type": "tool_call_started", "call": call, "attempt": 0, "effect": "side_effect"}),
        json!({"type": "tool_call_finished", "call": call, "result": result}),
    ];
    (n * 4 + 1..).zip(bodies).map(|(seq, body)| record(seq, body)).collect()
}

async fn time(work: impl AsyncFnOnce()) -> Duration {
    let begin = Instant::now();
    work().await;
    begin.elapsed()
}

/// Prints how long something took, and returns the median.
fn print(what: &str, mut took: Vec<Duration>) -> Duration {
    took.sort();
    let [min, median, max] = [0, took.len() / 2, took.len() - 1].map(|n| took[n]);
    println!("{what}: min {min:.1?}, median {median:.1?}, max {max:.1?} (of {})", took.len());
    median
}

/// How busy the machine is, where it says so.
fn load() -> String {
    fs::read_to_string("/proc/loadavg").map_or("unknown".into(), |text| text.trim().to_owned())
}
