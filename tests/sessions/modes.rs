//! The modes of a session: what plan mode refuses, how it ends, and which edits need no question.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use archon::{
    Archon, ArchonBuilder, Journal, OutcomeStatus, RunError, RunId, Runs, SessionId, SubAgentTool,
    ToolContext,
    planner::ScriptedPlanner,
    react_loop::{History, Machine as _, Next, fold, replay},
    store::InMemoryJournal,
    tools::{EngineOptions, FnTool, Workspace, builtin},
    types::{
        Answer, AnswerRuns, AskLater, InboxEntry, InboxRequest, Json, Message, ModeSource, Record,
        RecordBody, Request, RunFilter, RunKind, SessionMode, StartRun, StartRuns, SubTask, Timestamp,
        ToolAnnotations, ToolCall, ToolResult, ToolSpec,
    },
};
use archon_testkit::{Ended, FnProvider};
use serde_json::json;

use crate::shared::stage::Answer as Answered;

struct Desk {
    runs: Runs,
    journal: InMemoryJournal,
    model: FnProvider,
    /// How often the tool `change` changed something.
    changes: Arc<AtomicUsize>,
}

fn desk(
    model: impl Fn(usize, &Request) -> Answered + Send + Sync + 'static,
    with: impl FnOnce(ArchonBuilder) -> ArchonBuilder,
) -> Desk {
    let (journal, model, changes) = (InMemoryJournal::new(), FnProvider::new(model), Arc::default());
    let builder = Archon::builder()
        .provider(Arc::new(model.clone()), "scripted")
        .tool(change(&changes))
        .tool(builtin::FinishPlan::new())
        .approver(Arc::new(AskLater))
        .journal(Arc::new(journal.clone()));
    let archon = with(builder).build().unwrap();
    let planning = archon.planning(Arc::new(ScriptedPlanner::new(vec![SubTask::new("one", "Step")])));
    let runs = Runs::new(archon).with_agent(planning.run_agent());
    Desk { runs, journal, model, changes }
}

type Changed = std::future::Ready<Result<ToolResult, archon::ToolError>>;

/// A tool that changes something.
fn change(changes: &Arc<AtomicUsize>) -> FnTool<impl Fn(Json, ToolContext) -> Changed + use<>> {
    let changes = changes.clone();
    let spec = ToolSpec::new("change", "Changes something.", json!({"type": "object"}));
    FnTool::new(spec, move |_: Json, _: ToolContext| -> Changed {
        changes.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Ok(ToolResult::success("changed")))
    })
}

fn call(name: &str, arguments: Json) -> Answered {
    FnProvider::calls(vec![ToolCall::new("c", name, arguments)])
}

fn last_text(request: &Request) -> String {
    request.messages.iter().last().map(|message| message.text()).unwrap_or_default()
}

impl Desk {
    async fn say(&self, request: StartRun) -> (RunId, OutcomeStatus) {
        let started = self.runs.start(request).await.unwrap();
        (started.run.clone(), self.status(&started.run).await)
    }

    async fn status(&self, run: &RunId) -> OutcomeStatus {
        self.runs.reply(run).await.ended().status
    }

    /// Answers the only open question, and returns its summary.
    async fn answer(&self, answer: Answer) -> String {
        let [open] = self.runs.questions(None).await.unwrap().try_into().unwrap();
        assert!(self.runs.answer(&open.request.request_id, answer).await.unwrap());
        open.request.action_summary.clone()
    }

    /// The changes of the mode in the log of a run.
    async fn modes(&self, run: &RunId) -> Vec<(SessionMode, ModeSource)> {
        let changed = |body: &RecordBody| match body {
            RecordBody::ModeChanged { mode, source } => Some((*mode, *source)),
            _ => None,
        };
        self.journal.read(run).await.unwrap().iter().filter_map(|record| changed(&record.body)).collect()
    }

    /// The texts of the refused calls of a run.
    async fn refusals(&self, run: &RunId) -> Vec<String> {
        let refused = |body: &RecordBody| match body {
            RecordBody::ToolCallRefused { result, .. } => Some(result.text()),
            _ => None,
        };
        self.journal.read(run).await.unwrap().iter().filter_map(|record| refused(&record.body)).collect()
    }
}

