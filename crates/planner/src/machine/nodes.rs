//! The nodes of a plan that is being followed: dependency counters, and the order in which ready nodes
//! start.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
};

use archon_run::GrantedLease;
use archon_types::{
    ApprovalRequest, CallId, CommandId, Effect, PlanSettings, RunId, SubTask, SubTaskId, Timestamp,
    ToolResult,
};
use petgraph::{
    Direction,
    graph::{DiGraph, NodeIndex},
};
use serde::{Deserialize, Serialize};

use super::{NodeState, PlanNode, node::AskedBy};

/// Key of the start order: the longest remaining path first, then the order of the plan.
type Turn = (Reverse<u64>, NodeIndex);

/// All nodes, and indexes that are derived from their states.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Nodes {
    graph: DiGraph<PlanNode, ()>,
    #[serde(serialize_with = "in_order")]
    by_id: HashMap<SubTaskId, NodeIndex>,
    /// Nodes by command number. Requests to the planner have command numbers, too.
    by_command: Vec<Option<NodeIndex>>,
    resources: Vec<Resource>,
    ready: BTreeSet<Turn>,
    delayed: BTreeSet<(Timestamp, NodeIndex)>,
    gated: BTreeSet<NodeIndex>,
    asked: BTreeSet<NodeIndex>,
    troubled: BTreeSet<NodeIndex>,
    running: u32,
    open: usize,
    failed: usize,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Resource {
    name: String,
    limit: u32,
    used: u32,
    /// Nodes that wait because the limit of the resource is reached.
    parked: BTreeSet<Turn>,
}

/// Expected time in ms of a subtask whose rules set no expected time.
const EXPECTED_MS: u64 = 1_000;

impl Nodes {
    /// Sets the limits of resources. Must be called before nodes are added.
    pub(super) fn limit(&mut self, settings: &PlanSettings) {
        let resource = |(name, limit): (&String, &u32)| Resource {
            name: name.clone(),
            limit: (*limit).max(1),
            ..Resource::default()
        };
        self.resources = settings.resources.iter().map(resource).collect();
    }

    /// Adds a subtask. [`rebuild`](Self::rebuild) must follow.
    pub(super) fn add(&mut self, subtask: SubTask, command: CommandId) {
        let uses = |r: &Resource| {
            subtask.rules.resources.contains(&r.name) || subtask.tool_name() == Some(r.name.as_str())
        };
        let resources =
            (0u32..).zip(&self.resources).filter(|(_, r)| uses(r)).map(|(place, _)| place).collect();
        let id = subtask.id.clone();
        let index = self.graph.add_node(PlanNode {
            subtask: Box::new(subtask),
            command,
            state: NodeState::Waiting,
            waiting_for: 0,
            rank: 0,
            calls: 0,
            starts: 0,
            failures: 0,
            tool: 0,
            result: None,
            is_central: false,
            is_approved: false,
            agreed: None,
            edited: None,
            asked_by: AskedBy::default(),
            begun: None,
            items: None,
            money: GrantedLease::default(),
            resources,
            started_at: None,
            ended_at: None,
        });
        self.by_id.insert(id, index);
        let place = usize::try_from(command.0).unwrap_or(usize::MAX);
        // Commands are counted from 0, so the vector grows with the plan.
        if self.by_command.len() <= place {
            self.by_command.resize(place + 1, None);
        }
        self.by_command[place] = Some(index);
    }

    /// Removes a subtask. [`rebuild`](Self::rebuild) must follow.
    pub(super) fn drop_node(&mut self, id: &SubTaskId) {
        if let Some(index) = self.by_id.remove(id) {
            self.graph[index].state = NodeState::Dropped;
        }
    }

    /// Derives edges, counters, ranks and indexes again after the plan changed, in time linear in the
    /// size of the plan.
    pub(super) fn rebuild(&mut self) -> Result<(), String> {
        self.graph.clear_edges();
        let live: Vec<NodeIndex> = self.live_indices().collect();
        if live.len() != self.by_id.len() {
            return Err("two subtasks share an id".to_owned());
        }
        for &to in &live {
            let mut dependencies = Vec::new();
            for id in self.graph[to].subtask.dependencies() {
                match self.by_id.get(id) {
                    Some(from) if !dependencies.contains(from) => dependencies.push(*from),
                    Some(_) => {}
                    None => {
                        let of = &self.graph[to].subtask.id;
                        return Err(format!("subtask {of} depends on {id}, which the plan does not have"));
                    }
                }
            }
            for from in dependencies {
                self.graph.add_edge(from, to, ());
            }
        }
        let order = petgraph::algo::toposort(&self.graph, None).map_err(|cycle| {
            let id = &self.graph[cycle.node_id()].subtask.id;
            format!("Cycle detected in dependency graph: through {id}")
        })?;
        self.rank(&order, live.len());
        self.index(&order);
        Ok(())
    }

