//! Questions to people: may the plan be followed, may another take its place, may a subtask begin, is its result good; and
//! what their answers lead to.

use archon_types::{Answer, ApprovalRequest, CallId, Json, RecordBody, Timestamp, ToolResult};

use super::{Asked, Phase, PlanMachine, PlanNode, Proposed};
use crate::diff::changed;

impl PlanMachine {
    pub(super) fn confirmation(&self, call: CallId) -> RecordBody {
        let task = self.task();
        let summary = format!("Follow this plan of {} subtasks?", task.subtasks.len());
        let details = serde_json::to_value(&task).unwrap_or_default();
        self.question(call, summary, details)
    }

    pub(super) fn change(&self, proposed: &Proposed) -> RecordBody {
        let diff = &proposed.diff;
        let summary = format!(
            "Go on with another plan? It has {} subtasks more, begins {} afresh and leaves {} out.",
            diff.add.len(),
            diff.replace.len(),
            diff.remove.len()
        );
        let why = self.replan.as_ref().and_then(|ask| ask.reason.as_deref());
        let details = serde_json::json!({ "why": why, "change": diff, "plan": changed(&self.task(), diff) });
        self.question(proposed.call, summary, details)
    }

    pub(super) fn gate(&self, node: &PlanNode) -> RecordBody {
        let summary = node.subtask.rules.gate.clone().unwrap_or_default();
        let details = serde_json::to_value(&node.subtask).unwrap_or_default();
        let mut request = ApprovalRequest::new(format!("{}.{}", self.run, node.call()), summary, details);
        // What is done is what the plan says.
        request.allow_modification = false;
        RecordBody::ToolAsked { call: node.call(), request: Box::new(request) }
    }

    pub(super) fn review(&self, node: &PlanNode) -> RecordBody {
        let summary = node.subtask.rules.review.clone().unwrap_or_default();
        let result = node.result.as_deref().map(ToolResult::text);
        let details = serde_json::json!({ "subtask": node.subtask, "result": result });
        let id = format!("{}.{}.result", self.run, node.call());
        let mut request = ApprovalRequest::new(id, summary, details);
        request.allow_modification = false;
        RecordBody::ToolAsked { call: node.call(), request: Box::new(request) }
    }

    pub(super) fn question(&self, call: CallId, summary: String, details: Json) -> RecordBody {
        let request = ApprovalRequest::new(format!("{}.{call}", self.run), summary, details);
        RecordBody::ToolAsked { call, request: Box::new(request) }
    }

    /// Whether a person was asked about this call, and has not answered.
    pub fn is_waiting_for(&self, call: CallId) -> bool {
        match &self.phase {
            Phase::Confirming { call: open, asked: Asked::Yes } => *open == call,
            Phase::Following => {
                self.nodes.is_question(call)
                    || self.proposed.as_ref().is_some_and(|p| p.call == call && p.asked == Asked::Yes)
            }
            _ => false,
        }
    }

    pub(super) fn question_asked(&mut self, call: CallId, request: &ApprovalRequest) {
        match (&mut self.phase, &mut self.proposed) {
            (Phase::Confirming { call: open, asked }, _) if *open == call => *asked = Asked::Yes,
            (Phase::Following, Some(proposed)) if proposed.call == call => proposed.asked = Asked::Yes,
            (Phase::Following, _) => self.nodes.question(call, request),
            _ => {}
        }
    }

    pub(super) fn answered(&mut self, call: CallId, answer: &Answer, at: Timestamp) {
        self.suspended = false;
        if self.nodes.is_asked_below(call) {
            return self.nodes.approve(call, at);
        }
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
            (Phase::Following, answer) if self.proposed.as_ref().is_some_and(|p| p.call == call) => {
                self.change_answered(answer);
            }
            (Phase::Following, answer) if !answer.is_consent() && self.nodes.is_reviewed(call) => {
                let subtask = self.nodes.of_call(call).map(|node| node.subtask.id.to_string());
                let why = match answer {
                    Answer::Cancel { reason } if reason.is_empty() => "no reason was given",
                    Answer::Cancel { reason } => reason,
                    _ => "nobody answered in time",
                };
                let error = format!("the result of {} was not approved: {why}", subtask.unwrap_or_default());
                self.phase = Phase::Broken { error };
            }
            (Phase::Following, Answer::Cancel { reason }) if self.nodes.is_question(call) => {
                let why = if reason.is_empty() { "no reason was given" } else { reason };
                let result = ToolResult::error(format!("it was not approved: {why}"));
                self.refused(call, &result, at);
            }
            (Phase::Following, answer) if !answer.is_consent() && self.nodes.is_question(call) => {
                self.refused(call, &ToolResult::error("nobody approved it in time"), at);
            }
            (Phase::Following, answer) if answer.is_consent() => {
                if let Answer::Trust { rules } = answer {
                    self.trusted.extend(
                        rules.iter().filter(|rule| !self.trusted.contains(rule)).cloned().collect::<Vec<_>>(),
                    );
                }
                self.nodes.approve(call, at);
            }
            _ => {}
        }
    }
}