fn plan_of(text: &str) -> Answered {
    call("finish_plan", json!({ "plan": text }))
}

#[tokio::test]
async fn plan_mode_refuses_changes_and_ends_with_a_plan_that_a_person_agreed_to() {
    let model = |n, _: &Request| match n {
        0 | 3 => call("change", json!({})),
        1 => plan_of("Change all."),
        2 => plan_of("Change a part."),
        _ => FnProvider::text("done"),
    };
    let desk = desk(model, |builder| builder);
    let (run, status) = desk.say(StartRun::new("mend it").session("s").mode(SessionMode::Plan)).await;
    assert_eq!((status, desk.changes.load(Ordering::SeqCst)), (OutcomeStatus::Suspended, 0));
    let refused = &desk.refusals(&run).await[0];
    assert!(refused.contains("plan mode") && refused.contains("call finish_plan"), "{refused}");
    let no = Answer::Cancel { reason: "a part is enough".into() };
    assert_eq!(desk.answer(no).await, "Carry out this plan:\nChange all.");
    assert_eq!(desk.status(&run).await, OutcomeStatus::Suspended);
    assert!(desk.refusals(&run).await[1].contains("a part is enough"));
    assert_eq!(desk.answer(Answer::Approve).await, "Carry out this plan:\nChange a part.");
    assert_eq!(desk.status(&run).await, OutcomeStatus::Finished);
    assert_eq!(desk.changes.load(Ordering::SeqCst), 1);
    let expected = [(SessionMode::Plan, ModeSource::Person), (SessionMode::Ask, ModeSource::AgreedPlan)];
    assert_eq!(desk.modes(&run).await, expected);
    assert!(replay(&desk.journal, &run).await.unwrap().is_identical());
    let requests = desk.model.requests();
    assert!(
        last_text(&requests[0]).starts_with("[The session is in plan mode now"),
        "{}",
        last_text(&requests[0])
    );
    assert!(requests.iter().all(|request| request.tools == requests[0].tools), "the tools stay");
}

#[tokio::test]
async fn mode_that_a_person_sets_before_agreeing_to_the_plan_stays() {
    let model = |n, _: &Request| if n == 0 { plan_of("Change it.") } else { FnProvider::text("done") };
    let desk = desk(model, |builder| builder);
    let (run, _) = desk.say(StartRun::new("mend it").session("s").mode(SessionMode::Plan)).await;
    desk.runs.set_mode(&SessionId::new("s"), None, SessionMode::AcceptEdits).await.unwrap();
    desk.answer(Answer::Approve).await;
    assert_eq!(desk.status(&run).await, OutcomeStatus::Finished);
    let by_person = |mode| (mode, ModeSource::Person);
    let expected = [SessionMode::Plan, SessionMode::AcceptEdits].map(by_person);
    assert_eq!(desk.modes(&run).await, expected);
    assert_eq!(desk.refusals(&run).await, Vec::<String>::new());
}

#[tokio::test]
async fn finish_plan_outside_of_plan_mode_is_refused_without_a_question() {
    let model = |n, _: &Request| if n == 0 { plan_of("Change it.") } else { FnProvider::text("done") };
    let desk = desk(model, |builder| builder);
    let (run, status) = desk.say(StartRun::new("mend it")).await;
    assert_eq!(status, OutcomeStatus::Finished);
    assert!(desk.refusals(&run).await[0].contains("the session is not in plan mode"));
    assert_eq!(desk.modes(&run).await, []);
}

#[tokio::test]
async fn accepted_edits_need_no_question_unless_they_change_what_starts_programs() {
    let dir = tempfile::tempdir().unwrap();
    let workspace = Workspace::new(dir.path()).unwrap();
    let model = |_, request: &Request| match request.messages.iter().last().map(|last| &**last) {
        Some(Message::User(_)) => call("write_file", json!({ "path": last_text(request), "content": "x" })),
        _ => FnProvider::text("done"),
    };
    let options = EngineOptions::default().granting(["fs_write"]);
    let desk = desk(model, |b| b.tools(builtin::file_tools(&workspace)).engine_options(options));
    let asks = async |path: &str, session: &str| {
        let (run, status) = desk.say(StartRun::new(path).session(session)).await;
        if status == OutcomeStatus::Suspended {
            desk.answer(Answer::Cancel { reason: "not now".into() }).await;
            assert_eq!(desk.status(&run).await, OutcomeStatus::Finished);
        }
        status == OutcomeStatus::Suspended
    };
    assert!(asks("a.txt", "s").await);
    desk.runs.set_mode(&SessionId::new("s"), None, SessionMode::AcceptEdits).await.unwrap();
    assert!(!asks("a.txt", "s").await);
    assert_eq!(std::fs::read_to_string(dir.path().join("a.txt")).unwrap(), "x");
    assert!(asks(".github/workflows/a.yml", "s").await);
    assert!(!asks("b.txt", "s").await, "the mode stays");
    assert!(asks("c.txt", "t").await, "another session has its own mode");
}

