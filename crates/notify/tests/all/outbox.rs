//! The outbox, by a virtual clock.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use archon_notify::{DeliveryRules, DigestTimes, Outbox, QuietHours};
use archon_testkit::{RecordingQuestions, VirtualClock};
use archon_types::{
    BoxFuture, CancellationToken, Clock, Notification, NotificationChannel, NotificationKind,
    PendingApproval, RunId, StoredTask, StoredTasks, TaskChange, TaskStore, TaskStoreError, Timestamp,
};
use serde_json::json;

/// A store that refuses a change after as many as the test says, with a version that counts erasures by another process,
/// and that cannot be read while the test says so.
#[derive(Default)]
struct Store(Mutex<BTreeMap<String, StoredTask>>, Mutex<Option<u32>>, AtomicU64, AtomicBool);

impl Store {
    /// Erases entries whose text contains `word`, as another process does.
    fn erase(&self, word: &str) {
        self.0.lock().unwrap().retain(|_, stored| !stored.definition.to_string().contains(word));
        self.2.fetch_add(1, Ordering::Relaxed);
    }
}

impl TaskStore for Store {
    fn list(&self) -> BoxFuture<'_, Result<StoredTasks, TaskStoreError>> {
        let all = self.0.lock().unwrap().values().cloned().collect();
        Box::pin(std::future::ready(Ok(StoredTasks::new(all, Vec::new()))))
    }

    fn change(&self, changes: Vec<TaskChange>) -> BoxFuture<'_, Result<(), TaskStoreError>> {
        let mut left = self.1.lock().unwrap();
        if *left == Some(0) {
            *left = None;
            return Box::pin(std::future::ready(Err(TaskStoreError::new("stored", "the disk is full"))));
        }
        *left = left.map(|left| left - 1);
        let mut all = self.0.lock().unwrap();
        for change in changes {
            match change {
                TaskChange::Define(task) => drop(all.insert(task.id.as_str().to_owned(), task)),
                TaskChange::SetState { id, state } => {
                    all.get_mut(id.as_str()).into_iter().for_each(|task| task.state = state.clone());
                }
                TaskChange::Delete(id) => drop(all.remove(id.as_str())),
                _ => {}
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn version(&self) -> BoxFuture<'_, Result<u64, TaskStoreError>> {
        let version = match self.3.load(Ordering::Relaxed) {
            true => Err(TaskStoreError::new("read", "the disk is gone")),
            false => Ok(self.2.load(Ordering::Relaxed)),
        };
        Box::pin(std::future::ready(version))
    }
}

/// Something that happens while a channel sends.
type Happening = Box<dyn Fn() + Send>;

/// A channel that notes the time and the text of what it sends, and fails as often as the test says.
#[derive(Clone)]
struct Sent {
    name: &'static str,
    clock: VirtualClock,
    all: Arc<Mutex<Vec<(String, String)>>>,
    failures: Arc<Mutex<u32>>,
    is_hanging: Arc<AtomicBool>,
    while_sending: Arc<Mutex<Option<Happening>>>,
}

impl NotificationChannel for Sent {
    fn name(&self) -> &str {
        self.name
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        if self.is_hanging.load(Ordering::Relaxed) {
            return Box::pin(std::future::pending());
        }
        if let Some(happens) = &*self.while_sending.lock().unwrap() {
            happens();
        }
        let mut failures = self.failures.lock().unwrap();
        let result = match *failures {
            0 => {
                let at = format!("{}", self.clock.now());
                self.all.lock().unwrap().push((at, notification.text.clone()));
                Ok(())
            }
            _ => {
                *failures -= 1;
                Err("the service is closed".to_owned())
            }
        };
        Box::pin(std::future::ready(result))
    }
}

/// What survives a process.
struct World {
    store: Arc<Store>,
    questions: RecordingQuestions,
    clock: VirtualClock,
    anna: Sent,
    ben: Sent,
}

/// A process that serves the outbox.
struct Process {
    outbox: Outbox,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<Result<(), TaskStoreError>>,
}

impl World {
    fn new() -> Self {
        let clock = VirtualClock::starting_at(at("2026-03-27T12:00:00Z"));
        let sent = |name| Sent {
            name,
            clock: clock.clone(),
            all: Arc::default(),
            failures: Arc::default(),
            is_hanging: Arc::default(),
            while_sending: Arc::default(),
        };
        let (anna, ben) = (sent("anna"), sent("ben"));
        Self { store: Arc::default(), questions: RecordingQuestions::new(), clock, anna, ben }
    }

