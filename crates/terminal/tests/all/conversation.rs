//! Logs to test with: single records, and random conversations with the deltas of their answers.

use std::sync::Arc;

use archon_terminal::{Cells, Page, Printed, Row, Theme};
use archon_testkit::Chance;
use archon_types::{
    Answer, ApprovalRequest, AssistantMessage, CallId, CommandId, Content, Delta, DeltaKind, Effect, Event,
    Message, ModelFailure, Outcome, OutcomeStatus, PromptSource, ProviderError, Record, RecordBody,
    RunConfig, RunId, RunStarted, Timestamp, ToolCall, ToolResult, Usage,
};
use serde_json::json;

pub(crate) fn page(width: usize) -> Page {
    Page::new(width, Theme::new(true))
}

pub(crate) fn texts(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| row.text().trim_end().to_owned()).collect()
}

/// A run whose records are made one by one.
pub(crate) struct Log {
    pub(crate) run: RunId,
    pub(crate) events: Vec<Event>,
    seq: u64,
    pub(crate) now: u64,
}

impl Log {
    pub(crate) fn new(run: &str) -> Self {
        let mut log = Self { run: run.into(), events: Vec::new(), seq: 0, now: 1_000 };
        let mut config = RunConfig::default();
        config.model = "gpt-5-mini".into();
        let started = RunStarted::new(run.into(), "s".into(), "a".into(), "s.default.1".into(), config);
        log.push(RecordBody::RunStarted(Box::new(started)));
        log
    }

    pub(crate) fn push(&mut self, body: RecordBody) {
        let record = Record { seq: self.seq, at: Timestamp::from_millis(self.now), body };
        self.seq += 1;
        self.now += 10;
        self.events.push(Event::Record { run: self.run.clone(), record: Arc::new(record) });
    }

    pub(crate) fn message(&mut self, text: &str) {
        let message = Message::user(text, Timestamp::default()).into();
        self.push(RecordBody::MessageAdded { message, source: PromptSource::Prompt });
    }

    pub(crate) fn model_call_started(&mut self, command: u64, attempt: u32) {
        let (command, request_hash) = (CommandId(command), String::new());
        self.push(RecordBody::ModelCallStarted { command, attempt, turn: 0, request_hash });
    }

    pub(crate) fn delta(&mut self, command: u64, attempt: u32, offset: usize, kind: DeltaKind) {
        let (run, command, offset) = (self.run.clone(), CommandId(command), offset as u64);
        self.events.push(Event::Delta(Delta { run, command, attempt, offset, kind }));
    }

    pub(crate) fn text(&mut self, command: u64, attempt: u32, offset: usize, text: &str) {
        self.delta(command, attempt, offset, DeltaKind::Text { text: text.to_owned() });
    }

    pub(crate) fn failed(&mut self, command: u64, attempt: u32, text: &str, had_output: bool) {
        let error = ProviderError::Network(text.to_owned().into());
        let mut failure = ModelFailure::new(&error, 0.0);
        failure.had_output = had_output;
        self.push(RecordBody::ModelCallFailed { command: CommandId(command), attempt, failure });
    }

    pub(crate) fn answered(&mut self, command: u64, text: &str, calls: &[ToolCall]) {
        let mut content = vec![Content::text(text)];
        content.extend(calls.iter().map(|call| Content::from(call.clone())));
        let usage = Usage { input: 900, output: 100, ..Usage::default() };
        let message = Box::new(AssistantMessage { content, usage, ..AssistantMessage::default() });
        self.push(RecordBody::ModelCallFinished { command: CommandId(command), attempt: 0, message });
    }

    /// A whole answer without calls.
    pub(crate) fn answer(&mut self, command: u64, text: &str) {
        self.model_call_started(command, 0);
        self.answered(command, text, &[]);
    }

    pub(crate) fn call_started(&mut self, call: CallId) {
        let effect = Effect::ReadOnly;
        self.push(RecordBody::ToolCallStarted { call, attempt: 0, effect, child_run: None });
    }

    pub(crate) fn call_finished(&mut self, call: CallId, result: ToolResult) {
        self.push(RecordBody::ToolCallFinished { call, result: Arc::new(result) });
    }

    /// A question, the rest of the run, the answer and the resumption, as in a chat.
    pub(crate) fn question_with_answer(&mut self, call: CallId, summary: &str, answer: Answer) {
        let request = ApprovalRequest::new(format!("ask {}", self.seq), summary, json!({}));
        self.push(RecordBody::ApprovalRequested { call, request: Box::new(request) });
        self.push(RecordBody::Suspended { waiting: vec![call] });
        self.push(RecordBody::ApprovalAnswered { call, answer });
        self.push(RecordBody::Resumed);
    }

    pub(crate) fn finished(&mut self, status: OutcomeStatus, answer: &str) {
        let outcome = Outcome::new(self.run.clone(), status).with_answer(answer);
        self.push(RecordBody::RunFinished(Box::new(outcome)));
    }
}