#[tokio::test]
async fn mode_that_is_set_during_a_run_applies_from_the_next_call_on_and_stays_for_the_session() {
    let service: Arc<OnceLock<Runs>> = Arc::default();
    let own = service.clone();
    let spec = ToolSpec::new("look", "Looks.", json!({"type": "object"}));
    let look = FnTool::new(spec.with_annotations(reads_alone()), move |_: Json, context: ToolContext| {
        let own = own.clone();
        async move {
            let runs = own.get().unwrap();
            runs.set_mode(&context.run.session, None, SessionMode::Plan).await.unwrap();
            Ok(ToolResult::success("seen"))
        }
    });
    let model = |_, request: &Request| match last_text(request).as_str() {
        "first" => {
            let call = |id: &str, name: &str| ToolCall::new(id, name, json!({}));
            FnProvider::calls(vec![call("c1", "look"), call("c2", "change")])
        }
        "second" | "third" => call("change", json!({})),
        text if text.starts_with("[The session has left plan mode") => call("change", json!({})),
        _ => FnProvider::text("done"),
    };
    let desk = desk(model, |builder| builder.tool(look));
    let _ = service.set(desk.runs.clone());
    let session = SessionId::new("s");
    for (text, changes) in [("first", 0), ("second", 0), ("third", 1)] {
        if text == "third" {
            desk.runs.set_mode(&session, None, SessionMode::Ask).await.unwrap();
        }
        let (run, status) = desk.say(StartRun::new(text).session(session.clone())).await;
        assert_eq!(
            (status, desk.changes.load(Ordering::SeqCst)),
            (OutcomeStatus::Finished, changes),
            "{text}"
        );
        assert_eq!(desk.refusals(&run).await.len(), 1 - changes, "{text}");
        assert!(replay(&desk.journal, &run).await.unwrap().is_identical(), "{text}");
    }
}

/// Reads, and only one at a time, so that the next call starts after it.
fn reads_alone() -> ToolAnnotations {
    let mut annotations = ToolAnnotations::read_only();
    annotations.concurrency_safe = false;
    annotations
}

#[tokio::test]
async fn plan_mode_also_applies_to_the_agents_that_a_run_calls() {
    let changes: Arc<AtomicUsize> = Arc::default();
    let worker_model = FnProvider::new(|n, _| match n {
        0 => call("change", json!({})),
        1 => plan_of("Change it."),
        _ => FnProvider::text("tried"),
    });
    let worker = Archon::builder()
        .provider(Arc::new(worker_model.clone()), "scripted")
        .name("worker")
        .tool(change(&changes))
        .tool(builtin::FinishPlan::new())
        .journal(Arc::new(InMemoryJournal::new()))
        .build()
        .unwrap();
    let model = |n, _: &Request| match n {
        0 => call("worker", json!({ "task": "change it" })),
        _ => FnProvider::text("done"),
    };
    let desk = desk(model, |builder| builder.tool(SubAgentTool::new("worker", worker)));
    let (run, status) = desk.say(StartRun::new("mend it").mode(SessionMode::Plan)).await;
    assert_eq!((status, changes.load(Ordering::SeqCst)), (OutcomeStatus::Finished, 0));
    assert_eq!(desk.refusals(&run).await, Vec::<String>::new());
    let below = RunId::new(format!("{run}.0-0"));
    let refusals = desk.refusals(&below).await;
    assert!(refusals[0].contains("plan mode") && refusals[0].contains("as your answer"), "{refusals:?}");
    assert!(refusals[1].contains("another agent called you"), "{refusals:?}");
    let hint = last_text(&worker_model.requests()[0]);
    assert!(
        hint.starts_with("[The session is in plan mode now") && hint.contains("as your answer"),
        "{hint}"
    );
    assert!(replay(&desk.journal, &below).await.unwrap().is_identical());
}

