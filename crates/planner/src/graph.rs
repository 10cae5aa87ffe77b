//! The graph of a plan: an edge goes from a subtask to each that depends on it.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet},
};

use archon_types::{Plan, SubTask, SubTaskId, Task};
use petgraph::{
    Direction,
    graph::{DiGraph, NodeIndex},
};

/// The subtasks of a task as a graph, whether it can be followed or not.
///
/// Of subtasks that share an id only the first is in it. Dependencies on subtasks that are not there
/// have no edge.
#[derive(Clone, Debug)]
pub struct PlanGraph {
    graph: DiGraph<SubTaskId, ()>,
    by_id: HashMap<SubTaskId, NodeIndex>,
}

impl PlanGraph {
    /// The graph of these subtasks.
    pub fn new<'a>(subtasks: impl IntoIterator<Item = &'a SubTask>) -> Self {
        let mut graph = DiGraph::new();
        let mut by_id = HashMap::new();
        let mut kept = Vec::new();
        for subtask in subtasks {
            if !by_id.contains_key(&subtask.id) {
                by_id.insert(subtask.id.clone(), graph.add_node(subtask.id.clone()));
                kept.push(subtask);
            }
        }
        for subtask in kept {
            let to = by_id[&subtask.id];
            let mut seen = HashSet::new();
            for dependency in subtask.dependencies() {
                if let Some(from) = by_id.get(dependency).filter(|from| seen.insert(**from)) {
                    graph.add_edge(*from, to, ());
                }
            }
        }
        Self { graph, by_id }
    }

    /// Everything that has to be done before a subtask, in no particular order.
    pub fn upstream(&self, id: &SubTaskId) -> HashSet<&SubTaskId> {
        self.reach(id, Direction::Incoming)
    }

    /// Everything that waits for a subtask, in no particular order.
    pub fn downstream(&self, id: &SubTaskId) -> HashSet<&SubTaskId> {
        self.reach(id, Direction::Outgoing)
    }

    /// The subtasks that depend on this one themselves, in the order of the plan.
    pub fn dependents(&self, id: &SubTaskId) -> Vec<&SubTaskId> {
        let Some(node) = self.by_id.get(id) else { return Vec::new() };
        let mut nodes: Vec<_> = self.graph.neighbors(*node).collect();
        nodes.sort_unstable();
        nodes.into_iter().map(|node| &self.graph[node]).collect()
    }

    /// The subtasks that nothing depends on, in the order of the plan.
    pub fn sinks(&self) -> Vec<&SubTaskId> {
        let is_sink = |node: &NodeIndex| self.graph.neighbors(*node).next().is_none();
        self.graph.node_indices().filter(is_sink).map(|node| &self.graph[node]).collect()
    }

    /// The ways round, one for each group of subtasks that wait for each other. First and last are the
    /// same, and each depends on the one before it. A subtask that depends on itself is not among them.
    pub fn cycles(&self) -> Vec<Vec<SubTaskId>> {
        // Not Tarjan's: that one calls itself as often as a chain is long.
        let groups = petgraph::algo::kosaraju_scc(&self.graph);
        let mut cycles: Vec<_> =
            groups.into_iter().filter(|g| g.len() > 1).map(|g| self.way_round(&g)).collect();
        cycles.sort_by_key(|cycle| cycle.first().and_then(|id| self.by_id.get(*id).copied()));
        cycles.into_iter().map(|cycle| cycle.into_iter().cloned().collect()).collect()
    }

    /// The shortest way round through the first subtask of a group in which every one reaches every other.
    fn way_round(&self, group: &[NodeIndex]) -> Vec<&SubTaskId> {
        let within: HashSet<_> = group.iter().copied().collect();
        let Some(start) = group.iter().min().copied() else { return Vec::new() };
        let mut from: HashMap<NodeIndex, NodeIndex> = HashMap::new();
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            let mut next: Vec<_> = self.graph.neighbors(node).filter(|n| within.contains(n)).collect();
            next.sort_unstable();
            for to in next {
                if to == start {
                    let mut way = vec![start, node];
                    let mut at = node;
                    while at != start {
                        at = from[&at];
                        way.push(at);
                    }
                    way.reverse();
                    // A way of one step would name its start three times.
                    way.dedup();
                    way.push(start);
                    way.dedup();
                    return way.into_iter().map(|node| &self.graph[node]).collect();
                }
                if let std::collections::hash_map::Entry::Vacant(free) = from.entry(to) {
                    free.insert(node);
                    queue.push_back(to);
                }
            }
        }
        Vec::new()
    }

    /// All subtasks, each after everything that it depends on, otherwise in the order of the plan. Those
    /// on a cycle and those behind one are left out.
    pub fn order(&self) -> Vec<SubTaskId> {
        let mut waiting: Vec<usize> = self
            .graph
            .node_indices()
            .map(|n| self.graph.edges_directed(n, Direction::Incoming).count())
            .collect();
        let mut ready: BinaryHeap<_> =
            self.graph.node_indices().filter(|n| waiting[n.index()] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(waiting.len());
        while let Some(Reverse(node)) = ready.pop() {
            order.push(self.graph[node].clone());
            for dependent in self.graph.neighbors(node) {
                waiting[dependent.index()] -= 1;
                if waiting[dependent.index()] == 0 {
                    ready.push(Reverse(dependent));
                }
            }
        }
        order
    }

    /// The longest way through the graph and its length, where `length` says how long a subtask is. Empty
    /// for a graph with a cycle.
    pub fn critical_path(&self, length: impl Fn(&SubTaskId) -> u64) -> (Vec<SubTaskId>, u64) {
        let order = self.order();
        if order.len() != self.graph.node_count() {
            return (Vec::new(), 0);
        }
        let mut best: HashMap<NodeIndex, (u64, Option<NodeIndex>)> = HashMap::new();
        for id in order.iter().rev() {
            let node = self.by_id[id];
            let mut next: Vec<_> = self.graph.neighbors(node).collect();
            next.sort_unstable();
            let behind =
                next.into_iter().map(|n| (best[&n].0, Some(n))).reduce(|a, b| if b.0 > a.0 { b } else { a });
            let (rest, to) = behind.unwrap_or((0, None));
            best.insert(node, (rest.saturating_add(length(id)), to));
        }
        let start = self.graph.node_indices().reduce(|a, b| if best[&b].0 > best[&a].0 { b } else { a });
        let total = start.map_or(0, |start| best[&start].0);
        let path = std::iter::successors(start, |node| best[node].1);
        (path.map(|node| self.graph[node].clone()).collect(), total)
    }

    fn reach(&self, id: &SubTaskId, direction: Direction) -> HashSet<&SubTaskId> {
        let mut reached = HashSet::new();
        let mut stack: Vec<_> = self.by_id.get(id).copied().into_iter().collect();
        while let Some(node) = stack.pop() {
            for next in self.graph.neighbors_directed(node, direction) {
                if reached.insert(&self.graph[next]) {
                    stack.push(next);
                }
            }
        }
        reached
    }
}

