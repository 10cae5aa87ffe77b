//! Fork: starts a new run from an earlier point of a run.
//!
//! A fork is a run of the same session that continues the first part of another run, cut between two turns. The
//! records of this part are not copied: the first record of the fork names the other run and the number of records,
//! and a fold or a replay reads them from the log of that run. So the results of the tools come from the log, and no
//! effect before the cut is repeated. Calls without a result and the consents of people are not kept; the spending
//! so far counts. Effects of tools remain: files are not restored.
//!
//! If a fork has a message, it is cut after the last turn that it keeps, and before the messages that followed this
//! turn. The new message takes their place in the log of the fork. If another agent makes the fork, the first record
//! has the configuration of that agent. So a replay checks both kinds of forks like any other run.

use std::sync::Arc;

use archon_types::{
    Context, ContinuationKind, Fork, ForkPlace, Journal, LOG_FORMAT, LoopId, OpenMode, Origin, Record,
    RecordBody, RunId, RunStarted, Salvaged, SessionMode,
};

use crate::{
    EarlierRuns, History, LoopError, Machine, RunLog, fold_before, fold_with, going_back::beginning,
};

/// Returns the maximum number of turns that a fork of the run can keep: all turns or, if the log is damaged, the
/// turns before the damage.
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

/// The point of a run at which a fork leaves it.
pub(crate) struct ForkPoint {
    /// The first record of the forked run.
    pub(crate) forked: RunStarted,
    /// The number of earlier runs in the conversation of the forked run.
    pub(crate) earlier: usize,
    /// The conversation up to the point.
    pub(crate) history: History,
    /// The mode of the session just before the request of the next turn.
    pub(crate) mode: SessionMode,
    run: RunId,
    records: usize,
    turns: u32,
}

impl ForkPoint {
    /// Finds the point. With `leaves_messages`, the point is before the messages that the next turn answers. A run
    /// with a damaged log can be forked at a turn before the damage; calls whose records are lost may have had
    /// effects.
    ///
    /// # Errors
    /// The run has no such place or its records are damaged, or the run or a run that it continues cannot be read.
    pub(crate) async fn find(
        journal: &dyn Journal,
        run: &RunId,
        at: ForkPlace,
        leaves_messages: bool,
    ) -> Result<Self, LoopError> {
        let Salvaged { records: log, mut damage, .. } = journal.salvage(run).await?;
        if let Some(damage) = damage.take_if(|_| at == ForkPlace::End || log.is_empty()) {
            return Err(damage.into());
        }
        let Some(RecordBody::RunStarted(forked)) = log.first().map(|record| &record.body) else {
            return Err(LoopError::NotARun { run: run.clone() });
        };
        let EarlierRuns { history, runs: earlier, .. } = fold_before(journal, run, &log).await?;
        let turns = Turns::of(run, &log, history.clone())?;
        let kept = match (turns.count_at(at), damage) {
            (Some(kept), _) => kept,
            (None, Some(damage)) => return Err(damage.into()),
            (None, None) => {
                let (turns, records) = (turns.count, log.len() as u64);
                return Err(LoopError::NoForkPlace { run: run.clone(), place: at, turns, records });
            }
        };
        let end = turns.end(kept);
        let records = if leaves_messages { turns.before_messages(kept) } else { end };
        let fold = |records: usize| fold_with(run, &log[..records], history.clone(), Default::default());
        let prefix = fold(records)?;
        let mode = if records == end { prefix.mode() } else { fold(end)?.mode() };
        Ok(Self {
            forked: (**forked).clone(),
            earlier,
            history: prefix.into_history(),
            mode,
            run: run.clone(),
            records,
            turns: kept,
        })
    }

    /// Returns the origin of a fork that begins now.
    pub(crate) fn origin(&self, context: &Context) -> Origin {
        let continuation = ContinuationKind::Branch { tag: context.clock.now().to_string() };
        Origin::Continues { run: self.run.clone(), records: self.records as u64, continuation }
    }

    /// Returns the first record of a fork with the configuration of the run.
    pub(crate) fn started(&self, context: &Context) -> RunStarted {
        let mut started = self.forked.clone();
        started.format = LOG_FORMAT;
        started.run = context.run.clone();
        started.loop_id = branch_id(&self.forked.loop_id, &context.run);
        started.origin = self.origin(context);
        // A fork of a branch is no branch of the parallel loop, which is resumed without it.
        started.parallel_run = None;
        started
    }

