//! Shows a plan to people while it is followed: first the plan; then on a terminal its subtasks as a live
//! tree, otherwise a line at the start and the end of each subtask.

use std::{cell::Cell, collections::HashMap};

use archon::{
    planner::{NodeState, PlanFormat, PlanMachine, PlanNode, render, show_diff},
    types::{CallId, PlanDiff, PlanRecord, Record, RecordBody, RunId, RunStarted, Timestamp, ToolResult},
};

use super::{
    View, is_run_of, show_end,
    tree::{self, Known},
};
use crate::{
    board::Row,
    output::{Look, Output},
    text::{one_line, seconds},
};

/// The maximum number of shown characters of a subtask's description and of its result.
const SHOWN: usize = 120;

#[derive(Debug)]
pub(super) struct PlanView {
    machine: Box<PlanMachine>,
    /// The number of tokens of running calls that their runs have reported so far.
    tokens: HashMap<CallId, u64>,
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

    fn known(&self) -> Known<'_> {
        Known { machine: &self.machine, tokens: &self.tokens }
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
                show_plan("the plan (* marks the critical path):", &render(task, PlanFormat::Text), output);
                warn("", warnings, 2 * SHOWN, output);
            }
            PlanRecord::Rejected { problems, .. } => {
                output.note(Look::Warning, "this plan is invalid:");
                warn("  ", problems, 4 * SHOWN, output);
            }
            PlanRecord::Replanned { diff, warnings, .. } => {
                // A person may have to approve it first.
                show_plan("a new plan for the remaining subtasks:", &show_diff(diff), output);
                warn("", warnings, 2 * SHOWN, output);
            }
            PlanRecord::Skipped { call, reason } => {
                let id = self.name(*call);
                output.note(Look::Dim, format!("-- {id} is skipped: {}", one_line(reason, SHOWN)));
            }
            PlanRecord::LoopExpanded { call, subtasks, results } => {
                let (id, items) = (self.name(*call), results.len());
                let mut diff = PlanDiff::default();
                diff.add.clone_from(subtasks);
                show_plan(&format!("-- {id} has {items} items:"), &show_diff(&diff), output);
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
                let names = one_line(&names.join(" "), 4 * SHOWN);
                output.note(Look::Dim, format!("the answer is based on {names}"));
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
        let elapsed = seconds(node.started_at.unwrap_or(at), at);
        let tokens = result.metadata.get("token_usage").and_then(|tokens| tokens.as_u64());
        let tokens = tokens.map(|tokens| format!(", {tokens} tokens")).unwrap_or_default();
        let id = one_line(node.subtask.id.as_str(), SHOWN);
        show_end(&id, result, &format!("{elapsed}{tokens}"), self.done(), output);
    }
}

impl View for PlanView {
    fn learn(&mut self, record: &Record) {
        self.is_plan |= matches!(record.body, RecordBody::Plan(_));
        if !matches!(record.body, RecordBody::RunStarted(_)) {
            self.machine.apply(record);
        }
    }

    fn apply(&mut self, run: &RunId, record: &Record, output: &Output) {
        let RecordBody::ModelCallFinished { message, .. } = &record.body else { return };
        let is_of = |node: &&PlanNode| match &node.state {
            NodeState::Running { child: Some(child), .. } => is_run_of(run, child),
            _ => false,
        };
        if let Some(call) = self.machine.nodes().find(is_of).map(PlanNode::call) {
            *self.tokens.entry(call).or_default() += message.usage.total();
            self.draw(output);
        }
    }

    fn live_rows(&self) -> Vec<Row> {
        tree::rows(&self.known(), tree::MOST)
    }

    fn final_rows(&self) -> Vec<Row> {
        tree::rows(&self.known(), usize::MAX)
    }

    fn is_under_way(&self) -> bool {
        !self.machine.under_way().is_empty()
    }

    fn is_still(&self) -> &Cell<bool> {
        &self.is_still
    }

    fn show(&self, record: &Record, output: &Output) -> bool {
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

    fn work(&self) -> Option<String> {
        match self.done() {
            (_, 0) => self.is_plan.then(|| "no plan".to_owned()),
            (done, all) => Some(format!("{done} of {all} subtasks")),
        }
    }
}

fn show_plan(heading: &str, plan: &str, output: &Output) {
    output.note(Look::Dim, heading);
    plan.lines().for_each(|line| output.note(Look::Dim, format!("  {line}")));
}

fn warn(indent: &str, warnings: &[String], most: usize, output: &Output) {
    warnings.iter().for_each(|line| output.note(Look::Warning, format!("{indent}{}", one_line(line, most))));
}
