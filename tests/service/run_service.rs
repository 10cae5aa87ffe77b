//! One handle for every kind of run: started, watched, steered, cancelled, answered, killed and resumed by id alone.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use archon::{
    Archon, Event, OutcomeStatus, RunId, Runs,
    react_loop::PickFirst,
    store::InMemoryJournal,
    tools::FnTool,
    types::{
        Answer, AnswerRuns, AskLater, Clock, Effect, ForkOptions, Journal, JournalError, ManageRuns, Member,
        Message, MoreLimits, Record, RecordBody, Request, RunError, RunFilter, RunKind, RunStarted,
        RunStatus, StartRun, StartRuns, Started, SubTask, SubTaskRules, TeamRole, TenantId, Timestamp,
        ToolAnnotations, ToolCall, ToolResult, ToolSpec, WhenBusy,
    },
};
use archon_assistant::AgentTool;
use archon_orchestrator::TeamOptions;
use archon_planner::ScriptedPlanner;
use archon_testkit::{Ended, FnProvider, VirtualClock};
use futures_util::StreamExt;
use serde_json::json;
use tokio::sync::Semaphore;

/// What the processes of a test share: the journal, and the world that a tool changes.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) journal: InMemoryJournal,
    /// Calls of the tool that had their effect.
    pub(crate) effects: Arc<AtomicUsize>,
    entered: Arc<Semaphore>,
    gate: Arc<Semaphore>,
    pub(crate) asks: Arc<AtomicBool>,
    /// What the models of this world were asked, as text.
    asked: Arc<Mutex<Vec<String>>>,
    /// The time of all agents, if it is not that of this machine.
    clock: Option<Arc<dyn Clock>>,
}

impl World {
    /// A world whose tool works at once.
    pub(crate) fn open() -> Self {
        let world = Self::closed();
        world.open_gate();
        world
    }

    /// A world whose tool waits at a gate.
    pub(crate) fn closed() -> Self {
        Self {
            journal: InMemoryJournal::new(),
            effects: Arc::default(),
            entered: Arc::new(Semaphore::new(0)),
            gate: Arc::new(Semaphore::new(0)),
            asks: Arc::default(),
            asked: Arc::default(),
            clock: None,
        }
    }

