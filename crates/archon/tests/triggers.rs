//! Tasks that start runs by themselves, over real runs.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use archon::{
    Archon, Journal, Runs, Tool, ToolResult,
    store::{InMemoryJournal, InMemoryTaskStore},
    tools::FnTool,
    triggers::{
        CODE_AGENT, CodeModel, EventFilter, Expression, ListedTask, MissedRuns, Probe, Schedule, TaskLimits,
        TaskStatus, TriggerAction, TriggerCondition, TriggerEngine, TriggerError, TriggerEvent, TriggerParts,
        TriggerTask,
    },
    types::{
        Answer, AnswerRuns, AskLater, BoxFuture, CancellationToken, Clock, Inbox, JournalError, Json,
        ModelPrice, Notification, NotificationChannel, NotificationKind, OpenMode, OpenRun, ProviderError,
        Record, RunFilter, RunHead, RunId, RunService, RunStatus, StoredTask, StoredTasks, TaskChange,
        TaskHold, TaskId, TaskStore, TaskStoreError, Timestamp, ToolAnnotations, ToolCall, ToolSpec,
    },
};
use archon_testkit::{FnProvider, SeededIds, VirtualClock};
use serde_json::json;
use tokio::{sync::mpsc, task::JoinHandle};

#[path = "triggers/faults.rs"]
mod faults;
#[path = "triggers/limits.rs"]
mod limits;
#[path = "triggers/processes.rs"]
mod processes;

/// A channel that gives each notification to the test, unless it fails or hangs. It panics after one with this word.
struct Sent {
    name: &'static str,
    sender: mpsc::UnboundedSender<Notification>,
    faults: Faults,
}

/// The faults of channels.
#[derive(Clone, Default)]
struct Faults {
    /// The number of notifications that are refused from now on.
    failures: Arc<AtomicUsize>,
    /// True if no notification gets an answer.
    is_hanging: Arc<AtomicBool>,
}

impl Sent {
    fn new(sender: mpsc::UnboundedSender<Notification>) -> Self {
        Self { name: "sms", sender, faults: Faults::default() }
    }
}

impl NotificationChannel for Sent {
    fn name(&self) -> &str {
        self.name
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        if self.faults.is_hanging.load(Ordering::Relaxed) {
            return Box::pin(std::future::pending());
        }
        let less = |failures: usize| failures.checked_sub(1);
        if self.faults.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            return Box::pin(std::future::ready(Err("the service is closed".to_owned())));
        }
        let _ = self.sender.send(notification.clone());
        assert!(!notification.text.contains("panic"), "this channel panics");
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A store that can lose what is written after the start of a run, as if the process had been killed before.
#[derive(Clone, Default)]
struct LosingStore {
    inner: InMemoryTaskStore,
    is_losing: Arc<AtomicBool>,
    /// True if it cannot be read.
    is_broken: Arc<AtomicBool>,
    /// True if another process serves the tasks.
    is_served: Arc<AtomicBool>,
    version: Arc<AtomicU64>,
    /// A task that another process creates just before this one.
    rival: Arc<Mutex<Option<StoredTask>>>,
}

impl TaskStore for LosingStore {
    fn list(&self) -> BoxFuture<'_, Result<StoredTasks, TaskStoreError>> {
        self.inner.list()
    }

    fn change(&self, mut changes: Vec<TaskChange>) -> BoxFuture<'_, Result<(), TaskStoreError>> {
        if self.is_losing.load(Ordering::Relaxed) {
            changes
                .retain(|change| !matches!(change, TaskChange::SetState { state, .. } if state["runs"] != 0));
        }
        if let Some(rival) = self.rival.lock().unwrap().take() {
            changes.insert(0, TaskChange::Create(rival));
            self.version.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.change(changes)
    }

    fn version(&self) -> BoxFuture<'_, Result<u64, TaskStoreError>> {
        let version = match self.is_broken.load(Ordering::Relaxed) {
            true => Err(TaskStoreError::new("read", "the disk has gone")),
            false => Ok(self.version.load(Ordering::Relaxed)),
        };
        Box::pin(std::future::ready(version))
    }

    fn hold(&self) -> BoxFuture<'_, Result<Option<TaskHold>, TaskStoreError>> {
        let hold = (!self.is_served.load(Ordering::Relaxed)).then(|| TaskHold::new(()));
        Box::pin(std::future::ready(Ok(hold)))
    }
}