    fn start(&self, rules: DeliveryRules) -> Process {
        let clock = Arc::new(self.clock.clone());
        let outbox = Outbox::new(self.store.clone(), Arc::new(self.questions.clone()), clock)
            .with_channel(Arc::new(self.anna.clone()), rules)
            .with_channel(Arc::new(self.ben.clone()), DeliveryRules::new());
        let (serving, stop) = (outbox.clone(), CancellationToken::new());
        let until = stop.clone();
        Process { outbox, stop, serving: tokio::spawn(async move { serving.serve(until).await }) }
    }

    /// A question that expires after a time.
    fn ask(&self, id: &str, after: Duration) -> Notification {
        let question = json!({
            "run": format!("run_{id}"), "call": { "command": 3, "index": 0 }, "session": "session_1", "tenant": "anna",
            "agent": "desk", "source": "user", "created_at": self.clock.now(), "request_id": id, "agent_name": "desk",
            "action_summary": id, "details": {}, "options": ["approve", "cancel"], "allow_modification": false,
            "expires_at": self.clock.now() + after,
        });
        let question: PendingApproval = serde_json::from_value(question).unwrap();
        self.questions.open().push(question.clone());
        let run = question.run.clone();
        Notification::new("anna", NotificationKind::Question(Box::new(question)), id).run(Some(run))
    }

    /// Lets time pass, a minute at a time, until each channel has done what is due.
    async fn pass(&self, minutes: u64) {
        for _ in 0..minutes {
            settle().await;
            self.clock.advance(Duration::from_secs(60));
        }
        settle().await;
    }
}

/// Lets all tasks of the test do what they can do without a clock.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

impl Process {
    async fn notify(&self, notification: &Notification) {
        self.outbox.queued("anna").unwrap().send(notification).await.unwrap();
    }

    async fn kill(self) {
        self.stop.cancel();
        self.serving.await.unwrap().unwrap();
    }
}

