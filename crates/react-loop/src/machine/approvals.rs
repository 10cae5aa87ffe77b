//! Calls that wait for a person: questions, answers, and the suspension of the run.
//!
//! A question is about exactly one call, and a consent holds only for the binding of its question. A run
//! is suspended only when every other call of the turn has its result. Questions of child runs are
//! answered in the child runs; in this run such an answer only restarts the call.

use std::sync::Arc;

use archon_types::{
    Answer, AnsweredQuestion, ApprovalRequest, ApprovalSettings, CallId, Json, OnDeny, OnExpiry, Outcome,
    OutcomeStatus, QuestionKind, Record, RecordBody, Timestamp, ToolResult, metadata,
};

use super::{Phase, ReactMachine, ReactTask, Step};
use crate::{
    CallStage, CallState,
    calls::{Consent, refusal},
};

impl ReactMachine {
    /// Applies the record of a question to a person, or of an answer.
    pub(super) fn consulted(&mut self, record: &Record) {
        match &record.body {
            RecordBody::ApprovalRequested { call, request } => self.approval_requested(*call, request),
            RecordBody::ApprovalAnswered { call, answer } => self.approval_answered(*call, answer, record.at),
            _ => {}
        }
    }

    fn approval_requested(&mut self, id: CallId, request: &ApprovalRequest) {
        self.suspended = false;
        self.with_call(id, |call| call.ask(request));
    }

    fn approval_answered(&mut self, id: CallId, answer: &Answer, at: Timestamp) {
        self.suspended = false;
        let settings = self.config.approvals.clone().unwrap_or_default();
        let Some(asked) = self.calls().iter().find(|call| call.id == id && call.is_asked()) else { return };
        let is_below = asked.is_asked_by_child_run();
        let is_doubt = asked.questions().any(|request| request.kind == QuestionKind::InDoubt);
        let is_of_tool = asked.questions().any(ApprovalRequest::is_of_tool);
        let before = self.calls().iter().map(|call| call.answer_place).max().unwrap_or_default();
        self.with_call(id, |call| {
            call.answer_place = before.saturating_add(1);
            match is_below {
                true => call.restart(),
                false => call.answered(answer, &settings, at),
            }
        });
        if is_below {
            return;
        }
        if let Answer::Trust { rules } = answer {
            self.trust(rules);
        }
        let aborts = match answer {
            Answer::Cancel { .. } => settings.on_deny == OnDeny::Abort && !is_of_tool,
            Answer::Expired => settings.on_expiry == OnExpiry::Abort,
            _ => false,
        };
        // A refusal of a call in doubt is about that call only, because the call may have run already.
        if aborts && !is_doubt {
            self.cancelled = true;
            self.interrupted.denied();
        }
    }

    /// Returns the permission rules of "always allow" answers, valid for the rest of the session.
    pub(crate) fn trusted(&self) -> &[String] {
        &self.trusted
    }

    fn trust(&mut self, rules: &[String]) {
        for rule in rules {
            if !self.trusted.contains(rule) {
                self.trusted.push(rule.clone());
            }
        }
    }

    /// Returns the call that an open question is about.
    pub(crate) fn call_of_question(&self, request_id: &str, binding: &str) -> Option<CallId> {
        let asks = |call: &&CallState| call.questions().any(|request| request.is_meant(request_id, binding));
        self.calls().iter().find(asks).map(|call| call.id)
    }

    /// Returns all open questions, in the order of the calls.
    pub(crate) fn questions(&self) -> impl Iterator<Item = (CallId, &ApprovalRequest)> {
        self.calls().iter().flat_map(|call| call.questions().map(|request| (call.id, request)))
    }

    /// Returns the command that follows from an answer or an expired question, if there is one.
    pub(super) fn decided(&self, calls: &[CallState]) -> Option<Step> {
        let now = self.meter.now();
        calls.iter().find_map(|call| {
            Some(Step::Append(match &call.stage {
                CallStage::Settled { result, replied: true } => {
                    RecordBody::ToolCallFinished { call: call.id, result: result.clone() }
                }
                CallStage::Settled { result, replied: false } => {
                    RecordBody::ToolCallRefused { call: call.id, result: result.clone() }
                }
                // Questions of child runs expire in the child runs.
                CallStage::Asked { requests, .. }
                    if !call.is_asked_by_child_run()
                        && requests.iter().any(|request| request.is_expired(now)) =>
                {
                    RecordBody::ApprovalAnswered { call: call.id, answer: Answer::Expired }
                }
                _ => return None,
            }))
        })
    }