    fn rank(&mut self, order: &[NodeIndex], size: usize) {
        for &index in order.iter().rev() {
            let (mut behind, mut dependents) = (0, 0);
            for next in self.graph.neighbors(index) {
                behind = behind.max(self.graph[next].rank);
                dependents += 1;
            }
            let node = &mut self.graph[index];
            node.rank = behind.saturating_add(node.subtask.rules.expected_ms.unwrap_or(EXPECTED_MS));
            node.is_central = dependents >= CENTRAL && dependents * 2 >= size;
        }
    }

    fn index(&mut self, order: &[NodeIndex]) {
        (self.running, self.open, self.failed) = (0, 0, 0);
        self.ready.clear();
        self.delayed.clear();
        self.gated.clear();
        self.asked.clear();
        self.troubled.clear();
        for resource in &mut self.resources {
            resource.used = 0;
            resource.parked.clear();
        }
        for &index in order {
            self.place(index);
        }
    }

    /// Puts a node into the indexes for its state and the states of its dependencies.
    fn place(&mut self, index: NodeIndex) {
        let (mut waiting_for, mut is_lost) = (0, false);
        for from in self.graph.neighbors_directed(index, Direction::Incoming) {
            let node = &self.graph[from];
            waiting_for += u32::from(!node.lets_go());
            is_lost |= matches!(node.state, NodeState::Failed | NodeState::Unreachable);
        }
        let node = &mut self.graph[index];
        node.waiting_for = waiting_for;
        match node.state.clone() {
            NodeState::Dropped => return,
            NodeState::Done | NodeState::Skipped | NodeState::DoneWithout => return,
            NodeState::Failed => {
                self.failed += 1;
                return;
            }
            NodeState::Troubled => _ = self.troubled.insert(index),
            NodeState::Running { .. } => {
                self.running += 1;
                self.use_resources(index);
            }
            NodeState::Asked | NodeState::Reviewed | NodeState::Deciding => _ = self.asked.insert(index),
            NodeState::ToReview | NodeState::ToDecide | NodeState::InDoubt => _ = self.gated.insert(index),
            NodeState::Delayed { until } if waiting_for == 0 => _ = self.delayed.insert((until, index)),
            _ if is_lost => {
                self.graph[index].state = NodeState::Unreachable;
                return;
            }
            _ if waiting_for > 0 => self.graph[index].state = NodeState::Waiting,
            _ => self.make_ready(index),
        }
        self.open += 1;
    }

    /// Marks a node as ready, or as gated if a person must be asked first.
    fn make_ready(&mut self, index: NodeIndex) {
        let node = &mut self.graph[index];
        if node.subtask.rules.gate.is_some() && !node.is_approved {
            node.state = NodeState::Gated;
            self.gated.insert(index);
        } else {
            node.state = NodeState::Ready;
            let turn = (Reverse(node.rank), index);
            self.ready.insert(turn);
        }
    }

    /// Decrements `waiting_for` of the nodes that depend on this one, and marks nodes as ready that wait for
    /// no other node.
    fn release(&mut self, index: NodeIndex) {
        let mut next = self.graph.neighbors(index).detach();
        while let Some(dependent) = next.next_node(&self.graph) {
            let node = &mut self.graph[dependent];
            node.waiting_for = node.waiting_for.saturating_sub(1);
            if node.waiting_for == 0 && node.state == NodeState::Waiting {
                self.make_ready(dependent);
            }
        }
    }

    /// Marks all nodes that depend on a failed node as unreachable.
    fn abandon(&mut self, index: NodeIndex) {
        let mut queue = VecDeque::from([index]);
        while let Some(node) = queue.pop_front() {
            let mut next = self.graph.neighbors(node).detach();
            while let Some(dependent) = next.next_node(&self.graph) {
                if self.graph[dependent].state == NodeState::Waiting {
                    self.graph[dependent].state = NodeState::Unreachable;
                    self.open -= 1;
                    queue.push_back(dependent);
                }
            }
        }
    }

