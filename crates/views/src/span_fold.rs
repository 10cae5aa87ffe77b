//! The fold that makes the spans of a timeline from the records of a run.

use std::collections::HashMap;

use archon_types::{
    Answer, AssistantMessage, AuxiliaryCall, CallId, CommandId, FallbackModel, FallbackStep, ModelPrice,
    ParallelBranch, PlanRecord, Record, RecordBody, RunId, RunStarted, Spending, StopReason, ToolCall,
    ToolResult, ToolResultStatus, Usage, one_line,
};

use crate::{
    open_spans::{Key, OpenSpans},
    span::{Span, SpanKind, SpanStatus},
    subtasks::Subtasks,
    text_sources::short_text_in,
};

/// The number of characters of a label.
const LABEL: usize = 120;

/// The spans of a run so far.
#[derive(Debug, Default)]
pub(crate) struct SpanFold {
    spans: OpenSpans,
    subtasks: Subtasks,
    /// The index of the span of each step of a plan.
    steps: HashMap<CommandId, usize>,
    /// The index of the last span of each call.
    calls: HashMap<CallId, usize>,
    /// The calls that models asked for, with their labels.
    labels: HashMap<CallId, String>,
    /// The id of the span of each model call that has an answer, by its command.
    answers: HashMap<CommandId, String>,
    model: String,
    price: Option<ModelPrice>,
    fallbacks: Vec<FallbackModel>,
    resumed_ms: u64,
    last_ms: u64,
    last_seq: u64,
}

impl SpanFold {
    /// Applies the next record of the run.
    pub(crate) fn apply(&mut self, record: &Record) {
        let (seq, ms) = (record.seq, record.at.as_millis());
        self.subtasks.apply(record);
        match &record.body {
            RecordBody::RunStarted(started) => self.start(started),
            RecordBody::Plan(plan) => self.apply_plan(plan, seq, ms),
            RecordBody::ParallelStarted { branches, .. } => self.start_branches(branches, seq, ms),
            RecordBody::ParallelFinished(choice) => self.end_branches(&choice.usage, ms),
            body if body.is_resumption() => self.resume(ms),
            body => {
                self.apply_model(body, seq, ms);
                self.apply_call(body, seq, ms);
                self.apply_wait(body, seq, ms);
            }
        }
        (self.last_seq, self.last_ms) = (seq, ms);
    }

    /// Returns all spans, in no particular order.
    pub(crate) fn into_spans(self) -> Vec<Span> {
        self.spans.into_spans()
    }

    fn apply_model(&mut self, body: &RecordBody, seq: u64, ms: u64) {
        match body {
            RecordBody::ModelCallStarted { command, .. } => {
                let span = Span::new(SpanKind::Model, self.model.clone(), seq, ms);
                self.spans.begin(Key::Model(*command), span);
            }
            RecordBody::ModelCallFinished { command, message, .. } => {
                self.take_model_answer(*command, message, ms);
            }
            RecordBody::ModelCallFailed { command, failure, .. } => {
                self.spans.end(&Key::Model(*command), ms, SpanStatus::Failed);
                if failure.retryable {
                    self.spans.pause(Key::Model(*command), short(&failure.message), seq, ms);
                }
            }
            RecordBody::ModelCallLost { command, .. } => {
                self.spans.end(&Key::Model(*command), ms, SpanStatus::Lost);
            }
            RecordBody::FallbackSelected { command, fallback, .. } => {
                self.spans.forget_pause(&Key::Model(*command));
                if let FallbackStep::NextModel { fallback, model, .. } = fallback {
                    let place = usize::try_from(*fallback).ok().and_then(|number| number.checked_sub(1));
                    self.price = place.and_then(|place| self.fallbacks.get(place)?.price);
                    self.model.clone_from(model);
                }
            }
            RecordBody::AuxiliaryCallStarted { purpose, .. } => {
                let name = name_of(*purpose);
                self.spans.begin(Key::Auxiliary(name), Span::new(SpanKind::Model, name, seq, ms));
            }
            RecordBody::Summarized(summary) => {
                self.end_model(&Key::Auxiliary(name_of(AuxiliaryCall::Summary)), &summary.usage, ms);
            }
            RecordBody::GoalChecked(verdict) => {
                self.end_model(&Key::Auxiliary(name_of(AuxiliaryCall::GoalCheck)), &verdict.usage, ms);
            }
            _ => {}
        }
    }

