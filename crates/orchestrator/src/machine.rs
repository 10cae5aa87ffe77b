//! The pure state machine of a team: folds the records of a run and derives the next command.
//!
//! The machine reads no clock and no random numbers, and does no I/O; the records bring all of that. Every
//! job ends, because each delegation has a deadline, each job a maximum number of attempts, and each run a
//! maximum number of delegations.

mod another_plan;
mod apply;
mod assignments;
mod brief;
mod bus_content;
mod conflicts;
mod index;
mod job;
mod matching;
mod outcome;
mod progress;
mod structured_output;

use std::{
    collections::{BTreeMap, HashMap},
    sync::OnceLock,
};

use archon_run::{Budget, Machine, Next};
use archon_types::{
    AgentId, CallId, Claim, CommandId, FailureKind, LimitReached, Member, MoreLimits, Outcome, OutputChecker,
    Record, RecordBody, RunId, RunKind, RunStarted, SubTask, SubTaskId, Task, TaskId, TeamRecord, TeamRole,
    TeamSettings, Timestamp,
};
use serde::{Deserialize, Serialize};

use conflicts::Conflict;
use index::{Index, Touched};
pub use job::{Assignment, AssignmentState, Job, JobState, Purpose};
pub use matching::Match;

use crate::board::Board;

/// Version of the serialized [`TeamMachine`]. Other versions cannot be read.
pub const MACHINE_VERSION: u32 = 1;

/// A task that the machine gives to the driver.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TeamTask {
    /// Ask the planner for a plan, or for a replan if there is a [`loss`](TeamMachine::loss). Then append
    /// `Planned`, `Replanned` or `PlanningFailed`.
    MakePlan,
    /// Append `LeaseGranted` and `ToolCallStarted`, and start this delegation.
    Start(CallId),
    /// Check this answer against [`TeamMachine::output_format`], then append `OutputChecked`.
    CheckOutput(String),
}

/// The state of a team's run, folded from the records.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TeamMachine {
    #[serde(deserialize_with = "known_version")]
    version: u32,
    run: RunId,
    settings: TeamSettings,
    roles: Vec<TeamRole>,
    members: BTreeMap<AgentId, MemberState>,
    lead: Option<AgentId>,
    budget: Budget,
    now: Timestamp,
    phase: Phase,
    task: Task,
    /// The fixed plan of a team that asks no planner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fixed: Option<Vec<SubTask>>,
    /// Text that the agents read besides the goal, for instance the session history.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    background: String,
    jobs: Vec<Job>,
    board: Board,
    conflicts: Vec<Conflict>,
    /// The newest claim of each member and job, by key.
    claims: BTreeMap<String, Vec<Claim>>,
    delegations: u32,
    /// Number of failed delegations since a person was last asked about them.
    failures: u32,
    /// The reason for each replan, followed by the planner's problem if the planner found no new plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    replan_reasons: Vec<String>,
    late: u32,
    answer: Option<String>,
    /// The schema of the answer, and the checks of the answers so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<OutputChecker>,
    /// True if the newest answer fits the schema.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    fits: bool,
    suspended: bool,
    cancelled: bool,
    limit: Option<LimitReached>,
    ended: Option<Box<Outcome>>,
    /// Lookup tables, made on first use and then kept up to date.
    #[serde(skip)]
    index: OnceLock<Index>,
    #[serde(skip)]
    touched: Touched,
    /// The command of the job that does each subtask.
    #[serde(skip)]
    places: OnceLock<HashMap<SubTaskId, CommandId>>,
}

/// A member and its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemberState {
    /// The member as configured.
    pub member: Member,
    /// True after a delegation was revoked because the member's heartbeats were missing, until the member
    /// answers.
    pub silent: bool,
    /// Number of the member's open delegations.
    pub load: u32,
    /// Number of delegations that the member finished.
    pub done: u32,
    /// Number of the member's delegations that failed or were revoked.
    pub failed: u32,
}

/// Phase of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
enum Phase {
    Fresh,
    Planning,
    Working,
    /// All subtasks have ended, and the answer is being made.
    Concluding,
    Broken {
        kind: FailureKind,
        error: String,
    },
}

impl Machine for TeamMachine {
    const KIND: RunKind = RunKind::Team;
    type Task = TeamTask;

    fn apply(&mut self, record: &Record) {
        let index = self.index.take();
        self.take_in(record);
        let touched = std::mem::take(&mut self.touched);
        debug_assert!(self.index.get().is_none(), "nothing is looked up while a record is taken in");
        if let Some(mut index) = index.filter(|_| !touched.all) {
            index.update(self, touched);
            self.index = index.into();
        }
    }

