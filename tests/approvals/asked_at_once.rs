//! Calls that need a person's consent: asked at once, answered now or later, never run without a yes.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use archon::{
    Archon, Event, OutcomeStatus, Reply, RunError, RunOptions, Tool, ToolContext, ToolResult,
    react_loop::replay,
    store::JsonlJournal,
    tools::FnTool,
    types::{
        Answer, ApprovalRequest, ApprovalSettings, Approver, AskLater, Clock, Decision, Json, Message,
        OnDeny, OnExpiry, RecordBody, Request, ToolAnnotations, ToolCall, ToolSpec,
    },
};
use archon_testkit::{Ended, FnProvider, VirtualClock};
use expect_test::expect;
use serde_json::json;

use crate::shared::stage::{Show, Stage, call};

/// What tools of a scenario did, in order.
pub(crate) type Done = Arc<Mutex<Vec<String>>>;

/// A tool that asks first, and notes what it was called with.
pub(crate) fn careful(name: &'static str, done: &Done) -> Arc<dyn Tool> {
    kept(true, name, "1", done)
}

/// The same in some version, which says itself that a person has to agree, or does not.
pub(crate) fn kept(asks: bool, name: &'static str, version: &str, done: &Done) -> Arc<dyn Tool> {
    let mut annotations = ToolAnnotations::default();
    annotations.requires_confirmation = asks;
    let schema = json!({"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]});
    let mut spec = ToolSpec::new(name, format!("Does {name}."), schema).with_annotations(annotations);
    version.clone_into(&mut spec.version);
    let done = done.clone();
    Arc::new(FnTool::new(spec, move |arguments: Json, _: ToolContext| {
        let to = arguments["to"].as_str().unwrap_or_default().to_owned();
        done.lock().unwrap().push(format!("{name} {to}"));
        async move { Ok(ToolResult::success(format!("{name} done for {to}"))) }
    }))
}

/// Answers with what it was given, one after the other, and keeps what it was shown, a line for all at once.
#[derive(Clone, Default)]
pub(crate) struct Person {
    pub(crate) says: Arc<Mutex<Vec<Decision>>>,
    pub(crate) seen: Arc<Mutex<Vec<String>>>,
}

impl Person {
    pub(crate) fn saying(answers: impl IntoIterator<Item = Decision>) -> Self {
        Self { says: Arc::new(Mutex::new(answers.into_iter().collect())), ..Self::default() }
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl Approver for Person {
    async fn decide(&self, _: &ApprovalRequest) -> Decision {
        let mut says = self.says.lock().unwrap();

        if says.is_empty() { Decision::Later } else { says.remove(0) }
    }

    async fn decide_all(&self, requests: &[ApprovalRequest]) -> Vec<Decision> {
        let shown = requests.iter().map(|r| r.action_summary.as_str()).collect::<Vec<_>>().join(" | ");
        self.seen.lock().unwrap().push(shown);

        let mut decisions = Vec::new();
        for request in requests {
            decisions.push(self.decide(request).await);
        }
        decisions
    }
}

pub(crate) fn now(answer: Answer) -> Decision {
    Decision::Now(answer)
}

fn no() -> Decision {
    now(Answer::Cancel { reason: String::new() })
}

fn last(request: &Request) -> String {
    request.messages.iter().last().map(|m| m.text()).unwrap_or_default()
}

/// Every result that stands in a request, in order.
fn results(request: &Request) -> String {
    let result = |m: &Arc<Message>| match &**m {
        Message::ToolResult(result) => Some(Message::ToolResult(result.clone()).text()),
        _ => None,
    };
    request.messages.iter().filter_map(result).collect::<Vec<_>>().join(" / ")
}

fn trip(n: usize, request: &Request) -> crate::shared::stage::Answer {
    match n {
        0 => FnProvider::calls(vec![
            ToolCall::new("c0", "send_email", json!({"to": "Ann"})),
            ToolCall::new("c1", "book_flight", json!({"to": "Oslo"})),
        ]),
        _ => FnProvider::text(&results(request)),
    }
}

/// The same agent in another process: all that it shares with the one before is the journal.
fn again(show: &Show, done: &Done, clock: &VirtualClock, person: Person) -> Archon {
    let (journal, model) = (show.journal.clone(), show.model.clone());
    Archon::builder()
        .provider(Arc::new(model), "scripted")
        .tool(careful("send_email", done))
        .tool(careful("book_flight", done))
        .journal(Arc::new(journal))
        .clock(Arc::new(clock.clone()))
        .approver(Arc::new(person))
        .build()
        .unwrap()
}

fn stage(done: &Done, clock: &VirtualClock, person: &Person) -> Stage {
    let (done, clock, person) = (done.clone(), clock.clone(), person.clone());
    Stage::new(trip).with(|b| {
        b.tool(careful("send_email", &done))
            .tool(careful("book_flight", &done))
            .clock(Arc::new(clock))
            .approver(Arc::new(person))
    })
}

fn did(done: &Done) -> Vec<String> {
    done.lock().unwrap().clone()
}

// spec: AP-04, AP-06, R-18
#[tokio::test]
async fn unanswered_run_suspends_and_continues_in_another_process() {
    let (done, clock) = (Done::default(), VirtualClock::new());
    let (outcome, show) = stage(&done, &clock, &Person::default()).play("Plan the trip.").await;
    assert_eq!(outcome.status, OutcomeStatus::Suspended);
    assert!(did(&done).is_empty());

    let later = again(&show, &done, &clock, Person::default());
    let open = later.approvals(None).await.unwrap();
    let shown: Vec<_> = open.iter().map(|p| (p.source.as_str(), p.request.action_summary.as_str())).collect();
    assert_eq!(
        shown,
        [("user", r#"Run send_email with {"to":"Ann"}"#), ("user", r#"Run book_flight with {"to":"Oslo"}"#)]
    );
    assert!(later.approvals(Some(&"other".into())).await.unwrap().is_empty(), "another tenant sees nothing");
    let [email, flight] = &open[..] else { panic!("{open:?}") };

    assert!(later.answer(&email.request.request_id, Answer::Approve).await.unwrap());
    assert!(!later.answer(&email.request.request_id, Answer::Approve).await.unwrap(), "a second answer");
    assert_eq!(later.approvals(None).await.unwrap().len(), 1);
    let outcome = later.resume(outcome.run).await.unwrap().reply().await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Suspended, "the flight still waits");
    assert_eq!(did(&done), ["send_email Ann"]);

    let third = again(&show, &done, &clock, Person::default());
    let reason = "too far".to_owned();
    assert!(third.answer(&flight.request.request_id, Answer::Cancel { reason }).await.unwrap());
    let outcome = third.resume(outcome.run).await.unwrap().reply().await.ended();
    assert_eq!(outcome.last_text(), Some("send_email done for Ann / User cancelled this action. too far"));
    assert_eq!(did(&done), ["send_email Ann"]);
    assert!(third.approvals(None).await.unwrap().is_empty());
    let replayed = replay(&show.journal, &outcome.run).await.unwrap();
    assert!(replayed.is_identical(), "{replayed:?}");
}

// spec: AP-08
#[tokio::test(flavor = "multi_thread")]
async fn answers_of_several_people_at_once_one_is_taken() {
    let (dir, done) = (tempfile::tempdir().unwrap(), Done::default());
    let agent = Archon::builder()
        .provider(Arc::new(FnProvider::new(trip)), "scripted")
        .tool(careful("send_email", &done))
        .tool(careful("book_flight", &done))
        .journal(Arc::new(JsonlJournal::new(dir.path())))
        .approver(Arc::new(Person::default()))
        .build()
        .unwrap();
    assert!(matches!(agent.run("Plan the trip.").await.unwrap(), Reply::Waiting(_)));
    for question in agent.approvals(None).await.unwrap() {
        let people = (0..8).map(|n| {
            let (agent, question) = (agent.clone(), question.clone());
            let answer = match n % 2 {
                0 => Answer::Approve,
                _ => Answer::Cancel { reason: "no".into() },
            };
            tokio::spawn(async move { agent.answer_pending(&question, answer).await.unwrap() })
        });
        let taken = futures_util::future::join_all(people).await;
        assert_eq!(taken.into_iter().filter(|taken| *taken.as_ref().unwrap()).count(), 1);
    }
}

// spec: A-32, AP-05, AP-13
#[tokio::test]
async fn both_questions_are_shown_at_once_and_an_edit_changes_the_call() {
    let (done, clock) = (Done::default(), VirtualClock::new());
    let edit = Answer::Edit { arguments: json!({"to": "Oslo, window seat"}) };
    let person = Person::saying([now(Answer::Approve), now(edit)]);
    let (outcome, show) = stage(&done, &clock, &person).play("Plan the trip.").await;
    assert_eq!(person.seen(), [r#"Run send_email with {"to":"Ann"} | Run book_flight with {"to":"Oslo"}"#]);
    assert_eq!(did(&done), ["send_email Ann", "book_flight Oslo, window seat"]);
    assert_eq!(
        outcome.last_text().unwrap_or_default(),
        "send_email done for Ann / [A person changed the arguments of this call to {\"to\":\"Oslo, window seat\"}]\nbook_flight \
         done for Oslo, window seat"
    );
    assert!(replay(&show.journal, &outcome.run).await.unwrap().is_identical());
}

// spec: AP-05
#[tokio::test]
async fn calls_that_were_answered_run_in_the_order_of_the_answers() {
    let (done, clock) = (Done::default(), VirtualClock::new());
    let (outcome, show) = stage(&done, &clock, &Person::default()).play("Plan the trip.").await;
    let later = again(&show, &done, &clock, Person::default());
    for open in later.approvals(None).await.unwrap().iter().rev() {
        assert!(later.answer(&open.request.request_id, Answer::Approve).await.unwrap());
    }
    let outcome = later.resume(outcome.run).await.unwrap().reply().await.ended();
    assert_eq!(did(&done), ["book_flight Oslo", "send_email Ann"]);
    // The model reads the results in the order of its calls.
    assert_eq!(outcome.last_text(), Some("send_email done for Ann / book_flight done for Oslo"));
    assert!(replay(&show.journal, &outcome.run).await.unwrap().is_identical());
}

// spec: AP-05
#[tokio::test]
async fn an_edit_that_does_not_fit_the_tool_runs_nothing() {
    let (done, clock) = (Done::default(), VirtualClock::new());
    let edit = Answer::Edit { arguments: json!({"to": 7}) };
    let person = Person::saying([now(edit), no()]);
    let (outcome, show) = stage(&done, &clock, &person).play("Plan the trip.").await;
    assert!(outcome.last_text().unwrap_or_default().contains("Parameter validation error"), "{outcome:?}");
    assert!(did(&done).is_empty());

    // From elsewhere the person hears of it, and can answer again.
    let (outcome, show2) = stage(&done, &clock, &Person::default()).play("Plan the trip.").await;
    let later = again(&show2, &done, &clock, Person::default());
    let open = later.approvals(None).await.unwrap();
    let refused = later.answer_pending(&open[0], Answer::Edit { arguments: json!({}) }).await;
    assert!(matches!(refused, Err(RunError::Edit { .. })), "{refused:?}");
    assert!(later.answer_pending(&open[0], Answer::Approve).await.unwrap());
    drop((outcome, show));
}

// spec: A-33, AP-04
#[tokio::test]
async fn a_cancelled_flight_is_an_error_that_the_model_reads() {
    let (done, clock) = (Done::default(), VirtualClock::new());
    let person = Person::saying([now(Answer::Approve), no()]);
    let (outcome, show) = stage(&done, &clock, &person).play("Plan the trip.").await;
    assert_eq!(outcome.status, OutcomeStatus::Finished);
    assert_eq!(did(&done), ["send_email Ann"]);
    let refused = show.bodies().into_iter().find_map(|body| match body {
        RecordBody::ToolCallRefused { result, .. } => Some(result),
        _ => None,
    });
    let refused = refused.unwrap();
    assert_eq!((refused.text().as_str(), refused.is_error()), ("User cancelled this action.", true));
}

// spec: AP-12
#[tokio::test]
async fn on_deny_abort_gives_results_to_the_other_calls_and_an_interruption_marker() {
    let (done, clock) = (Done::default(), VirtualClock::new());
    let person = Person::saying([no()]);
    let mut settings = ApprovalSettings::default();
    settings.on_deny = OnDeny::Abort;
    let stage = stage(&done, &clock, &person).with(|b| b.approval_settings(settings));
    let (outcome, show) = stage.play("Plan the trip.").await;
    assert_eq!(outcome.status, OutcomeStatus::Cancelled);
    assert!(did(&done).is_empty());
    assert_eq!(show.results(), ["User cancelled this action.", "Cancelled"]);
    let left = archon::react_loop::conversation(&show.journal, &outcome.run).await.unwrap();
    assert_eq!(left.iter().last().unwrap().text(), "[Request interrupted by user due to permission denial]");
}

// spec: AP-15
#[tokio::test]
async fn without_an_approver_the_answer_is_no() {
    let done = Done::default();
    let stage =
        Stage::new(trip).with(|b| b.tool(careful("send_email", &done)).tool(careful("book_flight", &done)));
    let (outcome, _) = stage.play("Plan the trip.").await;
    assert!(outcome.is_finished());
    assert!(did(&done).is_empty());
    assert!(outcome.last_text().unwrap_or_default().contains("nobody to ask"), "{outcome:?}");
}

// spec: AP-03, AP-07, A-54
#[tokio::test]
async fn expired_question_is_denied_on_resume() {
    let (done, clock) = (Done::default(), VirtualClock::new());
    let (outcome, show) = stage(&done, &clock, &Person::default()).play("Plan the trip.").await;
    let later = again(&show, &done, &clock, Person::default());
    let open = later.approvals(None).await.unwrap();
    clock.advance(Duration::from_secs(30 * 60 - 1));
    assert_eq!(later.approvals(None).await.unwrap().len(), 2);
    clock.advance(Duration::from_secs(1));
    assert!(later.approvals(None).await.unwrap().is_empty());
    assert!(!later.answer_pending(&open[0], Answer::Approve).await.unwrap(), "too late");
    let outcome = later.resume(outcome.run).await.unwrap().reply().await.ended();
    assert_eq!(
        outcome.status,
        OutcomeStatus::Finished,
        "the time that people take is not the run's: {outcome:?}"
    );
    let text = "Nobody answered in time whether this may be done, so it was cancelled.";
    assert_eq!(outcome.last_text().unwrap_or_default(), format!("{text} / {text}"));
    assert!(did(&done).is_empty());
    assert!(replay(&show.journal, &outcome.run).await.unwrap().is_identical());
}

// spec: AP-07
#[tokio::test]
async fn an_escalated_question_is_put_once_more() {
    let (done, clock) = (Done::default(), VirtualClock::new());
    let mut settings = ApprovalSettings::default();
    settings.on_expiry = OnExpiry::Escalate;
    settings.timeout_ms = 1_000;
    let stage = stage(&done, &clock, &Person::default()).with(|b| b.approval_settings(settings));
    let (outcome, show) = stage.play("Plan the trip.").await;
    clock.advance(Duration::from_secs(1));
    // Asked again, the person is there.
    let person = Person::saying([now(Answer::Approve), now(Answer::Approve)]);
    let later = again(&show, &done, &clock, person.clone());
    let outcome = later.resume(outcome.run).await.unwrap().reply().await.ended();
    assert!(outcome.is_finished());
    assert_eq!(person.seen().len(), 1);
    assert_eq!(did(&done), ["send_email Ann", "book_flight Oslo"]);
}

// spec: AP-11
#[tokio::test]
async fn changed_tool_is_asked_about_again() {
    let (done, clock) = (Done::default(), VirtualClock::new());
    let (outcome, show) = stage(&done, &clock, &Person::default()).play("Plan the trip.").await;
    let first = again(&show, &done, &clock, Person::default());
    for open in first.approvals(None).await.unwrap() {
        assert!(first.answer_pending(&open, Answer::Approve).await.unwrap());
    }
    // The process that takes the run up has another send_email: the yes was not for that.
    let mut annotations = ToolAnnotations::default();
    annotations.requires_confirmation = true;
    let spec = ToolSpec::new("send_email", "Sends.", json!({"type": "object", "properties": {"to": {}}}));
    let noted = done.clone();
    let other = FnTool::new(spec.with_annotations(annotations), move |_: Json, _: ToolContext| {
        noted.lock().unwrap().push("another".to_owned());
        async { Ok(ToolResult::success("sent")) }
    });
    let person = Person::saying([no()]);
    let second = Archon::builder()
        .provider(Arc::new(show.model.clone()), "scripted")
        .tool(other)
        .tool(careful("book_flight", &done))
        .journal(Arc::new(show.journal.clone()))
        .clock(Arc::new(clock.clone()))
        .approver(Arc::new(person.clone()))
        .build()
        .unwrap();
    let outcome = second.resume(outcome.run).await.unwrap().reply().await.ended();
    assert_eq!(did(&done), ["book_flight Oslo"]);
    assert_eq!(person.seen(), [r#"Run send_email with {"to":"Ann"}"#]);
    assert_eq!(outcome.last_text(), Some("User cancelled this action. / book_flight done for Oslo"));
}

// spec: AP-05
#[tokio::test]
async fn calls_without_consent_finish_before_questions_are_asked() {
    let (done, clock) = (Done::default(), VirtualClock::new());
    let person = Person::saying([now(Answer::Approve)]);
    let stage = Stage::new(|n, request| match n {
        0 => FnProvider::calls(vec![
            ToolCall::new("c0", "send_email", json!({"to": "Ann"})),
            ToolCall::new("c1", "calculator", json!({"expression": "2+2"})),
        ]),
        _ => FnProvider::text(&results(request)),
    });
    let stage = stage.with(|b| {
        b.tool(careful("send_email", &done)).clock(Arc::new(clock.clone())).approver(Arc::new(person.clone()))
    });
    let (outcome, show) = stage.play("Both.").await;
    assert_eq!(outcome.last_text(), Some("send_email done for Ann / 4"), "results in the order of the calls");
    let kinds: Vec<String> = show
        .bodies()
        .iter()
        .filter_map(|body| {
            Some(match body {
                RecordBody::ApprovalRequested { call, .. } => format!("asked {call}"),
                RecordBody::ApprovalAnswered { call, .. } => format!("answered {call}"),
                RecordBody::ToolCallStarted { call, .. } => format!("started {call}"),
                RecordBody::ToolCallFinished { call, .. } => format!("finished {call}"),
                _ => return None,
            })
        })
        .collect();
    expect![[r#"
        asked 0.0
        started 0.1
        finished 0.1
        answered 0.0
        started 0.0
        finished 0.0"#]]
    .assert_eq(&kinds.join("\n"));
}

// spec: AP-04
#[tokio::test]
async fn a_reply_is_the_result_of_the_call() {
    let (done, clock) = (Done::default(), VirtualClock::new());
    let reply = Answer::Reply { text: "I wrote to her myself.".to_owned() };
    let person = Person::saying([now(reply), no()]);
    let (outcome, _) = stage(&done, &clock, &person).play("Plan the trip.").await;
    assert_eq!(outcome.last_text(), Some("I wrote to her myself. / User cancelled this action."));
    assert!(did(&done).is_empty());
}

// spec: R-09
#[tokio::test]
async fn steer_into_a_suspended_run_skips_its_questions() {
    let (done, clock) = (Done::default(), VirtualClock::new());
    let (outcome, show) = stage(&done, &clock, &Person::default()).play("Plan the trip.").await;
    let later = again(&show, &done, &clock, Person::default());
    later.steer(&outcome.run, "Stay at home.").await.unwrap();
    let outcome = later.resume(outcome.run).await.unwrap().reply().await.ended();
    let skipped = "Skipped due to queued user message.";
    assert_eq!(outcome.last_text().unwrap_or_default(), format!("{skipped} / {skipped}"));
    assert!(did(&done).is_empty());
}

#[tokio::test]
async fn running_run_applies_an_answer_from_its_inbox() {
    let (done, clock) = (Done::default(), VirtualClock::new());
    // Nobody decides at once, but the answer lies in the inbox before the run has come to rest.
    let show = Arc::new(stage(&done, &clock, &Person::default()).raise());
    let sink = Arc::new(Tells::default());
    let mut options = RunOptions::default();
    options.run = Some("run_1".into());
    options.sink = Some(sink.clone());
    *sink.0.lock().unwrap() = Some(show.clone());
    let outcome = show.agent.run_with("Plan the trip.", options).await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Finished);
    assert_eq!(did(&done), ["send_email Ann", "book_flight Oslo"]);
}

/// Says yes as soon as it sees a question.
#[derive(Default)]
struct Tells(Mutex<Option<Arc<Show>>>);

impl archon::types::Sink for Tells {
    fn emit(&self, event: Event) {
        let Event::Record { run, record } = event else { return };
        let RecordBody::ApprovalRequested { request, .. } = &record.body else { return };
        let show = self.0.lock().unwrap().clone().unwrap();
        let told = request.answered(Answer::Approve);
        let entry = archon::types::InboxEntry::new(request.request_id.clone(), record.at, told);
        let inbox = archon::Journal::inbox(&show.journal).unwrap();
        // The inbox in memory is ready at once.
        let posted = futures_util::FutureExt::now_or_never(inbox.post(&run, entry));
        posted.unwrap().unwrap();
    }
}

// spec: AP-04
#[tokio::test]
async fn one_call_at_a_time_is_enough_for_a_yes() {
    let (done, clock) = (Done::default(), VirtualClock::new());
    let person = Person::saying([now(Answer::Approve)]);
    let stage = Stage::new(|n, request| match n {
        0 => call("c0", "send_email", json!({"to": "Ann"})),
        _ => FnProvider::text(&last(request)),
    });
    let started = clock.now();
    let stage = stage.with(|b| {
        b.tool(careful("send_email", &done)).clock(Arc::new(clock.clone())).approver(Arc::new(person))
    });
    let (outcome, _) = stage.play("Write.").await;
    assert_eq!(outcome.last_text(), Some("send_email done for Ann"));
    assert_eq!(clock.now(), started);
}

static DROPPED: AtomicUsize = AtomicUsize::new(0);

/// Drops a table for good.
#[archon::tool(destructive)]
async fn drop_table(table: String) -> String {
    DROPPED.fetch_add(1, Ordering::SeqCst);
    format!("dropped {table}")
}

// spec: AP-09, AP-15
#[tokio::test]
async fn destructive_tool_needs_approval_by_default() {
    let stage = || {
        let stage = Stage::new(|n, request| match n {
            0 => call("c0", "drop_table", json!({"table": "users"})),
            _ => FnProvider::text(&last(request)),
        });
        stage.with(|b| b.tool(drop_table))
    };
    let (refused, _) = stage().play("Tidy up.").await;
    assert!(refused.last_text().unwrap_or_default().contains("there is nobody to ask"), "{refused:?}");
    let (waits, _) = stage().with(|b| b.approver(Arc::new(AskLater))).play("Tidy up.").await;
    assert_eq!(waits.status, OutcomeStatus::Suspended);
    assert_eq!(DROPPED.load(Ordering::SeqCst), 0);
    let person = Person::saying([now(Answer::Approve)]);
    let (agreed, _) = stage().with(|b| b.approver(Arc::new(person))).play("Tidy up.").await;
    assert_eq!(
        (agreed.last_text().unwrap_or_default(), DROPPED.load(Ordering::SeqCst)),
        ("dropped users", 1)
    );
}

// spec: AP-05
#[tokio::test]
async fn answer_with_an_old_binding_is_ignored() {
    let (done, clock) = (Done::default(), VirtualClock::new());
    let stage = Stage::new(|n, request| match n {
        0 => call("c0", "send_email", json!({"to": "Ann"})),
        _ => FnProvider::text(&last(request)),
    });
    let stage = stage.with(|b| b.tool(careful("send_email", &done)).approver(Arc::new(AskLater)));
    let (outcome, show) = stage.play("Write.").await;
    let mut pending = show.agent.approvals(None).await.unwrap().remove(0);
    pending.request.binding = "something else".to_owned();
    assert!(show.agent.answer_pending(&pending, Answer::Approve).await.unwrap());
    let resumed = again(&show, &done, &clock, Person::default()).resume(outcome.run).await.unwrap();
    assert_eq!(resumed.reply().await.ended().status, OutcomeStatus::Suspended);
    assert!(did(&done).is_empty());
}