/// A journal that counts how often its list of runs is read.
#[derive(Clone, Default)]
struct CountingJournal(InMemoryJournal, Arc<AtomicUsize>);

impl Journal for CountingJournal {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        self.0.open(run, mode)
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.0.read(run)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.list(filter)
    }

    fn head<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunHead, JournalError>> {
        self.0.head(run)
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        self.0.inbox()
    }
}

/// The price of a share, which the test sets, and the number of times that it was read.
#[derive(Clone, Default)]
struct Price(Arc<AtomicUsize>, Arc<AtomicUsize>);

/// The price at which its reader panics.
const PANIC: usize = 13;

impl Probe for Price {
    fn read<'a>(&'a self, _arguments: &'a BTreeMap<String, Json>) -> BoxFuture<'a, Result<Json, String>> {
        let price = self.0.load(Ordering::Relaxed);
        self.1.fetch_add(1, Ordering::Relaxed);
        assert_ne!(price, PANIC, "this probe panics");
        Box::pin(async move {
            if price == 0 { Err("the exchange is closed".to_owned()) } else { Ok(json!({ "eur": price })) }
        })
    }
}

/// The parts that survive a process: the journal, the tasks and the time.
struct World {
    journal: CountingJournal,
    store: LosingStore,
    clock: VirtualClock,
    price: Price,
    refreshed: Arc<AtomicUsize>,
    model: FnProvider,
    faults: Faults,
}

/// A process that serves the tasks.
struct Process {
    engine: TriggerEngine,
    runs: Arc<Runs>,
    sent: mpsc::UnboundedReceiver<Notification>,
    stop: CancellationToken,
    serving: JoinHandle<Result<(), TriggerError>>,
    clock: VirtualClock,
}

impl World {
    fn new() -> Self {
        let model = FnProvider::new(|_, request| {
            let last = request.messages.iter().last().map(|last| last.text()).unwrap_or_default();
            match last.as_str() {
                text if text.contains("refund") => {
                    FnProvider::calls(vec![ToolCall::new("c", "refund", json!({}))])
                }
                text if text.contains("fail") => vec![Err(ProviderError::Auth("no key".into()))],
                text => FnProvider::text(&format!("did: {text}")),
            }
        });
        Self {
            journal: CountingJournal::default(),
            store: LosingStore::default(),
            clock: VirtualClock::starting_at("2026-01-31T12:00:00Z".parse().unwrap()),
            price: Price::default(),
            refreshed: Arc::default(),
            model,
            faults: Faults::default(),
        }
    }

    async fn start(&self) -> Process {
        let (clock, journal): (Arc<dyn Clock>, Arc<dyn Journal>) =
            (Arc::new(self.clock.clone()), Arc::new(self.journal.clone()));
        let mut annotations = ToolAnnotations::default();
        annotations.requires_confirmation = true;
        let spec =
            ToolSpec::new("refund", "Refunds.", json!({ "type": "object" })).with_annotations(annotations);
        let refund: Arc<dyn Tool> =
            Arc::new(FnTool::new(spec, |_, _| async { Ok(ToolResult::success("Refunded.")) }));
        let count = self.refreshed.clone();
        let spec = ToolSpec::new("refresh", "Refreshes.", json!({ "type": "object" }));
        let refresh: Arc<dyn Tool> = Arc::new(FnTool::new(spec, move |_, _| {
            let count = count.fetch_add(1, Ordering::Relaxed) + 1;
            async move { Ok(ToolResult::success(format!("Refreshed {count}."))) }
        }));
        let build = |builder: archon::ArchonBuilder| {
            let ids = Arc::new(SeededIds::new(1));
            builder
                .approver(Arc::new(AskLater))
                .journal(journal.clone())
                .clock(clock.clone())
                .ids(ids)
                .build()
                .unwrap()
        };
        let agent = build(
            Archon::builder()
                .provider(Arc::new(self.model.clone()), "scripted")
                .price(ModelPrice::new(1_000_000, 1_000_000))
                .tools([refund]),
        );
        let code = build(
            Archon::builder().provider(Arc::new(CodeModel), "code").tools([refresh]).agent_id(CODE_AGENT),
        );
        let runs = Arc::new(Runs::new(agent).with_agent(code.run_agent()));
        let (sender, sent) = mpsc::unbounded_channel();
        let named = TriggerParts::new()
            .channel_of_all(Arc::new(Sent { faults: self.faults.clone(), ..Sent::new(sender.clone()) }))
            .channel_of("anna", Arc::new(Sent { name: "phone", ..Sent::new(sender) }))
            .executor("refresh")
            .probe("price", Arc::new(self.price.clone()))
            .probe_of("anna", "orders", Arc::new(self.price.clone()));
        let service: Arc<dyn RunService> = runs.clone();
        let engine = TriggerEngine::new(service, Arc::new(self.store.clone()), clock, named);
        let (serving, stop) = (engine.clone(), CancellationToken::new());
        let until = stop.clone();
        let serving = tokio::spawn(async move { serving.serve(until).await });
        Process { engine, runs, sent, stop, serving, clock: self.clock.clone() }
    }
}

