//! Shows a run to people: thoughts dim, tool calls with arguments and elapsed time, the answer plain.
//!
//! Only the answer goes to stdout, so that it can be piped. On a terminal, text is shown while it streams;
//! otherwise in whole lines once it is complete.

use std::collections::HashMap;

use archon::types::{
    AssistantMessage, CallId, CommandId, Content, Delta, DeltaKind, Event, ModelErrorCode, ModelFailure,
    Outcome, OutcomeStatus, Record, RecordBody, RunId, RunStarted, StopReason, Timestamp, ToolCall, ToolMode,
    ToolResult, ToolResultStatus,
};

use super::{Render, View, line::written_text, plan::PlanView, stream::Stream, team::TeamView};
use crate::{
    output::{Look, Output},
    text::{one_line, seconds},
};

/// The maximum number of shown characters of a tool's arguments and of its result.
const SHOWN: usize = 120;

#[derive(Debug, Default)]
pub(super) struct Human {
    /// The main run. Of its child runs only the tool calls are shown.
    run: Option<RunId>,
    began: Option<Timestamp>,
    text_mode: bool,
    calls: HashMap<CallId, (ToolCall, Option<Timestamp>)>,
    stream: Stream,
    /// The states of the run as a plan and as a team, while it may be one; empty as soon as the run calls a
    /// model itself.
    views: Vec<Box<dyn View>>,
    /// The streamed text of the last answer, which is not shown again at the end.
    shown: String,
    session: String,
    /// The context window of the model in tokens.
    window: Option<u64>,
    /// The number of tokens of the last request and its answer.
    filled: u64,
    /// The last failure of the model; an equal failure is not shown twice.
    failure: String,
    /// The limit that the run reached; later notes about the limit are not shown.
    limit: Option<String>,
    /// True if the last answer was cut off.
    is_cut: bool,
}

impl Render for Human {
    fn event(&mut self, event: &Event, output: &Output) {
        let (Event::Record { run, .. } | Event::Delta(Delta { run, .. })) = event else { return };
        if self.run.get_or_insert_with(|| run.clone()) != run {
            if let Event::Record { record, .. } = event {
                self.views.iter_mut().for_each(|view| view.apply(run, record, output));
            }
            return;
        }
        match event {
            Event::Record { record, .. } => self.record(record, output),
            Event::Delta(delta) => self.delta(delta, output),
            _ => {}
        }
    }

    fn remember(&mut self, record: &Record) {
        match &record.body {
            RecordBody::RunStarted(started) => {
                self.text_mode = started.config.tool_mode == ToolMode::Text;
                self.session = started.session.to_string();
                self.window = started.config.context.as_ref().map(|context| context.max_context_tokens);
                let (plan, team) = (PlanView::new(started, record.at), TeamView::new(started, record.at));
                self.views = vec![Box::new(plan), Box::new(team)];
            }
            RecordBody::ModelCallStarted { .. } => self.views.clear(),
            RecordBody::ModelCallFinished { command, message, .. } => {
                self.filled = message.usage.total();
                self.is_cut = message.stop_reason == StopReason::Aborted;
                self.failure.clear();
                self.learn_calls(*command, message);
            }
            RecordBody::ModelCallFailed { failure, .. } => {
                self.is_cut = failure.had_output || failure.code == ModelErrorCode::Cancelled
            }
            _ => {}
        }
        self.views.iter_mut().for_each(|view| view.learn(record));
    }
}

impl Human {
    fn record(&mut self, record: &Record, output: &Output) {
        self.began.get_or_insert(record.at);
        self.remember(record);
        if self.views.iter().any(|view| view.show(record, output)) {
            return;
        }
        match &record.body {
            RecordBody::RunStarted(started) => show_start(started, output),
            RecordBody::MessageAdded { message, .. } => {
                output.note(Look::Dim, format!("> {}", one_line(&written_text(message), 2 * SHOWN)));
            }
            RecordBody::ModelCallStarted { .. } => self.begin_request(output),
            RecordBody::ModelCallFinished { message, .. } => self.answered(message, output),
            RecordBody::ModelCallFailed { attempt, failure, .. } => self.failed(*attempt, failure, output),
            RecordBody::ToolCallStarted { call, attempt, .. } => {
                self.tool_call_started(call, *attempt, record.at, output)
            }
            RecordBody::ToolCallFailed { call, result, .. } => {
                self.tool_ended(call, result, record.at, output);
                output.note(Look::Dim, "   the call is retried");
            }
            RecordBody::ToolCallFinished { call, result } => self.tool_ended(call, result, record.at, output),
            RecordBody::ToolCallRefused { call, result } => {
                self.tool_call_started(call, 0, record.at, output);
                self.tool_ended(call, result, record.at, output);
            }
            RecordBody::ApprovalRequested { request, .. } => {
                output.note(Look::Warning, format!("? {}", one_line(&request.action_summary, SHOWN)));
            }
            RecordBody::CancelRequested { .. } => {
                self.stream.close_line(output);
                output.note(Look::Dim, "cancelling");
            }
            // The last line names the limit.
            RecordBody::LimitReached(limit) => {
                self.limit = Some(limit.to_string());
                self.stream.close_line(output);
            }
            RecordBody::RunFinished(outcome) => self.finished(outcome, record.at, output),
            body => self.note(body, output),
        }
    }

