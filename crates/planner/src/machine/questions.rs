//! Questions to people: may the plan be followed, may a subtask begin; and what their answers lead to.

use archon_types::{Answer, ApprovalRequest, CallId, Json, RecordBody, Timestamp, ToolResult};

use super::{Asked, Phase, PlanMachine, PlanNode};

impl PlanMachine {
    pub(super) fn confirmation(&self, call: CallId) -> RecordBody {
        let task = self.task();
        let summary = format!("Follow this plan of {} subtasks?", task.subtasks.len());
        let details = serde_json::to_value(&task).unwrap_or_default();
        self.question(call, summary, details)
    }

    pub(super) fn gate(&self, node: &PlanNode) -> RecordBody {
        let summary = node.subtask.rules.gate.clone().unwrap_or_default();
        let details = serde_json::to_value(&node.subtask).unwrap_or_default();
        self.question(node.call(), summary, details)
    }

    pub(super) fn question(&self, call: CallId, summary: String, details: Json) -> RecordBody {
        let request = ApprovalRequest::new(format!("{}.{call}", self.run), summary, details);
        RecordBody::ToolAsked { call, request: Box::new(request) }
    }

    pub(super) fn question_asked(&mut self, call: CallId) {
        match &mut self.phase {
            Phase::Confirming { call: open, asked } if *open == call => *asked = Asked::Yes,
            Phase::Following => self.nodes.question(call),
            _ => {}
        }
    }

    pub(super) fn answered(&mut self, call: CallId, answer: &Answer, at: Timestamp) {
        self.suspended = false;
        match (&self.phase, answer) {
            (Phase::Confirming { call: open, .. }, answer) if *open == call => match answer {
                Answer::Cancel { reason } => {
                    let why = if reason.is_empty() { "no reason was given" } else { reason };
                    self.phase = Phase::Broken { error: format!("the plan was not approved: {why}") };
                }
                answer if !answer.is_consent() => {
                    let error = "the plan was not approved: nobody answered in time".to_owned();
                    self.phase = Phase::Broken { error };
                }
                answer => match answer.edited_plan() {
                    Some(Ok(task)) => self.adopt(&task),
                    Some(Err(error)) => {
                        self.phase =
                            Phase::Broken { error: format!("the edited plan cannot be read: {error}") };
                    }
                    None => self.phase = Phase::Following,
                },
            },
            (Phase::Following, Answer::Cancel { reason }) if self.nodes.is_question(call) => {
                let why = if reason.is_empty() { "no reason was given" } else { reason };
                let result = ToolResult::error(format!("it was not approved: {why}"));
                self.refused(call, &result, at);
            }
            (Phase::Following, answer) if !answer.is_consent() && self.nodes.is_question(call) => {
                self.refused(call, &ToolResult::error("nobody approved it in time"), at);
            }
            (Phase::Following, answer) if answer.is_consent() => self.nodes.approve(call),
            _ => {}
        }
    }
}