    fn apply_call(&mut self, body: &RecordBody, seq: u64, ms: u64) {
        match body {
            RecordBody::ToolCallStarted { call, child_run, .. } => {
                self.end_questions(*call, ms, SpanStatus::Completed);
                self.start_call(*call, child_run.as_ref(), seq, ms);
            }
            RecordBody::ChildRunCreated { call, child_run } => {
                if let Some(span) = self.calls.get(call).and_then(|place| self.spans.get_mut(*place)) {
                    (span.kind, span.child_run) = (SpanKind::Child, Some(child_run.clone()));
                }
            }
            RecordBody::LeaseSettled { call, spent, .. } => {
                if let Some(span) = self.calls.get(call).and_then(|place| self.spans.get_mut(*place)) {
                    span.spend(*spent);
                }
            }
            RecordBody::ToolCallFailed { call, result, .. } => {
                self.spans.end(&Key::Call(*call), ms, SpanStatus::Failed);
                self.spans.pause(Key::Call(*call), short(&result.text()), seq, ms);
            }
            RecordBody::ToolCallFinished { call, result } => {
                self.end_questions(*call, ms, SpanStatus::Completed);
                self.finish_call(*call, status_of(result), seq, ms);
            }
            RecordBody::ToolCallRefused { call, .. } => {
                self.end_questions(*call, ms, SpanStatus::Refused);
                self.spans.forget_pause(&Key::Call(*call));
                self.spans.end(&Key::Call(*call), ms, SpanStatus::Refused);
                self.end_step(call.command, ms, SpanStatus::Refused);
            }
            _ => {}
        }
    }

    fn apply_wait(&mut self, body: &RecordBody, seq: u64, ms: u64) {
        match body {
            RecordBody::ApprovalRequested { call, request } => {
                let key = Key::Question(*call, request.request_id.clone());
                if self.spans.open(&key).is_none() {
                    let question = Span::new(SpanKind::Wait, short(&request.action_summary), seq, ms);
                    let parent = self.parent_of_question(*call);
                    self.spans.begin(key, question.below(parent));
                }
            }
            RecordBody::ApprovalAnswered { call, answer } => {
                let status = match answer {
                    Answer::Expired => SpanStatus::Expired,
                    Answer::Cancel { .. } | Answer::Withdrawn { .. } => SpanStatus::Refused,
                    _ => SpanStatus::Completed,
                };
                self.end_questions(*call, ms, status);
            }
            RecordBody::Suspended { .. } => {
                self.end_work(ms, SpanStatus::Suspended);
                if !self.spans.is_waiting() {
                    self.spans.begin(Key::Rest, Span::new(SpanKind::Wait, "suspended", seq, ms));
                }
            }
            RecordBody::RunFinished(_) => {
                self.end_work(ms, SpanStatus::Cancelled);
                self.spans.end_all(ms, SpanStatus::Cancelled, |_| true);
                self.spans.forget_pauses();
            }
            _ => {}
        }
    }

    fn apply_plan(&mut self, record: &PlanRecord, seq: u64, ms: u64) {
        match record {
            PlanRecord::PlanningStarted { command, .. } => {
                self.spans.begin(Key::Model(*command), Span::new(SpanKind::Model, "plan", seq, ms));
            }
            PlanRecord::AnswerStarted { command } => {
                self.spans.begin(Key::Model(*command), Span::new(SpanKind::Model, "answer", seq, ms));
            }
            PlanRecord::PlanningPaid { command, spent } => self.spend(&Key::Model(*command), *spent),
            PlanRecord::Planned { command, .. } | PlanRecord::Replanned { command, .. } => {
                self.spans.end(&Key::Model(*command), ms, SpanStatus::Completed);
            }
            PlanRecord::Rejected { command, .. } | PlanRecord::AnswerFailed { command, .. } => {
                self.spans.end(&Key::Model(*command), ms, SpanStatus::Failed);
            }
            PlanRecord::AnswerFinished { command, spent, .. } => {
                self.spend(&Key::Model(*command), *spent);
                self.spans.end(&Key::Model(*command), ms, SpanStatus::Completed);
            }
            PlanRecord::Paused { reason } => {
                let label = short(&format!("paused: {reason}"));
                self.spans.begin(Key::Pause, Span::new(SpanKind::Wait, label, seq, ms));
            }
            PlanRecord::Unpaused => self.spans.end(&Key::Pause, ms, SpanStatus::Completed),
            _ => {}
        }
    }

