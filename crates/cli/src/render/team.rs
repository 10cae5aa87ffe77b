//! Shows a team to people while it works: first its members and the plan; then on a terminal a live line for
//! each member, otherwise a line at the start and the end of each delegation.

use std::{cell::Cell, collections::HashMap};

use archon::{
    orchestrator::{AssignmentState, Job, JobState, Machine as _, TeamMachine},
    planner::show_diff,
    types::{
        AgentId, CallId, Record, RecordBody, RunId, RunStarted, SubTask, TeamRecord, Timestamp, ToolResult,
    },
};

use super::{
    View, is_run_of,
    line::{claims_line, members_line},
    show_end,
};
use crate::{
    board::Row,
    output::{Look, Output},
    text::{one_line, seconds},
};

/// The maximum number of shown characters of a task and of its result.
const SHOWN: usize = 120;

#[derive(Debug)]
pub(super) struct TeamView {
    machine: Box<TeamMachine>,
    is_formed: bool,
    lead: Option<AgentId>,
    /// A line for each delegation.
    tasks: HashMap<CallId, String>,
    /// The runs of the members.
    runs: HashMap<CallId, RunId>,
    began: HashMap<CallId, Timestamp>,
    /// The number of tokens of each member that the runs have reported so far.
    tokens: HashMap<AgentId, u64>,
    is_still: Cell<bool>,
}

impl TeamView {
    pub(super) fn new(started: &RunStarted, at: Timestamp) -> Self {
        Self {
            machine: Box::new(TeamMachine::new(started, at)),
            is_formed: false,
            lead: None,
            tasks: HashMap::new(),
            runs: HashMap::new(),
            began: HashMap::new(),
            tokens: HashMap::new(),
            is_still: Cell::new(true),
        }
    }

    fn show_record(&self, record: &TeamRecord, output: &Output) {
        let warn = |text: String| output.note(Look::Warning, one_line(&text, 4 * SHOWN));
        let note = |text: String| output.note(Look::Dim, one_line(&text, 4 * SHOWN));
        let who = |call: CallId| self.member(call).map_or_else(|| call.to_string(), |who| who.to_string());
        match record {
            TeamRecord::Formed { members, lead, .. } => {
                note(format!("the team: {}", members_line(members, lead.as_ref())));
                output.wait("planning");
            }
            TeamRecord::Planned { task, .. } => {
                output.stop_waiting();
                note("the plan:".to_owned());
                for subtask in &task.subtasks {
                    output.note(Look::Dim, format!("  {}", subtask_line(subtask)));
                }
            }
            TeamRecord::Replanned { diff, .. } => {
                output.stop_waiting();
                note("a new plan for the remaining subtasks:".to_owned());
                show_diff(diff).lines().for_each(|line| note(format!("  {line}")));
            }
            TeamRecord::PlanningFailed { problem, .. } => {
                output.stop_waiting();
                warn(format!("planning failed: {problem}"));
            }
            TeamRecord::DelegationFailed { reason, .. } => {
                warn(format!("no member can do the subtask: {reason}"))
            }
            TeamRecord::DelegationRevoked { call, member, reason } => {
                warn(format!("{member} loses \"{}\": {reason}", self.task(*call)));
            }
            TeamRecord::LateAnswer { member, answer, .. } => {
                note(format!("{member} answered too late, and the answer is ignored: {answer}"));
            }
            TeamRecord::DelegationRequested { requester, task, assignee } => {
                note(format!("{} asks {assignee}: {task}", who(*requester)));
            }
            TeamRecord::MemberWaiting { call, .. } => {
                note(format!("{} waits until a person has answered", who(*call)));
            }
            TeamRecord::ValueShared { writer, key, .. } => {
                note(format!("{} shares {key}", who(*writer)));
            }
            TeamRecord::ConflictFound { key, claims, .. } => {
                warn(format!("members contradict each other about {key}: {}", claims_line(claims)));
            }
            TeamRecord::ConflictResolved { value, resolution, .. } => {
                note(format!("settled: {value} ({resolution})"))
            }
            _ => {}
        }
    }

    fn began(&self, call: CallId, output: &Output) {
        if !output.spins {
            output.note(Look::Plain, format!("-> {}", self.who_does(call)));
        }
    }

    fn ended(&self, call: CallId, result: &ToolResult, at: Timestamp, output: &Output) {
        let elapsed = seconds(self.began.get(&call).copied().unwrap_or(at), at);
        show_end(&self.who_does(call), result, &elapsed, self.done(), output);
    }

    fn who_does(&self, call: CallId) -> String {
        let who = self.member(call).map(|id| id.to_string()).unwrap_or_default();
        one_line(&format!("{who}: {}", self.task(call)), SHOWN)
    }