/// The plan of a task, derived from its subtasks: who waits for whom, and an order that holds.
pub fn plan_of(task: &Task) -> Plan {
    let graph = PlanGraph::new(&task.subtasks);
    let dependents = |subtask: &SubTask| graph.dependents(&subtask.id).into_iter().cloned().collect();
    let dag: BTreeMap<_, _> = task.subtasks.iter().map(|s| (s.id.clone(), dependents(s))).collect();
    Plan::new(task.id.clone(), dag, graph.order())
}

/// What is not as it must be while a plan is followed, in words; nothing for a task in order.
///
/// A completed subtask has a result and depends on completed ones or on such as may fail; one that waits has
/// no result.
pub fn invariants(task: &Task) -> Vec<String> {
    use archon_types::SubTaskStatus::{Completed, Executing, Failed};
    let mut broken = Vec::new();
    let ids: BTreeSet<_> = task.subtasks.iter().map(|s| &s.id).collect();
    if ids.len() != task.subtasks.len() {
        broken.push("two subtasks share an id".to_owned());
    }
    for subtask in &task.subtasks {
        let id = &subtask.id;
        match (subtask.status(), subtask.result()) {
            (Completed | Failed, None) => {
                broken.push(format!("{id} is {} and has no result", subtask.status()))
            }
            (Completed | Failed | Executing, _) | (_, None) => {}
            (status, Some(_)) => broken.push(format!("{id} is {status} and has a result")),
        }
        if !matches!(subtask.status(), Completed | Executing) {
            continue;
        }
        for dependency in subtask.dependencies() {
            let is_over = |d: &SubTask| {
                d.status() == Completed || (d.status() == Failed && d.rules.on_failure.may_be_left_out())
            };
            if !task.get_subtask(dependency).is_some_and(is_over) {
                broken.push(format!("{id} is {} and {dependency} is not completed", subtask.status()));
            }
        }
    }
    broken
}
