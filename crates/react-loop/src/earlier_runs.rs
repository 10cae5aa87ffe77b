//! The conversation before a run: the fold of the runs that it goes back to.
//!
//! If each prompt folded all logs of its session, a session of n runs would read n² logs; if each run repeated the
//! conversation, it would write n². So a few runs repeat in their log what they begin with ([`Carried`]), and a fold goes
//! back to the latest of them:
//!
//! - A run carries only where the [`EVERY`] runs before it do not.
//! - It carries what is new since the run that carried before, its base. Where the part of the base is no larger than
//!   what is new, it carries that part too, and builds on the base's base. So each part is larger than all above it, and
//!   their number grows as the logarithm of the conversation.
//! - A part below of which a message has changed, by a compaction for instance, is carried anew with what is above it.
//! - A session carries at most [`MOST`] times what was said in it. Where a part would be more, it is put off until enough
//!   was said; meanwhile a fold reads more logs. This bounds what the logs of a session with a full window grow by.
//!
//! What is carried follows from the logs before it, and [`replay`](crate::replay) compares both. Where it cannot be used (it
//! is not there, or what it builds on cannot be read) the logs before are folded.

use std::{
    collections::HashSet,
    io::{self, Write},
    sync::Arc,
};

use archon_types::{
    Carried, CarriedMessage, CarriedResult, Journal, JournalError, Origin, Record, RecordBody, Redactor,
    RunId, RunKind, metadata,
};
use serde::Serialize;

use crate::{
    History, LoopError, fold,
    resume::{seen_files, spoken},
    window::Entry,
};

/// Logs that are folded before one carries what they left.
const EVERY: usize = 16;
/// How often all that is said in a session may be repeated in its logs.
const MOST: u64 = 3;
/// More runs than a person ever puts into one conversation.
const LONGEST: usize = 100_000;

/// What the runs before a run left.
#[derive(Clone, Debug, Default)]
pub struct EarlierRuns {
    /// The conversation.
    pub history: History,
    /// How many runs there were.
    pub runs: usize,
    /// How many of them were folded from their records.
    pub(crate) folded: usize,
    /// What was carried to the oldest of these, the part of the oldest run first.
    parts: Vec<Part>,
    /// The messages of all parts.
    carried: Vec<Entry>,
    /// What calls told of files, with what later calls told of the same files.
    seen: Vec<CarriedResult>,
    bytes_said: u64,
    bytes_carried: u64,
}

/// What one run carries.
#[derive(Clone, Debug)]
struct Part {
    run: RunId,
    /// The messages until its end, from the first of the conversation.
    messages: usize,
    /// As `messages`, of what calls told.
    seen: usize,
    bytes: u64,
}

/// Folds the runs that a run goes back to. Reads the logs since one that carries the conversation, and those that it
/// builds on.
///
/// # Errors
/// A run of the chain cannot be read.
pub async fn fold_chain(journal: &dyn Journal, origin: &Origin) -> Result<EarlierRuns, LoopError> {
    walk(journal, origin, true).await
}

/// As [`fold_chain`], from the logs of all runs, whatever they carry.
///
/// # Errors
/// As [`fold_chain`].
pub async fn fold_whole_chain(journal: &dyn Journal, origin: &Origin) -> Result<EarlierRuns, LoopError> {
    walk(journal, origin, false).await
}

/// What the runs before a run with the log `records` left: as the log carries it, or as [`fold_chain`] folds it.
///
/// # Errors
/// As [`fold_chain`]; or the log is of no loop.
pub async fn fold_before(
    journal: &dyn Journal,
    run: &RunId,
    records: &[Arc<Record>],
) -> Result<EarlierRuns, LoopError> {
    match carried_to(journal, run, records).await {
        Some(chain) => Ok(chain),
        None => fold_chain(journal, &spoken(run, records)?.origin).await,
    }
}

