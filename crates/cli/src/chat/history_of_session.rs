//! The records of a session that a conversation shows when it is opened.

use std::sync::Arc;

use archon::{
    RunError, Runs,
    types::{
        Interruption, Message, Origin, PromptSource, Record, RecordBody, RunConfig, RunFilter, RunHead,
        RunId, RunKind, RunStarted, SessionId, StartRuns,
    },
};
use archon_terminal::{AttachedFile, Draft};

use crate::{assemble::asks_no_model, failure::Failure, person::Person};

/// The number of shown records after which no earlier run is read.
const ENOUGH: usize = 400;

/// The newest part of a session.
#[derive(Default)]
pub(crate) struct History {
    /// The records of the runs in the order in which they are shown, oldest first.
    pub(crate) records: Vec<(RunId, Arc<Record>)>,
    /// The number of earlier runs that are not shown.
    pub(crate) earlier: usize,
    /// The newest run of the session.
    pub(crate) newest: Option<RunHead>,
    /// The failure of a damaged log; the records after the damaged place are not shown.
    pub(crate) damage: Option<Failure>,
}

impl History {
    /// Returns the configuration of the newest run that asks a model; `None` if this run is not an agent's loop.
    pub(crate) fn last_config(&self) -> Option<RunConfig> {
        self.last_loop().map(|started| started.config.clone())
    }

    /// Returns the start of the newest run that asks a model; `None` if this run is not an agent's loop.
    pub(crate) fn last_loop(&self) -> Option<&RunStarted> {
        let started = self.records.iter().rev().find_map(|(_, record)| match &record.body {
            RecordBody::RunStarted(started) if !asks_no_model(&started.config) => Some(&**started),
            _ => None,
        })?;
        (started.kind == RunKind::Loop).then_some(started)
    }

    /// Returns the sequence number of the last record of the newest run.
    pub(crate) fn last_seq(&self) -> Option<u64> {
        self.newest_records().last().map(|record| record.seq)
    }

    /// Returns the records of the newest run.
    pub(crate) fn newest_records(&self) -> Vec<Arc<Record>> {
        let Some(newest) = &self.newest else { return Vec::new() };
        self.records
            .iter()
            .filter(|(run, _)| *run == newest.run_id)
            .map(|(_, record)| record.clone())
            .collect()
    }

    /// Returns the drafts that the person sent, oldest first: messages, and lines of the shell with their sign.
    pub(crate) fn drafts(&self) -> Vec<Draft> {
        let (mut drafts, mut is_line) = (Vec::new(), false);
        for (_, record) in &self.records {
            if let RecordBody::RunStarted(started) = &record.body {
                is_line = started.config.provider == Person::ID;
            }
            let Some(text) = message_of_person(record) else { continue };
            // A message that the run of a line got later is no line.
            let is_prompt =
                matches!(&record.body, RecordBody::MessageAdded { source: PromptSource::Prompt, .. });
            drafts.push(match is_line && is_prompt {
                true => Draft::typed(format!("!{text}")),
                false => Draft::message(text),
            });
        }
        drafts
    }
}

/// Returns the newest top-level run of a session; `None` for a session without runs.
///
/// # Errors
/// The journal cannot be listed.
pub(crate) async fn newest(runs: &Runs, session: &SessionId) -> Result<Option<RunHead>, RunError> {
    let filter = RunFilter::of_session(session.clone()).top_level().limit(1);
    Ok(runs.list(&filter).await?.pop())
}

/// Reads the newest runs of a session: the newest run, the run that it continues, and so on until there is enough to
/// show. Runs beside this line, such as those that were left by going back, are not part of the conversation.
///
/// # Errors
/// The journal cannot be listed or read.
pub(crate) async fn read(runs: &Runs, session: &SessionId) -> Result<History, RunError> {
    read_until(runs, session, ENOUGH).await
}

/// Does the same as [`read`], with all runs of the line.
///
/// # Errors
/// As [`read`].
pub(crate) async fn read_all(runs: &Runs, session: &SessionId) -> Result<History, RunError> {
    read_until(runs, session, usize::MAX).await
}

async fn read_until(runs: &Runs, session: &SessionId, enough: usize) -> Result<History, RunError> {
    let heads = runs.list(&RunFilter::of_session(session.clone()).top_level()).await?;
    let Some(newest) = heads.first().cloned() else { return Ok(History::default()) };
    let mut history = History { newest: Some(newest.clone()), ..History::default() };
    let (mut next, mut taken) = (Some((newest.run_id, None)), Vec::new());
    let mut count = 0;
    while let Some((run, part)) = next.take().filter(|_| count < enough) {
        let log = runs.records(&run, None).await?;
        let mut records = log.records;
        if let Some(damage) = log.damage {
            history.damage = Some(damage.into());
        }
        next = RunStarted::of(&records).and_then(|started| match &started.origin {
            Origin::Continues { run, records, .. } => Some((run.clone(), Some(*records))),
            _ => None,
        });
        if let Some(part) = part.and_then(|part| usize::try_from(part).ok()) {
            records.truncate(part);
        }
        count += records.iter().filter(|record| is_shown(&record.body)).count();
        taken.push((run, records));
    }
    history.earlier = heads.len().saturating_sub(taken.len());
    let in_order = taken.into_iter().rev();
    history.records = in_order
        .flat_map(|(run, records)| records.into_iter().map(move |record| (run.clone(), record)))
        .collect();
    Ok(history)
}

/// Returns the text of a message that a person sent, without the files that it carries; `None` for any other record.
pub(crate) fn message_of_person(record: &Record) -> Option<String> {
    let RecordBody::MessageAdded { message, .. } = &record.body else { return None };
    let message = message.as_llm().filter(|message| Interruption::of(message).is_none())?;
    matches!(message, Message::User(_)).then(|| AttachedFile::split(message.own_content()).0)
}

fn is_shown(body: &RecordBody) -> bool {
    matches!(
        body,
        RecordBody::MessageAdded { .. }
            | RecordBody::ModelCallFinished { .. }
            | RecordBody::ToolCallFinished { .. }
    )
}
