//! Any bytes are read as a mail without a panic. As an event a mail is small and has no token of a question; as a reply it
//! answers only with the token, and only as the question offers. With an odd first byte the mail begins as a reply.
#![no_main]

use std::sync::{Arc, LazyLock};

use archon_answers::{AnswerKey, AnswerableChannel, Answers, MailReplies};
use archon_event_sources::ReceivedMail;
use archon_testkit::{RecordingChannel, RecordingQuestions, VirtualClock};
use archon_types::{
    Answer, Clock, Notification, NotificationChannel, NotificationKind, PendingApproval, Secret,
};
use futures_util::FutureExt as _;
use serde_json::json;

/// The limit of an event.
const MOST_BYTES: usize = 64 * 1024;

struct Desk {
    clock: VirtualClock,
    question: PendingApproval,
    key: AnswerKey,
    token: String,
}

impl Desk {
    /// Returns a service with the question, and its reader of replies.
    fn open(&self) -> (RecordingQuestions, MailReplies) {
        let questions = RecordingQuestions::new();
        questions.open().push(self.question.clone());
        let answers =
            Answers::new(Arc::new(questions.clone()), self.key.clone(), Arc::new(self.clock.clone()));
        (questions, MailReplies::new(answers))
    }
}

static DESK: LazyLock<Desk> = LazyLock::new(|| {
    let clock = VirtualClock::new();
    let question = json!({
        "run": "run_1", "call": { "command": 3, "index": 0 }, "session": "session_1", "tenant": "anna", "agent": "desk",
        "source": "user", "created_at": clock.now(), "request_id": "approval_1", "agent_name": "desk",
        "action_summary": "Send a mail", "details": {}, "options": ["approve", "cancel"],
        "allow_modification": false,
    });
    let question: PendingApproval = serde_json::from_value(question).unwrap();
    let key = AnswerKey::new(&Secret::from("the secret of the target")).unwrap();
    let answers = Answers::new(Arc::new(RecordingQuestions::new()), key.clone(), Arc::new(clock.clone()));
    let sent = RecordingChannel::new();
    let channel = AnswerableChannel::new(Arc::new(sent.clone()), answers, "anna@example.com").with_replies();
    let about = NotificationKind::Question(Box::new(question.clone()));
    channel.send(&Notification::new("anna", about, "Send a mail")).now_or_never().unwrap().unwrap();
    let token = sent.notifications().remove(0).reply_token.unwrap();
    Desk { clock, question, key, token }
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let desk = &*DESK;
    let (questions, replies) = desk.open();
    let is_reply = first % 2 == 1;
    let mut mail = Vec::new();
    if is_reply {
        let head = format!("From: anna@example.com\r\nIn-Reply-To: <question.{}@archon>\r\n", desk.token);
        mail.extend_from_slice(head.as_bytes());
    }
    mail.extend_from_slice(bytes);

    let received = ReceivedMail::new("1", mail.clone());
    let _ = received.is_automatic();
    let data = received.to_event("inbox").data.to_string();
    assert!(data.len() <= MOST_BYTES, "{} bytes", data.len());
    assert!(!data.contains(desk.token.as_str()), "the event has the token");

    let taken = replies.take(&mail).now_or_never().expect("nothing waits");
    let answer = questions.answers().pop();
    assert_eq!(matches!(taken, Ok(Some(_))), answer.is_some(), "{taken:?}");
    match answer {
        None => {}
        Some(Answer::Approve | Answer::Cancel { .. }) => assert!(is_reply, "an answer without the token"),
        Some(other) => panic!("the question does not offer {other:?}"),
    }
});
