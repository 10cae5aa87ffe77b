//! The state machine of a plan: derives the next command from the records alone.
//!
//! Time, randomness and I/O come in with the records only. [`PlanMachine::apply`] takes a record,
//! [`PlanMachine::next`] returns the next command. Ready subtasks are found by counting: a subtask that
//! ends decrements the counters of its dependents. Whatever the records are, no finished subtask runs
//! again, no subtask waits forever, and the run ends.

mod another_try;
mod changes;
mod failures;
mod loops;
mod node;
mod nodes;
mod outcome;
mod plans;
mod queries;
mod questions;
mod structured_output;
mod values;

use std::sync::Arc;

use archon_run::{Budget, Next};
use archon_types::{
    CallId, CommandId, Effect, FailureKind, LimitReached, Outcome, OutcomeStatus, OutputChecker, PlanDiff,
    PlanRecord, PlanSettings, Record, RecordBody, RunId, RunStarted, SubTask, SubTaskId, Task, TaskId,
    Timestamp, ToolResult,
};
use serde::{Deserialize, Serialize};

pub use node::{NodeState, PlanNode};
use nodes::Nodes;

/// Version of the serialized form of a [`PlanMachine`]. Other versions cannot be read.
pub const MACHINE_VERSION: u32 = 1;

/// A piece of work that the machine gives to the driver.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlanTask {
    /// Append `PlanningStarted`, and ask the planner. [`PlanMachine::task`] is the plan so far.
    MakePlan {
        /// The command that the planner's answer must name.
        command: CommandId,
        /// Number of the attempt, from 0.
        attempt: u32,
        /// The reason for a replan; `None` for the first plan.
        reason: Option<String>,
    },
    /// Start the subtask of this call: append `ToolCallStarted`, or `ToolCallRefused` if the subtask
    /// cannot start.
    Start {
        /// The call of the subtask.
        call: CallId,
    },
    /// Expand the loop of this call, whose list is known: append `LoopExpanded` with the loop's subtasks,
    /// or `ToolCallRefused` if the subtasks cannot be followed.
    Unfold {
        /// The call of the loop.
        call: CallId,
    },
    /// Append `AnswerStarted`, and make the final answer. [`PlanMachine::last_problems`] returns the last
    /// answer, if that answer did not fit its schema.
    Conclude {
        /// The command that the record of the answer must name.
        command: CommandId,
    },
    /// Check the answer against [`PlanMachine::output_format`], then append `OutputChecked`.
    CheckOutput {
        /// The answer.
        answer: String,
    },
}

/// The state of a plan's run, folded from the records.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlanMachine {
    #[serde(deserialize_with = "known_version")]
    version: u32,
    run: RunId,
    settings: PlanSettings,
    budget: Budget,
    phase: Phase,
    /// The goal as given by the caller.
    query: String,
    /// The task without its subtasks, which are in `nodes`.
    task: Task,
    memories: Vec<String>,
    /// Background text that the agents read besides the goal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    background: String,
    /// The schema of the answer, and the results of its checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<OutputChecker>,
    /// The last answer of a run that failed because that answer did not fit the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    invalid_output: Option<String>,
    /// The fixed plan; `None` if the planner is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fixed: Option<Vec<SubTask>>,
    nodes: Nodes,
    next_command: u64,
    replan: Option<Ask>,
    /// A replan that a person must approve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proposed: Option<Proposed>,
    replans: u32,
    /// Permission rules that people trusted for this run with an "always allow" answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    trusted: Vec<String>,
    /// The subtasks that failed since the last success, each once.
    streak: Vec<CommandId>,
    /// The reasons for which plans were replaced or abandoned, in order.
    reasons_against_plans: Vec<String>,
    /// Subtasks in doubt that a person does not allow to run again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refused_repeats: Vec<SubTask>,
    paused: bool,
    suspended: bool,
    cancelled: bool,
    limit: Option<LimitReached>,
    ended: Option<Box<Outcome>>,
}