    fn task(&self, call: CallId) -> &str {
        self.tasks.get(&call).map_or("", String::as_str)
    }

    fn member(&self, call: CallId) -> Option<AgentId> {
        self.machine.hand(call).map(|hand| hand.member.clone())
    }

    /// Returns the number of finished subtasks and the number of all subtasks.
    fn done(&self) -> (usize, usize) {
        let is_step = |job: &&Job| job.subtask().is_some() && job.state != JobState::Replaced;
        let subtasks = || self.machine.jobs().iter().filter(is_step);
        let answered = |job: &&Job| {
            job.state == JobState::Done
                || job.hands.iter().any(|hand| hand.state == AssignmentState::Answered)
        };
        (subtasks().filter(answered).count(), subtasks().count())
    }
}

impl View for TeamView {
    fn learn(&mut self, record: &Record) {
        match &record.body {
            RecordBody::RunStarted(_) => return,
            RecordBody::Team(record) => match &**record {
                TeamRecord::Formed { lead, .. } => (self.is_formed, self.lead) = (true, lead.clone()),
                TeamRecord::Delegated { call, task, .. } => {
                    self.tasks.insert(*call, one_line(task, SHOWN));
                }
                _ => {}
            },
            RecordBody::ToolCallStarted { call, child_run, .. } => {
                self.began.insert(*call, record.at);
                self.runs.extend(child_run.clone().map(|run| (*call, run)));
            }
            _ => {}
        }
        self.machine.apply(record);
    }

    fn apply(&mut self, run: &RunId, record: &Record, output: &Output) {
        let RecordBody::ModelCallFinished { message, .. } = &record.body else { return };
        let call = self.runs.iter().find(|(_, child)| is_run_of(run, child)).map(|(call, _)| *call);
        if let Some(member) = call.and_then(|call| self.member(call)) {
            *self.tokens.entry(member).or_default() += message.usage.total();
            self.draw(output);
        }
    }

    fn is_under_way(&self) -> bool {
        !self.machine.under_way().is_empty()
    }

    fn is_still(&self) -> &Cell<bool> {
        &self.is_still
    }

    fn work(&self) -> Option<String> {
        let (done, all) = self.done();
        self.is_formed.then(|| format!("{done} of {all} subtasks"))
    }

    fn show(&self, record: &Record, output: &Output) -> bool {
        if !self.is_formed {
            return false;
        }
        match &record.body {
            RecordBody::Team(record) => self.show_record(record, output),
            RecordBody::ToolCallStarted { call, .. } => self.began(*call, output),
            RecordBody::ToolCallFinished { call, result } => self.ended(*call, result, record.at, output),
            RecordBody::Suspended { .. } => {
                self.leave(output);
                return false;
            }
            _ => return false,
        }
        self.draw(output);
        true
    }

    /// Returns a line for each member, and a line for the lead while it works.
    fn live_rows(&self) -> Vec<Row> {
        let running = self.machine.under_way();
        let at_work = |id: &AgentId| running.iter().find(|call| self.member(**call).as_ref() == Some(id));
        let members = self.machine.members().map(|state| {
            let (id, role) = (&state.member.id, state.member.roles.first().map_or("", String::as_str));
            let doing = match at_work(id) {
                Some(call) => self.task(*call).to_owned(),
                None if state.silent => "silent".to_owned(),
                None if state.failed > 0 => format!("{} done, {} failed", state.done, state.failed),
                None => format!("{} done", state.done),
            };
            (id, format!("{id} ({role}): {doing}"), at_work(id).is_some())
        });
        let lead = self.lead.iter().filter_map(|id| {
            let call = at_work(id)?;
            Some((id, format!("{id} (leads): {}", self.task(*call)), true))
        });
        members
            .chain(lead)
            .map(|(id, text, moves)| {
                let tokens =
                    self.tokens.get(id).map(|tokens| format!(", {tokens} tokens")).unwrap_or_default();
                Row { key: id.as_str().to_owned(), text: one_line(&(text + &tokens), SHOWN), moves }
            })
            .collect()
    }
}

/// Returns a subtask as a line: its id, task and role, and the subtasks that it depends on.
fn subtask_line(subtask: &SubTask) -> String {
    let role = subtask.rules.role.as_ref().map(|role| format!(" [{role}]")).unwrap_or_default();
    let after: Vec<_> = subtask.dependencies().iter().map(|id| id.as_str()).collect();
    let after = if after.is_empty() { String::new() } else { format!(" <- {}", after.join(", ")) };
    one_line(&format!("{}: {}{role}{after}", subtask.id, subtask.description), 2 * SHOWN)
}