    pub(crate) fn with_clock(mut self, clock: &(impl Clock + Clone + 'static)) -> Self {
        self.clock = Some(Arc::new(clock.clone()));
        self
    }

    /// A world whose tool asks a person first.
    pub(crate) fn asking() -> Self {
        let world = Self::open();
        world.asks.store(true, Ordering::SeqCst);
        world
    }

    pub(crate) fn open_gate(&self) {
        self.gate.add_permits(100);
    }

    pub(crate) async fn tool_entered(&self) {
        self.entered.acquire().await.unwrap().forget();
    }

    pub(crate) fn tool(
        &self,
    ) -> FnTool<impl Fn(archon::types::Json, archon::ToolContext) -> ToolWork + use<>> {
        let mut annotations = ToolAnnotations::default();
        annotations.effect = Effect::Idempotent;
        annotations.requires_confirmation = self.asks.load(Ordering::SeqCst);
        let spec = ToolSpec::new("step", "Takes a step.", json!({ "type": "object" }));
        let world = self.clone();
        FnTool::new(spec.with_annotations(annotations), move |_, _| -> ToolWork {
            let world = world.clone();
            Box::pin(async move {
                world.entered.add_permits(1);
                world.gate.acquire().await.unwrap().forget();
                world.effects.fetch_add(1, Ordering::SeqCst);
                Ok(ToolResult::success("stepped"))
            })
        })
    }

    pub(crate) fn agent(&self, id: &str) -> Archon {
        self.builder(id).tool(self.tool()).build().unwrap()
    }

    pub(crate) fn builder(&self, id: &str) -> archon::ArchonBuilder {
        let builder = Archon::builder()
            .provider(Arc::new(self.model()), "test")
            .agent_id(id)
            .approver(Arc::new(AskLater))
            .journal(Arc::new(self.journal.clone()));
        match &self.clock {
            Some(clock) => builder.clock(clock.clone()),
            None => builder,
        }
    }

    fn model(&self) -> FnProvider {
        let asked = self.asked.clone();
        FnProvider::new(move |_, request| {
            let text = request.messages.iter().map(|m| m.text()).collect::<Vec<_>>().join("\n");
            asked.lock().unwrap().push(text);
            reply(request)
        })
    }

    pub(crate) fn prompts(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Whether a model was told both in one request.
    pub(crate) fn was_asked(&self, one: &str, other: &str) -> bool {
        self.prompts().iter().any(|text| text.contains(one) && text.contains(other))
    }

    /// A process with an agent of every kind.
    pub(crate) fn process(&self) -> Runs {
        let agent = self.agent("agent");
        let planning = agent.planning(Arc::new(ScriptedPlanner::new(vec![SubTask::new("one", "Step")])));
        let branches = [self.agent("left"), self.agent("right")];
        let parallel = agent.parallel(branches, Arc::new(PickFirst)).unwrap();
        let mut rules = SubTaskRules::default();
        rules.role = Some("stepper".to_owned());
        let steps = vec![SubTask::new("one", "Step").with_rules(rules)];
        let mut options = TeamOptions::default();
        options.agent_id = "team".into();
        options.roles = vec![TeamRole::new("stepper", "Takes steps.")];
        let lead = self.builder("lead").build().unwrap();
        let team = lead
            .team_with(Arc::new(ScriptedPlanner::new(steps)), options)
            .member(Member::new("ann", "stepper"), Arc::new(self.agent("ann")));
        let desk = AgentTool::new("clerk", "Steps.", Arc::new(self.agent("clerk")));
        let caller = self.builder("caller").tool(desk).build().unwrap();
        Runs::new(agent)
            .with_agent(planning.run_agent())
            .with_agent(parallel.run_agent())
            .with_agent(team.run_agent())
            .with_agent(caller.run_agent())
    }

    pub(crate) async fn log(&self, run: &RunId) -> Vec<Arc<Record>> {
        self.journal.read(run).await.unwrap()
    }
}

pub(crate) type ToolWork = archon::types::BoxFuture<'static, Result<ToolResult, archon::ToolError>>;

/// A model that takes one step, or calls the clerk, and then says what it was told.
fn reply(request: &Request) -> crate::shared::stage::Answer {
    let results: Vec<_> =
        request.messages.iter().filter(|m| matches!(&***m, Message::ToolResult(_))).collect();
    let has = |name: &str| request.tools.iter().any(|tool| tool.name == name);
    match (results.last(), has("step"), has("clerk")) {
        (None, true, _) => FnProvider::calls(vec![ToolCall::new("c", "step", json!({}))]),
        (None, _, true) => FnProvider::calls(vec![ToolCall::new("c", "clerk", json!({}))]),
        _ => {
            let mut steers = request.messages.iter().filter(|m| matches!(&***m, Message::User(_)));
            FnProvider::text(&format!("done: {}", steers.next_back().map(|m| m.text()).unwrap_or_default()))
        }
    }
}

/// The kinds that are started by name; an agent call is started by its caller.
pub(crate) const STARTED: [(RunKind, &str); 5] = [
    (RunKind::Loop, "agent"),
    (RunKind::Parallel, "left"),
    (RunKind::Plan, "agent"),
    (RunKind::Team, "team"),
    (RunKind::AgentCall, "caller"),
];

pub(crate) fn request(kind: RunKind, agent: &str) -> StartRun {
    let kind = if kind == RunKind::AgentCall { RunKind::Loop } else { kind };
    StartRun::new("Take a step").kind(kind).agent(agent)
}

/// The run of that kind: the one that was started, or the call that it made.
pub(crate) fn of_kind(kind: RunKind, started: &RunId) -> RunId {
    match kind {
        RunKind::AgentCall => RunId::new(format!("{started}.0-0")),
        _ => started.clone(),
    }
}

/// How often the tool has its effect in a run of that kind.
pub(crate) fn steps(kind: RunKind) -> usize {
    if kind == RunKind::Parallel { 2 } else { 1 }
}

#[tokio::test]
async fn start_any_kind_finishes_and_its_log_names_the_kind() {
    for (kind, agent) in STARTED {
        let world = World::open();
        let runs = world.process();
        let started = runs.start(request(kind, agent)).await.unwrap();
        assert_eq!(started.how, Started::New);
        let outcome = runs.reply(&started.run).await.ended();
        assert_eq!(outcome.status, OutcomeStatus::Finished, "{kind}: {outcome:?}");
        assert_eq!(world.effects.load(Ordering::SeqCst), steps(kind), "{kind}");
        let run = of_kind(kind, &started.run);
        assert_eq!(RunStarted::of(&world.log(&run).await).unwrap().kind, kind);
        let head = runs.get(&run).await.unwrap();
        assert_eq!((head.kind, head.status), (Some(kind), RunStatus::Finished));
        assert!(runs.list(&RunFilter::all()).await.unwrap().contains(&head), "{kind}");
    }
}

#[tokio::test]
async fn watch_twice_gives_every_record_and_a_dropped_watcher_cancels_nothing() {
    for (kind, agent) in STARTED {
        let world = World::closed();
        let runs = world.process();
        let started = runs.start(request(kind, agent)).await.unwrap();
        world.tool_entered().await;
        let run = of_kind(kind, &started.run);
        let mut first = runs.watch(&run, None).await.unwrap();
        assert!(first.next().await.unwrap().is_ok());
        drop(first);
        let again = runs.watch(&run, None).await.unwrap();
        world.open_gate();
        let seen = records(&run, again).await;
        // A call that another run makes is no run of its own for this process: its watcher polls.
        let log = world.log(&run).await;
        assert_eq!(seen, log.iter().map(|record| record.seq).collect::<Vec<_>>(), "{kind}");
        assert_eq!(runs.get(&run).await.unwrap().status, RunStatus::Finished, "{kind}");
        let late = records(&run, runs.watch(&run, Some(1)).await.unwrap()).await;
        assert_eq!(late, seen[2..], "{kind}");
    }
}

#[tokio::test]
async fn works_on_is_true_only_in_the_process_that_works_on_the_run() {
    let world = World::closed();
    let (own, other) = (world.process(), world.process());
    let started = own.start(StartRun::new("Take a step")).await.unwrap();
    world.tool_entered().await;
    assert_eq!([own.works_on(&started.run), other.works_on(&started.run)], [true, false]);
    world.open_gate();
    own.reply(&started.run).await.ended();
    assert!(!own.works_on(&started.run));
}

pub(crate) async fn records(run: &RunId, mut events: archon::types::Watch) -> Vec<u64> {
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        if let Event::Record { run: of, record } = event.unwrap()
            && of == *run
        {
            seen.push(record.seq);
        }
    }
    seen
}

#[tokio::test]
async fn steer_loop_is_read_and_other_kinds_name_themselves() {
    for (kind, agent) in STARTED {
        let world = World::closed();
        let runs = world.process();
        let started = runs.start(request(kind, agent)).await.unwrap();
        world.tool_entered().await;
        let run = of_kind(kind, &started.run);
        let message = Message::user("faster", Timestamp::default()).into();
        let steered = runs.steer(&run, message).await;
        world.open_gate();
        let outcome = runs.reply(&started.run).await.ended();
        match kind {
            RunKind::Loop => {
                steered.unwrap();
                assert_eq!(outcome.last_text(), Some("done: faster"));
            }
            kind => {
                let error = steered.unwrap_err();
                assert!(error.to_string().contains(&format!("kind {kind}")), "{error}");
                assert!(error.advice().contains("steer"), "{}", error.advice());
            }
        }
    }
}

#[tokio::test]
async fn cancel_any_kind_at_work_ends_it_and_resume_by_id_finishes_it() {
    for (kind, agent) in STARTED {
        let world = World::closed();
        let runs = world.process();
        let started = runs.start(request(kind, agent)).await.unwrap();
        world.tool_entered().await;
        runs.cancel(&started.run, "not now").await.unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(20), runs.reply(&started.run)).await;
        let outcome = ended.expect("it ends").ended();
        assert_eq!(outcome.status, OutcomeStatus::Cancelled, "{kind}: {outcome:?}");
        world.open_gate();
        let run = of_kind(kind, &started.run);
        let resumed = world.process();
        let again = resumed.resume(&run, &MoreLimits::default()).await.unwrap();
        assert_eq!((&again.run, again.how), (&started.run, Started::Resumed), "{kind}");
        let outcome = resumed.reply(&started.run).await.ended();
        assert_eq!(outcome.status, OutcomeStatus::Finished, "{kind}: {outcome:?}");
    }
}