#[tokio::test]
async fn mode_that_is_set_while_a_called_agent_works_applies_to_its_next_call() {
    let changes: Arc<AtomicUsize> = Arc::default();
    let service: Arc<OnceLock<Runs>> = Arc::default();
    let own = service.clone();
    let spec = ToolSpec::new("look", "Looks.", json!({"type": "object"}));
    let look = FnTool::new(spec.with_annotations(reads_alone()), move |_: Json, context: ToolContext| {
        let own = own.clone();
        async move {
            own.get().unwrap().set_mode(&SessionId::new("s"), None, SessionMode::Plan).await.unwrap();
            // The run of the session reads its inbox while this call is under way.
            for _ in 0..1_000 {
                if context.run.mode.get() == SessionMode::Plan {
                    break;
                }
                tokio::task::yield_now().await;
            }
            Ok(ToolResult::success("seen"))
        }
    });
    let worker = FnProvider::new(|n, _| match n {
        0 => call("look", json!({})),
        1 => call("change", json!({})),
        _ => FnProvider::text("tried"),
    });
    let worker = Archon::builder()
        .provider(Arc::new(worker), "scripted")
        .name("worker")
        .tool(look)
        .tool(change(&changes))
        .journal(Arc::new(InMemoryJournal::new()))
        .build()
        .unwrap();
    let model = |n, _: &Request| match n {
        0 => call("worker", json!({ "task": "change it" })),
        _ => FnProvider::text("done"),
    };
    let desk = desk(model, |builder| builder.tool(SubAgentTool::new("worker", worker)));
    let _ = service.set(desk.runs.clone());
    let (run, status) = desk.say(StartRun::new("mend it").session("s")).await;
    assert_eq!((status, changes.load(Ordering::SeqCst)), (OutcomeStatus::Finished, 0));
    assert!(desk.refusals(&RunId::new(format!("{run}.0-0"))).await[0].contains("plan mode"));
    assert_eq!(desk.modes(&run).await, [(SessionMode::Plan, ModeSource::Person)]);
}

// spec: CL-03
#[tokio::test]
async fn agent_whose_calls_a_person_chose_changes_something_in_a_session_in_plan_mode() {
    let journal = InMemoryJournal::new();
    let changes: Arc<AtomicUsize> = Arc::default();
    let agent = |id: &str, options: EngineOptions| {
        let model = FnProvider::new(|n, _| match n {
            0 => call("change", json!({})),
            _ => FnProvider::text("done"),
        });
        Archon::builder()
            .provider(Arc::new(model), "scripted")
            .agent_id(id)
            .tool(change(&changes))
            .engine_options(options)
            .journal(Arc::new(journal.clone()))
            .build()
            .unwrap()
    };
    let lines = agent("person", EngineOptions::default().without_plan_mode());
    let runs = Runs::new(agent("model", EngineOptions::default())).with_agent(lines.run_agent());
    let look = StartRun::new("mend it").session("s").mode(SessionMode::Plan);
    for (request, expected) in [(look, 0), (StartRun::new("line").session("s").agent("person"), 1)] {
        let started = runs.start(request).await.unwrap();
        assert_eq!(runs.reply(&started.run).await.ended().status, OutcomeStatus::Finished);
        assert_eq!(changes.load(Ordering::SeqCst), expected);
    }
    assert_eq!(runs.mode(&SessionId::new("s"), None).await.unwrap(), SessionMode::Plan);
}