async fn walk(journal: &dyn Journal, origin: &Origin, use_carried: bool) -> Result<EarlierRuns, LoopError> {
    let (mut chain, mut logs) = (EarlierRuns::default(), Vec::new());
    let mut next = origin.clone();
    while let Origin::Continues { run, records, .. } = next {
        // Damage behind what is continued does not matter.
        let log = journal.salvage(&run).await?.first(records)?;
        let carried = if use_carried { carried_to(journal, &run, &log).await } else { None };
        next = match &carried {
            Some(_) => Origin::Prompt,
            None => spoken(&run, &log)?.origin.clone(),
        };
        logs.push((run, log));
        if let Some(carried) = carried {
            chain = carried;
        }
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

/// What was carried to a run, if anything was and all that it builds on can be read.
async fn carried_to(journal: &dyn Journal, run: &RunId, records: &[Arc<Record>]) -> Option<EarlierRuns> {
    let carried = carried_in(records)?;
    EarlierRuns::carried(journal, run, carried)
        .await
        .inspect_err(|problem| tracing::debug!("what run {run} carries is not used: {problem}"))
        .ok()
}

fn carried_in(records: &[Arc<Record>]) -> Option<&Carried> {
    records.iter().find_map(|record| match &record.body {
        RecordBody::Carried(carried) => Some(&**carried),
        _ => None,
    })
}

impl EarlierRuns {
    /// What `carried` in the log of `run` says, with all that it builds on.
    ///
    /// # Errors
    /// A run that it builds on cannot be read, or carries nothing.
    pub(crate) async fn carried(
        journal: &dyn Journal,
        run: &RunId,
        carried: &Carried,
    ) -> Result<Self, LoopError> {
        let mut parts = vec![(run.clone(), carried.clone())];
        while let Some(base) = parts.last().and_then(|(_, part)| part.base.clone()) {
            let log = journal.salvage(&base).await?;
            let part = match (carried_in(&log.records), log.damage) {
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
            runs: carried.runs as usize,
            bytes_said: carried.bytes_said,
            bytes_carried: carried.bytes_carried,
            ..Self::default()
        };
        for (run, part) in parts.into_iter().rev() {
            chain.carried.extend(part.messages.into_iter().map(Entry::from));
            chain.seen.extend(part.seen);
            let (messages, seen) = (chain.carried.len(), chain.seen.len());
            chain.parts.push(Part { run, messages, seen, bytes: part.bytes });
        }
        chain.history = History {
            messages: Arc::new(chain.carried.iter().map(|entry| entry.message.clone()).collect()),
            entries: chain.carried.clone(),
            counted_by: carried.counted_by,
            spent: carried.spent,
            trusted: carried.trusted.clone(),
            workspace: carried.workspace.clone(),
            seen: latest(&chain.seen),
        };
        Ok(chain)
    }

    /// Folds the next run of the conversation.
    fn push(&mut self, run: &RunId, log: &[Arc<Record>]) -> Result<(), LoopError> {
        let history = std::mem::take(&mut self.history);
        let before = history.entries.len();
        self.history = match spoken(run, log)?.kind {
            RunKind::Plan | RunKind::Team => {
                let history = history.after(log);
                self.bytes_said += sum(history.entries.iter().skip(before).map(CarriedMessage::from));
                history
            }
            _ => {
                let machine = fold(run, log, history)?;
                self.bytes_said += sum(machine.window().whole().skip(before));
                machine.into_history()
            }
        };
        self.seen.extend(seen_files(log));
        self.history.seen = latest(&self.seen);
        self.runs += 1;
        self.folded += 1;
        Ok(())
    }

    /// What the log of the next run is to carry, if that is due. Nothing in which `redactor` finds a secret, which was
    /// none when it was said, is said again.
    pub(crate) fn due(&self, redactor: &Redactor) -> Option<Carried> {
        if self.folded < EVERY {
            return None;
        }
        let entries = &self.history.entries;
        let same = entries.iter().zip(&self.carried).take_while(|(now, then)| now.is(then)).count();
        let mut parts = &self.parts[..self.parts.partition_point(|part| part.messages <= same)];
        let (messages, seen) = self.above(parts);
        let mut bytes = sum(&messages) + sum(&seen);
        let may_carry = |bytes: u64| self.bytes_carried + bytes <= MOST * self.bytes_said;
        while let Some((last, below)) = parts.split_last()
            && last.bytes <= bytes
            && may_carry(bytes + last.bytes)
        {
            (parts, bytes) = (below, bytes + last.bytes);
        }
        if !may_carry(bytes) {
            return None;
        }
        let mut carried = self.to_carry(parts);
        (carried.bytes, carried.bytes_said, carried.bytes_carried) =
            (bytes, self.bytes_said, self.bytes_carried + bytes);
        (!has_secret(&carried, redactor)).then_some(carried)
    }

    /// The record of all that was left.
    pub(crate) fn record(&self) -> RecordBody {
        RecordBody::Carried(Box::new(self.to_carry(&[])))
    }

    /// What is to be carried above these parts.
    fn to_carry(&self, parts: &[Part]) -> Carried {
        let mut carried = Carried::default();
        (carried.messages, carried.seen) = self.above(parts);
        carried.base = parts.last().map(|part| part.run.clone());
        carried.runs = u32::try_from(self.runs).unwrap_or(u32::MAX);
        (carried.counted_by, carried.spent) = (self.history.counted_by, self.history.spent);
        carried.trusted.clone_from(&self.history.trusted);
        carried.workspace.clone_from(&self.history.workspace);
        carried
    }

    /// All that is not in these parts.
    fn above(&self, parts: &[Part]) -> (Vec<CarriedMessage>, Vec<CarriedResult>) {
        let (messages, seen) = parts.last().map_or((0, 0), |part| (part.messages, part.seen));
        let messages = self.history.entries[messages..].iter().map(CarriedMessage::from).collect();
        (messages, latest(&self.seen[seen..]))
    }
}

/// What calls told of files, of each file what each tool told last.
fn latest(seen: &[CarriedResult]) -> Vec<CarriedResult> {
    let mut known = HashSet::new();
    let is_latest = |told: &&CarriedResult| {
        let seen = told.result.metadata.get(metadata::SEEN);
        let file = seen.and_then(|seen| seen.get("file")).or(seen);
        known.insert((told.tool.clone(), file.map(ToString::to_string)))
    };
    let mut latest: Vec<_> = seen.iter().rev().filter(is_latest).cloned().collect();
    latest.reverse();
    latest
}

fn has_secret(carried: &Carried, redactor: &Redactor) -> bool {
    let Ok(said) = serde_json::to_value(carried) else { return true };
    let mut clean = said.clone();
    redactor.clean_json(&mut clean);
    clean != said
}

/// Bytes of values as JSON.
fn sum<T: Serialize>(values: impl IntoIterator<Item = T>) -> u64 {
    let mut bytes = Bytes(0);
    for value in values {
        // Counting does not fail, and what cannot be written is in no log.
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
