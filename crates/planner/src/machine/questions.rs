//! Questions to people about the plan, a replan, the start of a subtask or its result, and the effects of
//! the answers.

use archon_types::{
    Answer, ApprovalRequest, CallId, FailureKind, Json, QuestionKind, RecordBody, SubTask, Timestamp,
    ToolResult,
};

use super::{
    Asked, NodeState, Phase, PlanMachine, PlanNode, Proposed,
    failures::{refusal, unknown},
    node::AskedBy,
};
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
            "Continue with another plan? It adds {} subtasks, replaces {} and removes {}.",
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
        self.question_about(node, "", summary, details)
    }

    pub(super) fn review(&self, node: &PlanNode) -> RecordBody {
        let summary = node.subtask.rules.review.clone().unwrap_or_default();
        let result = node.result.as_deref().map(ToolResult::text);
        let details = serde_json::json!({ "subtask": node.subtask, "result": result });
        self.question_about(node, ".result", summary, details)
    }

    /// Returns the question how to continue after a failed subtask.
    pub(super) fn decision(&self, node: &PlanNode) -> RecordBody {
        let error = node.result.as_deref().map(ToolResult::text).unwrap_or_default();
        let why = error.strip_prefix("Error: ").unwrap_or(&error).lines().next().unwrap_or_default();
        let summary = format!(
            "Step '{}' failed: {}. Try it again? A reply is used as its result; an empty reply goes on without it.",
            node.subtask.id,
            why.trim_end_matches(['.', ' '])
        );
        let details = serde_json::json!({ "subtask": node.subtask, "error": error });
        let mut question = self.question_about(node, ".failure", summary, details);
        if let RecordBody::ApprovalRequested { request, .. } = &mut question {
            request.kind = QuestionKind::FailedStep;
            request.options = ["approve", "reply", "cancel"].map(str::to_owned).into();
        }
        question
    }

    /// Returns a question about a subtask. The plan determines the call, so the person cannot change its
    /// arguments.
    fn question_about(&self, node: &PlanNode, suffix: &str, summary: String, details: Json) -> RecordBody {
        let call = node.call();
        let mut request = ApprovalRequest::new(format!("{}.{call}{suffix}", self.run), summary, details);
        request.allow_modification = false;
        RecordBody::ApprovalRequested { call, request: Box::new(request) }
    }

    /// Returns the question about a call in doubt, because only a person can find out its effect.
    pub(super) fn doubt(&self, node: &PlanNode) -> RecordBody {
        let (tool, none) = (node.tool().unwrap_or_default(), Json::Null);
        let arguments = node.edited.as_ref().or(node.subtask.tool_args()).unwrap_or(&none);
        let id = format!("{}.{}.doubt", self.run, node.call());
        let mut request = ApprovalRequest::in_doubt(id, tool, arguments);
        request.binding = node.agreed.clone().unwrap_or_default();
        RecordBody::ApprovalRequested { call: node.call(), request: Box::new(request) }
    }

    pub(super) fn question(&self, call: CallId, summary: String, details: Json) -> RecordBody {
        let request = ApprovalRequest::new(format!("{}.{call}", self.run), summary, details);
        RecordBody::ApprovalRequested { call, request: Box::new(request) }
    }

    /// Returns true if a person was asked about this call and has not answered.
    pub fn is_waiting_for(&self, call: CallId) -> bool {
        match &self.phase {
            Phase::Confirming { call: open, asked: Asked::Yes } => *open == call,
            Phase::Following => {
                self.nodes.open_question(call).is_some()
                    || self.proposed.as_ref().is_some_and(|p| p.call == call && p.asked == Asked::Yes)
            }
            _ => false,
        }
    }

    /// Returns true if a person was asked about this call because the call was cut off and may have taken effect.
    pub fn is_doubted(&self, call: CallId) -> bool {
        self.nodes.open_question(call).is_some_and(|node| matches!(node.asked_by, AskedBy::Doubt(_)))
    }

    /// Returns true if a text is a valid answer to the open question about this call.
    pub fn takes_reply(&self, call: CallId) -> bool {
        let is_decision = |node: &PlanNode| node.state == NodeState::Deciding;
        self.is_asked_by_tool(call)
            || self.is_doubted(call)
            || self.nodes.open_question(call).is_some_and(is_decision)
    }

    /// Returns true if the open question comes from the tool of a subtask. The answer may then change the
    /// arguments.
    pub fn is_asked_by_tool(&self, call: CallId) -> bool {
        self.nodes.open_question(call).is_some_and(|node| matches!(node.asked_by, AskedBy::Tool(_)))
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
        if self.nodes.open_question(call).is_some_and(|node| node.asked_by == AskedBy::Below) {
            return self.nodes.approve(call, at);
        }
        match &self.phase {
            Phase::Confirming { call: open, .. } if *open == call => match answer.edited_plan() {
                _ if !answer.is_consent() => self.break_off("the plan was not approved", &refusal(answer)),
                Some(Ok(task)) => self.adopt(&task),
                Some(Err(error)) => self.break_off("the edited plan cannot be read", &error.to_string()),
                None => self.phase = Phase::Following,
            },
            Phase::Following => self.answered_meanwhile(call, answer, at),
            _ => {}
        }
    }

    fn answered_meanwhile(&mut self, call: CallId, answer: &Answer, at: Timestamp) {
        if self.proposed.as_ref().is_some_and(|proposed| proposed.call == call) {
            return self.change_answered(answer);
        }
        let Some(PlanNode { subtask, state, asked_by, .. }) = self.nodes.open_question(call) else { return };
        match (answer, asked_by) {
            _ if *state == NodeState::Deciding && !answer.is_consent() => self.decided(call, answer, at),
            (Answer::Reply { text }, AskedBy::Tool(_) | AskedBy::Doubt(_)) => self.replied(call, text, at),
            (_, AskedBy::Doubt(_)) if !answer.is_consent() => {
                // No replan may do the same work.
                self.refused_repeats.push(SubTask::clone(subtask));
                self.refused(call, &unknown(&refusal(answer)), at);
            }
            _ if !answer.is_consent() && *state == NodeState::Reviewed => {
                let what = format!("the result of {} was not approved", subtask.id);
                self.break_off(&what, &refusal(answer));
            }
            _ if !answer.is_consent() => {
                let why = format!("it was not approved: {}", refusal(answer));
                self.refused(call, &ToolResult::error(why), at);
            }
            (Answer::Trust { rules }, _) => {
                let new = rules.iter().filter(|rule| !self.trusted.contains(rule));
                self.trusted.extend(new.cloned().collect::<Vec<_>>());
                self.nodes.approve(call, at);
            }
            (Answer::Edit { arguments }, AskedBy::Tool(_)) => {
                if let Some(node) = self.nodes.of_call_mut(call) {
                    node.edited = Some(arguments.clone());
                }
                self.nodes.approve(call, at);
            }
            _ => self.nodes.approve(call, at),
        }
    }

    /// Fails the run because of its plan or a person's answer.
    pub(super) fn break_off(&mut self, what: &str, why: &str) {
        self.phase = Phase::Broken { kind: FailureKind::Plan, error: format!("{what}: {why}") };
    }

    /// Prepares all open questions to be asked again, after a run that had ended is resumed.
    pub(super) fn ask_all_again(&mut self) {
        if let Phase::Confirming { asked, .. } = &mut self.phase {
            *asked = Asked::No;
        }
        if let Some(proposed) = &mut self.proposed {
            proposed.asked = Asked::No;
        }
        self.nodes.ask_again();
    }
}