#[tokio::test]
async fn cancel_agent_call_at_work_ends_it_and_its_caller_goes_on() {
    let world = World::closed();
    let runs = world.process();
    let started = runs.start(request(RunKind::AgentCall, "caller")).await.unwrap();
    world.tool_entered().await;
    let call = of_kind(RunKind::AgentCall, &started.run);
    runs.cancel(&call, "not now").await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), runs.reply(&started.run)).await;
    let outcome = ended.expect("the caller goes on").ended();
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{outcome:?}");
    assert_eq!(runs.get(&call).await.unwrap().status, RunStatus::Cancelled);
    let log = world.log(&call).await;
    let asked = |record: &Arc<Record>| matches!(&record.body, RecordBody::CancelRequested { reason } if reason == "not now");
    assert!(log.iter().any(asked), "{log:?}");
}

#[tokio::test]
async fn answer_in_another_process_lets_any_kind_go_on() {
    for (kind, agent) in STARTED {
        let world = World::asking();
        let runs = world.process();
        let started = runs.start(request(kind, agent)).await.unwrap();
        let outcome = runs.reply(&started.run).await.ended();
        // The branches of a parallel loop wait each by itself.
        let asked = if kind == RunKind::Parallel { 2 } else { 1 };
        assert_eq!(outcome.status, OutcomeStatus::Suspended, "{kind}: {outcome:?}");
        assert_eq!(
            outcome.turns,
            u32::from(matches!(kind, RunKind::Loop | RunKind::AgentCall)),
            "{kind}: used so far"
        );
        assert_eq!(world.effects.load(Ordering::SeqCst), 0);
        let other = world.process();
        let questions = other.questions(Some(&TenantId::new("local"))).await.unwrap();
        assert_eq!(questions.len(), asked, "{kind}");
        assert!(questions.iter().all(|open| open.run.as_str().starts_with(started.run.as_str())), "{kind}");
        let question = &questions[0].request.request_id;
        assert!(other.answer(question, Answer::Approve).await.unwrap(), "{kind}");
        let outcome = other.reply(&started.run).await.ended();
        assert_eq!(outcome.status, OutcomeStatus::Finished, "{kind}: {outcome:?}");
        assert_eq!(world.effects.load(Ordering::SeqCst), 1, "{kind}");
        assert!(!other.answer(question, Answer::Approve).await.unwrap(), "{kind}: it was answered");
    }
}