/// The phase of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
enum Phase {
    /// The run has no goal yet.
    Fresh,
    /// The planner is asked for the first plan.
    Planning(Ask),
    /// A person must approve the plan.
    Confirming { call: CallId, asked: Asked },
    /// The plan is being followed.
    Following,
    /// All subtasks are done, and the answer is being made.
    Concluding {
        command: CommandId,
        asked: Asked,
        /// The last answer, which did not fit its schema.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<String>,
    },
    /// The answer is being checked against its schema.
    Matching { answer: String },
    /// The answer is complete.
    Concluded { answer: String },
    /// The run fails with this error.
    Broken { kind: FailureKind, error: String },
}

/// A request to the planner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Ask {
    command: CommandId,
    attempt: u32,
    asked: Asked,
    reason: Option<String>,
    /// Problems of the planner's previous answer.
    problems: Vec<String>,
    /// The subtasks that need a replan.
    targets: Vec<SubTaskId>,
}

/// A replan that a person must approve. Subtasks that the replan does not touch continue in the meantime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Proposed {
    call: CallId,
    diff: Box<PlanDiff>,
    asked: Asked,
}

/// A flag that tells whether a question was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Asked {
    No,
    Yes,
}

impl PlanMachine {
    /// Creates the machine of a new run.
    pub fn new(started: &RunStarted, at: Timestamp) -> Self {
        Self {
            version: MACHINE_VERSION,
            run: started.run.clone(),
            settings: PlanSettings::default(),
            budget: Budget::new(started.config.limits.clone(), at),
            phase: Phase::Fresh,
            query: String::new(),
            task: Task::new(TaskId::new(started.run.as_str()), ""),
            memories: Vec::new(),
            background: String::new(),
            output: OutputChecker::of(&started.config),
            invalid_output: None,
            fixed: None,
            nodes: Nodes::default(),
            next_command: 0,
            replan: None,
            proposed: None,
            replans: 0,
            trusted: Vec::new(),
            streak: Vec::new(),
            reasons_against_plans: Vec::new(),
            refused_repeats: Vec::new(),
            paused: false,
            suspended: false,
            cancelled: false,
            limit: None,
            ended: None,
        }
    }

    /// Applies one record. A record that fits no open call or question changes nothing.
    pub fn apply(&mut self, record: &Record) {
        // Time before a resume, or while people are asked, does not count against the time limit.
        let is_idle =
            self.suspended || self.ended.is_some() || self.waits_for_people() || record.body.is_resumption();
        self.budget.see(record.at, is_idle);
        match &record.body {
            RecordBody::MessageAdded { message, .. } if self.phase == Phase::Fresh => {
                self.request_of(&message.as_llm().map(archon_types::Message::text).unwrap_or_default());
            }
            RecordBody::Plan(plan) => self.plan_record(plan, record.at),
            RecordBody::ApprovalRequested { call, request } => self.question_asked(*call, request),
            RecordBody::ApprovalAnswered { call, answer } => self.answered(*call, answer, record.at),
            RecordBody::ToolCallStarted { call, effect, child_run, .. } => {
                self.started(*call, *effect, child_run.clone(), record.at);
            }
            RecordBody::ChildRunCreated { call, .. } => {
                if let Some(node) = self.nodes.of_call_mut(*call) {
                    node.begun = Some(*call);
                }
            }
            RecordBody::LeaseGranted { call, lease, .. } => {
                if let Some(node) = self.nodes.of_call_mut(*call) {
                    self.budget.ledger.grant(&mut node.money, *call, *lease);
                }
            }
            RecordBody::LeaseSettled { call, spent, .. } => {
                if let Some(node) = self.nodes.of_call_mut(*call) {
                    self.budget.ledger.settle(&mut node.money, *spent);
                }
            }
            RecordBody::ToolCallFinished { call, result } => self.finished(*call, result, record.at),
            RecordBody::ToolCallRefused { call, result } => self.refused(*call, result, record.at),
            RecordBody::OutputChecked { problems } => self.output_checked(problems),
            RecordBody::CancelRequested { .. } => self.cancelled = true,
            RecordBody::LimitReached(limit) => self.limit = Some(*limit),
            RecordBody::Suspended { .. } => self.suspended = true,
            RecordBody::LimitsRaised(more) => {
                self.limit = self.ended_at(more);
                self.budget.raise(more);
            }
            RecordBody::Resumed => self.resumed(),
            RecordBody::RunFinished(outcome) => self.ended = Some(outcome.clone()),
            _ => {}
        }
        self.nodes.due(record.at);
        self.settle();
        debug_assert!(self.is_sound(), "{:?}", self.invariants());
    }