    fn start(&mut self, started: &RunStarted) {
        self.model.clone_from(&started.config.model);
        self.price = started.config.price;
        let policy = started.config.failure_policy.as_ref();
        self.fallbacks = policy.map(|policy| policy.fallbacks.clone()).unwrap_or_default();
    }

    fn take_model_answer(&mut self, command: CommandId, message: &AssistantMessage, ms: u64) {
        let calls = message.tool_calls().map(label_of);
        self.labels.extend((0..).map(|index| CallId::new(command, index)).zip(calls));
        let key = Key::Model(command);
        if let Some(span) = self.spans.open_mut(&key) {
            if !message.model.is_empty() {
                span.label.clone_from(&message.model);
            }
            self.answers.insert(command, span.id.clone());
        }
        match message.stop_reason {
            StopReason::Error | StopReason::Aborted => self.spans.end(&key, ms, SpanStatus::Failed),
            _ => self.end_model(&key, &message.usage, ms),
        }
    }

    fn start_call(&mut self, call: CallId, child_run: Option<&RunId>, seq: u64, ms: u64) {
        let step = self.start_step(call.command, seq, ms);
        let label = match &step {
            Some((_, label)) => label.clone(),
            None => self.labels.get(&call).cloned().unwrap_or_else(|| format!("call {call}")),
        };
        let kind = if child_run.is_some() { SpanKind::Child } else { SpanKind::Tool };
        let parent = step.map(|(id, _)| id).or_else(|| self.answers.get(&call.command).cloned());
        let mut span = Span::new(kind, label, seq, ms).below(parent);
        span.child_run = child_run.cloned();
        let place = self.spans.begin(Key::Call(call), span);
        self.calls.insert(call, place);
    }

    /// Begins or reopens the span of the step that a call belongs to. Returns the id of this span, and the label of the
    /// call; `None` if the call belongs to no step.
    fn start_step(&mut self, command: CommandId, seq: u64, ms: u64) -> Option<(String, String)> {
        let node = self.subtasks.of_command(command)?;
        let (id, what) = (&node.subtask.id, &node.subtask.description);
        let (step, label) = (short(&format!("{id}: {what}")), node.by.as_deref().unwrap_or(id.as_str()));
        let label = short(label);
        let new = || self.spans.push(Span::new(SpanKind::Step, step, seq, ms));
        let place = *self.steps.entry(command).or_insert_with(new);
        let span = self.spans.get_mut(place)?;
        (span.to_ms, span.status) = (None, SpanStatus::Running);
        Some((span.id.clone(), label))
    }

    fn end_step(&mut self, command: CommandId, ms: u64, status: SpanStatus) {
        if let Some(step) = self.steps.get(&command).and_then(|place| self.spans.get_mut(*place)) {
            step.end(ms, status);
        }
    }

    fn finish_call(&mut self, call: CallId, status: SpanStatus, seq: u64, ms: u64) {
        self.spans.forget_pause(&Key::Call(call));
        let key = Key::Call(call);
        let last = self.calls.get(&call).and_then(|place| self.spans.get(*place));
        // The call waited for a person, and went on without a new start.
        if self.spans.open(&key).is_none()
            && let Some(last) = last
            && last.status == SpanStatus::Suspended
        {
            let from = last.to_ms.unwrap_or_default().max(self.resumed_ms);
            let mut span = Span::new(last.kind, last.label.clone(), seq, from).below(last.parent.clone());
            span.child_run.clone_from(&last.child_run);
            let place = self.spans.begin(key.clone(), span);
            self.calls.insert(call, place);
        }
        self.spans.end(&key, ms, status);
        self.end_step(call.command, ms, status);
    }