    /// Records the start of a node's call. Does nothing if the call cannot start.
    pub(super) fn start(&mut self, call: CallId, effect: Effect, child: Option<RunId>, at: Timestamp) {
        if let Some(index) = self.index_of(call) {
            self.graph[index].starts += 1;
        }
        let Some(index) = self.ready_call(call) else { return };
        self.leave(index);
        let node = &mut self.graph[index];
        node.state = NodeState::Running { effect, child };
        node.started_at = Some(at);
        self.running += 1;
        self.use_resources(index);
    }

    /// Ends a node's call, or a node that never started. `state` is final, or `Troubled` for a node that
    /// waits for a replan. The nodes that depend on the node may start, or become unreachable.
    pub(super) fn end(
        &mut self,
        index: NodeIndex,
        state: NodeState,
        result: Option<ToolResult>,
        at: Timestamp,
    ) {
        self.leave(index);
        self.graph[index].end_call(result, at);
        self.graph[index].state = state.clone();
        match state {
            NodeState::Troubled => _ = self.troubled.insert(index),
            NodeState::Failed => self.fail(index),
            _ => {
                self.open -= 1;
                self.release(index);
            }
        }
    }

    /// Counts a node that has failed finally, and marks all nodes that depend on it as unreachable.
    fn fail(&mut self, index: NodeIndex) {
        self.failed += 1;
        self.open -= 1;
        self.abandon(index);
    }

    /// Records that the call ended and a person must be asked about its end: `state` is `ToReview` or
    /// `ToDecide`.
    pub(super) fn ask_about_end(
        &mut self,
        index: NodeIndex,
        state: NodeState,
        result: ToolResult,
        at: Timestamp,
    ) {
        self.leave(index);
        let node = &mut self.graph[index];
        (node.state, node.ended_at, node.result) = (state, Some(at), Some(Box::new(result)));
        self.gated.insert(index);
    }

    /// Records that the call ended and is tried again at `until`.
    pub(super) fn again(&mut self, index: NodeIndex, result: ToolResult, at: Timestamp, until: Timestamp) {
        self.leave(index);
        self.graph[index].end_call(Some(result), at);
        if until > at {
            self.graph[index].state = NodeState::Delayed { until };
            self.delayed.insert((until, index));
        } else {
            self.make_ready(index);
        }
    }

    /// Records that the call was stopped with the run and may have taken effect.
    pub(super) fn stopped(&mut self, index: NodeIndex, result: ToolResult, at: Timestamp) {
        self.graph[index].end_call(Some(result), at);
        self.doubt(index);
    }

    /// Marks tool calls as in doubt that were running when the process died and may have taken effect.
    pub(super) fn doubt_cut_off(&mut self) {
        let is_cut_off = |index: &NodeIndex| {
            matches!(self.graph[*index].state, NodeState::Running { effect: Effect::SideEffect, child: None })
        };
        let cut_off: Vec<NodeIndex> = self.live_indices().filter(is_cut_off).collect();
        cut_off.into_iter().for_each(|index| self.doubt(index));
    }

    fn doubt(&mut self, index: NodeIndex) {
        self.leave(index);
        self.graph[index].state = NodeState::InDoubt;
        self.gated.insert(index);
    }

    /// Marks a troubled node as failed, because no replan repaired it.
    pub(super) fn fail_troubled(&mut self, index: NodeIndex) {
        if self.troubled.remove(&index) {
            self.graph[index].state = NodeState::Failed;
            self.fail(index);
        }
    }

    /// Removes a node from the indexes of its state.
    fn leave(&mut self, index: NodeIndex) {
        match self.graph[index].state {
            NodeState::Ready => {
                let turn = (Reverse(self.graph[index].rank), index);
                let was_first = self.ready.remove(&turn);
                for place in self.graph[index].resources.clone() {
                    self.resources[place as usize].parked.remove(&turn);
                    // A resource that the node would have used is free for the next node.
                    if was_first {
                        self.pull(place);
                    }
                }
            }
            NodeState::Delayed { until } => _ = self.delayed.remove(&(until, index)),
            NodeState::Gated | NodeState::InDoubt | NodeState::ToReview | NodeState::ToDecide => {
                self.gated.remove(&index);
            }
            NodeState::Asked | NodeState::Reviewed | NodeState::Deciding => _ = self.asked.remove(&index),
            NodeState::Troubled => _ = self.troubled.remove(&index),
            NodeState::Running { .. } => {
                self.running -= 1;
                for place in self.graph[index].resources.clone() {
                    let used = &mut self.resources[place as usize].used;
                    *used = used.saturating_sub(1);
                    self.pull(place);
                }
            }
            _ => {}
        }
    }

