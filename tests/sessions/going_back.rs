//! Going back in a session: another text in place of a message of a person.

use std::sync::{Arc, OnceLock};

use archon::{
    Archon, RunError, Runs, SessionId, ToolContext,
    react_loop::{LoopError, is_paired, replay},
    store::InMemoryJournal,
    tools::FnTool,
    types::{
        AskLater, Json, Message, MessagePlace, Request, StartRun, StartRuns, Started, ToolAnnotations,
        ToolCall, ToolResult, ToolSpec, WhenBusy,
    },
};
use archon_testkit::{Ended, FnProvider};
use serde_json::json;

struct Desk {
    runs: Runs,
    journal: InMemoryJournal,
    model: FnProvider,
}

/// A model that uses tools if the last message asks for it, and else repeats the messages of people.
fn answer(request: &Request) -> crate::shared::stage::Answer {
    let call = |n: usize, name: &str, arguments: Json| ToolCall::new(format!("c{n}"), name, arguments);
    match request.messages.iter().last().map(|last| &**last) {
        Some(Message::User(user)) => match user.content.first().and_then(|text| text.as_text()) {
            Some(text) if text.starts_with("look") => FnProvider::calls(vec![call(1, "say", json!({}))]),
            Some("refund") => FnProvider::calls(vec![call(1, "refund", json!({}))]),
            Some("both") => {
                FnProvider::calls(vec![call(1, "say", json!({"steer": "now"})), call(2, "say", json!({}))])
            }
            Some("now") => FnProvider::calls(vec![call(3, "say", json!({"follow_up": "then"}))]),
            _ => FnProvider::text(&people(request)),
        },
        _ => FnProvider::text(&people(request)),
    }
}

fn people(request: &Request) -> String {
    let of_people = request.messages.iter().filter(|message| matches!(&***message, Message::User(_)));
    of_people.map(|message| message.text()).collect::<Vec<_>>().join(", ")
}

fn desk() -> Desk {
    let (journal, model) = (InMemoryJournal::new(), FnProvider::new(|_, request| answer(request)));
    let agent: Arc<OnceLock<Archon>> = Arc::default();
    let own = agent.clone();
    let say = ToolSpec::new("say", "Says something to its own run.", json!({"type": "object"}));
    let say = FnTool::new(say, move |arguments: Json, context: ToolContext| {
        let own = own.clone();
        async move {
            let (archon, run) = (own.get().unwrap(), &context.run.run);
            if let Some(text) = arguments["steer"].as_str() {
                archon.steer(run, text).await.unwrap();
            }
            if let Some(text) = arguments["follow_up"].as_str() {
                archon.follow_up(run, text).await.unwrap();
            }
            Ok(ToolResult::success("done"))
        }
    });
    let refund = ToolSpec::new("refund", "Refunds.", json!({"type": "object"}))
        .with_annotations(ToolAnnotations::default().with_confirmation());
    let archon = Archon::builder()
        .provider(Arc::new(model.clone()), "scripted")
        .tool(say)
        .tool(FnTool::new(refund, |_: Json, _| async { Ok(ToolResult::success("refunded")) }))
        .approver(Arc::new(AskLater))
        .journal(Arc::new(journal.clone()))
        .build()
        .unwrap();
    let _ = agent.set(archon.clone());
    Desk { runs: Runs::new(archon), journal, model }
}

impl Desk {
    async fn say(&self, request: StartRun) -> String {
        let started = self.runs.start(request).await.unwrap();
        self.runs.reply(&started.run).await.ended().last_text().unwrap_or_default().to_owned()
    }

    async fn texts(&self, session: &SessionId) -> Vec<String> {
        let messages = self.runs.earlier_messages(session, None).await.unwrap();
        messages.into_iter().map(|message| message.text).collect()
    }
}

