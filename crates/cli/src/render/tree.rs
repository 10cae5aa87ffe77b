//! Formats the subtasks of a plan as a tree: each below its dependencies, with its state, time and tokens.

use std::collections::HashMap;

use archon::{
    planner::{NodeState, PlanMachine, PlanNode},
    types::{CallId, metadata},
};

use crate::{
    board::Row,
    text::{one_line, seconds},
};

/// The maximum number of lines at the bottom of a terminal; of a larger plan only running subtasks are
/// shown.
pub(super) const MOST: usize = 16;
/// The maximum number of characters of a line.
const SHOWN: usize = 100;

/// The state of a plan that is followed.
pub(super) struct Known<'a> {
    pub(super) machine: &'a PlanMachine,
    /// The number of tokens of running calls.
    pub(super) tokens: &'a HashMap<CallId, u64>,
}

/// Returns a line for each subtask; of more than `most` subtasks only for the running ones, at most `most`.
/// The last line has the totals.
pub(super) fn rows(known: &Known<'_>, most: usize) -> Vec<Row> {
    let nodes: Vec<&PlanNode> = known.machine.nodes().collect();
    let mut rows: Vec<Row> = match nodes.len() > most {
        true => nodes.iter().filter(|n| is_under_way(n)).take(most).map(|n| known.row(n, 0)).collect(),
        false => in_order(&nodes).into_iter().map(|(place, level)| known.row(nodes[place], level)).collect(),
    };
    let done = nodes.iter().filter(|node| node.lets_go()).count();
    let of_calls: u64 = known.machine.under_way().iter().filter_map(|call| known.tokens.get(call)).sum();
    let tokens = known.machine.spending().tokens + of_calls;
    let text = format!("{done} of {} done, {tokens} tokens", nodes.len());
    rows.push(Row { key: "all".to_owned(), text, moves: false });
    rows
}

/// Returns the subtasks in the order of their lines, each as its index in `nodes` and its level: each subtask
/// is one level below the last of its dependencies.
fn in_order(nodes: &[&PlanNode]) -> Vec<(usize, usize)> {
    let places: HashMap<_, _> = nodes.iter().enumerate().map(|(place, n)| (&n.subtask.id, place)).collect();
    let mut below = vec![Vec::new(); nodes.len()];
    let mut stack = Vec::new();
    for (place, node) in nodes.iter().enumerate() {
        match node.subtask.dependencies().iter().filter_map(|id| places.get(id)).max() {
            Some(above) => below[*above].push(place),
            None => stack.push((place, 0)),
        }
    }
    stack.reverse();
    let mut order = Vec::new();
    while let Some((place, level)) = stack.pop() {
        order.push((place, level));
        stack.extend(below[place].iter().rev().map(|next| (*next, level + 1)));
    }
    order
}

fn is_under_way(node: &PlanNode) -> bool {
    matches!(node.state, NodeState::Running { .. })
}

impl Known<'_> {
    fn row(&self, node: &PlanNode, level: usize) -> Row {
        let (mark, after) = match &node.state {
            NodeState::Running { .. } => {
                ("\u{2192}", self.tokens.get(&node.call()).map(|t| format!("{t} tokens")))
            }
            NodeState::Done => ("\u{2713}", Some(took(node))),
            NodeState::Skipped => ("-", Some("skipped".to_owned())),
            NodeState::Failed | NodeState::DoneWithout | NodeState::Troubled => ("\u{2717}", Some(why(node))),
            NodeState::Delayed { .. } => ("\u{b7}", Some(format!("retried: {}", why(node)))),
            NodeState::Asked | NodeState::InDoubt | NodeState::ToReview | NodeState::Reviewed => ("?", None),
            _ => ("\u{b7}", None),
        };
        let tool = node.tool().map(|tool| format!(" [{tool}]")).unwrap_or_default();
        let line = one_line(&format!("{}: {}{tool}", node.subtask.id, node.subtask.description), SHOWN);
        let after = after.map(|after| format!(", {}", one_line(&after, SHOWN))).unwrap_or_default();
        let text = format!("{}{mark} {line}{after}", "  ".repeat(level));
        Row { key: format!("subtask {}", node.subtask.id), text, moves: is_under_way(node) }
    }
}

fn took(node: &PlanNode) -> String {
    let elapsed = match (node.started_at, node.ended_at) {
        (Some(from), Some(to)) => seconds(from, to),
        _ => "done".to_owned(),
    };
    let tokens = node.result.as_ref().and_then(|result| result.metadata.get(metadata::TOKEN_USAGE)?.as_u64());
    elapsed + &tokens.map(|tokens| format!(", {tokens} tokens")).unwrap_or_default()
}

fn why(node: &PlanNode) -> String {
    node.result.as_ref().map(|result| result.text()).unwrap_or_default()
}
