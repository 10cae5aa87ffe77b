//! A run of 100,000 records, made of the records of a short run that repeat one of its turns.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, bail};
use archon::{
    Journal, RunId, SessionId, SystemClock,
    store::JsonlJournal,
    types::{Clock, Durability, OpenMode, Record, RecordBody, Timestamp},
};

/// The number of records, at least.
const RECORDS: usize = 100_000;

/// The time between two records in milliseconds.
const STEP: u64 = 10;

/// Writes the run into the journal, and returns its id. `short` is a run of three turns, of which the first is repeated.
pub(crate) async fn write(journal: &JsonlJournal, short: &RunId) -> Result<RunId> {
    let short = journal.read(short).await?;
    let starts: Vec<(usize, u64)> = short.iter().enumerate().filter_map(command_at).collect();
    let &[(first, from), (second, to), _] = &starts[..] else {
        bail!("the short run has {} turns and not 3", starts.len());
    };
    let run = RunId::new("run_long");
    let turns = u32::try_from(RECORDS.div_ceil(second - first))?;
    let most = RECORDS + 2 * short.len();
    let lasts = STEP * most as u64;
    // Over, so that it is not the run that was last written.
    let begun = Timestamp::from_millis(SystemClock.now().as_millis().saturating_sub(2 * lasts));
    let mut log = Vec::with_capacity(most);
    let mut add = |records: &[Arc<Record>], turn: u32| {
        for record in records {
            let seq = log.len() as u64;
            let mut body = record.body.clone();
            put_into(&mut body, &run, turn, u64::from(turn) * (to - from));
            log.push(Arc::new(Record { seq, at: begun + Duration::from_millis(STEP * seq), body }));
        }
    };
    add(&short[..first], 0);
    for turn in 0..turns {
        add(&short[first..second], turn);
    }
    add(&short[second..], turns - 1);
    let mut opened = journal.open(&run, OpenMode::Create).await?;
    for part in log.chunks(1_000) {
        opened.writer.append(part, Durability::Buffered).await?;
    }
    Ok(run)
}

/// Returns the place of a record that begins a turn, and the number of its command.
fn command_at((place, record): (usize, &Arc<Record>)) -> Option<(usize, u64)> {
    match &record.body {
        RecordBody::ModelCallStarted { command, .. } => Some((place, command.0)),
        _ => None,
    }
}

/// Makes a record one of the run `run`, so many turns and commands later.
fn put_into(body: &mut RecordBody, run: &RunId, turns: u32, commands: u64) {
    match body {
        RecordBody::RunStarted(started) => {
            started.run = run.clone();
            started.session = SessionId::new("long");
        }
        RecordBody::ModelCallStarted { command, turn, .. } => {
            command.0 += commands;
            *turn += turns;
        }
        RecordBody::ModelCallFinished { command, .. } => command.0 += commands,
        RecordBody::ToolCallStarted { call, .. } | RecordBody::ToolCallFinished { call, .. } => {
            call.command.0 += commands;
        }
        RecordBody::RunFinished(outcome) => {
            outcome.run = run.clone();
            outcome.turns += turns;
        }
        _ => {}
    }
}
