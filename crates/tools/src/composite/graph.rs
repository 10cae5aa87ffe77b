//! The dependencies between the calls of a composite.

use std::collections::HashMap;

use petgraph::{
    Direction,
    algo::tarjan_scc,
    graph::{DiGraph, NodeIndex},
};

use super::Composite;

/// The calls by their index in the composite; an edge leads from a call to each call that waits for it.
pub(super) struct Graph<'c> {
    graph: DiGraph<&'c str, ()>,
    by_id: HashMap<&'c str, NodeIndex>,
}

impl<'c> Graph<'c> {
    /// Builds the graph. Edges to unknown calls are ignored.
    pub(super) fn new(composite: &'c Composite) -> Self {
        let (mut graph, mut by_id) = (DiGraph::new(), HashMap::new());
        for node in &composite.nodes {
            by_id.insert(&*node.id, graph.add_node(&*node.id));
        }
        let flows = composite
            .nodes
            .iter()
            .flat_map(|node| node.gives.iter().map(move |mapping| (&*node.id, &*mapping.node)));
        let ordered = composite.edges.iter().map(|(from, to)| (&**from, &**to));
        for (from, to) in flows.chain(ordered) {
            if let (Some(from), Some(to)) = (by_id.get(from), by_id.get(to)) {
                graph.update_edge(*from, *to, ());
            }
        }
        Self { graph, by_id }
    }

    /// Returns the cycles of calls that wait for each other; the first call is repeated at the end.
    pub(super) fn cycles(&self) -> Vec<Vec<String>> {
        let is_circle =
            |group: &Vec<NodeIndex>| group.len() > 1 || self.graph.contains_edge(group[0], group[0]);
        let mut cycles: Vec<_> = tarjan_scc(&self.graph)
            .into_iter()
            .filter(is_circle)
            .filter_map(|group| {
                let start = *group.iter().min()?;
                let next = self.graph.neighbors(start).filter(|n| group.contains(n)).min()?;
                let mut way = self.way(self.graph[next], self.graph[start])?;
                way.insert(0, self.graph[start].to_owned());
                Some(way)
            })
            .collect();
        cycles.sort();
        cycles
    }

    /// Returns a shortest path from one call to another along the edges, both included, or `None`.
    pub(super) fn way(&self, from: &str, to: &str) -> Option<Vec<String>> {
        let (from, to) = (*self.by_id.get(from)?, *self.by_id.get(to)?);
        let mut before = HashMap::from([(from, from)]);
        let mut open = std::collections::VecDeque::from([from]);
        while let Some(node) = open.pop_front() {
            if node == to {
                let mut way = vec![self.graph[to].to_owned()];
                let mut at = to;
                while at != from {
                    at = before[&at];
                    way.push(self.graph[at].to_owned());
                }
                way.reverse();
                return Some(way);
            }
            for next in self.graph.neighbors(node) {
                before.entry(next).or_insert_with(|| {
                    open.push_back(next);
                    node
                });
            }
        }
        None
    }

    /// Returns, for each call by index, the indexes of the calls that the call waits for.
    pub(super) fn waits_for(&self) -> Vec<Vec<usize>> {
        let of =
            |node| self.graph.neighbors_directed(node, Direction::Incoming).map(NodeIndex::index).collect();
        self.graph.node_indices().map(of).collect()
    }
}
