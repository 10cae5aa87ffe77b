//! Loads the conversation before a run: folds the earlier runs of its session.
//!
//! A session of n runs would read n² logs if each prompt folded all logs, and write n² messages if each run
//! stored the whole conversation. So only some runs store the conversation with which they start
//! ([`SessionSnapshot`]), and a fold starts at the latest snapshot:
//!
//! - A run stores a snapshot only if none of the [`EVERY`] runs before it does.
//! - A snapshot has the messages since the previous snapshot, its base. If the base's part is not larger than
//!   the new part, the snapshot includes that part too, and builds on the base of the base. So the number of
//!   parts grows as the logarithm of the conversation.
//! - A part with a changed message, for instance after a compaction, is stored again with the parts above it.
//! - The snapshots of a session have at most [`MOST`] times the size of its conversation. A snapshot that would
//!   exceed this waits until the conversation is long enough; meanwhile a fold reads more logs.
//!
//! [`replay`](crate::replay) compares snapshots with the earlier logs. If a snapshot, or a part on which it
//! builds, cannot be read, the earlier logs are folded.

use std::{
    collections::HashSet,
    io::{self, Write},
    sync::Arc,
};

use archon_types::{
    Journal, JournalError, Origin, Record, RecordBody, Redactor, RunId, RunKind, RunStarted, SessionMode,
    SessionSnapshot, SnapshotMessage, SnapshotResult, metadata,
};
use serde::Serialize;

use crate::{
    History, LoopError, Messages, fold,
    resume::{conversation_start, seen_by_fork, seen_results},
    window::Entry,
};

/// Number of logs that are folded before a run stores a snapshot.
const EVERY: usize = 16;
/// Maximum total size of the snapshots of a session, as a multiple of the size of its conversation.
const MOST: u64 = 3;
/// Maximum number of runs of one conversation. A larger number means that the runs continue each other in a
/// circle.
const LONGEST: usize = 100_000;

/// The conversation before a run, folded from the earlier runs of the session.
#[derive(Clone, Debug, Default)]
pub struct EarlierRuns {
    /// The conversation before the run.
    pub history: History,
    /// Number of earlier runs in this conversation, including runs whose messages come from a snapshot.
    pub runs: usize,
    /// Number of earlier runs that were folded from their records.
    pub(crate) folded: usize,
    /// The parts of the snapshot of the oldest folded run, oldest part first.
    parts: Vec<Part>,
    /// The messages of all parts.
    snapshot_entries: Vec<Entry>,
    /// Results of calls that read or wrote files, including results about files that a later call read or
    /// wrote.
    seen: Vec<SnapshotResult>,
    message_bytes: u64,
    snapshot_bytes: u64,
}

/// The part of the conversation that the snapshot of one run stores.
#[derive(Clone, Debug)]
struct Part {
    run: RunId,
    /// Number of messages from the start of the conversation to the end of this part.
    messages: usize,
    /// Number of results about files from the start of the conversation to the end of this part.
    seen: usize,
    bytes: u64,
}

/// Computes the conversation before a run with this `origin` from the logs of the earlier runs. Reads back to the
/// latest run with a snapshot, or else to the first run.
///
/// # Errors
/// One of these logs cannot be read.
pub async fn fold_chain(journal: &dyn Journal, origin: &Origin) -> Result<EarlierRuns, LoopError> {
    walk(journal, origin, true).await
}

/// Computes the same as [`fold_chain`], but reads the logs of all earlier runs and no snapshot.
///
/// # Errors
/// See [`fold_chain`].
pub async fn fold_whole_chain(journal: &dyn Journal, origin: &Origin) -> Result<EarlierRuns, LoopError> {
    walk(journal, origin, false).await
}

/// Returns the conversation before the run with this log: from its snapshot, or else by [`fold_chain`].
///
/// # Errors
/// See [`fold_chain`]; or the log does not belong to a run of a conversation.
pub async fn fold_before(
    journal: &dyn Journal,
    run: &RunId,
    records: &[Arc<Record>],
) -> Result<EarlierRuns, LoopError> {
    match load_snapshot(journal, run, records).await {
        Some(chain) => Ok(chain),
        None => fold_chain(journal, &conversation_start(run, records)?.origin).await,
    }
}

/// Returns the conversation after a run, to show it.
///
/// # Errors
/// The run, or a run that it continues, cannot be read.
pub async fn conversation(journal: &dyn Journal, run: &RunId) -> Result<Messages, LoopError> {
    let records = journal.read(run).await?;
    let history = fold_before(journal, run, &records).await?.history;
    if matches!(conversation_start(run, &records)?.kind, RunKind::Plan | RunKind::Team) {
        return Ok(history.after(&records).messages().clone());
    }
    let machine = fold(run, &records, history)?;
    match machine.ended() {
        // Includes the note about an interruption that the next run would read.
        Some(_) => Ok(machine.into_history().messages().clone()),
        None => Ok(machine.messages().clone()),
    }
}