/// A process with the same kinds of agents; see `service_process.rs`.
fn service_process(dir: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_service_process"));
    command.arg(dir).args(words).stdout(Stdio::piped());
    command
}

/// Lets such a process end, and returns what it printed.
fn ran(dir: &Path, words: &[&str]) -> Vec<String> {
    let ended = service_process(dir, words).output().unwrap();
    assert!(ended.status.success(), "{words:?}: {ended:?}");
    String::from_utf8(ended.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn effects(dir: &Path) -> usize {
    std::fs::read_to_string(dir.join("effects")).unwrap_or_default().lines().count()
}

#[test]
fn question_of_any_kind_is_answered_by_another_process_when_its_own_is_gone() {
    for (kind, agent) in STARTED {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("asks"), "").unwrap();
        let started = if kind == RunKind::AgentCall { RunKind::Loop } else { kind };
        let asked = ran(dir.path(), &["start", started.as_str(), agent]);
        assert!(asked[1].contains("suspended"), "{kind}: {asked:?}");
        assert_eq!(effects(dir.path()), 0, "{kind}");
        let answered = ran(dir.path(), &["answer", &asked[0]]);
        assert!(answered[0].contains("finished"), "{kind}: {answered:?}");
        assert_eq!(effects(dir.path()), 1, "{kind}");
    }
}

#[test]
fn run_of_any_kind_whose_process_is_killed_is_resumed_by_another_process() {
    for (kind, agent) in STARTED {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("gate"), "").unwrap();
        let started = if kind == RunKind::AgentCall { RunKind::Loop } else { kind };
        let mut child = service_process(dir.path(), &["start", started.as_str(), agent]).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        // Whichever comes first: the id, or that the tool is at work.
        let mut run = None;
        let mut entered = 0;
        while run.is_none() || entered < steps(kind) {
            match lines.next().unwrap() {
                line if line == "entered" => entered += 1,
                line => run = Some(line),
            }
        }
        let run = run.unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        std::fs::remove_file(dir.path().join("gate")).unwrap();
        let resumed = ran(dir.path(), &["resume", of_kind(kind, &RunId::new(&*run)).as_str()]);
        assert!(resumed[0].contains("finished"), "{kind}: {resumed:?}");
        assert_eq!(effects(dir.path()), steps(kind), "{kind}");
    }
}

