//! Messages between agents, and the request that waits for its answer.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use archon_types::{AgentId, BROADCAST, BoxFuture, BoxStream, Bus, BusError, BusMessage, Json, MessageType};
use expect_test::expect;
use serde_json::json;

use crate::support::{Counted, Still, at, names, object, ready, round_trip};

fn question() -> BusMessage {
    let content = object(json!({"task_id": "task_1"}));
    BusMessage::new("boss", "worker", MessageType::TaskRequest, content, at(1_700_000_000_123))
}

// spec: T-30, T-33
#[test]
fn bus_messages() {
    round_trip(
        &question(),
        &expect![[
            r#"{"sender_id":"boss","receiver_id":"worker","message_type":"task_request","content":{"task_id":"task_1"},"timestamp":"2023-11-14T22:13:20.123Z"}"#
        ]],
    );
    round_trip(
        &question().of_run("run_1".into()),
        &expect![[
            r#"{"sender_id":"boss","receiver_id":"worker","message_type":"task_request","content":{"task_id":"task_1"},"timestamp":"2023-11-14T22:13:20.123Z","run_id":"run_1"}"#
        ]],
    );
    round_trip(
        &question().into_request(&Counted::default()),
        &expect![[
            r#"{"sender_id":"boss","receiver_id":"worker","message_type":"task_request","content":{"task_id":"task_1"},"timestamp":"2023-11-14T22:13:20.123Z","correlation_id":"req_1"}"#
        ]],
    );
}

// spec: T-30
#[test]
fn a_request_has_a_fresh_correlation_id_and_its_response_copies_it() {
    let ids = Counted::default();
    let [first, second] = [0, 1].map(|_| question().into_request(&ids));
    assert_ne!(first.correlation_id, second.correlation_id);
    let first = first.of_run("run_1".into());
    let response = first.response(MessageType::TaskResponse, object(json!({})), at(5));
    assert_eq!(response.run_id, first.run_id);
    assert_eq!(response.correlation_id, first.correlation_id);
    assert_eq!((response.sender_id.as_str(), response.receiver_id.as_str()), ("worker", "boss"));
    assert_eq!(question().correlation_id, None);
}

// spec: T-30
#[test]
fn broadcast_has_two_spellings() {
    for (receiver, all) in [(BROADCAST, true), ("*", true), ("worker", false), ("", false)] {
        let mut message = question();
        message.receiver_id = AgentId::new(receiver);
        assert_eq!(message.is_broadcast(), all, "{receiver}");
    }
}

// spec: MA-01, T-34
#[test]
fn message_type_known_and_unknown_names_round_trip() {
    use MessageType as T;
    let known = [
        T::TaskRequest,
        T::TaskResponse,
        T::StatusUpdate,
        T::Error,
        T::InformationShare,
        T::ContextRequest,
        T::ContextUpdate,
        T::HelpRequest,
        T::Notification,
        T::CapabilityQuery,
        T::ToolOffer,
        T::ToolRequest,
        T::ToolLease,
    ];
    names(
        &known,
        "task_request task_response status_update error information_share context_request context_update \
         help_request notification capability_query tool_offer tool_request tool_lease",
    );
    let unknown: T = serde_json::from_value(json!("Coffee-Break")).unwrap();
    assert_eq!(unknown, T::Other("Coffee-Break".into()));
    assert_eq!(serde_json::to_value(&unknown).unwrap(), json!("Coffee-Break"));
}

/// A bus with one listener, who hears what was put in beforehand.
#[derive(Default)]
struct Prepared {
    heard: Arc<Mutex<VecDeque<BusMessage>>>,
    published: Mutex<Vec<BusMessage>>,
    /// Whether the stream ends after that.
    closes: bool,
}

struct Inbox(Arc<Mutex<VecDeque<BusMessage>>>, bool);

impl futures_core::Stream for Inbox {
    type Item = BusMessage;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<BusMessage>> {
        match self.0.lock().unwrap().pop_front() {
            None if !self.1 => Poll::Pending,
            next => Poll::Ready(next),
        }
    }
}

impl Bus for Prepared {
    fn publish(&self, message: BusMessage) -> BoxFuture<'_, Result<(), BusError>> {
        self.published.lock().unwrap().push(message);
        Box::pin(async { Ok(()) })
    }

    fn subscribe<'a>(
        &'a self,
        _: &'a AgentId,
        _: &'a [MessageType],
    ) -> BoxFuture<'a, Result<BoxStream<'static, BusMessage>, BusError>> {
        let inbox: BoxStream<'static, BusMessage> = Box::pin(Inbox(self.heard.clone(), self.closes));
        Box::pin(async { Ok(inbox) })
    }
}

fn answer_to(request: &BusMessage, content: Json) -> BusMessage {
    request.response(MessageType::TaskResponse, object(content), at(9))
}

#[test]
fn a_request_waits_for_its_own_answer() {
    let ids = Counted::default();
    let [request, other] = [0, 1].map(|_| question().into_request(&ids));
    let right = answer_to(&request, json!({"result": 30}));
    let mut unrelated = right.clone();
    unrelated.correlation_id = None;
    let bus = Prepared {
        heard: Arc::new(Mutex::new(
            [request.clone(), answer_to(&other, json!({})), unrelated, right.clone()].into(),
        )),
        ..Prepared::default()
    };
    let answer = ready((&bus as &dyn Bus).request(request.clone(), &Still(0), at(60_000)));
    assert_eq!(answer, Ok(right));
    assert_eq!(*bus.published.lock().unwrap(), [request]);
}

#[test]
fn a_request_ends_without_an_answer() {
    let request = question().into_request(&Counted::default());
    let ask = |bus: Prepared, request| {
        let answer = ready(bus.request(request, &Still(60_000), at(60_000)));
        (answer.unwrap_err().to_string(), bus.published.into_inner().unwrap().len())
    };
    let closing = Prepared { closes: true, ..Prepared::default() };
    assert_eq!(
        ask(Prepared::default(), request.clone()),
        ("worker did not answer the task_request in time".into(), 1)
    );
    assert_eq!(ask(closing, request), ("the bus is closed".into(), 1));
    let unasked = ask(Prepared::default(), question());
    assert_eq!(unasked, ("a task_request without a correlation id cannot be answered".into(), 0));
}
