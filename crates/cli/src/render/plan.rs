//! Shows a plan to people while it is followed: first the plan; then on a terminal its subtasks as a live
//! tree, otherwise a line at the start and the end of each subtask.

use std::{cell::Cell, collections::HashMap};

use archon::{
    planner::{NodeState, PlanFormat, PlanMachine, PlanNode, render, show_diff},
    types::{
        CallId, Content, PlanDiff, PlanRecord, Record, RecordBody, RunId, RunStarted, Timestamp, ToolResult,
        ToolResultStatus,
    },
};

use super::tree::{self, Known};
use crate::{
    output::{Look, Output},
    text::{one_line, seconds},
};

/// The maximum number of shown characters of a subtask's description and of its result.
const SHOWN: usize = 120;

/// The state of a plan so far.
#[derive(Debug)]
pub(super) struct PlanView {
    machine: Box<PlanMachine>,
    /// The number of tokens of running calls that their runs have reported so far.
    tokens: HashMap<CallId, u64>,
    /// True if the live lines were replaced by fixed ones, and no line has changed since.
    is_still: Cell<bool>,
    /// True if a record of a plan was seen.
    is_plan: bool,
}

impl PlanView {
    pub(super) fn new(started: &RunStarted, at: Timestamp) -> Self {
        Self {
            machine: Box::new(PlanMachine::new(started, at)),
            tokens: HashMap::new(),
            is_still: Cell::new(true),
            is_plan: false,
        }
    }

    /// Takes the state from a record after the first one.
    pub(super) fn learn(&mut self, record: &Record) {
        self.is_plan |= matches!(record.body, RecordBody::Plan(_));
        if !matches!(record.body, RecordBody::RunStarted(_)) {
            self.machine.apply(record);
        }
    }

    /// Takes the state from the run of a subtask, or from its child run.
    pub(super) fn apply(&mut self, run: &RunId, record: &Record, output: &Output) {
        let RecordBody::ModelCallFinished { message, .. } = &record.body else { return };
        let is_of = |node: &&PlanNode| match &node.state {
            NodeState::Running { child: Some(child), .. } => {
                let rest = run.as_str().strip_prefix(child.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            }
            _ => false,
        };
        if let Some(call) = self.machine.nodes().find(is_of).map(PlanNode::call) {
            *self.tokens.entry(call).or_default() += message.usage.total();
            self.draw(output);
        }
    }

    /// Replaces the live lines by fixed ones.
    pub(super) fn leave(&self, output: &Output) {
        if output.spins && !self.is_still.replace(true) {
            output.close_board();
            let rows = tree::rows(&self.known(), usize::MAX);
            rows.into_iter().for_each(|row| output.note(Look::Dim, format!("  {}", row.text)));
        }
    }

    fn draw(&self, output: &Output) {
        if output.spins && !self.machine.under_way().is_empty() {
            self.is_still.set(false);
            output.board(tree::rows(&self.known(), tree::MOST));
        }
    }

    fn known(&self) -> Known<'_> {
        Known { machine: &self.machine, tokens: &self.tokens }
    }

    /// Shows a record; returns true if the record was one of the plan's own.
    pub(super) fn show(&self, record: &Record, output: &Output) -> bool {
        match &record.body {
            RecordBody::Plan(record) => self.show_record(record, output),
            RecordBody::ToolCallStarted { call, attempt, .. } => {
                let Some(node) = self.machine.node(*call) else { return false };
                self.began(node, *attempt, output);
            }
            RecordBody::ToolCallFailed { call, result, .. }
            | RecordBody::ToolCallFinished { call, result }
            | RecordBody::ToolCallRefused { call, result } => {
                let Some(node) = self.machine.node(*call) else { return false };
                self.ended(node, result, record.at, output);
            }
            RecordBody::Suspended { .. } => {
                self.leave(output);
                return false;
            }
            _ => return false,
        }
        self.draw(output);
        true
    }

    /// Returns the number of finished subtasks, if the log is a plan's.
    pub(super) fn work(&self) -> Option<String> {
        match self.done() {
            (_, 0) => self.is_plan.then(|| "no plan".to_owned()),
            (done, all) => Some(format!("{done} of {all} subtasks")),
        }
    }

    fn done(&self) -> (usize, usize) {
        (self.machine.nodes().filter(|node| node.lets_go()).count(), self.machine.nodes().count())
    }

