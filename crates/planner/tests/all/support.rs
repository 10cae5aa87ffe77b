//! Shared parts of the tests: random plans, and a machine to which records are applied by hand.

use std::sync::Arc;

use archon_planner::{Next, PlanMachine, PlanTask};
use archon_testkit::Chance;
use archon_types::{
    AgentId, CallId, CommandId, Effect, LoopId, Message, PlanRecord, PlanSettings, PromptSource, Record,
    RecordBody, RunConfig, RunId, RunKind, RunStarted, SessionId, SubTask, SubTaskRules, Task, Timestamp,
    ToolResult,
};

pub(crate) fn started() -> RunStarted {
    let mut config = RunConfig::default();
    config.limits.max_duration_ms = u64::MAX / 4;
    let (run, session, agent) = (RunId::new("run_1"), SessionId::new("s"), AgentId::new("planner"));
    let mut started = RunStarted::new(run, session, agent, LoopId::new("s.plan.1"), config);
    started.kind = RunKind::Plan;
    started
}

/// A machine with its records and the time.
pub(crate) struct Fed {
    pub(crate) machine: PlanMachine,
    pub(crate) records: Vec<Arc<Record>>,
    pub(crate) now: u64,
}

impl Fed {
    /// Creates a run that has a goal.
    pub(crate) fn new(settings: PlanSettings) -> Self {
        Self::of(&started(), settings)
    }

    /// Creates a run like [`new`](Self::new), with this first record.
    pub(crate) fn of(started: &RunStarted, settings: PlanSettings) -> Self {
        let at = Timestamp::from_millis(0);
        let first = RecordBody::RunStarted(Box::new(started.clone()));
        let machine = PlanMachine::new(started, at);
        let mut fed = Self { machine, records: vec![Arc::new(Record { seq: 0, at, body: first })], now: 0 };
        fed.plan(PlanRecord::Settings(settings));
        fed.feed(RecordBody::MessageAdded {
            message: Message::user("Do it", at).into(),
            source: PromptSource::Prompt,
        });
        fed
    }

    /// Creates a run that follows a plan.
    pub(crate) fn following(settings: PlanSettings, subtasks: Vec<SubTask>) -> Self {
        Self::new(settings).follow(subtasks)
    }

    /// Returns the run after it was given a plan.
    pub(crate) fn follow(mut self, subtasks: Vec<SubTask>) -> Self {
        let fed = &mut self;
        fed.plan(PlanRecord::PlanningStarted { command: CommandId(0), attempt: 0, reason: None });
        let task = Box::new(Task::new("run_1", "Do it").with_subtasks(subtasks));
        fed.plan(PlanRecord::Planned { command: CommandId(0), task, warnings: vec![] });
        self
    }

    pub(crate) fn feed(&mut self, body: RecordBody) {
        let (seq, at) = (self.records.len() as u64, Timestamp::from_millis(self.now));
        let record = Arc::new(Record { seq, at, body });
        self.machine.apply(&record);
        self.records.push(record);
    }

    pub(crate) fn plan(&mut self, record: PlanRecord) {
        self.feed(RecordBody::Plan(Box::new(record)));
    }

    pub(crate) fn start(&mut self, call: CallId) {
        self.feed(RecordBody::ToolCallStarted {
            call,
            attempt: 0,
            effect: Effect::Idempotent,
            child_run: None,
        });
    }

    pub(crate) fn finish(&mut self, call: CallId, result: ToolResult) {
        self.feed(RecordBody::ToolCallFinished { call, result: Arc::new(result) });
    }

    /// Starts subtasks until no more can start, and returns their ids in order. Every start is recorded.
    pub(crate) fn begin_all(&mut self) -> Vec<(String, CallId)> {
        let mut begun = Vec::new();
        loop {
            match self.machine.next() {
                Next::Do(PlanTask::Start { call }) => {
                    let subtask = &self.machine.node(call).unwrap().subtask;
                    begun.push((subtask.id.to_string(), call));
                    self.start(call);
                }
                Next::Append(body)
                    if !matches!(body, RecordBody::RunFinished(_) | RecordBody::Suspended { .. }) =>
                {
                    self.feed(body);
                }
                _ => return begun,
            }
        }
    }
}

pub(crate) fn step(id: &str, after: &[&str]) -> SubTask {
    SubTask::new(id, format!("Do {id}")).after(after.iter().copied())
}

pub(crate) fn rules(change: impl FnOnce(&mut SubTaskRules)) -> SubTaskRules {
    let mut rules = SubTaskRules::default();
    change(&mut rules);
    rules
}

/// Returns a random graph: each subtask depends on some of the subtasks shortly before it.
pub(crate) fn random_plan(chance: &mut Chance, size: u64) -> Vec<SubTask> {
    let (most, window) = (chance.below(4), 1 + chance.below(size));
    (0..size)
        .map(|n| {
            let mut dependencies: Vec<u64> =
                (0..chance.below(most + 1)).map(|_| n.saturating_sub(1 + chance.below(window))).collect();
            dependencies.retain(|d| *d < n);
            dependencies.sort_unstable();
            dependencies.dedup();
            let rules = rules(|rules| rules.expected_ms = Some(1 + chance.below(10_000)));
            let step = SubTask::new(format!("s{n}"), "a step").with_rules(rules);
            step.after(dependencies.iter().map(|d| format!("s{d}")))
        })
        .collect()
}
