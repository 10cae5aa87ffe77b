//! The subtasks of a plan or a team with their states. They are computed from records alone, without the rules that
//! decide the next step of a plan.
//!
//! A plan's record names a subtask by its command. The commands of a plan have consecutive numbers: one for each
//! request to the planner, and one for each subtask, in the order in which they are added to the plan. A team's record
//! names a subtask by its text when the team delegates it.

use std::collections::HashMap;

use archon_types::{
    Answer, CallId, CommandId, Confirm, PlanDiff, PlanRecord, Record, RecordBody, RunId, SubTask, SubTaskId,
    TeamRecord, Timestamp, ToolResult, ToolResultStatus,
};
use serde::Serialize;

/// The kind of work that a graph shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GraphKind {
    /// The run follows no plan.
    #[default]
    None,
    /// The run follows a plan.
    Plan,
    /// A team works on a plan.
    Team,
}

/// The state of a subtask in a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NodeStatus {
    /// The subtask has not started, or starts again later.
    #[default]
    Pending,
    /// A call of the subtask is under way.
    Running,
    /// A person is asked about the subtask.
    Asking,
    /// The subtask has its result.
    Completed,
    /// The last call failed or was refused.
    Failed,
    /// The condition of the subtask did not hold.
    Skipped,
}

/// The subtasks of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subtasks {
    pub(crate) kind: GraphKind,
    pub(crate) nodes: Vec<Node>,
    places: HashMap<CommandId, usize>,
    /// The number of the next command of a plan.
    next: u64,
    confirm: Confirm,
    /// The request to the planner whose plan a person has not confirmed yet, and may change.
    confirming: Option<CommandId>,
    /// A change of the plan that a person must approve, with the request to the planner that led to it.
    proposed: Option<(CommandId, PlanDiff)>,
    /// The requests of team members for delegations: the command of the member, and the task.
    requests: Vec<(CommandId, String)>,
}

/// A subtask of a plan, or a delegation that is not in the plan of the team.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) subtask: SubTask,
    pub(crate) status: NodeStatus,
    /// The run that does the subtask, or that did it last.
    pub(crate) run: Option<RunId>,
    /// The member or the tool that does the subtask.
    pub(crate) by: Option<String>,
    command: Option<CommandId>,
    /// The status before a person was asked.
    before: NodeStatus,
    started_at: Option<Timestamp>,
    /// The time of all calls that have ended, in milliseconds.
    worked_ms: Option<u64>,
}

impl Subtasks {
    /// Applies the next record of the run.
    pub(crate) fn apply(&mut self, record: &Record) {
        let at = record.at;
        match &record.body {
            RecordBody::Plan(plan) => self.apply_plan(plan),
            RecordBody::Team(team) => self.apply_team(team, at),
            RecordBody::ToolCallStarted { call, child_run, .. } => {
                self.change(call.command, |node| node.start(child_run.as_ref(), at));
            }
            RecordBody::ChildRunCreated { call, child_run } => {
                self.change(call.command, |node| node.run = Some(child_run.clone()));
            }
            RecordBody::ApprovalRequested { call, .. } => self.change(call.command, Node::ask),
            RecordBody::ApprovalAnswered { call, answer } => self.take_answer(*call, answer),
            RecordBody::ToolCallFinished { call, result } => {
                self.change(call.command, |node| node.end(status_of(result), at));
            }
            RecordBody::ToolCallRefused { call, .. } => {
                self.change(call.command, |node| node.end(NodeStatus::Failed, at));
            }
            RecordBody::RunFinished(_) => self.nodes.iter_mut().for_each(|node| node.rest(at)),
            _ => {}
        }
    }

    /// Returns the subtask that a command is for.
    pub(crate) fn of_command(&self, command: CommandId) -> Option<&Node> {
        self.nodes.get(*self.places.get(&command)?)
    }

    fn apply_plan(&mut self, record: &PlanRecord) {
        self.kind = GraphKind::Plan;
        match record {
            PlanRecord::Settings(settings) => self.confirm = settings.confirm,
            PlanRecord::PlanningStarted { command, .. } | PlanRecord::AnswerStarted { command } => {
                self.see(*command);
            }
            PlanRecord::Planned { command, task, .. } => {
                self.see(*command);
                self.adopt(&task.subtasks);
                self.confirming = (self.confirm != Confirm::Never).then_some(*command);
            }
            PlanRecord::Replanned { command, diff, .. } => {
                self.see(*command);
                match self.confirm == Confirm::Each && !self.is_unchanged(diff) {
                    true => self.proposed = Some((*command, PlanDiff::clone(diff))),
                    false => self.follow(diff),
                }
            }
            PlanRecord::Skipped { call, .. } => {
                self.change(call.command, |node| node.status = NodeStatus::Skipped);
            }
            PlanRecord::LoopExpanded { call, subtasks, .. } => {
                self.change(call.command, |node| {
                    let parts = subtasks.iter().map(|part| &part.id);
                    let after: Vec<SubTaskId> =
                        node.subtask.dependencies().iter().chain(parts).cloned().collect();
                    node.subtask = node.subtask.clone().after(after);
                    node.status = NodeStatus::Running;
                });
                subtasks.iter().for_each(|subtask| self.add_numbered(subtask));
            }
            PlanRecord::LoopFinished { call } => {
                self.change(call.command, |node| node.status = NodeStatus::Completed);
            }
            _ => {}
        }
    }

