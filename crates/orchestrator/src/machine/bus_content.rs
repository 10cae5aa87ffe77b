//! Contents of the team's bus messages about its work: requests and responses.

use archon_types::{AgentId, CallId, Json, MessageType, SubTask, Timestamp, ToolResult};
use serde_json::{Map, json};
use std::time::Duration;

use super::{Job, Purpose, TeamMachine, progress::board_key};
use crate::response::Response;

impl TeamMachine {
    /// Returns the content of the message that delegates work, sent at time `at`.
    pub(crate) fn request(&self, call: CallId, chain: &[AgentId], task: &str, at: Timestamp) -> Json {
        let job = self.job(call.command);
        let subtask = job.and_then(|job| self.subtask_of(job));
        let due = (at + Duration::from_millis(self.settings.task_timeout_ms)).min(self.deadline());
        let is_request = job.is_some_and(|job| matches!(job.purpose, Purpose::Request { .. }));
        let mut content = json!({
            "task_id": self.run.of_call(call),
            "subtask_description": task,
            "deadline": due.to_string(),
            "context": self.context_of(subtask),
            "dependencies": subtask.map(SubTask::dependencies).unwrap_or_default(),
            "delegation_chain": chain,
            // A member waits for a request.
            "priority": if is_request { "high" } else { "normal" },
        });
        if let Some(expected) = subtask.and_then(|subtask| subtask.expected_output.as_ref()) {
            content["expected_output"] = json!(expected);
        }
        if let Some(subtask) = subtask {
            content["shared_context_key"] = json!(board_key(subtask));
        }
        content
    }

    /// Returns the goal, the plan's initial context, and the results on which this step depends.
    fn context_of(&self, subtask: Option<&SubTask>) -> Json {
        let results = subtask.map(SubTask::dependencies).unwrap_or_default().iter().filter_map(|id| {
            let response = self.job_of(id)?.response.as_ref()?;
            Some((id.to_string(), response.result.clone()))
        });
        json!({
            "goal": self.task.goal,
            "known": self.task.context,
            "results": results.collect::<Map<_, _>>(),
        })
    }

    /// Returns the step that a job does, or does again.
    fn subtask_of<'a>(&'a self, job: &'a Job) -> Option<&'a SubTask> {
        match &job.purpose {
            Purpose::Recompute { job, .. } => self.job(*job)?.subtask(),
            _ => job.subtask(),
        }
    }

    /// Returns the message that ends a delegation: the answer, or the reason why there is none.
    pub(crate) fn response(&self, call: CallId, result: &ToolResult) -> (MessageType, Json) {
        let task_id = self.run.of_call(call);
        match self.read_response(call, result) {
            Some(response) => {
                let (result, status) = (&response.result, response.status);
                let content = json!({ "task_id": task_id, "result": result, "status": status });
                (MessageType::TaskResponse, content)
            }
            None => {
                let error = result.error_message.clone().unwrap_or_else(|| result.text());
                (MessageType::Error, json!({ "task_id": task_id, "error": error, "status": "failed" }))
            }
        }
    }

    /// Returns the answer of a finished delegation; `None` if its run failed.
    pub(super) fn read_response(&self, call: CallId, result: &ToolResult) -> Option<Response> {
        // A structured output may have a field `result` of its own, so it is not read as a `Response`.
        let is_formed = self.output.is_some() && self.is_synthesis(call);
        (!result.is_error()).then(|| match is_formed {
            true => Response::text_only(result.text()),
            false => Response::read(&result.text()),
        })
    }
}