/// A process that dies while the tool of a run is at work.
fn killed(world: &World, kind: RunKind, agent: &str) -> RunId {
    killed_for(world, kind, agent, "local")
}

pub(crate) fn killed_for(world: &World, kind: RunKind, agent: &str, tenant: &str) -> RunId {
    let process = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let run = process.block_on(async {
        let started = world.process().start(request(kind, agent).tenant(tenant)).await.unwrap();
        world.tool_entered().await;
        started.run
    });
    process.shutdown_timeout(Duration::from_secs(10));
    run
}

#[test]
fn resume_killed_run_of_any_kind_by_id_alone_finishes_it() {
    for (kind, agent) in STARTED {
        let world = World::closed();
        let started = killed(&world, kind, agent);
        world.open_gate();
        let process = tokio::runtime::Runtime::new().unwrap();
        process.block_on(async {
            let runs = world.process();
            assert_eq!(runs.get(&started).await.unwrap().status, RunStatus::Interrupted, "{kind}");
            runs.resume(&of_kind(kind, &started), &MoreLimits::default()).await.unwrap();
            let outcome = runs.reply(&started).await.ended();
            assert_eq!(outcome.status, OutcomeStatus::Finished, "{kind}: {outcome:?}");
            assert_eq!(world.effects.load(Ordering::SeqCst), steps(kind), "{kind}");
        });
    }
}

#[test]
fn resume_unfinished_resumes_every_interrupted_run_and_no_other() {
    let world = World::closed();
    let cut_off: Vec<_> = STARTED.iter().map(|(kind, agent)| killed(&world, *kind, agent)).collect();
    world.open_gate();
    let process = tokio::runtime::Runtime::new().unwrap();
    process.block_on(async {
        let runs = world.process();
        let done = runs.start(StartRun::new("Take a step")).await.unwrap();
        runs.reply(&done.run).await.ended();
        let mut resumed = Vec::new();
        for started in runs.resume_unfinished(None).await.unwrap().all_ok().unwrap() {
            assert_eq!(runs.reply(&started.run).await.ended().status, OutcomeStatus::Finished);
            resumed.push(started.run);
        }
        resumed.sort();
        let mut expected = cut_off;
        expected.sort();
        assert_eq!(resumed, expected);
    });
}