    fn apply_team(&mut self, record: &TeamRecord, at: Timestamp) {
        self.kind = GraphKind::Team;
        match record {
            TeamRecord::Planned { task, .. } => {
                self.clear();
                task.subtasks.iter().for_each(|subtask| self.add(subtask, None));
            }
            TeamRecord::Replanned { diff, .. } => {
                self.drop_changed(diff);
                for subtask in diff.replace.iter().chain(&diff.add) {
                    self.add(subtask, None);
                }
            }
            TeamRecord::DelegationRequested { requester, task, .. } => {
                self.requests.push((requester.command, task.clone()));
            }
            TeamRecord::Delegated { call, member, task, .. } => {
                self.take_job(call.command, task);
                self.change(call.command, |node| node.by = Some(member.to_string()));
            }
            TeamRecord::DelegationRevoked { call, .. } => {
                self.change(call.command, |node| node.end(NodeStatus::Pending, at));
            }
            TeamRecord::DelegationFailed { command, .. } => {
                self.change(*command, |node| node.status = NodeStatus::Failed);
            }
            _ => {}
        }
    }

    /// Connects the command of a delegation with the subtask that the team delegates. If no subtask fits, adds the
    /// delegation as a subtask, for instance for a member's request or for work on the answer.
    fn take_job(&mut self, command: CommandId, task: &str) {
        if self.places.contains_key(&command) {
            return;
        }
        let is_meant = |node: &Node| {
            let SubTask { id, description, .. } = &node.subtask;
            node.command.is_none() && task == format!("{id}: {description}")
        };
        match self.nodes.iter().position(is_meant) {
            Some(place) => {
                self.nodes[place].command = Some(command);
                self.places.insert(command, place);
            }
            None => {
                let asked = self.requests.iter().position(|(_, wanted)| wanted == task);
                let by = asked.and_then(|place| self.of_command(self.requests[place].0));
                let after: Vec<SubTaskId> = by.map(|node| node.subtask.id.clone()).into_iter().collect();
                if let Some(place) = asked {
                    self.requests.remove(place);
                }
                let job = SubTask::new(format!("delegation {}", command.0), task).after(after);
                self.add(&job, Some(command));
            }
        }
    }

    fn take_answer(&mut self, call: CallId, answer: &Answer) {
        if self.confirming == Some(call.command) {
            self.confirming = None;
            if let Some(Ok(task)) = answer.edited_plan() {
                self.adopt(&task.subtasks);
            }
            return;
        }
        if let Some((_, diff)) = self.proposed.take_if(|(command, _)| *command == call.command) {
            match answer.edited_plan() {
                Some(Ok(task)) => self.follow(&self.difference(&task.subtasks)),
                None if answer.is_consent() => self.follow(&diff),
                _ => {}
            }
            return;
        }
        self.change(call.command, |node| node.take_answer(answer));
    }

    /// Replaces all subtasks by those of a new plan.
    fn adopt(&mut self, subtasks: &[SubTask]) {
        self.clear();
        subtasks.iter().for_each(|subtask| self.add_numbered(subtask));
    }

    /// Applies a change to the plan.
    fn follow(&mut self, diff: &PlanDiff) {
        self.drop_changed(diff);
        for subtask in diff.replace.iter().chain(&diff.add) {
            if self.find(&subtask.id).is_none() {
                self.add_numbered(subtask);
            }
        }
    }

    /// Returns the change that turns the current plan into the plan that a person wrote.
    fn difference(&self, wanted: &[SubTask]) -> PlanDiff {
        let mut diff = PlanDiff::default();
        for new in wanted {
            match self.find(&new.id) {
                None => diff.add.push(new.clone()),
                Some(old) if old.status == NodeStatus::Failed || !old.is_same(new) => {
                    diff.replace.push(new.clone());
                }
                Some(_) => {}
            }
        }
        let ids = self.nodes.iter().map(|node| &node.subtask.id);
        diff.remove = ids.filter(|id| !wanted.iter().any(|new| new.id == **id)).cloned().collect();
        diff
    }