impl Sent {
    /// Returns what was sent since the last call, as `HH:MM TEXT`, in UTC.
    fn take(&self) -> Vec<String> {
        let all = std::mem::take(&mut *self.all.lock().unwrap());
        all.into_iter().map(|(at, text)| format!("{} {text}", &at[11..16])).collect()
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn result(number: u32) -> Notification {
    let run = RunId::new(format!("run_{number}"));
    Notification::new("anna", NotificationKind::Result, format!("result {number}"))
        .task("mail".into())
        .run(Some(run))
}

const HOUR: Duration = Duration::from_secs(3_600);

// spec: TR-09
#[tokio::test]
async fn notification_in_quiet_hours_waits_for_their_end_unless_its_question_expires_before() {
    let world = World::new();
    let night = QuietHours::new("14:00", "16:00", "Europe/Berlin").unwrap();
    let process = world.start(DeliveryRules::new().quiet(night));
    process.notify(&result(1)).await;
    world.pass(90).await;
    assert_eq!(world.anna.take(), ["12:00 result 1"]);
    process.notify(&result(2)).await;
    process.notify(&world.ask("soon", HOUR / 2)).await;
    process.notify(&world.ask("later", HOUR * 5)).await;
    world.pass(120).await;
    assert_eq!(world.anna.take(), ["13:30 soon", "15:00 result 2", "15:00 later"]);
}

// spec: TR-09
#[tokio::test]
async fn results_are_collected_into_one_notification_and_failures_are_not() {
    let world = World::new();
    let digest = DigestTimes::new(&["15:00"], "Europe/Berlin").unwrap();
    let process = world.start(DeliveryRules::new().digest(digest));
    process.notify(&result(1)).await;
    world.pass(30).await;
    process.notify(&result(2)).await;
    process.notify(&Notification::new("anna", NotificationKind::Failure, "no key")).await;
    let of_ben = Notification::new("ben", NotificationKind::Result, "of another tenant");
    process.notify(&of_ben).await;
    world.pass(120).await;
    let digest = "14:00 mail done\nresult 1\n\nmail done\nresult 2";
    assert_eq!(world.anna.take(), ["12:30 no key", digest, "14:00 of another tenant"]);
    process.notify(&result(3)).await;
    world.pass(24 * 60).await;
    assert_eq!(world.anna.take(), ["14:00 result 3"]);
}

// spec: TR-09, ER-16
#[tokio::test]
async fn question_that_nobody_answers_goes_to_the_next_person_once() {
    let world = World::new();
    let process = world.start(DeliveryRules::new().escalate(HOUR / 6, "ben"));
    process.notify(&world.ask("refund", HOUR)).await;
    process.notify(&world.ask("answered", HOUR)).await;
    world.pass(5).await;
    world.questions.open().retain(|open| open.request.request_id != "answered");
    world.pass(120).await;
    assert_eq!(world.anna.take(), ["12:00 refund", "12:00 answered"]);
    assert_eq!(world.ben.take(), ["12:10 refund"]);
}

// spec: TR-09
#[tokio::test]
async fn question_that_a_channel_does_not_take_goes_to_the_next_person_in_time() {
    let world = World::new();
    *world.anna.failures.lock().unwrap() = 99;
    let process = world.start(DeliveryRules::new().escalate(HOUR / 6, "ben"));
    process.notify(&world.ask("refund", HOUR * 9)).await;
    world.pass(9).await;
    assert_eq!(world.ben.take(), [""; 0]);
    world.pass(3).await;
    assert_eq!(world.ben.take(), ["12:10 refund"]);
    *world.anna.failures.lock().unwrap() = 0;
    world.pass(120).await;
    assert_eq!((world.anna.take(), world.ben.take()), (Vec::new(), Vec::new()));
}

// spec: TR-09
#[tokio::test]
async fn question_is_passed_on_later_than_the_day_in_which_its_channel_failed() {
    let world = World::new();
    *world.anna.failures.lock().unwrap() = 999;
    let process = world.start(DeliveryRules::new().escalate(HOUR * 26, "ben"));
    process.notify(&world.ask("refund", HOUR * 40)).await;
    world.pass(25 * 60).await;
    assert_eq!(world.ben.take(), [""; 0]);
    world.pass(2 * 60).await;
    assert_eq!(world.ben.take(), ["14:00 refund"]);
}

// spec: TR-09
#[tokio::test]
async fn notifications_that_another_process_erased_are_neither_sent_nor_stored_again() {
    let world = World::new();
    let night = QuietHours::new("14:00", "16:00", "Europe/Berlin").unwrap();
    let process = world.start(DeliveryRules::new().escalate(HOUR * 3 / 2, "ben").quiet(night));
    process.notify(&world.ask("sent secret", HOUR * 9)).await;
    process.notify(&world.ask("sent", HOUR * 9)).await;
    world.pass(70).await;
    process.notify(&world.ask("waiting secret", HOUR * 9)).await;
    process.notify(&world.ask("waiting", HOUR * 9)).await;
    world.pass(1).await;
    assert_eq!(world.anna.take(), ["12:00 sent secret", "12:00 sent"]);
    world.store.erase("secret");
    world.pass(150).await;
    assert_eq!(
        (world.anna.take(), world.ben.take()),
        (vec!["15:00 waiting".to_owned()], vec!["13:30 sent".to_owned()])
    );
    let stored = format!("{:?}", world.store.0.lock().unwrap());
    assert!(!stored.contains("secret") && stored.contains("waiting"), "{stored}");
}

// spec: TR-09
#[tokio::test]
async fn notification_that_is_erased_while_the_channel_sends_another_is_not_sent() {
    let world = World::new();
    let noon = QuietHours::new("13:00", "14:00", "Europe/Berlin").unwrap();
    let process = world.start(DeliveryRules::new().quiet(noon));
    process.notify(&world.ask("first", HOUR * 9)).await;
    process.notify(&world.ask("secret", HOUR * 9)).await;
    let store = world.store.clone();
    *world.anna.while_sending.lock().unwrap() = Some(Box::new(move || store.erase("secret")));
    world.pass(70).await;
    assert_eq!(world.anna.take(), ["13:00 first"]);
}

// spec: TR-11
#[tokio::test]
async fn notification_is_sent_once_if_the_store_cannot_be_read_after_it() {
    let world = World::new();
    let store = world.store.clone();
    let breaks = move || store.3.store(true, Ordering::Relaxed);
    *world.anna.while_sending.lock().unwrap() = Some(Box::new(breaks));
    let process = world.start(DeliveryRules::new());
    process.notify(&result(1)).await;
    world.pass(2).await;
    world.store.3.store(false, Ordering::Relaxed);
    world.pass(9).await;
    assert_eq!(world.anna.take(), ["12:00 result 1"]);
}

#[tokio::test]
async fn question_that_was_answered_or_expired_before_its_time_is_not_sent() {
    let world = World::new();
    let night = QuietHours::new("13:00", "16:00", "Europe/Berlin").unwrap();
    let process = world.start(DeliveryRules::new().quiet(night));
    process.notify(&world.ask("answered", HOUR * 9)).await;
    *world.anna.failures.lock().unwrap() = 99;
    process.notify(&world.ask("expired", HOUR / 60)).await;
    world.pass(5).await;
    *world.anna.failures.lock().unwrap() = 0;
    world.questions.open().retain(|open| open.request.request_id != "answered");
    world.pass(180).await;
    assert_eq!(world.anna.take(), [""; 0]);
}

// spec: TR-09, TR-11
#[tokio::test]
async fn restart_sends_what_waits_and_nothing_that_was_sent() {
    let world = World::new();
    let rules = || {
        let night = QuietHours::new("14:00", "16:00", "Europe/Berlin").unwrap();
        DeliveryRules::new().quiet(night).escalate(HOUR * 3 / 2, "ben")
    };
    let process = world.start(rules());
    process.notify(&result(1)).await;
    let question = world.ask("refund", HOUR * 9);
    process.notify(&question).await;
    world.pass(60).await;
    process.notify(&result(2)).await;
    world.pass(1).await;
    assert_eq!(world.anna.take(), ["12:00 result 1", "12:00 refund"]);
    process.kill().await;

    let process = world.start(rules());
    // The engine notifies again, since it does not know what its last process did.
    process.notify(&question).await;
    process.notify(&result(1)).await;
    world.pass(120).await;
    assert_eq!(
        (world.anna.take(), world.ben.take()),
        (vec!["15:00 result 2".to_owned()], vec!["13:30 refund".to_owned()])
    );
    // After a week the outbox has forgotten all of them.
    world.clock.advance(HOUR * 24 * 8);
    settle().await;
    assert_eq!(process.outbox.list().await.unwrap(), []);
    assert!(world.store.0.lock().unwrap().is_empty());
}

// spec: TR-09
#[tokio::test]
async fn channel_that_fails_is_tried_again_with_longer_pauses_and_given_up_after_a_day() {
    let world = World::new();
    *world.anna.failures.lock().unwrap() = 3;
    let process = world.start(DeliveryRules::new());
    process.notify(&result(1)).await;
    world.pass(2).await;
    let problem = process.outbox.list().await.unwrap()[0].problem.clone();
    assert_eq!(problem.as_deref(), Some("the service is closed"));
    world.pass(5).await;
    // After 30, 60 and 120 seconds.
    assert_eq!(world.anna.take(), ["12:04 result 1"]);
    assert_eq!(process.outbox.list().await.unwrap()[0].problem, None);

    *world.anna.failures.lock().unwrap() = u32::MAX;
    process.notify(&result(2)).await;
    world.pass(25 * 60).await;
    *world.anna.failures.lock().unwrap() = 0;
    world.pass(120).await;
    assert_eq!(world.anna.take(), [""; 0]);
    assert!(process.outbox.list().await.unwrap()[1].sent_at.is_none());
    assert!(process.outbox.queued("nobody").is_none());
}

// spec: TR-09
#[tokio::test]
async fn digest_whose_progress_cannot_be_stored_is_sent_once() {
    let world = World::new();
    let digest = DigestTimes::new(&["15:00"], "Europe/Berlin").unwrap();
    let process = world.start(DeliveryRules::new().digest(digest));
    for number in 1..=3 {
        process.notify(&result(number)).await;
    }
    *world.store.1.lock().unwrap() = Some(0);
    world.pass(180).await;
    let sent = world.anna.take();
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert!(sent[0].ends_with("result 1\n\nmail done\nresult 2\n\nmail done\nresult 3"), "{sent:?}");
    assert_eq!(*world.store.1.lock().unwrap(), None);
    process.kill().await;
    // The next write stored it.
    let process = world.start(DeliveryRules::new());
    world.pass(60).await;
    assert_eq!(world.anna.take(), [""; 0]);
    process.kill().await;
}

// spec: TR-09
#[tokio::test]
async fn channel_that_never_answers_is_tried_again_and_delays_no_other_notification_for_ever() {
    let world = World::new();
    world.anna.is_hanging.store(true, Ordering::Relaxed);
    let process = world.start(DeliveryRules::new());
    process.notify(&result(1)).await;
    world.pass(7).await;
    let problem = process.outbox.list().await.unwrap()[0].problem.clone().unwrap();
    assert!(problem.starts_with("it did not answer within 360 s"), "{problem}");
    world.anna.is_hanging.store(false, Ordering::Relaxed);
    process.notify(&result(2)).await;
    world.pass(10).await;
    let sent = world.anna.take();
    let texts: Vec<&str> = sent.iter().map(|sent| &sent[6..]).collect();
    assert_eq!(texts, ["result 2", "result 1"]);
}