#[test]
fn resume_unfinished_run_that_cannot_go_on_is_a_failure_and_holds_up_no_other() {
    let world = World::closed();
    let cut_off = [(RunKind::Loop, "agent"), (RunKind::Team, "team")];
    let [known, unknown] = cut_off.map(|(kind, agent)| killed(&world, kind, agent));
    world.open_gate();
    let process = tokio::runtime::Runtime::new().unwrap();
    process.block_on(async {
        let alone = Runs::new(world.agent("agent"));
        let resumed = alone.resume_unfinished(None).await.unwrap();
        assert_eq!((resumed.len(), resumed.is_empty()), (2, false));
        assert_eq!(resumed.started().map(|started| &started.run).collect::<Vec<_>>(), [&known]);
        let failures: Vec<_> = resumed.failures().map(|(run, error)| (run, error.to_string())).collect();
        let why = "no agent team is registered for runs of kind team; registered agents: loop agent";
        assert_eq!(failures, [(&unknown, why.to_owned())]);
        assert!(matches!(resumed.all_ok(), Err(RunError::NoAgent { .. })));
        assert_eq!(alone.reply(&known).await.ended().status, OutcomeStatus::Finished);
    });
}

#[tokio::test]
async fn fork_loop_goes_on_and_other_kinds_name_themselves() {
    for (kind, agent) in STARTED {
        let world = World::open();
        let runs = world.process();
        let started = runs.start(request(kind, agent)).await.unwrap();
        runs.reply(&started.run).await.ended();
        let run = of_kind(kind, &started.run);
        match (kind, runs.fork(&run, ForkOptions::after(0)).await) {
            (RunKind::Loop, fork) => {
                let fork = fork.unwrap();
                runs.resume(&fork.run, &MoreLimits::default()).await.unwrap();
                assert_eq!(runs.reply(&fork.run).await.ended().status, OutcomeStatus::Finished);
            }
            (kind, fork) => {
                let error = fork.unwrap_err();
                assert!(matches!(&error, RunError::Unsupported { kind: of, .. } if *of == kind), "{error}");
                assert!(error.advice().contains("fork"), "{}", error.advice());
            }
        }
    }
}

#[tokio::test]
async fn delete_any_kind_at_work_is_refused_and_ended_is_gone() {
    for (kind, agent) in STARTED {
        let world = World::closed();
        let runs = world.process();
        let started = runs.start(request(kind, agent)).await.unwrap();
        world.tool_entered().await;
        let refused = runs.delete(&started.run).await.unwrap_err();
        assert!(matches!(refused, RunError::Journal(JournalError::Locked { .. })), "{kind}: {refused}");
        world.open_gate();
        runs.reply(&started.run).await.ended();
        runs.delete(&started.run).await.unwrap();
        let gone = runs.get(&started.run).await.unwrap_err();
        assert!(matches!(gone, RunError::UnknownRun { .. }), "{kind}: {gone}");
    }
}