    fn plan_record(&mut self, record: &PlanRecord, at: Timestamp) {
        match record {
            PlanRecord::Settings(settings) => {
                self.settings = settings.clone();
                self.nodes.limit(&self.settings);
            }
            PlanRecord::Inputs { context: values, memories, background } => {
                self.task.context = values.clone();
                self.memories = memories.clone();
                self.background.clone_from(background);
            }
            PlanRecord::FixedPlan { subtasks } if self.phase == Phase::Fresh => {
                self.fixed = Some(subtasks.clone());
            }
            PlanRecord::PlanningStarted { command, attempt, .. } => {
                if let Some(ask) = self.open_ask(*command, *attempt) {
                    ask.asked = Asked::Yes;
                }
            }
            PlanRecord::PlanningPaid { spent, .. } => self.budget.ledger.spend(*spent),
            PlanRecord::Planned { command, task, .. } => {
                if matches!(&self.phase, Phase::Planning(ask) if ask.command == *command) {
                    self.take_plan(*command, task);
                }
            }
            PlanRecord::Rejected { command, attempt, problems, retryable, failure } => {
                self.rejected((*command, *attempt), problems, *retryable, *failure);
            }
            PlanRecord::Replanned { command, diff, .. }
                if self.replan.as_ref().is_some_and(|ask| ask.command == *command) =>
            {
                self.proposed(*command, diff);
            }
            PlanRecord::ReplanRequested { reason, targets } if self.phase == Phase::Following => {
                self.want_replan(reason.clone(), targets.clone());
            }
            PlanRecord::Skipped { call, .. } => self.skipped(*call, at),
            PlanRecord::LoopExpanded { call, subtasks, results } => self.unfolded(*call, subtasks, results),
            PlanRecord::LoopFinished { call } => self.join(*call, at),
            PlanRecord::Paused { .. } => self.paused = true,
            PlanRecord::Unpaused => self.paused = false,
            PlanRecord::AnswerStarted { command } => {
                if let Phase::Concluding { command: open, asked, .. } = &mut self.phase
                    && open == command
                {
                    *asked = Asked::Yes;
                }
            }
            PlanRecord::AnswerFinished { command, answer, spent, .. } if self.is_concluding(*command) => {
                self.budget.ledger.spend(*spent);
                self.concluded(answer);
            }
            PlanRecord::AnswerFailed { command, problem, failure } if self.is_concluding(*command) => {
                self.not_concluded(problem, *failure);
            }
            _ => {}
        }
    }

    /// Returns the next command. Without a new record, the command stays the same.
    pub fn next(&self) -> Next<PlanTask> {
        if let Some(outcome) = &self.ended {
            return Next::Done(Outcome::clone(outcome));
        }
        if let Phase::Broken { kind, error } = &self.phase {
            return self.finish(self.failed_outcome(*kind, error.clone()));
        }
        if self.cancelled {
            return self.finish(self.outcome(OutcomeStatus::Cancelled));
        }
        if let Some(limit) = self.limit {
            return self.finish(self.outcome(OutcomeStatus::Limit(limit)));
        }
        if let Some(limit) = self.budget.reached().filter(|limit| self.stops_at(limit)) {
            return Next::Append(RecordBody::LimitReached(limit));
        }
        match &self.phase {
            Phase::Fresh => Next::AwaitPrompt,
            Phase::Planning(ask) => self.make_plan(ask).unwrap_or(Next::Wait(None)),
            Phase::Confirming { call, asked: Asked::No } => Next::Append(self.confirmation(*call)),
            Phase::Confirming { call, .. } => self.suspend(vec![*call]),
            Phase::Following => self.follow(),
            Phase::Concluding { command, asked: Asked::No, .. } => {
                Next::Do(PlanTask::Conclude { command: *command })
            }
            Phase::Concluding { .. } => Next::Wait(None),
            Phase::Matching { answer } => Next::Do(PlanTask::CheckOutput { answer: answer.clone() }),
            Phase::Concluded { answer } => {
                let mut outcome = self.outcome(OutcomeStatus::Finished);
                outcome.set_answer(answer.as_str());
                self.finish(outcome)
            }
            Phase::Broken { kind, error } => self.finish(self.failed_outcome(*kind, error.clone())),
        }
    }