    fn start_branches(&mut self, branches: &[ParallelBranch], seq: u64, ms: u64) {
        for (number, branch) in branches.iter().enumerate() {
            let mut span = Span::new(SpanKind::Child, branch.loop_id.as_str(), seq, ms);
            span.id = format!("{}.{number}", span.id);
            span.child_run = Some(branch.run.clone());
            self.spans.begin(Key::Branch(number), span);
        }
    }

    fn end_branches(&mut self, choice: &Usage, ms: u64) {
        self.spans.end_all(ms, SpanStatus::Completed, |key| matches!(key, Key::Branch(_)));
        self.end_model(&Key::Auxiliary(name_of(AuxiliaryCall::BranchChoice)), choice, ms);
    }

    fn resume(&mut self, ms: u64) {
        let was_waiting = self.spans.is_waiting();
        self.spans.end(&Key::Rest, ms, SpanStatus::Completed);
        self.end_work(self.last_ms, SpanStatus::Lost);
        if !was_waiting && ms > self.last_ms {
            let label = "no process worked on the run";
            let mut gap = Span::new(SpanKind::Wait, label, self.last_seq, self.last_ms);
            gap.end(ms, SpanStatus::Completed);
            self.spans.push(gap);
        }
        self.resumed_ms = ms;
    }

    /// Ends the span of a request that a model has answered.
    fn end_model(&mut self, key: &Key, usage: &Usage, ms: u64) {
        if let Some(span) = self.spans.open_mut(key) {
            span.tokens = Some(Usage { total_tokens: usage.total(), ..*usage });
            span.cost_micros = self.price.map(|price| price.cost(usage));
            span.cached_share = Some(usage.cache_hit_rate());
        }
        self.spans.end(key, ms, SpanStatus::Completed);
    }

    fn spend(&mut self, key: &Key, spent: Spending) {
        if let Some(span) = self.spans.open_mut(key) {
            span.spend(spent);
        }
    }

    /// Ends everything that a process works on.
    fn end_work(&mut self, ms: u64, status: SpanStatus) {
        self.spans.end_all(ms, status, |key| !key.is_wait());
        for place in self.steps.values() {
            if let Some(step) = self.spans.get_mut(*place).filter(|step| step.to_ms.is_none()) {
                step.end(ms, status);
            }
        }
    }

    fn end_questions(&mut self, call: CallId, ms: u64, status: SpanStatus) {
        self.spans.end_all(ms, status, |key| matches!(key, Key::Question(of, _) if *of == call));
    }

    fn parent_of_question(&self, call: CallId) -> Option<String> {
        let started = self.spans.open(&Key::Call(call)).map(|span| span.id.clone());
        let step = || self.spans.get(*self.steps.get(&call.command)?).map(|span| span.id.clone());
        started.or_else(step).or_else(|| self.answers.get(&call.command).cloned())
    }
}

const fn name_of(purpose: AuxiliaryCall) -> &'static str {
    match purpose {
        AuxiliaryCall::Summary => "summary",
        AuxiliaryCall::GoalCheck => "goal check",
        AuxiliaryCall::BranchChoice => "choice of a branch",
        _ => "auxiliary call",
    }
}

fn status_of(result: &ToolResult) -> SpanStatus {
    match result.status {
        ToolResultStatus::Success => SpanStatus::Completed,
        ToolResultStatus::Cancelled => SpanStatus::Cancelled,
        _ => SpanStatus::Failed,
    }
}

/// Returns the tool of a call with its first short argument.
fn label_of(call: &ToolCall) -> String {
    let call = call.target();
    short(&format!("{} {}", call.name, short_text_in(&call.arguments)))
}

fn short(text: &str) -> String {
    one_line(text, LABEL)
}