    fn next(&self) -> Next<TeamTask> {
        use archon_types::OutcomeStatus::{Cancelled, Limit};
        if let Some(outcome) = &self.ended {
            return Next::Done(Outcome::clone(outcome));
        }
        if let Phase::Broken { kind, error } = &self.phase {
            return finish(self.failed_outcome(*kind, error.clone()));
        }
        if self.cancelled {
            return finish(self.outcome(Cancelled));
        }
        if let Some(limit) = self.limit {
            return finish(self.outcome(Limit(limit)));
        }
        match self.phase {
            Phase::Fresh => return Next::AwaitPrompt,
            Phase::Planning => return self.planning(),
            _ => {}
        }
        if self.answer.is_some() {
            return finish(self.final_outcome());
        }
        if let Some(answer) = self.output_due() {
            return Next::Do(TeamTask::CheckOutput(answer));
        }
        if let Some(limit) = self.budget.reached() {
            return Next::Append(RecordBody::LimitReached(limit));
        }
        self.work()
    }

    fn is_stopping(&self) -> bool {
        self.cancelled
            || self.limit.is_some()
            || self.ended.is_some()
            || matches!(self.phase, Phase::Broken { .. })
    }

    fn knows(&self, report: &RecordBody) -> bool {
        let RecordBody::ChildRunCreated { call, .. } = report else { return true };
        self.hand(*call).is_some_and(|hand| hand.is_begun)
    }
}

impl TeamMachine {
    /// Creates the machine of a new run.
    pub fn new(started: &RunStarted, at: Timestamp) -> Self {
        Self {
            version: MACHINE_VERSION,
            run: started.run.clone(),
            settings: TeamSettings::default(),
            roles: Vec::new(),
            members: BTreeMap::new(),
            lead: None,
            budget: Budget::new(started.config.limits.clone(), at),
            now: at,
            phase: Phase::Fresh,
            task: Task::new(TaskId::new(started.run.as_str()), ""),
            fixed: None,
            background: String::new(),
            jobs: Vec::new(),
            board: Board::default(),
            conflicts: Vec::new(),
            claims: BTreeMap::new(),
            delegations: 0,
            failures: 0,
            replan_reasons: Vec::new(),
            late: 0,
            answer: None,
            output: OutputChecker::of(&started.config),
            fits: false,
            suspended: false,
            cancelled: false,
            limit: None,
            ended: None,
            index: OnceLock::new(),
            touched: Touched::default(),
            places: OnceLock::new(),
        }
    }

    /// Returns the task to ask for a plan, or the limit that is reached.
    fn planning(&self) -> Next<TeamTask> {
        match self.budget.reached().or_else(|| self.budget.dry()) {
            Some(limit) => Next::Append(RecordBody::LimitReached(limit)),
            None => Next::Do(TeamTask::MakePlan),
        }
    }

    fn work(&self) -> Next<TeamTask> {
        if let Some(record) = self.next_revocation().or_else(|| self.next_about_conflicts()) {
            return append(record);
        }
        if let Some(about_person) = self.unanswered().or_else(|| self.next_question()) {
            return Next::Append(about_person);
        }
        let dry = self.budget.dry();
        let begin = if self.is_escalated() { None } else { self.begin() };
        match (begin, dry) {
            (Some(begin), None) => return begin,
            _ if self.index().running > 0 => {
                let times = [self.next_look(), self.next_expiry(), Some(self.deadline())];
                return Next::Wait(times.into_iter().flatten().min());
            }
            (Some(_), Some(limit)) => return Next::Append(RecordBody::LimitReached(limit)),
            (None, _) => {}
        }
        if self.has_lost() && !self.is_escalated() {
            return self.planning();
        }
        let waiting = self.waiting();
        if !waiting.is_empty() {
            return match self.suspended {
                true => Next::Suspend,
                false => Next::Append(RecordBody::Suspended { waiting }),
            };
        }
        if self.phase == Phase::Concluding {
            return append(TeamRecord::AnswerFinished { answer: self.draft() });
        }
        finish(self.failed_outcome(FailureKind::Subtasks, self.stuck()))
    }

    /// Returns the next delegation to start, or the record that chooses one.
    fn begin(&self) -> Option<Next<TeamTask>> {
        match self.index().chosen.first() {
            Some(call) => Some(Next::Do(TeamTask::Start(*call))),
            None => self.next_delegation().map(append),
        }
    }

    /// Returns the delegations at work, for a driver that resumes the run.
    pub fn under_way(&self) -> Vec<CallId> {
        let running = self.hands().filter(|(_, hand)| hand.state == AssignmentState::Running);
        running.map(|(call, _)| call).collect()
    }

    /// Returns whether this call waits for a person's answer.
    pub fn is_waiting_for(&self, call: CallId) -> bool {
        self.waiting().contains(&call)
    }

    /// Returns the job of a command.
    pub fn job(&self, command: CommandId) -> Option<&Job> {
        self.jobs.get(usize::try_from(command.0).ok()?.checked_sub(1)?)
    }

    /// Returns the delegation of a call.
    pub fn hand(&self, call: CallId) -> Option<&Assignment> {
        self.job(call.command)?.hands.get(usize::try_from(call.index).ok()?)
    }