#[tokio::test]
async fn mode_of_a_session_stays_when_the_session_goes_back() {
    let desk = desk(|_, _: &Request| FnProvider::text("done"), |builder| builder);
    let session = SessionId::new("s");
    assert_eq!(desk.runs.mode(&session, None).await.unwrap(), SessionMode::Ask);
    let (first, _) = desk.say(StartRun::new("one").session(session.clone())).await;
    desk.runs.set_mode(&session, None, SessionMode::Plan).await.unwrap();
    assert_eq!(desk.runs.mode(&session, None).await.unwrap(), SessionMode::Plan);
    desk.say(StartRun::new("two").session(session.clone())).await;
    let place = desk.runs.earlier_messages(&session, None).await.unwrap().remove(0).place;
    assert_eq!(place.run, first);
    let (run, _) = desk.say(StartRun::new("other").instead_of(place)).await;
    assert_eq!(desk.modes(&run).await, [(SessionMode::Plan, ModeSource::Person)]);
    // A run without a change has no record of the mode, but still the mode.
    let (run, _) = desk.say(StartRun::new("more").session(session.clone())).await;
    assert_eq!(desk.modes(&run).await, []);
    assert_eq!(desk.runs.mode(&session, None).await.unwrap(), SessionMode::Plan);
}

#[tokio::test]
async fn fold_of_a_log_whose_mode_hint_has_other_words_keeps_the_hint() {
    let desk = desk(|_, _: &Request| FnProvider::text("done"), |builder| builder);
    let (run, _) = desk.say(StartRun::new("look").mode(SessionMode::Plan)).await;
    let mut log = desk.journal.read(&run).await.unwrap();
    let is_hint = |record: &Arc<Record>| matches!(record.body, RecordBody::HintAdded { .. });
    let hint = log.iter().position(is_hint).unwrap();
    log.truncate(hint + 1);
    Arc::make_mut(&mut log[hint]).body = RecordBody::HintAdded { text: "Only look.".to_owned() };
    let machine = fold(&run, &log, History::default()).unwrap();
    assert_eq!(last_text(&machine.request()), "Only look.");
    assert!(!matches!(machine.next(), Next::Append(RecordBody::HintAdded { .. })), "{:?}", machine.next());
}

#[tokio::test]
async fn start_of_a_plan_in_a_session_in_plan_mode_is_refused() {
    let desk = desk(|_, _: &Request| FnProvider::text("done"), |builder| builder);
    let session = SessionId::new("s");
    let plan = || StartRun::new("mend it").session(session.clone()).kind(RunKind::Plan);
    let check = async || match desk.runs.start(plan()).await {
        Err(error @ RunError::PlanMode { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    desk.say(StartRun::new("look").session(session.clone()).mode(SessionMode::Plan)).await;
    assert_eq!(check().await, "session s is in plan mode, and a run of kind plan cannot start in it");
    desk.runs.set_mode(&session, None, SessionMode::Ask).await.unwrap();
    assert_eq!(desk.say(plan()).await.1, OutcomeStatus::Finished);
    // The mode waits for the next run.
    desk.runs.set_mode(&session, None, SessionMode::Plan).await.unwrap();
    check().await;
}

#[tokio::test]
async fn unread_messages_of_a_plan_begin_a_plan_or_in_plan_mode_a_loop() {
    for (mode, expected, next) in [
        (SessionMode::AcceptEdits, RunKind::Plan, RunKind::Loop),
        (SessionMode::Plan, RunKind::Loop, RunKind::Plan),
    ] {
        let desk = desk(|_, _: &Request| FnProvider::text("done"), |builder| builder);
        let session = SessionId::new("s");
        let (first, status) = desk.say(StartRun::new("mend it").session("s").kind(RunKind::Plan)).await;
        assert_eq!(status, OutcomeStatus::Finished);
        desk.runs.set_mode(&session, None, mode).await.unwrap();
        let request = InboxRequest::FollowUp { message: "and that".into() };
        let entry = InboxEntry::new("unread", Timestamp::default(), request);
        desk.journal.inbox().unwrap().post(&first, entry).await.unwrap();
        // Whether this message is refused depends on how fast the other one is read.
        let _ = desk.runs.start(StartRun::new("next").session("s").kind(next)).await;
        let is_begun = async || {
            let heads = desk.runs.list(&RunFilter::of_session(session.clone()).top_level()).await.unwrap();
            heads.iter().any(|head| head.kind == Some(expected) && head.run_id != first)
                && desk.runs.mode(&session, None).await.unwrap() == mode
        };
        for _ in 0..100_000 {
            if is_begun().await {
                break;
            }
            tokio::task::yield_now().await;
        }
        assert!(is_begun().await, "{mode:?}");
    }
}
