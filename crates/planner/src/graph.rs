//! The graph of a plan: an edge goes from a subtask to each subtask that depends on it.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque},
};

use archon_types::{Plan, SubTask, SubTaskId, Task};
use petgraph::{
    Direction,
    graph::{DiGraph, NodeIndex},
};

/// The subtasks of a task as a graph. The task need not be valid.
///
/// If subtasks share an id, only the first is in the graph. Dependencies on missing subtasks have no
/// edge.
#[derive(Clone, Debug)]
pub struct PlanGraph {
    graph: DiGraph<SubTaskId, ()>,
    by_id: HashMap<SubTaskId, NodeIndex>,
}

impl PlanGraph {
    /// Creates the graph of these subtasks.
    pub fn new<'a>(subtasks: impl IntoIterator<Item = &'a SubTask>) -> Self {
        let mut graph = DiGraph::new();
        let mut by_id = HashMap::new();
        let mut nodes = Vec::new();
        for subtask in subtasks {
            if !by_id.contains_key(&subtask.id) {
                let node = graph.add_node(subtask.id.clone());
                by_id.insert(subtask.id.clone(), node);
                nodes.push((node, subtask));
            }
        }
        for (to, subtask) in nodes {
            let mut seen = HashSet::new();
            for dependency in subtask.dependencies() {
                if let Some(from) = by_id.get(dependency).filter(|from| seen.insert(**from)) {
                    graph.add_edge(*from, to, ());
                }
            }
        }
        Self { graph, by_id }
    }

    /// Returns all direct and indirect dependencies of a subtask, in no particular order.
    pub fn upstream(&self, id: &SubTaskId) -> HashSet<&SubTaskId> {
        self.reach(id, Direction::Incoming)
    }

    /// Returns all direct and indirect dependents of a subtask, in no particular order.
    pub fn downstream(&self, id: &SubTaskId) -> HashSet<&SubTaskId> {
        self.reach(id, Direction::Outgoing)
    }

    /// Returns the direct dependents of a subtask, in the order of the plan.
    pub fn dependents(&self, id: &SubTaskId) -> Vec<&SubTaskId> {
        let Some(node) = self.by_id.get(id) else { return Vec::new() };
        let mut nodes: Vec<_> = self.graph.neighbors(*node).collect();
        nodes.sort_unstable();
        nodes.into_iter().map(|node| &self.graph[node]).collect()
    }

    /// Returns the subtasks without dependents, in the order of the plan.
    pub fn sinks(&self) -> Vec<&SubTaskId> {
        let is_sink = |node: &NodeIndex| self.graph.neighbors(*node).next().is_none();
        self.graph.node_indices().filter(is_sink).map(|node| &self.graph[node]).collect()
    }

    /// Returns the cycles, one for each group of subtasks that wait for each other. The first and the
    /// last id are the same, and each subtask depends on the one before it. Subtasks that depend on
    /// themselves are not included.
    pub fn cycles(&self) -> Vec<Vec<SubTaskId>> {
        // Tarjan's algorithm is not used, because its recursion is as deep as a chain is long.
        let groups = petgraph::algo::kosaraju_scc(&self.graph);
        let mut cycles: Vec<_> =
            groups.into_iter().filter(|group| group.len() > 1).map(|group| self.cycle(&group)).collect();
        cycles.sort_unstable();
        cycles
            .into_iter()
            .map(|cycle| cycle.into_iter().map(|node| self.graph[node].clone()).collect())
            .collect()
    }

    /// Returns the shortest cycle through the first subtask of a strongly connected group.
    fn cycle(&self, group: &[NodeIndex]) -> Vec<NodeIndex> {
        let within: HashSet<_> = group.iter().copied().collect();
        let Some(start) = group.iter().min().copied() else { return Vec::new() };
        let mut from: HashMap<NodeIndex, NodeIndex> = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            let next = self.graph.neighbors(node).filter(|next| *next != node && within.contains(next));
            for to in next.collect::<BTreeSet<_>>() {
                if to == start {
                    let way_back = std::iter::successors(Some(node), |at| from.get(at).copied());
                    let mut cycle: Vec<_> = std::iter::once(start).chain(way_back).collect();
                    cycle.reverse();
                    return cycle;
                }
                from.entry(to).or_insert_with(|| {
                    queue.push_back(to);
                    node
                });
            }
        }
        Vec::new()
    }

    /// Returns the subtasks in an order that respects all dependencies, and otherwise in the order of the
    /// plan. Subtasks on a cycle or after one are left out.
    pub fn order(&self) -> Vec<SubTaskId> {
        let dependencies = |node| self.graph.edges_directed(node, Direction::Incoming).count();
        let mut waiting: Vec<usize> = self.graph.node_indices().map(dependencies).collect();
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

    /// Returns the critical path, which is the longest path, and its length. `length` returns the length of a
    /// subtask. The path is empty if the graph has a cycle.
    pub fn critical_path(&self, length: impl Fn(&SubTaskId) -> u64) -> (Vec<SubTaskId>, u64) {
        let order = self.order();
        if order.len() != self.graph.node_count() {
            return (Vec::new(), 0);
        }
        let mut best: HashMap<NodeIndex, (u64, Option<NodeIndex>)> = HashMap::new();
        for id in order.iter().rev() {
            let node = self.by_id[id];
            // Of equally long paths, the one through the first subtask of the plan is taken.
            let next = self.graph.neighbors(node).max_by_key(|next| (best[next].0, Reverse(*next)));
            let rest = next.map_or(0, |next| best[&next].0);
            best.insert(node, (rest.saturating_add(length(id)), next));
        }
        let start = self.graph.node_indices().max_by_key(|node| (best[node].0, Reverse(*node)));
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

/// Returns the plan of a task: its dependency graph and a valid order.
pub fn plan_of(task: &Task) -> Plan {
    let graph = PlanGraph::new(&task.subtasks);
    let dependents = |subtask: &SubTask| graph.dependents(&subtask.id).into_iter().cloned().collect();
    let dag: BTreeMap<_, _> = task.subtasks.iter().map(|s| (s.id.clone(), dependents(s))).collect();
    Plan::new(task.id.clone(), dag, graph.order())
}

/// Returns a description of each violated invariant of a task that is being followed.
///
/// The invariants: each id occurs once; a completed or failed subtask has a result, and a waiting subtask has
/// none; a completed or executing subtask depends only on completed subtasks, or on failed ones that may be
/// left out.
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