/// Returns the mode of a session after a run.
///
/// # Errors
/// The run, or a run that it continues, cannot be read.
pub async fn session_mode(journal: &dyn Journal, run: &RunId) -> Result<SessionMode, LoopError> {
    let mut log = journal.salvage(run).await?.records;
    for _ in 0..LONGEST {
        let changed = |record: &Arc<Record>| match &record.body {
            RecordBody::ModeChanged { mode, .. } => Some(*mode),
            _ => None,
        };
        let snapshot = || snapshot_in(&log).map(|snapshot| snapshot.mode);
        if let Some(mode) = log.iter().rev().find_map(changed).or_else(snapshot) {
            return Ok(mode);
        }
        match RunStarted::of(&log).map(|started| started.origin.clone()) {
            Some(Origin::Continues { run, records, .. }) => {
                log = journal.salvage(&run).await?.first(records)?;
            }
            _ => return Ok(SessionMode::default()),
        }
    }
    Err(in_a_circle(run))
}

async fn walk(journal: &dyn Journal, origin: &Origin, use_snapshots: bool) -> Result<EarlierRuns, LoopError> {
    let (mut chain, mut logs) = (EarlierRuns::default(), Vec::new());
    let mut next = origin.clone();
    while let Origin::Continues { run, records, .. } = next {
        // Damage after the continued part does not matter.
        let log = journal.salvage(&run).await?.first(records)?;
        let loaded = if use_snapshots { load_snapshot(journal, &run, &log).await } else { None };
        next = match &loaded {
            Some(_) => Origin::Prompt,
            None => conversation_start(&run, &log)?.origin.clone(),
        };
        logs.push((run, log));
        chain = loaded.unwrap_or(chain);
        if logs.len() > LONGEST {
            return Err(in_a_circle(&logs[0].0));
        }
    }
    for (run, log) in logs.iter().rev() {
        chain.push(run, log)?;
    }
    Ok(chain)
}

fn in_a_circle(run: &RunId) -> LoopError {
    let problem = "its runs continue each other in a circle".into();
    LoopError::Journal(JournalError::Corrupt { run: run.clone(), record: 0, problem })
}

/// Returns the conversation in a run's snapshot, if there is one and all parts can be read.
async fn load_snapshot(journal: &dyn Journal, run: &RunId, records: &[Arc<Record>]) -> Option<EarlierRuns> {
    let snapshot = snapshot_in(records)?;
    EarlierRuns::from_snapshot(journal, run, snapshot)
        .await
        .inspect_err(|problem| tracing::debug!("the snapshot of run {run} is not used: {problem}"))
        .ok()
}

fn snapshot_in(records: &[Arc<Record>]) -> Option<&SessionSnapshot> {
    records.iter().find_map(|record| match &record.body {
        RecordBody::SessionSnapshot(snapshot) => Some(&**snapshot),
        _ => None,
    })
}

impl EarlierRuns {
    /// Loads the conversation of the snapshot in the log of `run`, with all parts on which it builds.
    ///
    /// # Errors
    /// A run on which the snapshot builds cannot be read, or has no snapshot.
    pub(crate) async fn from_snapshot(
        journal: &dyn Journal,
        run: &RunId,
        snapshot: &SessionSnapshot,
    ) -> Result<Self, LoopError> {
        let mut parts = vec![(run.clone(), snapshot.clone())];
        while let Some(base) = parts.last().and_then(|(_, part)| part.base.clone()) {
            let log = journal.salvage(&base).await?;
            let part = match (snapshot_in(&log.records), log.damage) {
                (Some(part), _) => part.clone(),
                (None, Some(damage)) => return Err(damage.into()),
                (None, None) => return Err(LoopError::Journal(JournalError::UnknownRun { run: base })),
            };
            parts.push((base, part));
            if parts.len() > LONGEST {
                return Err(in_a_circle(run));
            }
        }
        let mut chain = Self {
            runs: snapshot.runs as usize,
            message_bytes: snapshot.message_bytes,
            snapshot_bytes: snapshot.snapshot_bytes,
            ..Self::default()
        };
        for (run, part) in parts.into_iter().rev() {
            chain.snapshot_entries.extend(part.messages.into_iter().map(Entry::from));
            chain.seen.extend(part.seen);
            let (messages, seen) = (chain.snapshot_entries.len(), chain.seen.len());
            chain.parts.push(Part { run, messages, seen, bytes: part.bytes });
        }
        chain.history = History {
            messages: Arc::new(chain.snapshot_entries.iter().map(|entry| entry.message.clone()).collect()),
            entries: chain.snapshot_entries.clone(),
            counted_by: snapshot.tokenizer,
            status: snapshot.context_level,
            spent: snapshot.spent,
            trusted: snapshot.trusted_rules.clone(),
            workspace: snapshot.workspace.clone(),
            mode: snapshot.mode,
            seen: latest(&chain.seen),
        };
        Ok(chain)
    }