    /// Writes the log of the fork: its first record, and the records of its message.
    pub(crate) async fn write(
        self,
        journal: &dyn Journal,
        started: RunStarted,
        input: Vec<RecordBody>,
        context: &Context,
    ) -> Result<Fork, LoopError> {
        let wants_answer = !input.is_empty() || self.history.wants_answer();
        let session = started.session.clone();
        let mut bodies = vec![RecordBody::RunStarted(Box::new(started))];
        bodies.extend(input);
        let open = journal.open(&context.run, OpenMode::Create).await?;
        let mut log = RunLog::new(open.writer, 0, context.clone());
        log.append(bodies).await?;
        let (run, of, records) = (context.run.clone(), self.run, self.records as u64);
        Ok(Fork { run, session, of, records, turns: self.turns, wants_answer })
    }
}

/// The turns of a log, and the records between them.
struct Turns<'a> {
    log: &'a [Arc<Record>],
    /// `ends[n]` is the number of records up to the end of the first `n` turns. `ends[0]` is 1, for the first record
    /// of the run.
    ends: Vec<usize>,
    /// The number of turns, including a turn that is still open.
    count: u32,
    /// True if calls of the last turn have no result.
    has_open_calls: bool,
}

impl<'a> Turns<'a> {
    fn of(run: &RunId, log: &'a [Arc<Record>], history: History) -> Result<Self, LoopError> {
        let mut machine = fold_with(run, &log[..1], history, Default::default())?;
        let mut ends = vec![1];
        for (at, record) in log.iter().enumerate().skip(1) {
            machine.apply(record);
            while machine.is_at_rest() && ends.len() <= machine.turns() as usize {
                ends.push(at + 1);
            }
        }
        let has_open_calls = !machine.calls().is_empty();
        Ok(Self { log, ends, count: machine.turns(), has_open_calls })
    }

    /// Returns the number of turns that a fork at a place keeps; `None` if the run has no such place.
    fn count_at(&self, at: ForkPlace) -> Option<u32> {
        match at {
            ForkPlace::Turns(turns) => (turns <= self.count).then_some(turns),
            ForkPlace::Record(seq) => self.before_record(usize::try_from(seq).ok()?),
            _ if self.has_open_calls => Some(self.count),
            _ => Some(number(self.ends.len() - 1)),
        }
    }

    /// Returns the number of turns before the turn with the record at index `at`. If a tool of this turn had started
    /// by then, the turn is counted too. `None` if there is no such record.
    fn before_record(&self, at: usize) -> Option<u32> {
        self.log.get(at)?;
        let mut turn = self.ends.partition_point(|end| *end <= at).saturating_sub(1);
        let is_request = |record: &Arc<Record>| matches!(record.body, RecordBody::ModelCallStarted { .. });
        if turn > 0 && !self.log[self.ends[turn]..].iter().any(is_request) {
            // The record is behind the last turn.
            turn -= 1;
        }
        let mut inside = self.log.iter().take(at + 1).skip(self.ends[turn]);
        let has_effects = inside.any(|record| matches!(record.body, RecordBody::ToolCallStarted { .. }));
        Some(number(turn + usize::from(has_effects)))
    }

    /// Returns the number of records before the request that follows the first `turns` turns, or before the record
    /// that ends the run there.
    fn end(&self, turns: u32) -> usize {
        // Without an end, the last turn is still open: its results are kept, and its open calls are closed.
        let Some(end) = self.ends.get(turns as usize) else { return self.log.len() };
        let is_over = |record: &Arc<Record>| {
            matches!(
                record.body,
                RecordBody::ModelCallStarted { .. }
                    | RecordBody::LimitReached(_)
                    | RecordBody::CancelRequested { .. }
                    | RecordBody::StoppedByHook { .. }
                    | RecordBody::RunFinished(_)
            )
        };
        let between = self.log.iter().skip(*end).position(is_over);
        between.map_or(self.log.len(), |between| end + between)
    }

    /// Returns the number of records before the messages that came between the first `turns` turns and the next
    /// request. Without such messages, the number is the same as [`end`](Self::end).
    fn before_messages(&self, turns: u32) -> usize {
        let end = self.end(turns);
        let begin = self.ends.get(turns as usize).copied().unwrap_or(end);
        let is_message = |at: &usize| matches!(self.log[*at].body, RecordBody::MessageAdded { .. });
        (begin..end).find(is_message).map_or(end, |at| beginning(self.log, at).max(begin))
    }
}

fn number(turns: usize) -> u32 {
    u32::try_from(turns).unwrap_or(u32::MAX)
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