    /// Returns true if a reached limit ends the run in this phase. While the answer is being made, only the
    /// time limit ends the run, because the results can be the answer at no cost. But during a further
    /// attempt at an answer that must fit a schema, any limit ends the run.
    fn stops_at(&self, limit: &LimitReached) -> bool {
        match &self.phase {
            Phase::Planning(_) | Phase::Following => true,
            Phase::Concluding { last, .. } => {
                last.is_some() || matches!(limit, LimitReached::Duration { .. })
            }
            _ => false,
        }
    }

    fn follow(&self) -> Next<PlanTask> {
        if !self.paused {
            let is_held = |id: &SubTaskId| self.is_held(id);
            if let Some(node) = self.nodes.first_gated(is_held) {
                return Next::Append(match node.state {
                    NodeState::ToReview => self.review(node),
                    NodeState::ToDecide => self.decision(node),
                    NodeState::InDoubt => self.doubt(node),
                    _ => self.gate(node),
                });
            }
            if let Some(proposed) = self.proposed.as_ref().filter(|proposed| proposed.asked == Asked::No) {
                return Next::Append(self.change(proposed));
            }
            if let Some(command) = self.replan.as_ref().and_then(|ask| self.make_plan(ask)) {
                return command;
            }
            if let Some(node) = self.nodes.first_ready(self.settings.max_concurrent, is_held) {
                return self.begin(node);
            }
        }
        if self.nodes.open() == 0 && self.replan.is_none() {
            return self.finish(self.stuck());
        }
        let is_asked =
            self.proposed.is_none() && self.replan.as_ref().is_some_and(|ask| ask.asked == Asked::Yes);
        let until = self.nodes.next_due().filter(|_| !self.paused);
        if self.nodes.running() > 0 || is_asked || until.is_some() {
            return Next::Wait(until);
        }
        let mut waiting = self.nodes.questions();
        waiting.extend(self.proposed.as_ref().map(|proposed| proposed.call));
        if self.paused || !waiting.is_empty() {
            return self.suspend(waiting);
        }
        self.finish(self.stuck())
    }

    fn make_plan(&self, ask: &Ask) -> Option<Next<PlanTask>> {
        let Ask { command, attempt, asked: Asked::No, reason, .. } = ask else { return None };
        Some(Next::Do(PlanTask::MakePlan { command: *command, attempt: *attempt, reason: reason.clone() }))
    }

    /// Returns the command for a ready subtask: start it, or skip it if its condition does not hold.
    fn begin(&self, node: &PlanNode) -> Next<PlanTask> {
        let call = node.call();
        match self.condition_of(node) {
            Ok(false) => {
                let condition = node.subtask.rules.when.as_deref().unwrap_or_default();
                let reason = format!("the condition does not hold: {condition}");
                Next::Append(RecordBody::Plan(Box::new(PlanRecord::Skipped { call, reason })))
            }
            Ok(true) if node.subtask.rules.each.is_some() => match node.items {
                None => Next::Do(PlanTask::Unfold { call }),
                Some(_) => Next::Append(RecordBody::Plan(Box::new(PlanRecord::LoopFinished { call }))),
            },
            // A condition without a value makes the start fail, as an argument without a value does.
            Ok(true) | Err(_) => Next::Do(PlanTask::Start { call }),
        }
    }

