//! The head of a run: an entry in a list of runs, and its position there.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    config::RunKind,
    messages::AgentMessage,
    values::{RunId, SessionId, TenantId, Timestamp},
};

use super::{
    record::{Record, RecordBody},
    run_status::RunStatus,
};

/// The head of a run: an entry in a list of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RunHead {
    /// The id of the run.
    pub run_id: RunId,
    /// The kind of the run; `None` if the log cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<RunKind>,
    /// The session; `None` if the log cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The tenant; `None` if the log cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    /// The run that started this run; `None` if this is not a child run or the log cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_by: Option<RunId>,
    /// The parallel loop that has this run as a branch; `None` for any other run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_of: Option<RunId>,
    /// The time of the first record.
    pub started_at: Timestamp,
    /// The time of the last record.
    pub updated_at: Timestamp,
    /// The status of the run.
    pub status: RunStatus,
    /// The first prompt, cut to 80 characters.
    #[serde(default)]
    pub task: String,
    /// The reason why the log cannot be read, with advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl RunHead {
    /// Creates the head of a log from its records.
    pub fn of(run_id: RunId, records: &[Arc<Record>]) -> Self {
        use super::origin::Origin;
        let mut head = Self {
            run_id,
            kind: None,
            session: None,
            tenant: None,
            called_by: None,
            branch_of: None,
            started_at: records.first().map_or_else(Timestamp::default, |r| r.at),
            updated_at: records.last().map_or_else(Timestamp::default, |r| r.at),
            status: RunStatus::Running,
            task: String::new(),
            problem: None,
        };
        for record in records {
            match &record.body {
                RecordBody::RunStarted(s) => {
                    head.kind = Some(s.kind);
                    head.session = Some(s.session.clone());
                    head.tenant = Some(s.tenant.clone());
                    head.branch_of.clone_from(&s.parallel_run);
                    if let Origin::CalledBy { run, .. } = &s.origin {
                        head.called_by = Some(run.clone());
                    }
                }
                RecordBody::MessageAdded { message, .. } if head.task.is_empty() => {
                    head.task = task(message);
                }
                RecordBody::ParallelStarted { prompts, .. } => {
                    head.task = prompts.first().map(task).unwrap_or_default();
                }
                _ => {}
            }
        }
        if let Some(last) = records.last() {
            head.status = Self::status_after(&last.body);
        }
        head
    }

    /// Returns the status of a run whose last record is `last`, as far as the log shows the status. The log does not
    /// show if a process works on the run; see [`not_worked_on`](Self::not_worked_on).
    pub fn status_after(last: &RecordBody) -> RunStatus {
        match last {
            RecordBody::RunStarted(_) => RunStatus::Created,
            RecordBody::Suspended { .. } => RunStatus::Suspended,
            RecordBody::RunFinished(outcome) => outcome.status.into(),
            _ => RunStatus::Running,
        }
    }

    /// Returns the position of the run in a list of runs.
    pub fn place(&self) -> RunPlace {
        RunPlace { updated_at: self.updated_at, run: self.run_id.clone() }
    }

    /// Corrects the head of a run that no process works on: replaces the status
    /// [`Running`](RunStatus::Running) by [`Interrupted`](RunStatus::Interrupted).
    ///
    /// ```
    /// use archon_types::{RunHead, RunStatus};
    ///
    /// let mut head = RunHead::of("run_1".into(), &[]);
    /// head.status = RunStatus::Running;
    /// assert_eq!(head.not_worked_on().status, RunStatus::Interrupted);
    /// ```
    pub fn not_worked_on(mut self) -> Self {
        if self.status == RunStatus::Running {
            self.status = RunStatus::Interrupted;
        }
        self
    }

    /// Sets the status [`Unreadable`](RunStatus::Unreadable) and the problem, for a log that is damaged after
    /// the records that this head was made from.
    ///
    /// ```
    /// use archon_types::{RunHead, RunStatus};
    ///
    /// let head = RunHead::of("run_1".into(), &[]).damaged("the checksum of record 3 is wrong");
    /// assert_eq!(head.status, RunStatus::Unreadable);
    /// ```
    pub fn damaged(mut self, problem: impl Into<String>) -> Self {
        (self.status, self.problem) = (RunStatus::Unreadable, Some(problem.into()));
        self
    }

    /// Creates the head of a log that cannot be read.
    pub fn unreadable(run_id: RunId, problem: impl Into<String>) -> Self {
        Self::of(run_id, &[]).damaged(problem)
    }
}

fn task(message: &AgentMessage) -> String {
    let text = message.as_llm().map(crate::Message::text).unwrap_or_default();
    text.chars().take(TASK_CHARS).collect()
}

const TASK_CHARS: usize = 80;

/// The position of a run in a list of runs. In such a list, the last written run comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunPlace {
    /// The time of the run's last record.
    pub updated_at: Timestamp,
    /// The id of the run. Of runs written at the same time, the greater id comes first.
    pub run: RunId,
}