    /// Shows a record about the run as a whole.
    fn note(&self, body: &RecordBody, output: &Output) {
        match body {
            RecordBody::FallbackSelected { fallback: step, .. } => {
                output.note(Look::Warning, one_line(&step.to_string(), SHOWN));
            }
            RecordBody::LogUnavailable { reason } => {
                let why = one_line(reason, 2 * SHOWN);
                output.note(Look::Warning, format!("the log of this run is not stored: {why}"));
            }
            RecordBody::ModelCallLost { .. } => {
                output.note(Look::Dim, "the last answer was lost: the model is called again")
            }
            RecordBody::Resumed if self.is_cut => {
                output.note(Look::Dim, "resumed; the interrupted answer is given again from its beginning");
            }
            RecordBody::Resumed => output.note(Look::Dim, "resumed"),
            RecordBody::Compacted(c) => output.note(
                Look::Dim,
                format!("  conversation compacted: {} to {} tokens", c.tokens_before, c.tokens_after),
            ),
            RecordBody::InstructionsRead { .. } => {
                output.note(Look::Dim, "  read the project's instructions")
            }
            RecordBody::WorkspaceSnapshot(snapshot) => {
                if let Some(problem) = &snapshot.problem {
                    output.note(
                        Look::Warning,
                        format!("this run cannot be undone: {}", one_line(problem, 2 * SHOWN)),
                    );
                }
            }
            RecordBody::HintAdded { text }
                if self.limit.as_ref().is_some_and(|limit| text.contains(limit)) => {}
            RecordBody::HintAdded { text } => output.note(Look::Dim, format!("  {}", one_line(text, SHOWN))),
            _ => {}
        }
    }

    fn begin_request(&mut self, output: &Output) {
        self.stream = if self.text_mode { Stream::text_mode() } else { Stream::native() };
        output.wait("thinking");
    }

    fn learn_calls(&mut self, command: CommandId, message: &AssistantMessage) {
        let id = |index| CallId::new(command, index);
        self.calls.extend((0..).zip(message.tool_calls()).map(|(i, call)| (id(i), (call.target(), None))));
    }

    fn answered(&mut self, message: &AssistantMessage, output: &Output) {
        output.stop_waiting();
        let live = self.stream.began;
        self.shown = self.stream.end(output);
        if live {
            return;
        }
        for content in &message.content {
            match content {
                Content::Thinking { thinking, .. } => thought(thinking, output),
                // Text before a call is a thought; text alone is the answer, which is in the outcome.
                Content::Text { text } if message.tool_calls().next().is_some() => thought(text, output),
                _ => {}
            }
        }
    }

    fn failed(&mut self, attempt: u32, failure: &ModelFailure, output: &Output) {
        self.stream.end(output);
        let attempt = attempt + 1;
        if failure.code == ModelErrorCode::Cancelled {
            return;
        }
        if !failure.had_output
            && std::mem::replace(&mut self.failure, failure.message.clone()) == failure.message
        {
            return output.wait(&format!("thinking (attempt {attempt} failed in the same way)"));
        }
        let what = one_line(&failure.message, 2 * SHOWN);
        let void = if failure.had_output { ", its partial answer is discarded" } else { "" };
        output.note(Look::Warning, format!("the model call failed (attempt {attempt}{void}): {what}"));
    }

    fn tool_call_started(&mut self, id: &CallId, attempt: u32, at: Timestamp, output: &Output) {
        let Some((call, began)) = self.calls.get_mut(id) else { return };
        *began = Some(at);
        let arguments = match &call.malformed {
            Some(malformed) => malformed.text.clone(),
            None => call.arguments.to_string(),
        };
        let again = if attempt > 0 { " (again)" } else { "" };
        let (name, arguments) = (one_line(&call.name, SHOWN), one_line(&arguments, SHOWN));
        output.note(Look::Plain, format!("-> {name} {arguments}{again}"));
        output.wait(&name);
    }

