//! A plan while it is followed, for people: the plan when it is made, a line when a subtask begins and when it ends.

use archon::{
    planner::{PlanFormat, PlanMachine, PlanNode, render, show_diff},
    types::{
        CallId, Content, PlanRecord, Record, RecordBody, RunStarted, Timestamp, ToolResult, ToolResultStatus,
    },
};

use super::human::seconds;
use crate::{
    output::{Look, Output},
    text::{one_line, printable},
};

/// Characters of a subtask's description and of its result that are shown.
const SHOWN: usize = 120;

/// What is known of a plan so far.
#[derive(Debug)]
pub(super) struct PlanView(Box<PlanMachine>);

impl PlanView {
    pub(super) fn new(started: &RunStarted, at: Timestamp) -> Self {
        Self(Box::new(PlanMachine::new(started, at)))
    }

    /// Learns from a record that follows the first one.
    pub(super) fn learn(&mut self, record: &Record) {
        if !matches!(record.body, RecordBody::RunStarted(_)) {
            self.0.apply(record);
        }
    }

    /// Shows a record that was learnt, and says whether it was one of the plan's own.
    pub(super) fn show(&self, record: &Record, output: &Output) -> bool {
        match &record.body {
            RecordBody::Plan(said) => self.said(said, output),
            RecordBody::ToolStarted { call, attempt, .. } => {
                let Some(node) = self.0.node(*call) else { return false };
                self.began(node, *attempt, output);
            }
            RecordBody::ToolFailed { call, result, .. }
            | RecordBody::ToolFinished { call, result }
            | RecordBody::ToolRefused { call, result } => {
                let Some(node) = self.0.node(*call) else { return false };
                self.ended(node, result, record.at, output);
            }
            _ => return false,
        }
        true
    }

    /// How much was done, and the tokens that it took, if there is a plan.
    pub(super) fn work(&self) -> Option<(String, u64)> {
        let (done, all) = self.done();
        (all > 0).then(|| (format!("{done} of {all} subtasks"), self.0.spending().tokens))
    }

    fn done(&self) -> (usize, usize) {
        (self.0.nodes().filter(|node| node.lets_go()).count(), self.0.nodes().count())
    }

    fn said(&self, said: &PlanRecord, output: &Output) {
        match said {
            PlanRecord::Asked { attempt, reason, .. } => {
                if let (0, Some(reason)) = (attempt, reason) {
                    output.note(Look::Warning, format!("planning again: {}", one_line(reason, 2 * SHOWN)));
                }
                output.wait("planning");
            }
            PlanRecord::Made { task, warnings, .. } => {
                output.stop_waiting();
                output.note(Look::Dim, "the plan (* is the longest way):");
                lines(Look::Dim, &render(task, PlanFormat::Text), output);
                warnings.iter().for_each(|w| output.note(Look::Warning, one_line(w, 2 * SHOWN)));
            }
            PlanRecord::Rejected { problems, .. } => {
                output.note(Look::Warning, "that is no plan that can be followed:");
                let problem =
                    |p: &String| output.note(Look::Warning, format!("  {}", one_line(p, 4 * SHOWN)));
                problems.iter().for_each(problem);
            }
            PlanRecord::Changed { diff, warnings, .. } => {
                output.note(Look::Dim, "the plan changes:");
                lines(Look::Dim, &show_diff(diff), output);
                warnings.iter().for_each(|w| output.note(Look::Warning, one_line(w, 2 * SHOWN)));
            }
            PlanRecord::Skipped { call, reason } => {
                let id = self.name(*call);
                output.note(Look::Dim, format!("-- {id} is skipped: {}", one_line(reason, SHOWN)));
            }
            PlanRecord::Paused { reason } => {
                output.note(Look::Dim, format!("paused: {}", one_line(reason, SHOWN)));
            }
            PlanRecord::Unpaused => output.note(Look::Dim, "going on"),
            PlanRecord::Concluding { .. } => output.wait("putting the answer together"),
            _ => {}
        }
    }

    fn name(&self, call: CallId) -> String {
        let node = self.0.node(call);
        node.map_or_else(|| call.to_string(), |node| one_line(node.subtask.id.as_str(), SHOWN))
    }

    fn began(&self, node: &PlanNode, attempt: u32, output: &Output) {
        let tool = node.tool().map(|tool| format!(" [{}]", one_line(tool, SHOWN))).unwrap_or_default();
        let again = if attempt > 0 || node.calls > 0 { " (again)" } else { "" };
        let (id, what) = (&node.subtask.id, &node.subtask.description);
        let line = one_line(&format!("{id}: {what}"), SHOWN);
        output.note(Look::Plain, format!("-> {line}{tool}{again}"));
        self.wait(output);
    }

    fn ended(&self, node: &PlanNode, result: &ToolResult, at: Timestamp, output: &Output) {
        let elapsed = seconds(node.started_at.unwrap_or(at), at);
        let tokens = result.metadata.get("token_usage").and_then(|tokens| tokens.as_u64());
        let tokens = tokens.map(|tokens| format!(", {tokens} tokens")).unwrap_or_default();
        let text = one_line(&Content::join_text(&result.content), SHOWN);
        let failed = if result.is_error() { "failed: " } else { "" };
        let look = if result.status == ToolResultStatus::Success { Look::Plain } else { Look::Warning };
        let (done, all) = self.done();
        let id = one_line(node.subtask.id.as_str(), SHOWN);
        output.note(look, format!("<- {id}: {failed}{text} ({elapsed}{tokens}; {done} of {all} done)"));
        self.wait(output);
    }

    /// Spins with the names of what is under way.
    fn wait(&self, output: &Output) {
        let names: Vec<String> = self.0.under_way().into_iter().map(|call| self.name(call)).collect();
        if !names.is_empty() {
            output.wait(&one_line(&names.join(", "), SHOWN));
        }
    }
}

fn lines(look: Look, text: &str, output: &Output) {
    printable(text).lines().for_each(|line| output.note(look, format!("  {line}")));
}