    /// Returns the delegation of a call, unless it has ended.
    pub(crate) fn open_hand(&self, call: CallId) -> Option<&Assignment> {
        self.hand(call).filter(|hand| hand.is_open())
    }

    /// Returns all jobs, oldest first.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// Returns the shared entries.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Returns the goal with the subtasks of its plan.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Returns the fixed plan; `None` if a planner makes the plan.
    pub fn fixed(&self) -> Option<&[SubTask]> {
        self.fixed.as_deref()
    }

    /// Returns the text that the agents read besides the goal.
    pub fn background(&self) -> &str {
        &self.background
    }

    /// Returns the settings of the team.
    pub fn settings(&self) -> &TeamSettings {
        &self.settings
    }

    /// Returns the members, without the lead.
    pub fn members(&self) -> impl Iterator<Item = &MemberState> {
        self.members.values()
    }

    /// Returns the role with this name.
    pub fn role(&self, name: &str) -> Option<&TeamRole> {
        self.roles.iter().find(|role| role.name == name)
    }

    /// Returns the number of answers that came after their delegation had ended.
    pub fn late(&self) -> u32 {
        self.late
    }

    /// Returns the outcome of the run; `None` while the run has not ended.
    pub fn ended(&self) -> Option<&Outcome> {
        self.ended.as_deref()
    }

    /// Returns the limit that ended the run, if the limit is still reached after `more` is added.
    pub fn ended_at(&self, more: &MoreLimits) -> Option<LimitReached> {
        let mut budget = self.budget.clone();
        budget.raise(more);
        self.limit.and_then(|_| budget.reached().or_else(|| budget.dry()))
    }

    /// Returns the time at which the run's time limit is reached.
    pub fn deadline(&self) -> Timestamp {
        self.budget.deadline()
    }

    /// Returns the budget that the planner may use: all that is unspent, because no member works at the same time.
    pub fn remaining_budget(&self) -> archon_types::Lease {
        self.budget.lease(1)
    }

    /// Returns the budget that the member's run of a delegation may use: a share of the unspent budget.
    pub fn lease(&self, call: CallId) -> archon_types::Lease {
        if let Some(lease) = self.hand(call).and_then(|hand| hand.money.lease(call)) {
            return lease;
        }
        let index = self.index();
        let free = (self.settings.max_concurrent.max(1) as usize).saturating_sub(index.running).max(1);
        let to_do = index.open.max(1);
        // One share stays free for members that are asked for help or take over work of silent members.
        self.budget.lease(free.min(to_do) as u64 + 1)
    }

    fn hands(&self) -> impl Iterator<Item = (CallId, &Assignment)> {
        self.jobs.iter().flat_map(Job::calls)
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(self))
    }

    /// Returns a description of the difference between the lookup tables and newly made ones; `None` if they are
    /// equal. For tests.
    #[doc(hidden)]
    pub fn index_problem(&self) -> Option<String> {
        let (updated, new) = (self.index(), Index::of(self));
        if !updated.is_like(&new) {
            return Some(format!("updated: {updated:?}\nnew: {new:?}"));
        }
        self.matching_problem()
    }

    fn member_mut(&mut self, id: &AgentId) -> Option<&mut MemberState> {
        let state = self.members.get_mut(id)?;
        self.touched.members.push(id.clone());
        Some(state)
    }

    fn job_mut(&mut self, command: CommandId) -> Option<&mut Job> {
        self.touched.jobs.push(command);
        self.jobs.get_mut(usize::try_from(command.0).ok()?.checked_sub(1)?)
    }

    fn hand_mut(&mut self, call: CallId) -> Option<&mut Assignment> {
        self.job_mut(call.command)?.hands.get_mut(usize::try_from(call.index).ok()?)
    }

    /// Returns the command of the next job. Command 0 is the plan; each job has a command of its own.
    pub(crate) fn next_command(&self) -> CommandId {
        CommandId(self.jobs.len() as u64 + 1)
    }

    fn add_job(&mut self, purpose: Purpose, change: impl FnOnce(&mut Job)) -> CommandId {
        let command = self.next_command();
        let mut job = Job::new(command, purpose);
        change(&mut job);
        self.jobs.push(job);
        self.touched.jobs.push(command);
        command
    }
}

fn append(record: TeamRecord) -> Next<TeamTask> {
    Next::Append(RecordBody::Team(Box::new(record)))
}

fn finish(outcome: Outcome) -> Next<TeamTask> {
    Next::Append(RecordBody::RunFinished(Box::new(outcome)))
}

fn known_version<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let version = u32::deserialize(deserializer)?;
    match version == MACHINE_VERSION {
        true => Ok(version),
        false => Err(serde::de::Error::custom(format!(
            "the serialized machine of a team has version {version}, and only version {MACHINE_VERSION} can be read: fold the log instead"
        ))),
    }
}