    fn use_resources(&mut self, index: NodeIndex) {
        for place in self.graph[index].resources.clone() {
            self.resources[place as usize].used += 1;
        }
    }

    fn is_free(&self, place: u32) -> bool {
        let resource = &self.resources[place as usize];
        resource.used < resource.limit
    }

    /// Moves the first node that is parked for a resource back to the ready nodes, if the limit of the
    /// resource is not reached.
    fn pull(&mut self, place: u32) {
        if self.is_free(place) {
            self.ready.extend(self.resources[place as usize].parked.pop_first());
        }
    }

    /// Parks ready nodes that cannot start because the limit of a resource is reached, until the first of the
    /// ready nodes can start.
    pub(super) fn settle(&mut self, max_concurrent: u32) {
        if self.running >= max_concurrent.max(1) {
            return;
        }
        while let Some(turn) = self.ready.first().copied() {
            let resources = self.graph[turn.1].resources.clone();
            let Some(full) = resources.iter().copied().find(|place| !self.is_free(*place)) else { return };
            self.ready.remove(&turn);
            self.resources[full as usize].parked.insert(turn);
            // Another resource that the node would have used is free for the next node.
            resources.into_iter().filter(|place| *place != full).for_each(|place| self.pull(place));
        }
    }

    /// Marks nodes as ready whose next attempt is due.
    pub(super) fn due(&mut self, now: Timestamp) {
        while let Some((until, index)) = self.delayed.first().copied().filter(|(until, _)| *until <= now) {
            self.delayed.remove(&(until, index));
            self.make_ready(index);
        }
    }

    /// Records a question to a person about a call: before its start, while it runs, when it is in doubt, or
    /// about its result or failure.
    pub(super) fn question(&mut self, call: CallId, request: &ApprovalRequest) {
        let Some(index) = self.index_of(call) else { return };
        let asked = match self.graph[index].state {
            NodeState::Gated | NodeState::InDoubt | NodeState::Ready | NodeState::Running { .. } => {
                NodeState::Asked
            }
            NodeState::ToReview => NodeState::Reviewed,
            NodeState::ToDecide => NodeState::Deciding,
            _ => return,
        };
        self.leave(index);
        self.graph[index].state = asked;
        self.graph[index].asked_by = AskedBy::of(request);
        self.asked.insert(index);
    }

    /// Applies a person's approval.
    pub(super) fn approve(&mut self, call: CallId, at: Timestamp) {
        let Some(index) = self.index_of(call).filter(|index| self.asked.contains(index)) else { return };
        let node = &mut self.graph[index];
        if node.state == NodeState::Reviewed {
            let (result, ended) = (node.result.take().map(|result| *result), node.ended_at.unwrap_or(at));
            return self.end(index, NodeState::Done, result, ended);
        }
        if node.state == NodeState::Deciding {
            node.failures = 0;
            let result = node.result.take().map(|result| *result).unwrap_or_default();
            return self.again(index, result, at, at);
        }
        match std::mem::take(&mut node.asked_by) {
            AskedBy::Plan => node.is_approved = true,
            AskedBy::Tool(binding) => node.agreed = Some(binding),
            AskedBy::Doubt(binding) => (node.agreed, node.begun) = (Some(binding), None),
            AskedBy::Below => {}
        }
        self.asked.remove(&index);
        self.make_ready(index);
    }

    /// Marks the subtasks as ready whose child runs wait for answers, because the answers may have come by now.
    pub(super) fn look_below(&mut self) {
        let is_below = |index: &NodeIndex| self.graph[*index].asked_by == AskedBy::Below;
        let below: Vec<NodeIndex> = self.asked.iter().copied().filter(is_below).collect();
        for index in below {
            self.look_again(index);
        }
    }

    fn look_again(&mut self, index: NodeIndex) {
        self.graph[index].asked_by = AskedBy::default();
        self.asked.remove(&index);
        self.make_ready(index);
    }

    /// Returns the node of a call about which a person was asked and has not answered.
    pub(super) fn open_question(&self, call: CallId) -> Option<&PlanNode> {
        self.index_of(call).filter(|index| self.asked.contains(index)).map(|index| &self.graph[index])
    }

