//! State of a call of an agent tool, folded from the call's log: the fields so far, the open question,
//! the next step. No clock, no I/O.

use std::sync::Arc;

use archon_run::{Machine, Next};
use archon_types::{
    Answer, ApprovalRequest, FailureKind, Json, Outcome, OutcomeStatus, QuestionKind, Record, RecordBody,
    RunId, RunKind, Subject, binding,
};
use serde_json::{Map, json};

use super::{Parts, WORK, instruction, task_of};
use crate::fields::{Filled, INSTRUCTION, InputField, fill};

/// Number of unusable answers after which the call is refused.
const MAX_USELESS: u32 = 5;

const CANCELLED_BY_USER: &str = "User cancelled this action.";

/// State of a call of an agent tool.
pub(super) struct CallInput {
    parts: Arc<Parts>,
    run: RunId,
    /// True if a person can be asked.
    can_ask: bool,
    /// The fields so far, and the model's instruction.
    given: Map<String, Json>,
    /// The open question of this run.
    asked: Option<ApprovalRequest>,
    questions: u32,
    /// Problems with the last answer. `useless` is the number of answers with a problem so far.
    problems: Vec<String>,
    useless: u32,
    /// Schema version (a hash) of the fields at the time of the last question.
    version: Option<String>,
    is_agreed: bool,
    /// True while the child run, which does the work, waits for an answer to its own question.
    waits_below: bool,
    attempts: u32,
    /// True while the agent works in this process.
    is_at_work: bool,
    /// True if the child run has a log.
    is_begun: bool,
    end: Option<End>,
    is_suspended: bool,
    outcome: Option<Outcome>,
}

/// Reason why the call ends without the agent's work.
enum End {
    Refused(String),
    Replied(String),
    Cancelled,
}

/// A task for the agent, and the number of the attempt.
pub(super) struct Work {
    pub(super) attempt: u32,
    pub(super) task: String,
}

impl Machine for CallInput {
    const KIND: RunKind = RunKind::AgentCall;
    type Task = Work;

    fn apply(&mut self, record: &Record) {
        match &record.body {
            RecordBody::MessageAdded { message, .. } => self.given = arguments(message),
            RecordBody::ApprovalRequested { request, .. } => self.ask(request),
            RecordBody::ApprovalAnswered { answer, .. } => self.answered(answer),
            RecordBody::ToolCallStarted { attempt, .. } => {
                (self.attempts, self.is_at_work) = (attempt + 1, true);
            }
            RecordBody::ChildRunCreated { .. } => self.is_begun = true,
            RecordBody::CancelRequested { .. } => self.end = Some(End::Cancelled),
            // A call that was cancelled with its caller goes on, and the child run is looked at again.
            RecordBody::Resumed => {
                if matches!(self.end, Some(End::Cancelled)) {
                    self.end = None;
                }
                (self.outcome, self.waits_below, self.is_at_work) = (None, false, false);
            }
            RecordBody::RunFinished(outcome) => self.outcome = Some((**outcome).clone()),
            _ => {}
        }
        self.is_suspended = matches!(record.body, RecordBody::Suspended { .. });
    }

    fn next(&self) -> Next<Work> {
        if let Some(outcome) = &self.outcome {
            return Next::Done(outcome.clone());
        }
        match &self.end {
            Some(End::Refused(why)) => self.refuse(why.as_str()),
            Some(End::Replied(text)) => {
                let mut outcome = Outcome::new(self.run.clone(), OutcomeStatus::Finished);
                outcome.set_answer(text.as_str());
                finish(outcome)
            }
            Some(End::Cancelled) => finish(Outcome::new(self.run.clone(), OutcomeStatus::Cancelled)),
            None if self.is_at_work => Next::Wait(None),
            None if self.is_stale() => {
                let name = &self.parts.spec.name;
                tracing::warn!(run = %self.run, "`{name}` is not run: its fields have changed since the question");
                self.refuse(format!(
                    "`{name}` has changed since it was asked about, so it was not run. Call it again if it is still wanted."
                ))
            }
            None if self.asked.is_none() && !self.waits_below => self.go_on(),
            None if self.is_suspended => Next::Suspend,
            None => Next::Append(RecordBody::Suspended { waiting: vec![WORK] }),
        }
    }

    fn is_stopping(&self) -> bool {
        matches!(self.end, Some(End::Cancelled))
    }

    fn knows(&self, report: &RecordBody) -> bool {
        self.is_begun && matches!(report, RecordBody::ChildRunCreated { .. })
    }
}