pub(crate) fn call_id(command: u64, index: u32) -> CallId {
    CallId::new(CommandId(command), index)
}

pub(crate) fn apply(cells: &mut Cells, event: &Event) {
    match event {
        Event::Record { run, record } => cells.apply(run, record),
        Event::Delta(delta) => cells.stream(delta),
        _ => {}
    }
}

/// The rows that are printed if all events are applied before the first look.
pub(crate) fn paper(events: &[Event], page: &Page) -> Vec<Row> {
    let (mut cells, mut printed) = (Cells::default(), Printed::default());
    events.iter().for_each(|event| apply(&mut cells, event));
    printed.take(&cells, page)
}

/// The rows that are printed if a person watches from the first event on.
pub(crate) fn paper_live(events: &[Event], page: &Page) -> Vec<Row> {
    let (mut cells, mut printed) = (Cells::default(), Printed::default());
    let mut rows = Vec::new();
    for event in events {
        apply(&mut cells, event);
        rows.extend(printed.take(&cells, page));
    }
    rows
}

const PIECES: [&str; 30] = [
    "word ",
    "another",
    " ",
    "\n",
    "\n\n",
    "```rust\n",
    "```",
    "~~~\n",
    "\n```\n",
    "    indented code\n",
    "日本語",
    "👨\u{200d}👩\u{200d}👧",
    "e\u{301}",
    "- item\n",
    "\t",
    "\r\n",
    "\x1b[2J",
    "\u{202e}",
    "`code`",
    "# Title\n",
    "a-very-long-word-that-is-wider-than-many-pages-are",
    ". ",
    "**",
    "_",
    "[a](b)",
    "> quote\n",
    "| a | b |\n",
    "|---|---|\n",
    "1. ",
    "<b>",
];

pub(crate) fn any_text(chance: &mut Chance, pieces: u64) -> String {
    let count = chance.below(pieces);
    (0..count).map(|_| PIECES[usize::try_from(chance.below(30)).unwrap()]).collect()
}

/// A random conversation of a few runs. No attempt that had output fails, so all that streams stays.
pub(crate) fn any_conversation(chance: &mut Chance) -> Vec<Event> {
    let mut events = Vec::new();
    for number in 0..1 + chance.below(3) {
        let mut log = Log::new(&format!("run_{number}"));
        let prompt = any_text(chance, 6);
        log.message(&prompt);
        let turns = 1 + chance.below(4);
        for command in 0..turns {
            any_turn(&mut log, chance, command, command + 1 < turns);
        }
        match chance.below(5) {
            0 => log.finished(OutcomeStatus::Cancelled, ""),
            1 => log.finished(OutcomeStatus::Failed, ""),
            // The process died.
            2 => {}
            _ => log.finished(OutcomeStatus::Finished, ""),
        }
        events.append(&mut log.events);
    }
    events
}

fn any_turn(log: &mut Log, chance: &mut Chance, command: u64, has_calls: bool) {
    let mut attempt = 0;
    log.model_call_started(command, attempt);
    while chance.percent(20) {
        log.failed(command, attempt, "connection reset", false);
        attempt += 1;
        log.model_call_started(command, attempt);
    }
    let text = any_text(chance, 40);
    stream(log, chance, command, attempt, &text);
    let calls = if has_calls { 1 + u32::try_from(chance.below(3)).unwrap() } else { 0 };
    let made: Vec<ToolCall> = (0..calls)
        .map(|n| ToolCall::new(format!("c{n}"), "bash", json!({ "command": any_text(chance, 4) })))
        .collect();
    log.answered(command, &text, &made);
    for index in 0..calls {
        any_call(log, chance, call_id(command, index));
    }
}

/// The text in pieces that end anywhere between two characters.
fn stream(log: &mut Log, chance: &mut Chance, command: u64, attempt: u32, text: &str) {
    let mut from = 0;
    while from < text.len() {
        let mut to = from + 1 + usize::try_from(chance.below(12)).unwrap();
        while !text.is_char_boundary(to.min(text.len())) {
            to += 1;
        }
        let to = to.min(text.len());
        log.text(command, attempt, from, &text[from..to]);
        from = to;
    }
}

fn any_call(log: &mut Log, chance: &mut Chance, call: CallId) {
    if chance.percent(30) {
        log.question_with_answer(call, &any_text(chance, 5), Answer::Approve);
    }
    if chance.percent(15) {
        let result = Arc::new(ToolResult::error("not allowed"));
        return log.push(RecordBody::ToolCallRefused { call, result });
    }
    log.call_started(call);
    let command = call.command.0;
    if chance.percent(50) {
        log.delta(command, 0, 0, DeltaKind::ToolProgress { call, text: any_text(chance, 3) });
    }
    log.call_finished(call, ToolResult::success(any_text(chance, 20)));
}
