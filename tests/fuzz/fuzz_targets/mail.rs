//! Any bytes are read as a mail without a panic. As an event a mail is small and has no token of a question; as a reply it
//! answers only with the token, and only as the question offers. With an odd first byte the mail begins as a reply.
#![no_main]

use std::sync::{Arc, LazyLock, Mutex};

use archon_answers::{AnswerKey, AnswerableChannel, Answers, MailReplies};
use archon_event_sources::ReceivedMail;
use archon_types::{
    AgentMessage, Answer, AnswerRuns, BoxFuture, Clock, Notification, NotificationChannel, NotificationKind,
    PendingApproval, ResumedRuns, RunError, RunId, Secret, TenantId, Timestamp,
};
use futures_util::FutureExt as _;
use serde_json::json;

/// The limit of an event.
const MOST_BYTES: usize = 64 * 1024;

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_767_225_600_000)
    }

    fn sleep_until(&self, _: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// A service with one question, which stays open.
struct Service {
    question: PendingApproval,
    taken: Mutex<Option<Answer>>,
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
        Box::pin(std::future::ready(Ok(vec![self.question.clone()])))
    }

    fn answer<'a>(&'a self, _: &'a str, answer: Answer) -> BoxFuture<'a, Result<bool, RunError>> {
        *self.taken.lock().unwrap() = Some(answer);
        Box::pin(std::future::ready(Ok(true)))
    }

    fn sweep<'a>(&'a self) -> BoxFuture<'a, Result<ResumedRuns, RunError>> {
        unreachable!("an answer sweeps nothing")
    }
}

/// A channel that keeps the token of a reply.
#[derive(Default)]
struct Sent(Mutex<String>);

impl NotificationChannel for Sent {
    fn name(&self) -> &str {
        "mail"
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        *self.0.lock().unwrap() = notification.reply_token.clone().unwrap_or_default();
        Box::pin(std::future::ready(Ok(())))
    }
}

struct Desk {
    service: Arc<Service>,
    replies: MailReplies,
    token: String,
}

static DESK: LazyLock<Desk> = LazyLock::new(|| {
    let question = json!({
        "run": "run_1", "call": { "command": 3, "index": 0 }, "session": "session_1", "tenant": "anna", "agent": "desk",
        "source": "user", "created_at": FixedClock.now(), "request_id": "approval_1", "agent_name": "desk",
        "action_summary": "Send a mail", "details": {}, "options": ["approve", "cancel"],
        "allow_modification": false,
    });
    let question: PendingApproval = serde_json::from_value(question).unwrap();
    let service = Arc::new(Service { question: question.clone(), taken: Mutex::default() });
    let key = AnswerKey::new(&Secret::from("the secret of the target")).unwrap();
    let answers = Answers::new(service.clone(), key, Arc::new(FixedClock));
    let sent = Arc::new(Sent::default());
    let channel = AnswerableChannel::new(sent.clone(), answers.clone(), "anna@example.com").with_replies();
    let about = NotificationKind::Question(Box::new(question));
    channel.send(&Notification::new("anna", about, "Send a mail")).now_or_never().unwrap().unwrap();
    let token = sent.0.lock().unwrap().clone();
    Desk { service, replies: MailReplies::new(answers), token }
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let Desk { service, replies, token } = &*DESK;
    let is_reply = first % 2 == 1;
    let mut mail = Vec::new();
    if is_reply {
        let head = format!("From: anna@example.com\r\nIn-Reply-To: <question.{token}@archon>\r\n");
        mail.extend_from_slice(head.as_bytes());
    }
    mail.extend_from_slice(bytes);

    let data = ReceivedMail::new("1", mail.clone()).to_event("inbox").data.to_string();
    assert!(data.len() <= MOST_BYTES, "{} bytes", data.len());
    assert!(!data.contains(token.as_str()), "the event has the token");

    let taken = replies.take(&mail).now_or_never().expect("nothing waits");
    let answer = service.taken.lock().unwrap().take();
    assert_eq!(matches!(taken, Ok(Some(_))), answer.is_some(), "{taken:?}");
    match answer {
        None => {}
        Some(Answer::Approve | Answer::Cancel { .. }) => assert!(is_reply, "an answer without the token"),
        Some(other) => panic!("the question does not offer {other:?}"),
    }
});