    fn show_record(&self, record: &PlanRecord, output: &Output) {
        match record {
            PlanRecord::PlanningStarted { attempt, reason, .. } => {
                if let (0, Some(reason)) = (attempt, reason) {
                    output.note(Look::Warning, format!("replanning: {}", one_line(reason, 2 * SHOWN)));
                }
                output.wait("planning");
            }
            PlanRecord::Planned { task, warnings, .. } => {
                output.stop_waiting();
                output.note(Look::Dim, "the plan (* marks the critical path):");
                lines(Look::Dim, &render(task, PlanFormat::Text), output);
                warnings.iter().for_each(|w| output.note(Look::Warning, one_line(w, 2 * SHOWN)));
            }
            PlanRecord::Rejected { problems, .. } => {
                output.note(Look::Warning, "this plan is invalid:");
                let problem =
                    |p: &String| output.note(Look::Warning, format!("  {}", one_line(p, 4 * SHOWN)));
                problems.iter().for_each(problem);
            }
            PlanRecord::Replanned { diff, warnings, .. } => {
                // A person may have to approve it first.
                output.note(Look::Dim, "a new plan for the remaining subtasks:");
                lines(Look::Dim, &show_diff(diff), output);
                warnings.iter().for_each(|w| output.note(Look::Warning, one_line(w, 2 * SHOWN)));
            }
            PlanRecord::Skipped { call, reason } => {
                let id = self.name(*call);
                output.note(Look::Dim, format!("-- {id} is skipped: {}", one_line(reason, SHOWN)));
            }
            PlanRecord::LoopExpanded { call, subtasks, results } => {
                let (id, items) = (self.name(*call), results.len());
                output.note(Look::Dim, format!("-- {id} has {items} items:"));
                let mut diff = PlanDiff::default();
                diff.add.clone_from(subtasks);
                lines(Look::Dim, &show_diff(&diff), output);
            }
            PlanRecord::LoopFinished { call } => {
                let (id, (done, all)) = (self.name(*call), self.done());
                output.note(Look::Plain, format!("<- {id}: its items are done ({done} of {all} done)"));
            }
            PlanRecord::Paused { reason } => {
                output.note(Look::Dim, format!("paused: {}", one_line(reason, SHOWN)));
            }
            PlanRecord::Unpaused => output.note(Look::Dim, "continuing"),
            PlanRecord::AnswerStarted { .. } => {
                self.leave(output);
                output.wait("writing the answer");
            }
            PlanRecord::AnswerFinished { citations, .. } if !citations.is_empty() => {
                let names: Vec<_> = citations.iter().map(|c| format!("[{}]", c.subtask)).collect();
                output.note(
                    Look::Dim,
                    format!("the answer is based on {}", one_line(&names.join(" "), 4 * SHOWN)),
                );
            }
            _ => {}
        }
    }

    fn name(&self, call: CallId) -> String {
        let node = self.machine.node(call);
        node.map_or_else(|| call.to_string(), |node| one_line(node.subtask.id.as_str(), SHOWN))
    }

    fn began(&self, node: &PlanNode, attempt: u32, output: &Output) {
        if output.spins {
            return;
        }
        let tool = node.tool().map(|tool| format!(" [{}]", one_line(tool, SHOWN))).unwrap_or_default();
        let again = if attempt > 0 || node.calls > 0 { " (again)" } else { "" };
        let (id, what) = (&node.subtask.id, &node.subtask.description);
        let line = one_line(&format!("{id}: {what}"), SHOWN);
        output.note(Look::Plain, format!("-> {line}{tool}{again}"));
    }

    fn ended(&self, node: &PlanNode, result: &ToolResult, at: Timestamp, output: &Output) {
        if output.spins {
            return;
        }
        let elapsed = seconds(node.started_at.unwrap_or(at), at);
        let tokens = result.metadata.get("token_usage").and_then(|tokens| tokens.as_u64());
        let tokens = tokens.map(|tokens| format!(", {tokens} tokens")).unwrap_or_default();
        let text = one_line(&Content::join_text(&result.content), SHOWN);
        let failed = if result.is_error() { "failed: " } else { "" };
        let look = if result.status == ToolResultStatus::Success { Look::Plain } else { Look::Warning };
        let (done, all) = self.done();
        let id = one_line(node.subtask.id.as_str(), SHOWN);
        output.note(look, format!("<- {id}: {failed}{text} ({elapsed}{tokens}; {done} of {all} done)"));
    }
}

fn lines(look: Look, text: &str, output: &Output) {
    text.lines().for_each(|line| output.note(look, format!("  {line}")));
}