    fn tool_ended(&mut self, id: &CallId, result: &ToolResult, at: Timestamp, output: &Output) {
        let Some((call, began)) = self.calls.get(id) else { return };
        let name = one_line(&call.name, SHOWN);
        let elapsed = seconds(began.unwrap_or(at), at);
        let text = match result.child_run {
            // An agent's result is for its caller only.
            Some(_) if !result.is_error() => "Complete".to_owned(),
            _ => one_line(&Content::join_text(&result.content), SHOWN),
        };
        let look = if result.status == ToolResultStatus::Success { Look::Plain } else { Look::Warning };
        output.note(look, format!("<- {name}: {text} ({elapsed})"));
    }

    fn finished(&mut self, outcome: &Outcome, at: Timestamp, output: &Output) {
        output.stop_waiting();
        self.views.iter().for_each(|view| view.leave(output));
        self.stream.close_line(output);
        let answer = outcome.last_text().unwrap_or_default().trim();
        // If a limit left no answer, the outcome has the limit's name instead, which the last line shows.
        let is_limit = matches!(outcome.status, OutcomeStatus::Limit(limit) if answer == limit.to_string());
        if !answer.is_empty() && answer != self.shown && !is_limit {
            output.line(answer);
        }
        let mut parts = vec![
            self.work(outcome),
            format!("{} tokens", outcome.usage.total() + outcome.child_spending.tokens),
        ];
        parts.extend(format_cost(outcome));
        parts.extend(self.format_share_of_window());
        parts.push(seconds(self.began.unwrap_or(at), at));
        parts.push(format!("session {}", self.session));
        output.note(Look::Dim, format!("{}: {}", name_ending(outcome), parts.join(", ")));
    }

    fn work(&self, outcome: &Outcome) -> String {
        self.views.iter().find_map(|view| view.work()).unwrap_or_else(|| {
            let plural = if outcome.turns == 1 { "" } else { "s" };
            format!("{} turn{plural}", outcome.turns)
        })
    }

    /// Returns the share of the context window that the last request and answer used.
    fn format_share_of_window(&self) -> Option<String> {
        let window = self.window.filter(|window| *window > 0 && self.filled > 0)?;
        Some(match self.filled.saturating_mul(100) / window {
            0 => "less than 1 % of the window".to_owned(),
            percent => format!("{percent} % of the window"),
        })
    }

    fn delta(&mut self, delta: &Delta, output: &Output) {
        match &delta.kind {
            DeltaKind::Thinking { text } if output.spins => self.stream.thought(text, output),
            DeltaKind::Text { text } if output.live && output.spins => self.stream.text(text, output),
            DeltaKind::ToolCallStarted { name, .. } if output.spins => {
                self.stream.close_line(output);
                output.wait(&one_line(name, SHOWN));
            }
            DeltaKind::ToolProgress { text, .. } => {
                output.note(Look::Dim, format!("   {}", one_line(text, SHOWN)))
            }
            DeltaKind::ToolPartialResult { result, .. } => {
                output.note(Look::Dim, format!("   {}", one_line(&result.text(), SHOWN)));
            }
            _ => {}
        }
    }
}

fn name_ending(outcome: &Outcome) -> String {
    let is_empty = outcome.last_text().unwrap_or_default().trim().is_empty();
    let ending = match outcome.status {
        OutcomeStatus::Finished if is_empty => "finished with an empty answer",
        OutcomeStatus::Finished if outcome.is_refusal() => "finished; the model declined",
        OutcomeStatus::Finished if outcome.is_cut() => {
            "finished; the answer was cut off at the maximum number of tokens"
        }
        OutcomeStatus::Finished => "finished",
        OutcomeStatus::Limit(limit) => return limit.to_string(),
        OutcomeStatus::Cancelled => "cancelled",
        OutcomeStatus::Suspended => "waiting",
        _ => "failed",
    };
    ending.to_owned()
}

/// Returns the cost of the run, if its models have prices.
fn format_cost(outcome: &Outcome) -> Option<String> {
    let is_known = outcome.cost_micros.is_some() || outcome.child_spending.cost_micros > 0;
    is_known.then(|| match outcome.spending().cost_micros {
        0 => "$0".to_owned(),
        1..100 => "less than $0.0001".to_owned(),
        cost => format!("${}.{:04}", cost / 1_000_000, cost % 1_000_000 / 100),
    })
}

fn show_start(started: &RunStarted, output: &Output) {
    let (run, config) = (&started.run, &started.config);
    if config.model.is_empty() {
        // A team has no model of its own.
        return output.note(Look::Dim, format!("run {run}"));
    }
    let model = one_line(&config.model, SHOWN);
    output.note(Look::Dim, format!("run {run}, model {model} ({})", one_line(&config.provider, SHOWN)));
}

fn thought(text: &str, output: &Output) {
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        output.note(Look::Dim, format!("   {}", line.trim_end()));
    }
}
