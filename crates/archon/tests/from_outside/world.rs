//! An office with tasks, a tool that asks, a channel for notifications, and processes that come and go.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use archon::{
    Archon, Journal, Runs, Tool, ToolResult,
    answers::{AnswerKey, AnswerableChannel, Answers},
    store::{InMemoryJournal, InMemoryTaskStore},
    tools::FnTool,
    triggers::{EventFilter, TriggerEngine, TriggerError, TriggerParts, TriggerTask},
    types::{
        AskLater, BoxFuture, CancellationToken, Clock, Notification, NotificationChannel, Secret,
        ToolAnnotations, ToolCall, ToolSpec,
    },
};
use archon_testkit::{FnProvider, SeededIds, VirtualClock};
use serde_json::json;
use tokio::{sync::mpsc, task::JoinHandle};

/// A channel that gives each notification to the test.
struct Sent(mpsc::UnboundedSender<Notification>);

impl NotificationChannel for Sent {
    fn name(&self) -> &str {
        "anna"
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        let _ = self.0.send(notification.clone());
        Box::pin(std::future::ready(Ok(())))
    }
}

pub(crate) const ANNA: &str = "anna@example.com";

/// The parts that survive a process.
pub(crate) struct World {
    pub(crate) journal: InMemoryJournal,
    store: InMemoryTaskStore,
    pub(crate) clock: VirtualClock,
    pub(crate) refunds: Arc<AtomicUsize>,
    pub(crate) model: FnProvider,
}

/// A process that serves the tasks.
pub(crate) struct Process {
    pub(crate) engine: TriggerEngine,
    pub(crate) runs: Arc<Runs>,
    pub(crate) answers: Answers,
    sent: mpsc::UnboundedReceiver<Notification>,
    stop: CancellationToken,
    serving: JoinHandle<Result<(), TriggerError>>,
}

impl World {
    /// The model calls `refund` for each message with the word, also if the word comes from an event.
    pub(crate) fn new() -> Self {
        let model = FnProvider::new(|_, request| {
            let last = request.messages.iter().last().map(|last| last.text()).unwrap_or_default();
            match last.contains("refund") {
                true => FnProvider::calls(vec![ToolCall::new("c", "refund", json!({ "to": "ben" }))]),
                false => FnProvider::text(&format!("did: {last}")),
            }
        });
        Self {
            journal: InMemoryJournal::new(),
            store: InMemoryTaskStore::default(),
            clock: VirtualClock::starting_at("2026-01-31T12:00:00Z".parse().unwrap()),
            refunds: Arc::default(),
            model,
        }
    }

    pub(crate) fn start(&self) -> Process {
        let (clock, journal): (Arc<dyn Clock>, Arc<dyn Journal>) =
            (Arc::new(self.clock.clone()), Arc::new(self.journal.clone()));
        let mut annotations = ToolAnnotations::default();
        annotations.requires_confirmation = true;
        let schema = json!({ "type": "object", "properties": { "to": { "type": "string" } } });
        let spec = ToolSpec::new("refund", "Refunds.", schema).with_annotations(annotations);
        let count = self.refunds.clone();
        let refund: Arc<dyn Tool> = Arc::new(FnTool::new(spec, move |_, _| {
            count.fetch_add(1, Ordering::SeqCst);
            async { Ok(ToolResult::success("Paid back.")) }
        }));
        let agent = Archon::builder()
            .provider(Arc::new(self.model.clone()), "scripted")
            .tools([refund])
            .approver(Arc::new(AskLater))
            .journal(journal)
            .clock(clock.clone())
            .ids(Arc::new(SeededIds::new(1)))
            .build()
            .unwrap();
        let runs = Arc::new(Runs::new(agent));
        let key = AnswerKey::new(&Secret::from("a secret that stays the same")).unwrap();
        let answers = Answers::new(runs.clone(), key, clock.clone());
        let (sender, sent) = mpsc::unbounded_channel();
        let channel = AnswerableChannel::new(Arc::new(Sent(sender)), answers.clone(), ANNA)
            .with_page("https://archon.example.com/answer")
            .with_replies();
        let parts = TriggerParts::new().channel_of("anna", Arc::new(channel));
        let engine = TriggerEngine::new(runs.clone(), Arc::new(self.store.clone()), clock, parts);
        let (serving, stop) = (engine.clone(), CancellationToken::new());
        let until = stop.clone();
        let serving = tokio::spawn(async move { serving.serve(until).await });
        Process { engine, runs, answers, sent, stop, serving }
    }
}

impl Process {
    pub(crate) async fn next_notification(&mut self) -> Notification {
        let next = tokio::time::timeout(Duration::from_secs(20), self.sent.recv());
        next.await.expect("a notification").unwrap()
    }

    /// Waits for the next notification, while the time passes in which the engine looks at a run that waits.
    pub(crate) async fn next_after_looks(&mut self, clock: &VirtualClock) -> Notification {
        let next = async {
            loop {
                if let Ok(next) = self.sent.try_recv() {
                    return next;
                }
                tokio::task::yield_now().await;
                clock.advance(Duration::from_millis(100));
            }
        };
        tokio::time::timeout(Duration::from_secs(20), next).await.expect("a notification")
    }

    pub(crate) fn has_notification(&mut self) -> bool {
        self.sent.try_recv().is_ok()
    }

    pub(crate) async fn create(&self, id: &str, pattern: &str, instruction: &str) {
        let task = TriggerTask::new(id, EventFilter::new(pattern), instruction).tenant("anna").notify("anna");
        self.engine.create_task(task).await.unwrap();
    }

    /// Returns the number of runs of a task.
    pub(crate) async fn runs_of(&self, id: &str) -> u64 {
        let all = self.engine.list_tasks(None).await.unwrap();
        all.into_iter().find(|listed| listed.task.id.as_str() == id).unwrap().state.runs
    }

    /// Ends the process. Tasks that follow its runs go on, as they would in a process that is slow to die.
    pub(crate) async fn kill(self) {
        self.stop.cancel();
        self.serving.await.unwrap().unwrap();
    }
}