impl CallInput {
    pub(super) fn new(parts: Arc<Parts>, run: RunId, can_ask: bool) -> Self {
        Self {
            parts,
            run,
            can_ask,
            given: Map::new(),
            asked: None,
            questions: 0,
            problems: Vec::new(),
            useless: 0,
            version: None,
            is_agreed: false,
            waits_below: false,
            attempts: 0,
            is_at_work: false,
            is_begun: false,
            end: None,
            is_suspended: false,
            outcome: None,
        }
    }

    /// Returns the open question, unless the call has ended or its fields have changed.
    pub(super) fn question(&self) -> Option<&ApprovalRequest> {
        self.asked.as_ref().filter(|_| self.outcome.is_none() && self.end.is_none() && !self.is_stale())
    }

    /// Returns whether the fields have changed since the last question. False once the work has started,
    /// because the task is then in the child run's log.
    fn is_stale(&self) -> bool {
        self.attempts == 0 && self.version.as_ref().is_some_and(|asked| *asked != self.parts.spec.version)
    }

    /// Returns whether the child run has a log.
    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Returns whether the open question has this id and binding.
    pub(super) fn is_open(&self, request_id: &str, binding: &str) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.is_meant(request_id, binding))
    }

    fn go_on(&self) -> Next<Work> {
        let filled = fill(&self.parts.fields, &self.given);
        if self.attempts == 0 && !self.is_agreed {
            if let Some(problem) = self.parts.cannot_begin(&filled, self.can_ask) {
                return self.refuse(problem);
            }
            if let Some(request) = self.next_question(&filled).map(Box::new) {
                return Next::Append(RecordBody::ApprovalRequested { call: WORK, request });
            }
        }
        Next::Do(Work { attempt: self.attempts, task: task_of(&self.given, &filled.values) })
    }

    fn refuse(&self, why: impl Into<String>) -> Next<Work> {
        finish(Outcome::failed(self.run.clone(), FailureKind::Refused, why))
    }

    /// Returns the question that a person must answer before the agent works; `None` if there is none. The
    /// driver sets the question's expiry.
    fn next_question(&self, filled: &Filled) -> Option<ApprovalRequest> {
        match filled.missing.is_empty() {
            true => self.parts.needs_approval.then(|| self.approval_question(filled)),
            false => Some(self.input_question(filled)),
        }
    }

    /// Returns the question for an approval of the fields.
    fn approval_question(&self, filled: &Filled) -> ApprovalRequest {
        let (name, values) = (&self.parts.spec.name, self.with_instruction(filled));
        let details = json!({ "tool": name, "arguments": values });
        let mut request = self.new_question(format!("Run {name} with {values}"), details);
        request.binding = binding(&self.parts.spec, &values, &Subject::Unknown);
        request
    }

    /// Returns the question for the missing fields.
    fn input_question(&self, filled: &Filled) -> ApprovalRequest {
        let (mut wanted, mut missing) = (Vec::new(), Vec::new());
        for InputField { name, kind, description, .. } in named(&self.parts.fields, &filled.missing) {
            wanted.push(format!("`{name}`: {description}"));
            missing.push(json!({ "name": name, "kind": kind.to_string(), "description": description }));
        }
        let (name, values) = (&self.parts.spec.name, self.with_instruction(filled));
        let details = json!({ "tool": name, "arguments": values, "missing": missing });
        let mut request = self.new_question(format!("{name} needs {}", wanted.join(" ")), details);
        request.kind = QuestionKind::Input;
        request.options = ["reply", "edit", "cancel"].map(str::to_owned).into();
        request
    }

    /// Returns all that the agent will read, as a JSON object: a person approves the instruction, too.
    fn with_instruction(&self, filled: &Filled) -> Json {
        let mut values = filled.values.clone();
        if let Some(text) = instruction(&self.given) {
            values.insert(INSTRUCTION.to_owned(), text.into());
        }
        Json::Object(values)
    }

    /// Returns a new question with a globally unique id. Its text begins with the problems with the last
    /// answer.
    fn new_question(&self, text: String, details: Json) -> ApprovalRequest {
        let problems = self.problems.join("; ");
        let summary = if problems.is_empty() { text } else { format!("{problems}. {text}") };
        let id = format!("{}-q{}", self.run, self.questions);
        let mut request = ApprovalRequest::new(id, summary, details);
        request.agent_name.clone_from(&self.parts.spec.name);
        request.schema_version.clone_from(&self.parts.spec.version);
        request.timeout_ms = Some(self.parts.wait_ms);
        request
    }

    fn ask(&mut self, request: &ApprovalRequest) {
        if !request.call_path.is_empty() {
            (self.waits_below, self.is_at_work) = (true, false);
            return;
        }
        // A question that is paused or asked again has the id of the open one.
        let is_new = self.asked.as_ref().is_none_or(|asked| asked.request_id != request.request_id);
        self.questions += u32::from(is_new);
        self.version = Some(request.schema_version.clone());
        self.asked = Some(request.clone());
    }

    fn answered(&mut self, answer: &Answer) {
        let Some(asked) = self.asked.take() else { return };
        self.problems.clear();
        let is_consent = asked.kind != QuestionKind::Input;
        match answer {
            Answer::Cancel { reason } => {
                let text = format!("{CANCELLED_BY_USER} {}", reason.trim());
                self.end = Some(End::Refused(text.trim_end().to_owned()));
            }
            Answer::Withdrawn { reason } => self.end = Some(End::Refused(reason.clone())),
            Answer::Approve | Answer::Trust { .. } if is_consent => self.is_agreed = true,
            Answer::Edit { arguments: Json::Object(arguments) } => {
                self.take(arguments);
                // The values are what the person approved.
                self.is_agreed = is_consent && self.problems.is_empty();
            }
            Answer::Reply { text } if is_consent => self.end = Some(End::Replied(text.clone())),
            Answer::Reply { text } => self.read(text),
            Answer::Expired => self.end = Some(End::Refused(NOBODY_ANSWERED.to_owned())),
            _ => self.problems.push("That is not an answer to this question".to_owned()),
        }
        self.useless += u32::from(!self.problems.is_empty());
        if self.useless >= MAX_USELESS && self.end.is_none() {
            let (name, problems) = (&self.parts.spec.name, self.problems.join("; "));
            let text = format!("`{name}` was not run: {MAX_USELESS} answers were of no use. {problems}");
            self.end = Some(End::Refused(text));
        }
    }

    /// Stores the values that are valid, and records problems with the others.
    fn take(&mut self, arguments: &Map<String, Json>) {
        for (name, value) in arguments {
            if name == INSTRUCTION {
                match value {
                    Json::String(_) => drop(self.given.insert(name.clone(), value.clone())),
                    Json::Null => drop(self.given.remove(name)),
                    _ => self.problems.push(format!("`{name}` must be a text, and {value} is not")),
                }
                continue;
            }
            let Some(field) = self.parts.fields.iter().find(|field| field.name == *name) else {
                self.problems.push(format!("there is no `{name}`"));
                continue;
            };
            let fitting = field.check(value).map(|()| value.clone());
            // People write numbers as text.
            let read = fitting.or_else(|why| value.as_str().map_or(Err(why), |text| field.read(text)));
            self.store(name.clone(), read);
        }
    }

    /// Stores the values in a person's text: that of the only missing field, or lines `name: value`.
    fn read(&mut self, text: &str) {
        let parts = self.parts.clone();
        let missing = fill(&parts.fields, &self.given).missing;
        let wanted: Vec<_> = named(&parts.fields, &missing).collect();
        if let [field] = wanted[..] {
            return self.store(field.name.clone(), field.read(text));
        }
        let mut is_read = false;
        for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let name = name.trim().trim_matches('`');
            if let Some(field) = wanted.iter().find(|field| field.name.eq_ignore_ascii_case(name)) {
                self.store(field.name.clone(), field.read(value));
                is_read = true;
            }
        }
        if !is_read {
            let why = "More than one thing is missing: write each on a line of its own, as `name: value`";
            self.problems.push(why.to_owned());
        }
    }

    fn store(&mut self, name: String, value: Result<Json, String>) {
        match value {
            Ok(value) => drop(self.given.insert(name, value)),
            Err(why) => self.problems.push(why),
        }
    }
}

fn named<'b>(fields: &'b [InputField], names: &'b [String]) -> impl Iterator<Item = &'b InputField> {
    fields.iter().filter(|field| names.contains(&field.name))
}

fn arguments(message: &archon_types::AgentMessage) -> Map<String, Json> {
    let text = message.as_llm().map(archon_types::Message::text).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn finish(outcome: Outcome) -> Next<Work> {
    Next::Append(RecordBody::RunFinished(Box::new(outcome)))
}

const NOBODY_ANSWERED: &str = "Nobody answered in time whether this may be done, so it was cancelled.";
