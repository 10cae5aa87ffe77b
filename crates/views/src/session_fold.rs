//! [`Session::read`]: builds a session from the logs of its runs.

use std::{collections::BTreeMap, sync::Arc};

use archon_types::{
    AssistantMessage, Content, Event, Journal, JournalError, Message, Origin, OutcomeStatus, Record,
    RecordBody, RunFilter, RunId, RunKind, RunStarted, SessionId,
};

use crate::{
    projection::AgentEvents,
    session::{LoopConfigSnapshot, LoopRecord, LoopStatus, Session},
    session_recorder::SessionRecorder,
};

type Logs = BTreeMap<RunId, Vec<Arc<Record>>>;

impl Session {
    /// Builds a session from the runs in a journal. Returns `None` if there is no run of the session.
    ///
    /// For the links between sessions, also reads runs of other sessions: those that called a run of this session, and
    /// those that a tool call of this session started, if the call has finished. A child run of another session that is
    /// still at work is not read, so the session has no link to it. A link to a run that cannot be read is left out.
    ///
    /// # Errors
    /// The journal cannot be listed, or a run of the session cannot be read.
    pub async fn read(journal: &dyn Journal, id: &SessionId) -> Result<Option<Self>, JournalError> {
        let heads = journal.list(&RunFilter::of_session(id.clone())).await?;
        let mut logs = Logs::new();
        for head in heads {
            let records = journal.read(&head.run_id).await?;
            logs.insert(head.run_id, records);
        }
        let around: Vec<RunId> = logs.values().flat_map(|log| linked(log)).collect();
        for run in around {
            if !logs.contains_key(&run)
                && let Ok(records) = journal.read(&run).await
            {
                logs.insert(run, records);
            }
        }
        Ok(Self::of_logs(logs.values().map(Vec::as_slice)).into_iter().find(|s| s.session_id == *id))
    }

    /// Builds sessions from logs, in the order in which the sessions were created.
    pub fn of_logs<'a>(logs: impl IntoIterator<Item = &'a [Arc<Record>]>) -> Vec<Self> {
        let mut logs: Vec<_> = logs.into_iter().filter_map(|log| Some((RunStarted::of(log)?, log))).collect();
        // Runs come after those that they name, and parallel loops after their branches.
        logs.sort_by_key(|(started, log)| {
            (started.kind == RunKind::Parallel, log[0].at, started.run.clone())
        });
        let mut recorder = SessionRecorder::default();
        for (started, log) in &logs {
            let mut events = AgentEvents::new();
            for record in *log {
                let event = Event::Record { run: started.run.clone(), record: record.clone() };
                events.push(&event).iter().for_each(|event| recorder.on_event(event));
            }
        }
        let mut sessions = recorder.into_sessions();
        for (started, log) in logs {
            let of = sessions.iter_mut().find(|s| s.session_id == started.session);
            let record = of.and_then(|session| {
                session.last_active_at =
                    log.last().map_or(session.last_active_at, |last| session.last_active_at.max(last.at));
                session.loops.iter_mut().find(|l| l.run_id.as_ref() == Some(&started.run))
            });
            if let Some(record) = record {
                complete(record, started, log);
            }
        }
        sessions
    }
}

/// Completes the record of a loop with the data that is in the run's log but not in the events.
fn complete(record: &mut LoopRecord, started: &RunStarted, log: &[Arc<Record>]) {
    // The answer of a plan or a team is no message of a model in this run, so it is added here.
    if let (RunKind::Plan | RunKind::Team, Some(last)) = (started.kind, log.last())
        && let RecordBody::RunFinished(outcome) = &last.body
        && let Some(answer) = outcome.answer()
    {
        let content = vec![Content::text(answer)];
        let answer = AssistantMessage { content, timestamp: last.at, ..AssistantMessage::default() };
        record.messages.push(Message::Assistant(answer).into());
    }
    record.config = Some(LoopConfigSnapshot::from(&started.config));
    record.status = match log.last().map(|r| &r.body) {
        Some(RecordBody::RunFinished(outcome)) => match outcome.status {
            OutcomeStatus::Finished | OutcomeStatus::Limit(_) => record.status,
            OutcomeStatus::Suspended => LoopStatus::Pending,
            _ => LoopStatus::Aborted,
        },
        Some(RecordBody::Suspended { .. }) => LoopStatus::Pending,
        _ => LoopStatus::Running,
    };
}

/// Returns the runs that called this run, or that it called.
fn linked(log: &[Arc<Record>]) -> Vec<RunId> {
    log.iter()
        .filter_map(|record| match &record.body {
            RecordBody::RunStarted(started) => match &started.origin {
                Origin::CalledBy { run, .. } => Some(run.clone()),
                _ => None,
            },
            RecordBody::ToolCallFinished { result, .. } => result.child_run.clone(),
            _ => None,
        })
        .collect()
}
