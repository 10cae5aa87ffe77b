//! Questions that expired, as the logs of their runs say: also those that expired while no process served the tasks.

use std::{collections::BTreeMap, sync::Arc};

use archon_types::{
    Answer, ApprovalRequest, CallId, NotificationKind, PendingApproval, Record, RecordBody, RunId,
};

use super::TriggerEngine;
use crate::task::TriggerTask;

impl TriggerEngine {
    /// Notifies people of the questions of a run that expired and are not in `open`, each once. A process that is killed in
    /// between notifies again.
    pub(super) async fn notify_expired(&self, task: &TriggerTask, run: &RunId, open: &[PendingApproval]) {
        let records = match self.parts.runs.records(run, None).await {
            Ok(salvaged) => salvaged.records,
            Err(error) => {
                tracing::warn!(%run, "the questions that expired cannot be found: {error}");
                return;
            }
        };
        for request in expired_in(&records) {
            let id = &request.request_id;
            let is_open = open.iter().any(|question| question.request.request_id == *id);
            if is_open || self.knows_expired(task, id).await {
                continue;
            }
            let text = format!("no answer came in time to: {}", request.action_summary);
            self.notify(task, Some(run), NotificationKind::Expired, text).await;
            self.update(task, |entry| entry.state.expired.push(id.clone())).await;
        }
    }

    /// Returns true if people know that a question of the task's run expired.
    async fn knows_expired(&self, task: &TriggerTask, question: &String) -> bool {
        let agenda = self.parts.agenda.lock().await;
        agenda.entry(&task.id).is_none_or(|entry| entry.state.expired.contains(question))
    }
}

/// Returns the questions that expired in a log.
fn expired_in(records: &[Arc<Record>]) -> Vec<ApprovalRequest> {
    let (mut asked, mut expired) = (BTreeMap::<CallId, &ApprovalRequest>::new(), Vec::new());
    for record in records {
        match &record.body {
            RecordBody::ApprovalRequested { call, request } => drop(asked.insert(*call, request)),
            RecordBody::ApprovalAnswered { call, answer: Answer::Expired } => {
                expired.extend(asked.get(call).map(|request| (*request).clone()));
            }
            _ => {}
        }
    }
    expired
}