    /// Returns the next command when each call has its result, must run, or waits for a person.
    pub(super) fn run_or_wait(&self, calls: &[CallState]) -> Step {
        let mut open = calls.iter().filter(|call| call.result().is_none());
        match (open.all(CallState::is_asked), self.suspended) {
            (false, _) => Step::Do(ReactTask::RunCalls),
            (true, false) => Step::Do(ReactTask::Decide),
            (true, true) => Step::Suspend,
        }
    }

    /// Returns the record that suspends the run.
    pub(crate) fn suspension(&self) -> RecordBody {
        let open = self.calls().iter().filter(|call| call.is_asked());
        RecordBody::Suspended { waiting: open.map(|call| call.id).collect() }
    }

    /// Returns the outcome to report if the run is suspended now: its spending so far, and the latest text of the
    /// model.
    pub fn suspended_outcome(&self) -> Outcome {
        self.outcome(OutcomeStatus::Suspended)
    }

    /// Returns true if all open calls wait for people. The time of this wait does not count toward the time
    /// limit.
    pub(super) fn waits_for_people(&self) -> bool {
        let Phase::Acting { calls, .. } = &self.phase else { return false };
        let mut open = calls.iter().filter(|call| call.result().is_none()).peekable();
        open.peek().is_some() && open.all(CallState::is_asked)
    }

    /// Returns the earliest time at which one of the run's own questions expires.
    pub(crate) fn next_expiry(&self) -> Option<Timestamp> {
        self.questions()
            .filter(|(_, request)| request.call_path.is_empty())
            .filter_map(|(_, r)| r.expires_at)
            .min()
    }
}

impl CallState {
    /// Returns true if a person is asked about the call.
    pub(crate) fn is_asked(&self) -> bool {
        matches!(self.stage, CallStage::Asked { .. })
    }

    /// Returns true if the question comes from the call's child run.
    pub(crate) fn is_asked_by_child_run(&self) -> bool {
        self.questions().any(|request| !request.call_path.is_empty())
    }

    /// Returns the open questions about the call.
    pub(crate) fn questions(&self) -> impl Iterator<Item = &ApprovalRequest> {
        match &self.stage {
            CallStage::Asked { requests, .. } => requests.iter(),
            _ => [].iter(),
        }
    }

    fn ask(&mut self, request: &ApprovalRequest) {
        let (attempts, is_begun) = match &mut self.stage {
            CallStage::Asked { requests, .. } => {
                requests.retain(|other| other.request_id != request.request_id);
                return requests.push(request.clone());
            }
            CallStage::Started { attempt, .. } => (*attempt + 1, true),
            CallStage::Requested { attempts }
            | CallStage::InDoubt { attempts }
            | CallStage::Waiting { attempts, .. } => (*attempts, false),
            CallStage::Settled { .. } | CallStage::Finished { .. } => return,
        };
        // A call that runs can only wait for a question of its child run, or of its tool.
        if is_begun && request.call_path.is_empty() && !request.is_of_tool() {
            return;
        }
        self.stage = CallStage::Asked { attempts, requests: vec![request.clone()], escalated: false };
    }

    /// Restarts a call that waits for a person. The new start finds the child run of the call again.
    pub(crate) fn restart(&mut self) {
        if let CallStage::Asked { attempts, .. } = self.stage {
            self.stage = CallStage::Requested { attempts };
        }
    }

