//! Tasks of the extension `io.modelcontextprotocol/tasks`. A task is a run of an offered agent, and its id is the id
//! of the run. Tasks are looked up in the journal, so a task outlives the server that started it.

use std::sync::Arc;

use archon_types::{
    JournalError, MoreLimits, Origin, Outcome, Record, RunError, RunHead, RunId, RunStarted, RunStatus,
    pending_approvals,
};
use rmcp::{
    ErrorData,
    model::{DetailedTask, InputResponses, Task, TaskPayload, TaskStatus},
};

use crate::{
    call, result,
    server::{Questions, ToolServer},
};

/// Time in ms that a client is asked to wait between two polls of a task.
const POLL_MS: u64 = 1_000;

impl ToolServer {
    /// Returns the state of a task. A run whose process died is resumed first.
    pub(crate) async fn task(&self, run: &RunId) -> Result<DetailedTask, RunError> {
        let mut head = self.runs.get(run).await?;
        let stuck = match head.status {
            RunStatus::Interrupted => self.go_on(run).await,
            _ => None,
        };
        if stuck.is_none() {
            head = self.runs.get(run).await?;
        }
        let payload = match stuck {
            Some(stuck) => stuck,
            None => self.payload(&head, &self.log(run).await?).await?,
        };
        let mut task = Task::new(
            run.to_string(),
            TaskStatus::Working,
            head.started_at.to_string(),
            head.updated_at.to_string(),
        )
        .with_poll_interval_ms(POLL_MS);
        if head.status == RunStatus::Suspended && matches!(payload, TaskPayload::Working) {
            task = task.with_status_message("waits for a person's answer at the server");
        }
        Ok(DetailedTask::new(task, payload))
    }

    /// Resumes a run that no process works on. Returns the failure if the run cannot be resumed.
    async fn go_on(&self, run: &RunId) -> Option<TaskPayload> {
        match self.runs.resume(run, &MoreLimits::default()).await {
            // Another process works on it by now.
            Ok(_) | Err(RunError::Journal(JournalError::Locked { .. })) => None,
            Err(error) => Some(failed(&format!("run {run} cannot go on: {error} ({})", error.advice()))),
        }
    }

    async fn payload(&self, head: &RunHead, records: &[Arc<Record>]) -> Result<TaskPayload, RunError> {
        let run = &head.run_id;
        let requests = call::requests(&pending_approvals(records));
        Ok(match head.status {
            RunStatus::Suspended if self.questions == Questions::AtClient && !requests.is_empty() => {
                TaskPayload::InputRequired { input_requests: requests }
            }
            RunStatus::Cancelled => TaskPayload::Cancelled,
            status if status.has_ended() => {
                let outcome = Outcome::of_result(self.runs.reply(run).await)?;
                match serde_json::to_value(result::of_agent(&outcome)) {
                    Ok(serde_json::Value::Object(result)) => TaskPayload::Completed { result },
                    _ => failed("the result cannot be written"),
                }
            }
            RunStatus::Unreadable => {
                failed(head.problem.as_deref().unwrap_or("the log of the run is damaged"))
            }
            _ => TaskPayload::Working,
        })
    }

    /// Returns the log of a run that is a task of this server.
    ///
    /// # Errors
    /// There is no such task: the run is unknown, or was not started by a client.
    pub(crate) async fn task_log(&self, run: &RunId) -> Result<Vec<Arc<Record>>, ErrorData> {
        let records = self.log(run).await.unwrap_or_default();
        let is_task = RunStarted::of(&records).is_some_and(|started| {
            !matches!(started.origin, Origin::CalledBy { .. })
                && self.is_of_offered_agent(&started.agent, started.kind)
        });
        match is_task {
            true => Ok(records),
            false => Err(ErrorData::invalid_params(format!("there is no task '{run}'"), None)),
        }
    }

    /// Gives a client's answers to the questions of a task.
    pub(crate) async fn answer_task(&self, run: &RunId, responses: InputResponses) -> Result<(), ErrorData> {
        let records = self.task_log(run).await?;
        if self.questions == Questions::Here {
            let what = "the questions of this task are answered at the server, not by clients";
            return Err(ErrorData::invalid_params(what, None));
        }
        let answers = call::answers(&records, responses)?;
        self.give(&answers).await.map_err(internal)
    }

    /// Cancels a task; a task that has ended stays as it is.
    pub(crate) async fn cancel_task_run(&self, run: &RunId) -> Result<(), ErrorData> {
        self.task_log(run).await?;
        let head = self.runs.get(run).await.map_err(internal)?;
        match head.status.has_ended() {
            true => Ok(()),
            false => self.runs.cancel(run, "the client cancelled the task").await.map_err(internal),
        }
    }
}

pub(crate) fn internal(error: RunError) -> ErrorData {
    ErrorData::internal_error(format!("{error} ({})", error.advice()), None)
}

fn failed(what: &str) -> TaskPayload {
    let error = ErrorData::internal_error(what.to_owned(), None);
    let error = serde_json::to_value(error).ok().and_then(|error| error.as_object().cloned());
    TaskPayload::Failed { error: error.unwrap_or_default() }
}
