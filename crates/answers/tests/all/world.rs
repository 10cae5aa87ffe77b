//! A service with an open question, and a way to the person who is asked.

use std::sync::Arc;

use archon_answers::{AnswerKey, AnswerableChannel, Answers};
use archon_testkit::{RecordingChannel, RecordingQuestions, VirtualClock};
use archon_types::{Answer, Notification, NotificationChannel, NotificationKind, PendingApproval, Secret};
use serde_json::json;

/// A service with one open question, and its clock.
pub(crate) struct World {
    questions: RecordingQuestions,
    pub(crate) clock: VirtualClock,
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
        let world = Self { questions: RecordingQuestions::new(), clock };
        world.questions.open().push(serde_json::from_value(question).unwrap());
        world
    }

    /// The answers of a process with this key.
    pub(crate) fn answers_of(&self, key: &str) -> Answers {
        let key = AnswerKey::new(&Secret::from(key)).unwrap();
        Answers::new(Arc::new(self.questions.clone()), key, Arc::new(self.clock.clone()))
    }

    pub(crate) fn answers(&self) -> Answers {
        self.answers_of("the secret of the test")
    }

    pub(crate) fn question(&self) -> PendingApproval {
        self.questions.open()[0].clone()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut PendingApproval)) {
        change(&mut self.questions.open()[0]);
    }

    pub(crate) fn taken(&self) -> Vec<Answer> {
        self.questions.answers()
    }

    /// Sends the question to Anna, and returns what her channel got.
    pub(crate) async fn notify(&self) -> Notification {
        let sent = RecordingChannel::new();
        let channel = AnswerableChannel::new(Arc::new(sent.clone()), self.answers(), ANNA)
            .with_page("https://archon.example.com/answer")
            .with_replies();
        let about = NotificationKind::Question(Box::new(self.question()));
        channel.send(&Notification::new("anna", about, "Send a mail")).await.unwrap();
        sent.notifications().remove(0)
    }

    /// Returns the token of the link in a notification of the question.
    pub(crate) async fn link_token(&self) -> String {
        let link = self.notify().await.link.unwrap();
        link.strip_prefix("https://archon.example.com/answer#").unwrap().to_owned()
    }
}