    fn is_unchanged(&self, diff: &PlanDiff) -> bool {
        let is_as_before = |new: &SubTask| self.find(&new.id).is_some_and(|old| old.is_same(new));
        diff.add.is_empty() && diff.remove.is_empty() && diff.replace.iter().all(is_as_before)
    }

    /// Drops the subtasks that a change removes or replaces, but not those that are done or under way. A loop that
    /// waits for its parts is dropped, because none of its calls has started.
    fn drop_changed(&mut self, diff: &PlanDiff) {
        let is_meant =
            |id: &SubTaskId| diff.remove.contains(id) || diff.replace.iter().any(|new| new.id == *id);
        let may_change = |node: &Node| match node.status {
            NodeStatus::Pending | NodeStatus::Failed => true,
            NodeStatus::Running => node.started_at.is_none(),
            _ => false,
        };
        self.nodes.retain(|node| !(may_change(node) && is_meant(&node.subtask.id)));
        let commands = self.nodes.iter().enumerate().filter_map(|(place, node)| Some((node.command?, place)));
        self.places = commands.collect();
    }

    fn find(&self, id: &SubTaskId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.subtask.id == *id)
    }

    fn see(&mut self, command: CommandId) {
        self.next = self.next.max(command.0.saturating_add(1));
    }

    fn clear(&mut self) {
        self.nodes.clear();
        self.places.clear();
    }

    fn add_numbered(&mut self, subtask: &SubTask) {
        let command = CommandId(self.next);
        self.see(command);
        self.add(subtask, Some(command));
    }

    fn add(&mut self, subtask: &SubTask, command: Option<CommandId>) {
        self.places.extend(command.map(|command| (command, self.nodes.len())));
        self.nodes.push(Node {
            subtask: subtask.clone(),
            status: NodeStatus::Pending,
            run: None,
            by: subtask.tool_name().map(str::to_owned),
            command,
            before: NodeStatus::Pending,
            started_at: None,
            worked_ms: None,
        });
    }

    fn change(&mut self, command: CommandId, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.places.get(&command).and_then(|place| self.nodes.get_mut(*place)) {
            change(node);
        }
    }
}

impl Node {
    /// Returns the time of the calls until now, in milliseconds; `None` if none has started.
    pub(crate) fn worked(&self, now: Timestamp) -> Option<u64> {
        let under_way = self.started_at.map(|since| now.millis_since(since));
        match (self.worked_ms, under_way) {
            (None, None) => None,
            (ended, under_way) => {
                Some(ended.unwrap_or_default().saturating_add(under_way.unwrap_or_default()))
            }
        }
    }

    fn start(&mut self, run: Option<&RunId>, at: Timestamp) {
        self.stop_clock(at);
        (self.status, self.started_at) = (NodeStatus::Running, Some(at));
        self.run = run.cloned();
    }

    fn ask(&mut self) {
        if self.status != NodeStatus::Asking {
            (self.before, self.status) = (self.status, NodeStatus::Asking);
        }
    }

    fn take_answer(&mut self, answer: &Answer) {
        if self.status == NodeStatus::Asking {
            self.status = match answer {
                Answer::Reply { .. } => NodeStatus::Completed,
                answer if answer.is_consent() => self.before,
                // A child run reads the answer itself.
                _ if self.before == NodeStatus::Running => NodeStatus::Running,
                _ => NodeStatus::Failed,
            };
        }
    }

    fn end(&mut self, status: NodeStatus, at: Timestamp) {
        self.stop_clock(at);
        self.status = status;
    }

    /// Sets a subtask that is under way or asked about back to pending, because the run has ended.
    fn rest(&mut self, at: Timestamp) {
        if matches!(self.status, NodeStatus::Running | NodeStatus::Asking) {
            self.end(NodeStatus::Pending, at);
        }
    }

    fn stop_clock(&mut self, at: Timestamp) {
        if let Some(since) = self.started_at.take() {
            let worked = self.worked_ms.get_or_insert(0);
            *worked = worked.saturating_add(at.millis_since(since));
        }
    }

    fn is_same(&self, other: &SubTask) -> bool {
        self.subtask.as_planned() == other.as_planned()
    }
}

/// Returns the status of a subtask after its call. After a cancelled call the subtask is pending, because the call
/// starts again when the run is resumed.
fn status_of(result: &ToolResult) -> NodeStatus {
    match result.status {
        ToolResultStatus::Success => NodeStatus::Completed,
        ToolResultStatus::Cancelled => NodeStatus::Pending,
        _ => NodeStatus::Failed,
    }
}
