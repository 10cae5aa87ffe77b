//! Fork: starts a new run from an earlier point of a run.
//!
//! A fork is a run of the same session that continues the first part of another run, cut at the end of a
//! turn. The fork keeps the model, the tools, the limits and the spending so far. Calls without a result
//! and a person's consents are not copied. Effects of tools remain: files are not restored.

use std::sync::Arc;

use archon_types::{
    Context, ContinuationKind, Fork, Journal, LOG_FORMAT, LoopId, OpenMode, Origin, Record, RecordBody,
    RunId, Salvaged,
};

use crate::{History, LoopError, Machine, RunLog, fold_before, fold_with};

/// Starts the run that `context` names from the state of `run` after `turns` of its turns. Default: from
/// the end of `run`. After 0 turns, only the prompt is kept.
///
/// Only the first record of the new run is written: resume the new run, or continue it with a prompt. A
/// run with a damaged log can be forked at a turn before the damage if `turns` is given; calls whose
/// records are lost may have had effects.
///
/// # Errors
/// The run has fewer turns or they are damaged, the run or a run that it continues cannot be read, or the
/// new run cannot be created.
pub async fn fork(
    journal: &dyn Journal,
    run: &RunId,
    turns: Option<u32>,
    context: &Context,
) -> Result<Fork, LoopError> {
    let Salvaged { records: log, mut damage, .. } = journal.salvage(run).await?;
    if let Some(damage) = damage.take_if(|_| turns.is_none() || log.is_empty()) {
        return Err(damage.into());
    }
    let Some(RecordBody::RunStarted(parent)) = log.first().map(|r| &r.body) else {
        return Err(LoopError::NotARun { run: run.clone() });
    };
    let history = fold_before(journal, run, &log).await?.history;
    let (records, turns) = match (cut(run, &log, history.clone(), turns), damage) {
        (Err(LoopError::NoSuchTurn { .. }), Some(damage)) => return Err(damage.into()),
        (cut, _) => cut?,
    };
    let prefix = fold_with(run, &log[..records], history, Default::default())?;
    let wants_answer = prefix.into_history().wants_answer();
    let records = records as u64;
    let tag = context.clock.now().to_string();
    let continuation = ContinuationKind::Branch { tag };
    let mut started = (**parent).clone();
    started.format = LOG_FORMAT;
    started.run = context.run.clone();
    started.loop_id = branch_id(&parent.loop_id, &context.run);
    started.origin = Origin::Continues { run: run.clone(), records, continuation };
    let open = journal.open(&context.run, OpenMode::Create).await?;
    let mut new = RunLog::new(open.writer, 0, context.clone());
    new.append(vec![RecordBody::RunStarted(Box::new(started))]).await?;
    let session = parent.session.clone();
    Ok(Fork { run: context.run.clone(), session, of: run.clone(), records, turns, wants_answer })
}

/// Returns the maximum number of turns for [`fork`]: the number of all turns, or of those before the damage
/// of the log.
///
/// # Errors
/// No record of the run can be read.
pub async fn whole_turns(journal: &dyn Journal, run: &RunId) -> Result<u32, LoopError> {
    let Salvaged { records, damage, .. } = journal.salvage(run).await?;
    if let (true, Some(damage)) = (records.is_empty(), damage) {
        return Err(damage.into());
    }
    let history = fold_before(journal, run, &records).await?.history;
    Ok(fold_with(run, &records, history, Default::default())?.turns())
}

/// Returns the number of records up to the end of `turns` turns, and the number of these turns.
fn cut(
    run: &RunId,
    log: &[Arc<Record>],
    history: History,
    turns: Option<u32>,
) -> Result<(usize, u32), LoopError> {
    let mut machine = fold_with(run, &log[..1], history, Default::default())?;
    let asked = |record: &Record| matches!(record.body, RecordBody::ModelCallStarted { .. });
    let before_first = log.iter().position(|r| asked(r)).unwrap_or(log.len());
    if turns == Some(0) {
        return Ok((before_first, 0));
    }
    let mut rest = before_first;
    let mut over = 0;
    for (at, record) in log.iter().enumerate().skip(1) {
        machine.apply(record);
        if machine.turns() > over && machine.is_at_rest() {
            (rest, over) = (at + 1, machine.turns());
            if turns == Some(over) {
                return Ok((rest, over));
            }
        }
    }
    match turns {
        // The last turn is still open: its results are kept and its open calls are closed.
        Some(n) if n == machine.turns() => Ok((log.len(), n)),
        Some(asked) => Err(LoopError::NoSuchTurn { run: run.clone(), asked, turns: machine.turns() }),
        None if machine.calls().is_empty() => Ok((rest, over)),
        None => Ok((log.len(), machine.turns())),
    }
}

/// Returns the loop id of `run`, a fork of a run or a branch of a session: `parent`, followed by the last
/// characters of the id of `run`, so that several forks of one run have different loop ids.
pub(crate) fn branch_id(parent: &LoopId, run: &RunId) -> LoopId {
    let id = run.as_str();
    let tail = id.char_indices().rev().nth(TAIL - 1).map_or(id, |(at, _)| &id[at..]);
    LoopId::new(format!("{parent}.branch.{tail}"))
}

/// Number of last characters of a run id that distinguish runs in loop ids. Run ids start with the time, so
/// their first characters may be equal.
const TAIL: usize = 8;