    pub(super) fn has_questions(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Prepares all questions to be asked again, after a run that had ended is resumed.
    pub(super) fn ask_again(&mut self) {
        for index in std::mem::take(&mut self.asked) {
            let node = &mut self.graph[index];
            node.state = match (&node.state, &node.asked_by) {
                (NodeState::Reviewed, _) => NodeState::ToReview,
                (NodeState::Deciding, _) => NodeState::ToDecide,
                (_, AskedBy::Doubt(_)) => NodeState::InDoubt,
                _ => {
                    self.look_again(index);
                    continue;
                }
            };
            self.gated.insert(index);
        }
    }

    pub(super) fn questions(&self) -> Vec<CallId> {
        self.asked.iter().map(|index| self.graph[*index].call()).collect()
    }

    /// Returns the node that starts next; `None` if no node can start.
    pub(super) fn first_ready(
        &self,
        max_concurrent: u32,
        is_held: impl Fn(&SubTaskId) -> bool,
    ) -> Option<&PlanNode> {
        let are_free = |places: &[u32]| places.iter().all(|place| self.is_free(*place));
        let may_begin = |node: &&PlanNode| !is_held(&node.subtask.id) && are_free(&node.resources);
        let mut ready = self.ready.iter().map(|(_, index)| &self.graph[*index]);
        if self.running < max_concurrent.max(1) { ready.find(may_begin) } else { None }
    }

    pub(super) fn first_gated(&self, is_held: impl Fn(&SubTaskId) -> bool) -> Option<&PlanNode> {
        let mut gated = self.gated.iter().map(|index| &self.graph[*index]);
        use NodeState::{InDoubt, ToDecide, ToReview};
        let is_begun = |node: &PlanNode| matches!(node.state, ToReview | ToDecide | InDoubt);
        gated.find(|node| is_begun(node) || !is_held(&node.subtask.id))
    }

    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.delayed.first().map(|(until, _)| *until)
    }

    pub(super) fn running(&self) -> u32 {
        self.running
    }

    /// Returns the number of nodes that are not over.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// Returns the number of nodes of the plan.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn any_failed(&self) -> bool {
        self.failed > 0
    }

    pub(super) fn troubled(&self) -> Vec<NodeIndex> {
        self.troubled.iter().copied().collect()
    }

    pub(super) fn index_of(&self, call: CallId) -> Option<NodeIndex> {
        let index = self.of_command(call)?;
        let node = &self.graph[index];
        (!node.is_over() && node.calls == call.index).then_some(index)
    }

    pub(super) fn ready_call(&self, call: CallId) -> Option<NodeIndex> {
        self.index_of(call).filter(|index| self.graph[*index].state == NodeState::Ready)
    }

    pub(super) fn of_call(&self, call: CallId) -> Option<&PlanNode> {
        self.of_command(call).map(|index| &self.graph[index])
    }

    pub(super) fn of_call_mut(&mut self, call: CallId) -> Option<&mut PlanNode> {
        let index = self.of_command(call)?;
        Some(&mut self.graph[index])
    }

    fn of_command(&self, call: CallId) -> Option<NodeIndex> {
        self.by_command.get(usize::try_from(call.command.0).ok()?).copied().flatten()
    }

    pub(super) fn of_id(&self, id: &str) -> Option<&PlanNode> {
        self.by_id.get(id).map(|index| &self.graph[*index])
    }

    pub(super) fn index_of_id(&self, id: &SubTaskId) -> Option<NodeIndex> {
        self.by_id.get(id).copied()
    }

    pub(super) fn get(&self, index: NodeIndex) -> &PlanNode {
        &self.graph[index]
    }

    pub(super) fn get_mut(&mut self, index: NodeIndex) -> &mut PlanNode {
        &mut self.graph[index]
    }

    pub(super) fn live(&self) -> impl Iterator<Item = &PlanNode> {
        self.graph.node_weights().filter(|node| node.state != NodeState::Dropped)
    }

    fn live_indices(&self) -> impl Iterator<Item = NodeIndex> {
        self.graph.node_indices().filter(|index| self.graph[*index].state != NodeState::Dropped)
    }
}

/// Minimum number of dependents of a central subtask, however small the plan is.
const CENTRAL: usize = 3;

/// Serializes a map in order, so that equal machines have equal serialized forms.
fn in_order<S: serde::Serializer>(
    by_id: &HashMap<SubTaskId, NodeIndex>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    by_id.iter().collect::<BTreeMap<_, _>>().serialize(serializer)
}