    fn suspend(&self, waiting: Vec<CallId>) -> Next<PlanTask> {
        match self.suspended {
            true => Next::Suspend,
            false => Next::Append(RecordBody::Suspended { waiting }),
        }
    }

    fn finish(&self, outcome: Outcome) -> Next<PlanTask> {
        Next::Append(RecordBody::RunFinished(Box::new(outcome)))
    }

    fn request_of(&mut self, goal: &str) {
        goal.clone_into(&mut self.query);
        self.task.original_query = goal.to_owned();
        self.task.goal = goal.to_owned();
        self.phase = match goal.trim() {
            "" => Phase::Broken { kind: FailureKind::Refused, error: "the goal is empty".to_owned() },
            _ => Phase::Planning(self.ask(None, Vec::new())),
        };
    }

    fn ask(&mut self, reason: Option<String>, targets: Vec<SubTaskId>) -> Ask {
        let command = self.take_command();
        Ask { command, attempt: 0, asked: Asked::No, reason, problems: Vec::new(), targets }
    }

    /// Adds subtasks to the plan. The nodes must be rebuilt afterwards.
    fn add(&mut self, subtasks: &[SubTask]) {
        for subtask in subtasks {
            let command = self.take_command();
            self.nodes.add(subtask.clone(), command);
        }
    }

    fn take_command(&mut self) -> CommandId {
        self.next_command += 1;
        CommandId(self.next_command - 1)
    }

    fn open_ask(&mut self, command: CommandId, attempt: u32) -> Option<&mut Ask> {
        let ask = match (&mut self.phase, &mut self.replan) {
            (Phase::Planning(ask), _) | (_, Some(ask)) => ask,
            _ => return None,
        };
        (ask.command == command && ask.attempt == attempt).then_some(ask)
    }

    fn started(&mut self, call: CallId, effect: Effect, child: Option<RunId>, at: Timestamp) {
        if self.phase == Phase::Following {
            self.nodes.start(call, effect, child, at);
        }
    }

    fn skipped(&mut self, call: CallId, at: Timestamp) {
        if let Some(index) = self.nodes.ready_call(call) {
            self.nodes.end(index, NodeState::Skipped, Some(ToolResult::success("null")), at);
        }
    }

    /// Prepares the run to continue after a crash, a cancel or a failure.
    fn resumed(&mut self) {
        let may_go_on = |outcome: &Outcome| match outcome.status {
            OutcomeStatus::Cancelled => true,
            OutcomeStatus::Limit(_) => self.limit.is_none(),
            OutcomeStatus::Failed => self.may_try_again(),
            _ => false,
        };
        if self.ended.as_deref().is_some_and(may_go_on) {
            self.ended = None;
            self.ask_all_again();
            self.try_again();
        }
        (self.cancelled, self.suspended) = (false, false);
        self.nodes.doubt_cut_off();
        self.nodes.look_below();
        if let Phase::Planning(Ask { asked, .. }) | Phase::Concluding { asked, .. } = &mut self.phase {
            *asked = Asked::No;
        }
        // A replan that waits for a person's approval is not requested again.
        if let (Some(ask), None) = (&mut self.replan, &self.proposed) {
            ask.asked = Asked::No;
        }
    }

    /// Moves to the next phase when the current one has no work left.
    fn settle(&mut self) {
        if self.phase != Phase::Following {
            return;
        }
        self.nodes.settle(self.settings.max_concurrent);
        self.begin_replan();
        if self.nodes.open() == 0 && self.replan.is_none() && !self.nodes.any_failed() {
            self.put_together(None);
        }
    }
}

/// Computes the state of a plan's run, with the state of every subtask, from the records of the run. Returns `None` for
/// the records of another kind of run.
pub fn fold(records: &[Arc<Record>]) -> Option<PlanMachine> {
    archon_run::fold(records, PlanMachine::new)
}

fn known_version<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        MACHINE_VERSION => Ok(MACHINE_VERSION),
        other => {
            let text = format!(
                "the serialized machine of a plan has version {other}, and only version {MACHINE_VERSION} can be read"
            );
            Err(serde::de::Error::custom(text))
        }
    }
}