#[tokio::test]
async fn watch_of_a_run_that_was_over_at_once_has_its_deltas_in_their_places() {
    let world = World::open();
    let runs = world.process();
    let started = runs.start(StartRun::new("Hello").tools(Vec::<String>::new())).await.unwrap();
    while runs.get(&started.run).await.unwrap().status != RunStatus::Finished {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let events: Vec<_> = runs.watch(&started.run, None).await.unwrap().map(Result::unwrap).collect().await;
    let place = |is: &dyn Fn(&Event) -> bool| events.iter().position(is).unwrap();
    let answered = place(
        &|event| matches!(event, Event::Record { record, .. } if matches!(record.body, RecordBody::ModelCallFinished { .. })),
    );
    assert!(place(&|event| matches!(event, Event::Delta(_))) < answered, "{events:?}");
    let seen = records(&started.run, runs.watch(&started.run, None).await.unwrap()).await;
    assert_eq!(seen.len(), world.log(&started.run).await.len());
}

#[tokio::test]
async fn get_unknown_id_names_the_nearest() {
    let world = World::open();
    let runs = world.process();
    let started = runs.start(StartRun::new("Take a step").key("k")).await.unwrap();
    runs.reply(&started.run).await.ended();
    let id = started.run.as_str();
    let typo = RunId::new(format!("{}x", &id[..id.len() - 1]));
    let error = runs.get(&typo).await.unwrap_err();
    assert_eq!(error.to_string(), format!("run {typo} does not exist; the most similar ids are {id}"));
}

#[tokio::test]
async fn resume_run_of_an_agent_that_is_not_registered_names_agent_and_kind() {
    let world = World::closed();
    let started = {
        let runs = world.process();
        let started = runs.start(request(RunKind::Team, "team")).await.unwrap();
        world.tool_entered().await;
        runs.cancel(&started.run, "stop").await.unwrap();
        runs.reply(&started.run).await.ended();
        started.run
    };
    let alone = Runs::new(world.agent("agent"));
    let error = alone.resume(&started, &MoreLimits::default()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no agent team is registered for runs of kind team; registered agents: loop agent"
    );
}

#[tokio::test]
async fn prune_removes_ended_runs_before_a_time_and_erase_all_of_a_tenant() {
    let world = World::open();
    let runs = world.process();
    for tenant in ["anna", "ben"] {
        for (kind, agent) in STARTED {
            let started = runs.start(request(kind, agent).tenant(tenant)).await.unwrap();
            runs.reply(&started.run).await.ended();
        }
    }
    let all = || async { runs.list(&RunFilter::all()).await.unwrap() };
    let early = runs.prune(Timestamp::from_millis(1)).await.unwrap();
    assert_eq!((early.runs.len(), early.failures.len()), (0, 0));
    let (before, erased) = (all().await.len(), runs.erase(&TenantId::new("anna")).await.unwrap());
    assert!(erased.failures.is_empty(), "{:?}", erased.failures);
    let left = all().await;
    assert_eq!((left.len(), erased.runs.len()), (before / 2, before / 2));
    assert!(left.iter().all(|head| head.tenant == Some(TenantId::new("ben"))), "{left:?}");
    let pruned = runs.prune(Timestamp::from_millis(u64::MAX / 2)).await.unwrap();
    assert!(pruned.failures.is_empty(), "{:?}", pruned.failures);
    assert_eq!(all().await, []);
}

#[tokio::test]
async fn erase_of_a_run_that_was_written_after_one_that_needs_it_removes_both() {
    let clock = VirtualClock::new();
    let world = World::asking().with_clock(&clock);
    let runs = world.process();
    let asked = StartRun::new("Take a step").session("chat").tenant("anna");
    let waits = runs.start(asked).await.unwrap().run;
    runs.reply(&waits).await.ended();
    let beside = StartRun::new("Hello").session("chat").tenant("anna").tools(Vec::<String>::new());
    let beside = runs.start(beside.when_busy(WhenBusy::Branch)).await.unwrap().run;
    runs.reply(&beside).await.ended();
    clock.advance(Duration::from_secs(1));
    let question = runs.questions(None).await.unwrap().remove(0).request;
    assert!(runs.answer(&question.request_id, Answer::Approve).await.unwrap());
    runs.reply(&waits).await.ended();
    let refused = runs.delete(&waits).await.unwrap_err();
    assert!(matches!(refused, RunError::Journal(JournalError::Needed { .. })), "{refused}");
    let erased = runs.erase(&TenantId::new("anna")).await.unwrap();
    assert_eq!((erased.runs.len(), erased.failures.len()), (2, 0), "{:?}", erased.failures);
}
