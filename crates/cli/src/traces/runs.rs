//! The runs among the places that have a text: what they are about, which runs need them, and how they are erased.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use archon::{
    store::JsonlJournal,
    types::{Journal as _, JournalError, Origin, RecordBody, RunFilter, RunHead, RunId},
};

use super::unless_absent;
use crate::{app::App, failure::Failure};

/// The runs of the data folder, each with its head and its origin.
pub(super) struct AllRuns {
    journal: JsonlJournal,
    by_id: BTreeMap<RunId, (RunHead, Option<Origin>)>,
}

impl AllRuns {
    pub(super) async fn read(app: &App) -> Result<Self, Failure> {
        let journal = app.journal();
        let mut by_id = BTreeMap::new();
        for head in journal.list(&RunFilter::all()).await? {
            // The first record is enough; a run whose log cannot be read has no origin.
            let first = journal.read_before(&head.run_id, Some(1), 1).await.ok();
            let origin = first.and_then(|first| match &first.records.first()?.body {
                RecordBody::RunStarted(started) => Some(started.origin.clone()),
                _ => None,
            });
            by_id.insert(head.run_id.clone(), (head, origin));
        }
        Ok(Self { journal, by_id })
    }

    /// Returns the beginning of the prompt of a run.
    pub(super) fn task(&self, run: &RunId) -> &str {
        self.by_id.get(run).map_or("", |(head, _)| head.task.lines().next().unwrap_or_default())
    }

    /// Returns the runs that must be erased before these: those that continue one of them, and those that wait for the
    /// result of one of them.
    pub(super) async fn needing<'a>(
        &self,
        runs: impl Iterator<Item = &'a RunId>,
    ) -> Result<BTreeSet<RunId>, Failure> {
        let mut waiting: Vec<RunId> = runs.cloned().collect();
        let mut seen: BTreeSet<RunId> = waiting.iter().cloned().collect();
        let mut needing = BTreeSet::new();
        while let Some(run) = waiting.pop() {
            let continues = |(_, origin): &(RunHead, Option<Origin>)| matches!(origin, Some(Origin::Continues { run: of, .. }) if *of == run);
            let mut by: Vec<RunId> =
                self.by_id.iter().filter(|(_, of)| continues(of)).map(|(id, _)| id.clone()).collect();
            by.extend(self.caller_that_waits(&run).await?);
            for other in by.into_iter().filter(|other| seen.insert(other.clone())) {
                waiting.push(other.clone());
                needing.insert(other);
            }
        }
        Ok(needing)
    }

    async fn caller_that_waits(&self, run: &RunId) -> Result<Option<RunId>, Failure> {
        let Some((_, Some(Origin::CalledBy { run: caller, call }))) = self.by_id.get(run) else {
            return Ok(None);
        };
        if !self.by_id.contains_key(caller) {
            return Ok(None);
        }
        let records = self.journal.salvage(caller).await?.records;
        let has_ended = records.iter().any(|record| match &record.body {
            RecordBody::ToolCallFinished { call: of, .. } => of == call,
            RecordBody::RunFinished(_) => true,
            _ => false,
        });
        Ok((!has_ended).then(|| caller.clone()))
    }
}

/// Returns true if a log, a large record or a message of the run is there.
pub(super) fn is_there(app: &App, run: &RunId) -> bool {
    let folder = app.data_dir.join("runs");
    ["jsonl", "blobs", "inbox"].iter().any(|end| folder.join(format!("{run}.{end}")).exists())
}

/// Deletes these runs and no other, first those that need others of them. Returns the deleted runs, and the problems.
pub(super) async fn erase(app: &App, runs: impl Iterator<Item = &RunId>) -> (Vec<RunId>, Vec<String>) {
    let journal = app.journal();
    let (mut erased, mut problems) = (Vec::new(), Vec::new());
    let mut waiting: Vec<RunId> = runs.cloned().collect();
    while let Some(run) = waiting.pop() {
        match journal.delete(&run).await {
            Ok(()) => erased.push(run),
            // Of a run without a log there may be large records or messages.
            Err(JournalError::UnknownRun { .. }) => {
                for end in ["blobs", "inbox"] {
                    let left = app.data_dir.join("runs").join(format!("{run}.{end}"));
                    if let Err(e) = fs::remove_dir_all(&left).or_else(unless_absent) {
                        problems.push(format!("{}: {e}", left.display()));
                    }
                }
            }
            Err(JournalError::Needed { by, .. }) if by.iter().any(|other| waiting.contains(other)) => {
                waiting.insert(0, run);
            }
            Err(error) => problems.push(format!("{error}; {}", error.advice())),
        }
    }
    (erased, problems)
}
