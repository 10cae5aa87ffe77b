//! The plan of a run or a team as a drawing: boxes and edges with coordinates, and the critical path. The drawing is
//! computed from the log and not stored.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use archon_types::{Record, RunId, Timestamp, one_line};
use serde::Serialize;

use crate::{
    layered::{BOX, Layered, lay_out},
    subtasks::{GraphKind, Node, NodeStatus, Subtasks},
};

/// The number of characters of a label.
const LABEL: usize = 80;

/// The subtasks of a plan or a team and their dependencies, as a drawing. All coordinates and sizes are in pixels.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::Record;
/// use archon_views::{NodeStatus, RunGraph};
///
/// fn has_failed(log: &[Arc<Record>]) -> bool {
///     RunGraph::of(log).nodes.iter().any(|node| node.status == NodeStatus::Failed)
/// }
///
/// assert!(!has_failed(&[]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RunGraph {
    /// The kind of the work.
    pub kind: GraphKind,
    /// The subtasks, in the order of the plan.
    pub nodes: Vec<GraphNode>,
    /// The edges. Each leads from a subtask down to a subtask that depends on it.
    pub edges: Vec<GraphEdge>,
    /// The width of the drawing.
    pub width: u32,
    /// The height of the drawing.
    pub height: u32,
}

/// A subtask in a drawing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GraphNode {
    /// The id of the subtask, unique in the graph.
    pub id: String,
    /// The description, as one line.
    pub label: String,
    /// The state.
    pub status: NodeStatus,
    /// The tool or the member of the team that does the subtask, if it is known.
    pub by: Option<String>,
    /// The time of all calls of the subtask in milliseconds; `None` before the first.
    pub worked_ms: Option<u64>,
    /// The distance of the box from the left.
    pub x: u32,
    /// The distance of the box from the top.
    pub y: u32,
    /// The width of the box.
    pub width: u32,
    /// The height of the box.
    pub height: u32,
    /// True if the subtask is on the critical path: the path through the plan that takes the longest time.
    pub is_critical: bool,
    /// The run that does the subtask, or did it last.
    pub run: Option<RunId>,
}

/// An edge in a drawing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GraphEdge {
    /// The id of the subtask that comes first.
    pub from: String,
    /// The id of the subtask that depends on the first.
    pub to: String,
    /// The points of the edge, from the bottom of the first box to the top of the second box.
    pub points: Vec<(u32, u32)>,
    /// True if the edge is on the critical path.
    pub is_critical: bool,
}

impl RunGraph {
    /// Returns the graph of a run from its records. A run that follows no plan has a graph without nodes.
    pub fn of(records: &[Arc<Record>]) -> Self {
        let mut subtasks = Subtasks::default();
        records.iter().for_each(|record| subtasks.apply(record));
        let now = records.last().map_or_else(Timestamp::default, |record| record.at);
        let Subtasks { kind, nodes, .. } = subtasks;
        let drawn = lay_out(nodes.len(), &edges(&nodes));
        let path = critical_path(&drawn, &lengths(&nodes, now));
        let on_path: HashSet<usize> = path.iter().copied().collect();
        let steps: HashSet<(usize, usize)> = path.iter().copied().zip(path.iter().skip(1).copied()).collect();
        let edges = drawn.edges.iter().filter_map(|edge| {
            Some(GraphEdge {
                from: nodes.get(edge.from)?.subtask.id.to_string(),
                to: nodes.get(edge.to)?.subtask.id.to_string(),
                points: edge.points.clone(),
                is_critical: steps.contains(&(edge.from, edge.to)),
            })
        });
        let edges = edges.collect();
        let boxes = nodes.into_iter().zip(&drawn.places).enumerate();
        let nodes = boxes.map(|(place, (node, (x, y)))| GraphNode {
            id: node.subtask.id.to_string(),
            label: one_line(&node.subtask.description, LABEL),
            status: node.status,
            worked_ms: node.worked(now),
            x: *x,
            y: *y,
            width: BOX.0,
            height: BOX.1,
            is_critical: on_path.contains(&place),
            by: node.by,
            run: node.run,
        });
        Self { kind, nodes: nodes.collect(), edges, width: drawn.width, height: drawn.height }
    }
}

/// Returns the edges as pairs of indexes into `nodes`: a subtask, and a subtask that depends on it. Dependencies on
/// subtasks that are not in `nodes` are left out.
fn edges(nodes: &[Node]) -> Vec<(usize, usize)> {
    let mut places = HashMap::new();
    for (place, node) in nodes.iter().enumerate() {
        places.entry(&node.subtask.id).or_insert(place);
    }
    let of_node = |(to, node): (usize, &Node)| {
        let after = node.subtask.dependencies().iter();
        after.filter_map(|id| Some((*places.get(id)?, to))).collect::<Vec<_>>()
    };
    nodes.iter().enumerate().flat_map(of_node).collect()
}

/// Returns the time that each subtask took, in milliseconds. A subtask that has not started gets the average time of
/// the others. If none has started, the path with the most subtasks is the critical path.
fn lengths(nodes: &[Node], now: Timestamp) -> Vec<u64> {
    let times: Vec<Option<u64>> = nodes.iter().map(|node| node.worked(now)).collect();
    let known: Vec<u64> = times.iter().flatten().copied().collect();
    let average = known.iter().sum::<u64>().checked_div(known.len() as u64).unwrap_or(1);
    times.into_iter().map(|time| time.unwrap_or(average).max(1)).collect()
}

/// Returns the nodes of the longest path, from the top down. If several paths are equally long, the path through the
/// first subtasks wins.
fn critical_path(drawn: &Layered, lengths: &[u64]) -> Vec<usize> {
    let mut after: HashMap<usize, Vec<usize>> = HashMap::new();
    for edge in &drawn.edges {
        after.entry(edge.from).or_default().push(edge.to);
    }
    let mut best = Best::new();
    for node in drawn.order.iter().rev().copied() {
        let followers = after.get(&node).into_iter().flatten().copied();
        let next = followers.max_by_key(|next| (length_from(&best, *next), Reverse(*next)));
        let length = lengths.get(node).copied().unwrap_or(1);
        let behind = next.map_or(0, |next| length_from(&best, next));
        best.insert(node, (length.saturating_add(behind), next));
    }
    let start = drawn.order.iter().copied().max_by_key(|node| (length_from(&best, *node), Reverse(*node)));
    std::iter::successors(start, |node| best.get(node)?.1).collect()
}

/// Maps each node to the length of the longest path that begins there, and to the next node of this path.
type Best = HashMap<usize, (u64, Option<usize>)>;

fn length_from(best: &Best, node: usize) -> u64 {
    best.get(&node).map_or(0, |(length, _)| *length)
}
