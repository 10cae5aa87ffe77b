//! Tests of large teams: the cost of a record does not grow with the team, and no member counts as silent
//! before its run was polled.

use std::{sync::Arc, time::Duration};

use archon_orchestrator::{Machine as _, Next, TeamMachine, TeamOptions, TeamTask};
use archon_testkit::{FnAgent, MortalJournal, VirtualClock, answer, drive};
use archon_types::{
    BoxFuture, CallId, Durability, Effect, Journal, JournalError, Member, Message, OpenMode, OpenRun,
    OutcomeStatus, PromptSource, Record, RecordBody, RunConfig, RunFilter, RunHead, RunId, RunStarted,
    RunWriter, SubTask, Task, TeamRecord, TeamRole, Timestamp,
};
use rustix::time::{ClockId, clock_gettime};

use crate::support::{Fixed, World, member, pause, step};

fn team(n: usize) -> (Vec<SubTask>, Vec<Member>) {
    let roles = ["red", "green", "blue"];
    let steps = (0..n).map(|at| step(&format!("s{at}"), "work", roles[at % 3], &[])).collect();
    (steps, (0..n).map(|at| member(&format!("m{at}"), roles[at % 3])).collect())
}

/// A machine with a plan for many members, and the number of its next record.
struct Starting {
    machine: TeamMachine,
    seq: u64,
}

impl Starting {
    fn new(n: usize) -> Self {
        let mut config = RunConfig::default();
        config.limits.max_total_tokens = u64::MAX / 2;
        let started = RunStarted::new("r".into(), "s".into(), "team".into(), "l".into(), config);
        let machine = TeamMachine::new(&started, Timestamp::from_millis(0));
        let mut starting = Self { machine, seq: 1 };
        let (steps, members) = team(n);
        let mut settings = TeamOptions::default().settings;
        settings.max_concurrent = u32::try_from(n).unwrap();
        settings.max_delegations = u32::MAX;
        let roles = ["red", "green", "blue"].map(|role| TeamRole::new(role, "")).to_vec();
        starting.team(TeamRecord::Formed { settings, roles, members, lead: None });
        let message = Message::user("Go", Timestamp::from_millis(0)).into();
        starting.apply(RecordBody::MessageAdded { message, source: PromptSource::Prompt });
        let task = Box::new(Task::new("t", "Go").with_subtasks(steps));
        starting.team(TeamRecord::Planned { task, spent: Default::default() });
        starting
    }

    fn apply(&mut self, body: RecordBody) {
        self.machine.apply(&Record { seq: self.seq, at: Timestamp::from_millis(self.seq), body });
        self.seq += 1;
    }

    fn team(&mut self, record: TeamRecord) {
        self.apply(RecordBody::Team(Box::new(record)));
    }

    /// Delegates work to all members, as the driver does, and returns the number of delegations.
    fn start_all(&mut self) -> usize {
        let mut begun = 0;
        loop {
            let call = match self.machine.next() {
                Next::Append(body) => {
                    self.apply(body);
                    continue;
                }
                Next::Do(TeamTask::Start(call)) => call,
                _ => return begun,
            };
            self.begin(call);
            begun += 1;
        }
    }

    fn begin(&mut self, call: CallId) {
        let (lease, child) = (self.machine.lease(call), RunId::new(format!("r.{call}")));
        self.apply(RecordBody::LeaseGranted { call, child_run: child.clone(), lease });
        let (attempt, effect) = (0, Effect::Idempotent);
        self.apply(RecordBody::ToolCallStarted { call, attempt, effect, child_run: Some(child) });
        assert!(!self.machine.brief(call).is_empty());
    }
}

/// Returns the CPU time of this thread in ns. The work of other threads does not count.
fn worked() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

fn cost(n: usize) -> u64 {
    let once = |_| {
        let mut starting = Starting::new(n);
        let before = worked();
        assert_eq!(starting.start_all(), n);
        worked() - before
    };
    (0..3).map(once).min().unwrap()
}

// spec: MA-10
#[test]
fn team_start_cost_grows_linearly_with_the_number_of_tasks() {
    let (few, many) = (cost(125), cost(1_000));
    // Were a record to cost what the team has in members, it would be 64 times as much.
    assert!(many < few * 24, "{few} ns for 125, {many} ns for 1,000: {} times", many / few);
}

/// A journal in which every append takes time.
#[derive(Clone)]
struct Slow {
    inner: MortalJournal,
    clock: VirtualClock,
    each: Duration,
}

struct SlowWriter {
    inner: Box<dyn RunWriter>,
    clock: VirtualClock,
    each: Duration,
}

impl RunWriter for SlowWriter {
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        durability: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        self.clock.advance(self.each);
        self.inner.append(records, durability)
    }
}

impl Journal for Slow {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move {
            let open = self.inner.open(run, mode).await?;
            let writer = SlowWriter { inner: open.writer, clock: self.clock.clone(), each: self.each };
            Ok(OpenRun { records: open.records, writer: Box::new(writer) })
        })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.inner.read(run)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.inner.list(filter)
    }
}

// spec: MA-22
#[test]
fn heartbeat_member_that_was_not_scheduled_is_not_silent() {
    let world = World::new();
    let journal =
        Slow { inner: world.journal.clone(), clock: world.clock.clone(), each: Duration::from_millis(100) };
    let (steps, members) = team(200);
    let mut options = TeamOptions::default();
    options.roles = ["red", "green", "blue"].map(|role| TeamRole::new(role, "")).to_vec();
    (options.settings.max_concurrent, options.limits.max_duration_ms) = (200, 3_600_000);
    options.settings.heartbeat = archon_types::Heartbeat::Events;
    let mut team = archon_orchestrator::Team::new(Arc::new(Fixed(steps)), Arc::new(journal), options);
    for who in members {
        // They say nothing while they work, and they work for a second.
        let agent: Arc<FnAgent> = match who.id.as_str() {
            "m7" => FnAgent::hanging(),
            _ => FnAgent::new(|_, context| async move {
                pause(&context, 1_000).await;
                answer(&context, "done")
            }),
        };
        team = team.with_member(who, agent);
    }
    let outcome = drive(&world.clock, team.start("Go", &world.context)).unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Finished);
    // Giving out the work took 40 s, and silence is 15 s: whoever had no turn was not silent meanwhile.
    let taken = |record| match record {
        TeamRecord::DelegationRevoked { member, .. } => Some(member.as_str().to_owned()),
        _ => None,
    };
    let taken: Vec<String> = world.team_records().into_iter().filter_map(taken).collect();
    assert_eq!(taken, ["m7"], "only who really said nothing");
    assert_eq!(world.delegations().len(), 201);
}
