//! A service with open questions, the answers that it got, and a channel that keeps what it sends.

use std::sync::{Arc, Mutex};

use archon_answers::{AnswerKey, AnswerableChannel, Answers};
use archon_testkit::VirtualClock;
use archon_types::{
    AgentMessage, Answer, AnswerRuns, BoxFuture, Notification, NotificationChannel, NotificationKind,
    PendingApproval, ResumedRuns, RunError, RunId, Secret, TenantId,
};
use serde_json::json;

#[derive(Default)]
struct Service {
    open: Mutex<Vec<PendingApproval>>,
    taken: Mutex<Vec<Answer>>,
}

impl AnswerRuns for Service {
    fn steer<'a>(&'a self, _: &'a RunId, _: AgentMessage) -> BoxFuture<'a, Result<(), RunError>> {
        unreachable!("an answer steers nothing")
    }

    fn follow_up<'a>(&'a self, _: &'a RunId, _: AgentMessage) -> BoxFuture<'a, Result<(), RunError>> {
        unreachable!("an answer sends no message")
    }

    fn cancel<'a>(&'a self, _: &'a RunId, _: &'a str) -> BoxFuture<'a, Result<(), RunError>> {
        unreachable!("an answer cancels nothing")
    }

    fn questions<'a>(
        &'a self,
        _: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<Vec<PendingApproval>, RunError>> {
        Box::pin(async { Ok(self.open.lock().unwrap().clone()) })
    }

    fn answer<'a>(&'a self, request_id: &'a str, answer: Answer) -> BoxFuture<'a, Result<bool, RunError>> {
        Box::pin(async move {
            let mut open = self.open.lock().unwrap();
            let before = open.len();
            open.retain(|open| open.request.request_id != request_id);
            let is_first = open.len() < before;
            if is_first {
                self.taken.lock().unwrap().push(answer);
            }
            Ok(is_first)
        })
    }

    fn sweep<'a>(&'a self) -> BoxFuture<'a, Result<ResumedRuns, RunError>> {
        unreachable!("an answer sweeps nothing")
    }
}

/// A channel that keeps what it sends.
#[derive(Clone, Default)]
pub(crate) struct Sent(Arc<Mutex<Vec<Notification>>>);

impl NotificationChannel for Sent {
    fn name(&self) -> &str {
        "mail"
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        self.0.lock().unwrap().push(notification.clone());
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Sent {
    pub(crate) fn all(&self) -> Vec<Notification> {
        self.0.lock().unwrap().clone()
    }
}

/// A service with one open question, and its clock.
pub(crate) struct World {
    service: Arc<Service>,
    pub(crate) clock: VirtualClock,
    sent: Sent,
}

pub(crate) const ANNA: &str = "anna@example.com";

impl World {
    /// The question expires after half an hour.
    pub(crate) fn new() -> Self {
        let clock = VirtualClock::new();
        let question = json!({
            "run": "run_1", "call": { "command": 3, "index": 0 }, "session": "session_1", "tenant": "anna", "agent": "desk",
            "source": "user", "created_at": archon_types::Clock::now(&clock),
            "request_id": "approval_1", "agent_name": "desk", "action_summary": "Send a mail to ben@example.com",
            "details": { "tool": "send_mail", "arguments": { "to": "ben@example.com", "text": "Yes, \u{202e}noon." } },
            "options": ["approve", "edit", "trust", "cancel"], "allow_modification": true,
            "expires_at": archon_types::Clock::now(&clock) + std::time::Duration::from_secs(1_800),
        });
        let world = Self { service: Arc::default(), clock, sent: Sent::default() };
        world.service.open.lock().unwrap().push(serde_json::from_value(question).unwrap());
        world
    }

    /// The answers of a process with this key.
    pub(crate) fn answers_of(&self, key: &str) -> Answers {
        let key = AnswerKey::new(&Secret::from(key)).unwrap();
        Answers::new(self.service.clone(), key, Arc::new(self.clock.clone()))
    }

    pub(crate) fn answers(&self) -> Answers {
        self.answers_of("the secret of the test")
    }

    pub(crate) fn question(&self) -> PendingApproval {
        self.service.open.lock().unwrap()[0].clone()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut PendingApproval)) {
        change(&mut self.service.open.lock().unwrap()[0]);
    }

    pub(crate) fn taken(&self) -> Vec<Answer> {
        self.service.taken.lock().unwrap().clone()
    }

    /// Sends the question to Anna, and returns what her channel got.
    pub(crate) async fn notify(&self) -> Notification {
        let channel = AnswerableChannel::new(Arc::new(self.sent.clone()), self.answers(), ANNA)
            .with_page("https://archon.example.com/answer")
            .with_replies();
        let about = NotificationKind::Question(Box::new(self.question()));
        channel.send(&Notification::new("anna", about, "Send a mail")).await.unwrap();
        self.sent.0.lock().unwrap().pop().unwrap()
    }

    /// Returns the token of the link in a notification of the question.
    pub(crate) async fn link_token(&self) -> String {
        let link = self.notify().await.link.unwrap();
        link.strip_prefix("https://archon.example.com/answer#").unwrap().to_owned()
    }
}