    /// Folds the next run of the conversation.
    fn push(&mut self, run: &RunId, log: &[Arc<Record>]) -> Result<(), LoopError> {
        let history = std::mem::take(&mut self.history);
        let before = history.entries.len();
        self.history = match conversation_start(run, log)?.kind {
            RunKind::Plan | RunKind::Team => {
                let history = history.after(log);
                self.message_bytes += sum(history.entries.iter().skip(before).map(SnapshotMessage::from));
                history
            }
            _ => {
                let machine = fold(run, log, history)?;
                self.message_bytes += sum(machine.window().whole().skip(before));
                machine.into_history()
            }
        };
        // A fork that was forked again has the active skills of the run that it continues.
        let by_fork = seen_by_fork(run, log, &self.seen);
        self.seen.extend(by_fork);
        self.seen.extend(seen_results(run, log));
        self.history.seen = latest(&self.seen);
        self.runs += 1;
        self.folded += 1;
        Ok(())
    }

    /// Returns the snapshot that the next run should store. `None` if no snapshot is due, or if `redactor`
    /// finds a secret in the snapshot that earlier redactors did not know: this secret must not be stored
    /// again.
    pub(crate) fn due(&self, redactor: &Redactor) -> Option<SessionSnapshot> {
        if self.folded < EVERY {
            return None;
        }
        let entries = &self.history.entries;
        let same = entries.iter().zip(&self.snapshot_entries).take_while(|(now, then)| now.is(then)).count();
        let mut parts = &self.parts[..self.parts.partition_point(|part| part.messages <= same)];
        let (messages, seen) = self.above(parts);
        let mut bytes = sum(&messages) + sum(&seen);
        let is_small_enough = |bytes: u64| self.snapshot_bytes + bytes <= MOST * self.message_bytes;
        while let Some((last, below)) = parts.split_last()
            && last.bytes <= bytes
            && is_small_enough(bytes + last.bytes)
        {
            (parts, bytes) = (below, bytes + last.bytes);
        }
        if !is_small_enough(bytes) {
            return None;
        }
        let mut snapshot = self.snapshot_on(parts);
        (snapshot.bytes, snapshot.message_bytes, snapshot.snapshot_bytes) =
            (bytes, self.message_bytes, self.snapshot_bytes + bytes);
        (!has_secret(&snapshot, redactor)).then_some(snapshot)
    }

    /// Returns the snapshot record of the whole conversation.
    pub(crate) fn record(&self) -> RecordBody {
        RecordBody::SessionSnapshot(Box::new(self.snapshot_on(&[])))
    }

    /// Returns the snapshot that builds on these parts.
    fn snapshot_on(&self, parts: &[Part]) -> SessionSnapshot {
        let mut snapshot = SessionSnapshot::default();
        (snapshot.messages, snapshot.seen) = self.above(parts);
        snapshot.base = parts.last().map(|part| part.run.clone());
        snapshot.runs = u32::try_from(self.runs).unwrap_or(u32::MAX);
        (snapshot.tokenizer, snapshot.context_level) = (self.history.counted_by, self.history.status);
        snapshot.spent = self.history.spent;
        snapshot.trusted_rules.clone_from(&self.history.trusted);
        snapshot.workspace.clone_from(&self.history.workspace);
        snapshot.mode = self.history.mode;
        snapshot
    }

    /// Returns the messages, and the latest results about files, that come after these parts in the
    /// conversation.
    fn above(&self, parts: &[Part]) -> (Vec<SnapshotMessage>, Vec<SnapshotResult>) {
        let (messages, seen) = parts.last().map_or((0, 0), |part| (part.messages, part.seen));
        let messages = self.history.entries[messages..].iter().map(SnapshotMessage::from).collect();
        (messages, latest(&self.seen[seen..]))
    }
}

/// Returns the latest result of each tool about each file and each command.
fn latest(seen: &[SnapshotResult]) -> Vec<SnapshotResult> {
    let mut known = HashSet::new();
    let is_latest = |result: &&SnapshotResult| {
        let seen = result.result.metadata.get(metadata::SEEN);
        let about = seen.and_then(|seen| seen.get("file").or_else(|| seen.get("command"))).or(seen);
        known.insert((result.tool.clone(), about.map(ToString::to_string)))
    };
    let mut latest: Vec<_> = seen.iter().rev().filter(is_latest).cloned().collect();
    latest.reverse();
    latest
}

fn has_secret(snapshot: &SessionSnapshot, redactor: &Redactor) -> bool {
    let Ok(json) = serde_json::to_value(snapshot) else { return true };
    let mut clean = json.clone();
    redactor.clean_json(&mut clean);
    clean != json
}

/// Returns the size of values as JSON, in bytes.
fn sum<T: Serialize>(values: impl IntoIterator<Item = T>) -> u64 {
    let mut bytes = Bytes(0);
    for value in values {
        // Writing to the counter cannot fail, and a value that cannot be serialized is in no log.
        let _ = serde_json::to_writer(&mut bytes, &value);
    }
    bytes.0
}

struct Bytes(u64);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