// spec: CL-04
#[tokio::test]
async fn message_in_place_of_an_earlier_one_sees_everything_before_it_and_nothing_after_it() {
    let texts = ["look one", "look two", "look three"];
    for place in 0..texts.len() {
        let desk = desk();
        let session = SessionId::new("s");
        for text in texts {
            desk.say(StartRun::new(text).session(session.clone())).await;
        }
        let messages = desk.runs.earlier_messages(&session, None).await.unwrap();
        assert_eq!(messages.iter().map(|message| message.text.as_str()).collect::<Vec<_>>(), texts);
        // After each message come a call, its result and an answer.
        assert_eq!(messages.iter().map(|message| message.later).collect::<Vec<_>>(), [11, 7, 3]);
        let request = StartRun::new("other").instead_of(messages[place].place.clone());
        let started = desk.runs.start(request).await.unwrap();
        assert_eq!((&started.session, started.how), (&session, Started::New));
        let expected = [&texts[..place], &["other"]].concat();
        assert_eq!(desk.runs.reply(&started.run).await.ended().last_text().unwrap(), expected.join(", "));
        let asked = desk.model.requests().pop().unwrap();
        let asked: Vec<Message> = asked.messages.iter().map(|message| Message::clone(message)).collect();
        assert_eq!((asked.len(), is_paired(&asked)), (4 * place + 1, true));
        assert!(replay(&desk.journal, &started.run).await.unwrap().is_identical());
        // The session goes on from there.
        let next = desk.say(StartRun::new("more").session(session.clone())).await;
        assert_eq!(next, format!("{}, more", expected.join(", ")));
        assert_eq!(desk.texts(&session).await, [&expected[..], &["more"]].concat());
    }
}

// spec: CL-04
#[tokio::test]
async fn message_between_a_call_and_its_result_cannot_be_replaced_and_a_follow_up_can() {
    let desk = desk();
    let session = SessionId::new("s");
    assert_eq!(desk.say(StartRun::new("both").session(session.clone())).await, "both, now, then");
    let messages = desk.runs.earlier_messages(&session, None).await.unwrap();
    let found: Vec<_> = messages.iter().map(|found| (found.text.as_str(), found.is_replaceable)).collect();
    assert_eq!(found, [("both", true), ("now", false), ("then", true)]);
    let instead = |at: usize| StartRun::new("other").instead_of(messages[at].place.clone());
    let refused = desk.runs.start(instead(1)).await.unwrap_err();
    assert!(matches!(refused.cause(), Some(LoopError::BetweenCallAndResult { .. })), "{refused}");
    assert_eq!(refused.advice(), "go back to an earlier message");
    assert_eq!(desk.say(instead(2)).await, "both, now, other");
    let asked = desk.model.requests().pop().unwrap();
    let asked: Vec<Message> = asked.messages.iter().map(|message| Message::clone(message)).collect();
    assert!(is_paired(&asked), "{asked:?}");
    assert_eq!(desk.texts(&session).await, ["both", "now", "other"]);
}

// spec: CL-04
#[tokio::test]
async fn record_that_is_no_message_of_the_session_is_refused() {
    let desk = desk();
    desk.say(StartRun::new("look").session("s")).await;
    let place = desk.runs.earlier_messages(&SessionId::new("s"), None).await.unwrap().remove(0).place;
    let instead = |place: MessagePlace| StartRun::new("other").instead_of(place);
    for (run, seq) in [(&place.run, 0), (&place.run, place.seq + 1), (&place.run, 4_711)] {
        let refused = desk.runs.start(instead(MessagePlace::new(run.clone(), seq))).await.unwrap_err();
        assert!(
            matches!(refused.cause(), Some(LoopError::NoSuchMessage { seq: of, .. }) if *of == seq),
            "{refused}"
        );
    }
    let refused = desk.runs.start(instead(place.clone()).session("other")).await.unwrap_err();
    assert!(matches!(refused.cause(), Some(LoopError::NoSuchMessage { .. })), "{refused}");
    let of_bob = desk.runs.for_tenant("bob");
    let refused = of_bob.start(instead(place.clone())).await.unwrap_err();
    assert!(matches!(refused, RunError::UnknownRun { .. }), "{refused}");
    assert_eq!(of_bob.earlier_messages(&SessionId::new("s")).await.unwrap(), []);
}

#[tokio::test]
async fn message_in_place_of_another_is_refused_while_the_session_is_busy() {
    let desk = desk();
    desk.say(StartRun::new("look").session("s")).await;
    desk.say(StartRun::new("refund").session("s")).await;
    let messages = desk.runs.earlier_messages(&SessionId::new("s"), None).await.unwrap();
    for when_busy in [WhenBusy::Refuse, WhenBusy::Queue, WhenBusy::Steer] {
        let request = StartRun::new("other").instead_of(messages[0].place.clone()).when_busy(when_busy);
        let refused = desk.runs.start(request).await.unwrap_err();
        assert!(matches!(refused, RunError::SessionBusy { .. }), "{refused}");
    }
}