impl Process {
    async fn next_notification(&mut self) -> Notification {
        tokio::time::timeout(Duration::from_secs(20), self.sent.recv())
            .await
            .expect("a notification")
            .unwrap()
    }

    async fn task(&self, id: &str) -> ListedTask {
        let all = self.engine.list_tasks(None).await.unwrap();
        all.into_iter().find(|listed| listed.task.id.as_str() == id).unwrap()
    }

    /// Waits until the task has no run and no probe under way, and the engine sleeps until its next time.
    async fn until_idle(&self, id: &str) -> ListedTask {
        let idle = async {
            loop {
                let listed = self.task(id).await;
                if listed.next.is_some_and(|next| next > self.clock.now()) {
                    self.clock.until_asleep(1).await;
                    return listed;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), idle).await.expect("an idle task")
    }

    /// Waits until the engine serves, and sleeps.
    async fn until_served(&self) {
        self.clock.until_asleep(1).await;
    }

    /// Ends the process. Tasks that follow its runs go on, as they would in a process that is slow to die.
    async fn kill(self) {
        self.stop.cancel();
        self.serving.await.unwrap().unwrap();
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn hourly(id: &str, instruction: &str) -> TriggerTask {
    TriggerTask::new(id, Schedule::cron("0 * * * *", "UTC").unwrap(), instruction).notify("sms")
}

// spec: TR-01, TR-03, TR-06, TR-09, A-39
#[tokio::test]
async fn cron_task_starts_its_run_at_the_local_time_and_notifies_the_result() {
    let world = World::new();
    let mut process = world.start().await;
    let schedule = Schedule::cron("0 8 * * *", "Asia/Shanghai").unwrap();
    let task = TriggerTask::new("mail", schedule, "Summarize unread emails").tenant("anna").notify("sms");
    process.engine.create_task(task).await.unwrap();
    assert_eq!(process.task("mail").await.next, Some(at("2026-02-01T00:00:00Z")));

    process.until_idle("mail").await;
    world.clock.advance(Duration::from_secs(12 * 3600));
    let sent = process.next_notification().await;
    assert_eq!((sent.about, sent.tenant.as_str()), (NotificationKind::Result, "anna"));
    assert_eq!(sent.text, "did: [Scheduled Task] Summarize unread emails");
    assert_eq!(process.task("mail").await.state.handled, at("2026-02-01T00:00:00Z"));
}

// spec: TR-07, A-41
#[tokio::test]
async fn code_task_calls_its_executor_without_a_model() {
    let world = World::new();
    let mut process = world.start().await;
    let every = Schedule::every(Duration::from_secs(300), world.clock.now()).unwrap();
    let code = |name: &str| TriggerAction::Code { executor: name.to_owned(), arguments: BTreeMap::new() };
    let unknown = TriggerTask::new("other", every.clone(), "").action(code("refrsh"));
    let error = process.engine.create_task(unknown).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no executor \"refrsh\"; there is: refresh");
    process
        .engine
        .create_task(TriggerTask::new("refresh", every, "").action(code("refresh")).notify("sms"))
        .await
        .unwrap();
    for number in 1..=3 {
        process.until_idle("refresh").await;
        world.clock.advance(Duration::from_secs(300));
        assert_eq!(process.next_notification().await.text, format!("Refreshed {number}."));
    }
    assert!(world.model.requests().is_empty());
}

// spec: TR-02, TR-10, AP-06, A-40
#[tokio::test]
async fn question_of_a_task_is_notified_survives_a_restart_and_is_answered_once() {
    let world = World::new();
    let mut process = world.start().await;
    process.engine.create_task(hourly("desk", "refund")).await.unwrap();
    process.until_idle("desk").await;
    world.clock.advance(Duration::from_secs(3600));
    let sent = process.next_notification().await;
    let NotificationKind::Question(question) = sent.about else { panic!("{sent:?}") };
    assert_eq!((question.source.as_str(), &question.task), ("trigger", &Some("desk".into())));
    process.kill().await;

    let mut process = world.start().await;
    let again = process.next_notification().await;
    assert!(
        matches!(&again.about, NotificationKind::Question(same) if same.request.request_id == question.request.request_id)
    );
    let id = &question.request.request_id;
    assert!(process.runs.answer(id, Answer::Approve).await.unwrap());
    assert!(!process.runs.answer(id, Answer::Approve).await.unwrap());
    // The engine, and its look at the runs that wait.
    world.clock.until_asleep(2).await;
    world.clock.advance(Duration::from_secs(10));
    let result = process.next_notification().await;
    assert_eq!((result.about, result.run), (NotificationKind::Result, sent.run));
}

// spec: TR-10, A-40
#[tokio::test]
async fn question_that_expires_is_notified_and_the_task_goes_on() {
    let world = World::new();
    let mut process = world.start().await;
    process.engine.create_task(hourly("desk", "refund")).await.unwrap();
    process.until_idle("desk").await;
    world.clock.advance(Duration::from_secs(3600));
    assert!(matches!(process.next_notification().await.about, NotificationKind::Question(_)));
    // The engine, and its look at the runs that wait.
    world.clock.until_asleep(2).await;
    world.clock.advance(Duration::from_secs(31 * 60));
    assert_eq!(process.next_notification().await.about, NotificationKind::Expired);
    assert_eq!(process.next_notification().await.about, NotificationKind::Result);
}

// spec: TR-11
#[tokio::test]
async fn run_whose_start_was_not_stored_is_not_started_twice() {
    let world = World::new();
    let mut process = world.start().await;
    process.engine.create_task(hourly("mail", "read")).await.unwrap();
    process.until_idle("mail").await;
    world.store.is_losing.store(true, Ordering::Relaxed);
    world.clock.advance(Duration::from_secs(3600));
    let first = process.next_notification().await;
    process.kill().await;

    // The occurrence is still the one to run, also after two later ones.
    world.store.is_losing.store(false, Ordering::Relaxed);
    world.clock.advance(Duration::from_secs(2 * 3600));
    let mut process = world.start().await;
    assert_eq!(process.next_notification().await.run, first.run);
    // One run for the two that were missed.
    assert_ne!(process.next_notification().await.run, first.run);
    assert_eq!(world.journal.list(&RunFilter::all()).await.unwrap().len(), 2);
    assert_eq!(process.until_idle("mail").await.state.runs, 2);
}

// spec: TR-03
#[tokio::test]
async fn missed_occurrences_are_left_out_run_once_or_all_run_by_rule() {
    for (rule, runs) in [(MissedRuns::Skip, 0), (MissedRuns::Once, 1), (MissedRuns::All, 5)] {
        let world = World::new();
        let process = world.start().await;
        process.engine.create_task(hourly("mail", "read").missed(rule)).await.unwrap();
        process.kill().await;
        world.clock.advance(Duration::from_secs(5 * 3600 + 600));
        let mut process = world.start().await;
        for _ in 0..runs {
            assert_eq!(process.next_notification().await.about, NotificationKind::Result);
        }
        let task = process.until_idle("mail").await;
        assert_eq!((task.state.runs, task.next), (runs, Some(at("2026-01-31T18:00:00Z"))), "{rule:?}");
    }
}

// spec: TR-12, ER-16
#[tokio::test]
async fn task_that_fails_again_and_again_pauses_longer_and_is_disabled() {
    let world = World::new();
    let mut process = world.start().await;
    let mut limits = TaskLimits::default();
    (limits.failures, limits.backoff) = (2, 600);
    let each_minute = Schedule::cron("* * * * *", "UTC").unwrap();
    let task = TriggerTask::new("mail", each_minute, "fail").notify("sms").limits(limits);
    process.engine.create_task(task).await.unwrap();
    process.until_idle("mail").await;
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(process.next_notification().await.about, NotificationKind::Failure);
    // Ten minutes, in which the task is due ten times.
    assert_eq!(process.until_idle("mail").await.next, Some(at("2026-01-31T12:11:00Z")));
    world.clock.advance(Duration::from_secs(600));
    assert_eq!(process.next_notification().await.about, NotificationKind::Failure);
    assert_eq!(process.next_notification().await.about, NotificationKind::Disabled);
    let task = process.task("mail").await;
    assert_eq!((task.state.status, task.next), (TaskStatus::Disabled, None));
    assert!(task.state.problem.unwrap().contains("no key"));
    process.engine.resume_task(&"mail".into()).await.unwrap();
    assert_eq!(process.task("mail").await.status(), TaskStatus::Active);
}

// spec: TR-04, TR-08, TR-12
#[tokio::test]
async fn event_starts_one_run_of_each_task_that_takes_it_also_if_it_comes_twice() {
    let world = World::new();
    let mut process = world.start().await;
    for (id, tenant) in [("orders", "anna"), ("other", "ben")] {
        let task =
            TriggerTask::new(id, EventFilter::new("shop.order.*"), "Thank.").tenant(tenant).notify("sms");
        process.engine.create_task(task).await.unwrap();
    }
    let order = |id: &str| TriggerEvent::new(id, "shop", "order.created", json!({ "sum": 3 })).tenant("anna");
    for _ in 0..2 {
        assert_eq!(process.engine.publish(&order("1")).await.unwrap(), ["orders".into()]);
    }
    process.engine.publish(&order("2")).await.unwrap();
    assert_ne!(process.next_notification().await.run, process.next_notification().await.run);
    assert_eq!(process.task("orders").await.state.runs, 2);
    assert!(process.sent.try_recv().is_err());
    assert_eq!(world.journal.list(&RunFilter::all()).await.unwrap().len(), 2);
}

// spec: TR-05
#[tokio::test]
async fn condition_starts_a_run_each_time_that_it_becomes_true() {
    let world = World::new();
    world.price.0.store(120, Ordering::Relaxed);
    let mut process = world.start().await;
    let condition = TriggerCondition::new("price", Expression::new("data.eur < 100").unwrap(), 60);
    process.engine.create_task(TriggerTask::new("buy", condition, "Tell me.").notify("sms")).await.unwrap();
    for (price, starts) in [(110, false), (90, true), (80, false), (0, false), (130, false), (70, true)] {
        process.until_idle("buy").await;
        world.price.0.store(price, Ordering::Relaxed);
        world.clock.advance(Duration::from_secs(60));
        if starts {
            let sent = process.next_notification().await;
            assert_eq!(sent.text, "did: [Condition Trigger] Condition met: data.eur < 100\nTell me.");
        }
    }
    assert_eq!(process.until_idle("buy").await.state.condition.edges, 2);
    assert!(process.sent.try_recv().is_err());
}

// spec: TR-01, TR-02
#[tokio::test]
async fn tasks_are_paused_resumed_started_by_hand_and_deleted() {
    let world = World::new();
    let mut process = world.start().await;
    let (engine, id) = (process.engine.clone(), TaskId::new("mail"));
    engine.create_task(hourly("mail", "read")).await.unwrap();
    assert!(matches!(engine.create_task(hourly("mail", "read")).await, Err(TriggerError::Exists(_))));
    engine.pause_task(&id).await.unwrap();
    let paused = process.task("mail").await;
    assert_eq!((paused.status(), paused.next), (TaskStatus::Paused, None));
    engine.resume_task(&id).await.unwrap();
    engine.run_task(&id, "once").await.unwrap();
    assert_eq!(process.next_notification().await.about, NotificationKind::Result);
    engine.delete_task(&id).await.unwrap();
    assert!(engine.list_tasks(None).await.unwrap().is_empty());
    assert!(matches!(engine.pause_task(&id).await, Err(TriggerError::Unknown(_))));
    let past = TriggerTask::new("past", Schedule::Once(at("2020-01-01T00:00:00Z")), "late");
    assert!(matches!(engine.create_task(past).await, Err(TriggerError::NeverDue(_))));
    let heads = world.journal.list(&RunFilter::all()).await.unwrap();
    assert!(heads.iter().all(|head| head.status == RunStatus::Finished));
}