    fn answered(&mut self, answer: &Answer, settings: &ApprovalSettings, at: Timestamp) {
        let CallStage::Asked { attempts, requests, escalated } = &mut self.stage else { return };
        let (attempts, is_first) = (*attempts, !*escalated);
        let Some(request) = requests.first_mut() else { return };
        let is_asked_once_more =
            matches!(answer, Answer::Expired) && is_first && settings.on_expiry == OnExpiry::Escalate;
        if request.is_of_tool() && !is_asked_once_more {
            let answered = AnsweredQuestion { request: request.clone(), answer: answer.clone() };
            self.answered = Some(Arc::new(answered));
            self.stage = CallStage::Requested { attempts };
            return;
        }
        // A person who is asked about a call again saw the arguments as they were changed before.
        let earlier = self.consent.as_ref().and_then(|consent| consent.edited.as_ref());
        let edited = match answer {
            Answer::Approve | Answer::Trust { .. } => earlier.cloned(),
            Answer::Edit { arguments } if request.allow_modification => Some(arguments.clone()),
            // The change is not allowed, and the unchanged call has no consent.
            Answer::Edit { .. } => return self.settle(cancelled("it must not be changed")),
            Answer::Expired if is_asked_once_more => {
                let wait = request.timeout_ms.unwrap_or(settings.timeout_ms);
                request.expires_at = Some(at + std::time::Duration::from_millis(wait));
                *escalated = true;
                return;
            }
            Answer::Cancel { .. } | Answer::Expired | Answer::Withdrawn { .. }
                if request.kind == QuestionKind::InDoubt =>
            {
                return self.settle(in_doubt(&self.call.name));
            }
            Answer::Withdrawn { reason } => {
                return self.settle(refusal(reason.clone(), "permission_denied"));
            }
            Answer::Cancel { reason } => return self.settle(cancelled(reason)),
            Answer::Reply { text } => {
                let result = ToolResult::success(text.as_str()).with_metadata(metadata::ANSWERED_BY, PERSON);
                self.stage = CallStage::Settled { result: Arc::new(result), replied: true };
                return;
            }
            _ => return self.settle(refusal(NOBODY_ANSWERED.to_owned(), "approval_expired")),
        };
        self.is_begun &= request.kind != QuestionKind::InDoubt;
        let binding = std::mem::take(&mut request.binding);
        let shown = request.details.get_mut("arguments").map(Json::take);
        let asked =
            edited.is_some().then(|| shown.or(earlier.cloned()).unwrap_or(self.call.arguments.clone()));
        let summary = match request.kind {
            _ if edited.is_some() => None,
            QuestionKind::InDoubt => self.consent.take().and_then(|consent| consent.summary),
            _ => Some(std::mem::take(&mut request.action_summary)),
        };
        self.consent = Some(Consent { binding, edited, asked, summary });
        self.stage = CallStage::Requested { attempts };
    }

    fn settle(&mut self, result: ToolResult) {
        self.stage = CallStage::Settled { result: Arc::new(result), replied: false };
    }
}

/// Returns the result of a call that a person rejected.
fn cancelled(reason: &str) -> ToolResult {
    let text = match reason.trim() {
        "" => CANCELLED_BY_USER.to_owned(),
        reason => format!("{CANCELLED_BY_USER} {reason}"),
    };
    refusal(text, "permission_denied").with_metadata(metadata::ANSWERED_BY, PERSON)
}

/// Returns the result of a call in doubt, which is not repeated.
pub(crate) fn in_doubt(tool: &str) -> ToolResult {
    let text = format!(
        "Error: the effect of this call is unknown: `{tool}` was started and the process died before it \
         ended. It was not run again. Check what it did before you repeat it."
    );
    refusal(text, "in_doubt")
}

/// The value of [`metadata::ANSWERED_BY`] in a result that a person gave.
const PERSON: &str = "person";

const CANCELLED_BY_USER: &str = "User cancelled this action.";
const NOBODY_ANSWERED: &str = "Nobody answered in time whether this may be done, so it was cancelled.";

#[cfg(test)]
mod tests {
    use archon_types::{CommandId, Encoded, RunConfig, ToolCall, ToolMode, ToolSpec};
    use serde_json::json;

    use super::*;
    use crate::text_mode::observation;

    // spec: AP-04, R-26
    #[test]
    fn text_mode_observation_of_a_denied_call_has_the_reason() {
        let mut config = RunConfig::default();
        config.tools = Arc::new(Encoded::new(vec![ToolSpec::new("mail", "Sends a letter.", json!({}))]));
        (config.tool_mode, config.result_tag) = (ToolMode::Text, Some("0badcafe".to_owned()));
        let observed = |answer: Answer| {
            let id = CallId::new(CommandId(0), 0);
            let mut call = CallState::requested(id, ToolCall::new("a", "mail", json!({})));
            call.ask(&ApprovalRequest::new("q", "Send it", json!({})));
            call.answered(&answer, &ApprovalSettings::default(), Timestamp::default());
            let CallStage::Settled { result, .. } = call.stage.clone() else { panic!("{call:?}") };
            call.finish(result, Timestamp::default());
            observation(&call, &config, Timestamp::default()).text()
        };
        let reason = |reason: &str| Answer::Cancel { reason: reason.to_owned() };
        let no = "Observation: Tool mail was not run: User cancelled this action.";
        assert_eq!(observed(reason("")), no);
        assert_eq!(observed(reason("Write to Bob first.")), format!("{no} Write to Bob first."));
        // What a person gives in place of a result is still data.
        let reply = Answer::Reply { text: "sent".to_owned() };
        assert_eq!(observed(reply), "Observation: Tool mail succeeded: <0badcafe>sent</0badcafe>");
    }
}
