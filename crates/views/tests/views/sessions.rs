//! Sessions: from events that are interleaved, and from the logs of a journal.

use std::sync::Arc;

use archon_types::{
    BoxFuture, CallId, CommandId, ContinuationKind, Effect, Journal, JournalError, LoopId, Message, OpenMode,
    OpenRun, Origin, OutcomeStatus, PromptSource, Record, RecordBody, RunFilter, RunHead, RunId, RunStarted,
    SessionId, ToolCall, ToolResult, Usage,
};
use archon_views::{
    AgentEvent, LoopStatus, Session, SessionFormation, SessionFormationPolicy, SessionRecorder,
    SessionRecorderConfig, SessionState, StreamDelta, restore_messages, save_messages,
};
use expect_test::expect;
use serde_json::json;

use crate::{
    samples::{answered, ended, finished, model_call_started, prompted, started, usage},
    support::{at, names, ready, round_trip, transitions},
};

/// A start of a loop in session `s`, at a second.
fn start(loop_id: &str, parent: Option<&str>, seconds: u64) -> AgentEvent {
    start_in("s", loop_id, parent, parent.map(|_| ContinuationKind::Default), seconds)
}

fn start_in(
    session: &str,
    loop_id: &str,
    parent: Option<&str>,
    continuation_kind: Option<ContinuationKind>,
    seconds: u64,
) -> AgentEvent {
    AgentEvent::AgentStart {
        agent_id: "agent_1".into(),
        session_id: session.into(),
        loop_id: loop_id.into(),
        run_id: Some(format!("run_{loop_id}").into()),
        parent_loop_id: parent.map(|parent| format!("run_{parent}").into()),
        continuation_kind,
        timestamp: at(seconds * 1000),
        metadata: None,
    }
}

fn says(loop_id: &str, text: &str) -> AgentEvent {
    AgentEvent::MessageEnd { loop_id: loop_id.into(), message: Message::user(text, at(0)).into() }
}

fn end(loop_id: &str, texts: &[&str], seconds: u64) -> AgentEvent {
    AgentEvent::AgentEnd {
        loop_id: loop_id.into(),
        messages: texts.iter().map(|text| Message::user(*text, at(0)).into()).collect(),
        usage: usage(),
        timestamp: at(seconds * 1000),
        rejection: None,
    }
}

fn recorded(config: SessionRecorderConfig, events: &[AgentEvent]) -> SessionRecorder {
    let mut recorder = SessionRecorder::new(config);
    events.iter().for_each(|event| recorder.on_event(event));
    recorder
}

fn texts(messages: &[archon_types::AgentMessage]) -> Vec<String> {
    messages.iter().map(|m| m.as_llm().map(Message::text).unwrap_or_default()).collect()
}

fn ids<'a>(loops: impl Iterator<Item = &'a archon_views::LoopRecord>) -> Vec<&'a str> {
    loops.map(|l| l.loop_id.as_str()).collect()
}

// spec: S-06, S-01
#[test]
fn interleaved_events_go_to_their_own_loops() {
    let events = [
        start("a", None, 0),
        start("b", Some("a"), 1),
        says("a", "draft of a"),
        start("c", Some("a"), 2),
        says("b", "of b"),
        end("c", &["of c"], 3),
        end("a", &["of a"], 4),
        says("nobody", "lost"),
    ];
    let mut recorder = recorded(SessionRecorderConfig::default(), &events);
    assert!(recorder.current_loop(&"a".into()).is_none(), "it has ended");
    assert_eq!(texts(&recorder.current_loop(&"b".into()).unwrap().messages), ["of b"]);
    assert!(recorder.clone().drain_completed().is_empty(), "a loop is open");

    let session = recorder.get_session(&"s".into()).unwrap();
    assert_eq!(ids(session.root_loops()), ["a"]);
    assert_eq!(ids(session.children_of(&"a".into())), ["b", "c"]);
    let a = session.get_loop(&"a".into()).unwrap();
    assert_eq!((a.status, texts(&a.messages)), (LoopStatus::Completed, vec!["of a".to_owned()]));
    assert_eq!(a.children_loop_ids, ["b".into(), "c".into()]);
    assert_eq!(session.total_usage().total(), 2 * usage().total());
    assert_eq!((session.created_at, session.last_active_at), (at(0), at(4000)));
    assert_eq!(session.formation, SessionFormation::FirstLoop);
    assert_eq!(texts(&session.history(&"c".into())), ["of a", "of c"]);

    recorder.flush();
    let drained = recorder.drain_completed();
    assert_eq!(drained[0].get_loop(&"b".into()).unwrap().status, LoopStatus::Aborted);
    assert_eq!(recorder.sessions().len(), 0);
}

// spec: S-07
#[test]
fn session_recorder_stores_deltas_only_if_configured() {
    let piece =
        AgentEvent::MessageUpdate { loop_id: "a".into(), delta: StreamDelta::Text { delta: "x".into() } };
    let events = [start("a", None, 0), piece, end("a", &[], 1)];
    let kept = |config| {
        let recorder = recorded(config, &events);
        let events = &recorder.get_session(&"s".into()).unwrap().loops[0].events;
        events.iter().map(|e| e.sequence).collect::<Vec<_>>()
    };
    let mut config = SessionRecorderConfig::default();
    assert_eq!(kept(config), [0, 2]);
    config.include_streaming_events = true;
    assert_eq!(kept(config), [0, 1, 2]);
}

// spec: S-07
#[test]
fn a_session_that_was_idle_for_too_long_ends() {
    let events = [
        start("a", None, 0),
        end("a", &[], 10),
        start("b", Some("a"), 40),
        end("b", &[], 50),
        start("c", Some("b"), 81),
        end("c", &[], 90),
        start("d", Some("c"), 100),
    ];
    let sessions = |formation_policy| {
        let mut config = SessionRecorderConfig::default();
        config.formation_policy = formation_policy;
        let recorder = recorded(config, &events);
        let list = recorder
            .sessions()
            .map(|s| format!("{} {:?} {:?}", s.session_id, s.formation, ids(s.loops.iter())));
        list.collect::<Vec<_>>().join("; ")
    };
    assert_eq!(sessions(SessionFormationPolicy::PerSessionId), r#"s FirstLoop ["a", "b", "c", "d"]"#);
    assert_eq!(
        sessions(SessionFormationPolicy::InactivityTimeout { secs: 30 }),
        r#"s FirstLoop ["a", "b"]; s.2 InactivityTimeout { secs: 30 } ["c", "d"]"#
    );
}

// spec: S-05
#[test]
fn session_parallel_siblings_name_the_selected_loop() {
    let branches: Vec<LoopId> = vec!["b0".into(), "b1".into()];
    let events = [
        AgentEvent::ParallelLoopStart {
            session_id: "s".into(),
            loop_ids: branches.clone(),
            timestamp: at(0),
        },
        start("b0", None, 0),
        start("b1", None, 0),
        end("b1", &[], 1),
        end("b0", &[], 2),
        AgentEvent::ParallelLoopEnd {
            session_id: "s".into(),
            selected_loop_id: "b1".into(),
            selected_config_index: 1,
            evaluation_usage: usage(),
            timestamp: at(3000),
        },
        start("other", None, 4),
    ];
    let recorder = recorded(SessionRecorderConfig::default(), &events);
    let session = recorder.get_session(&"s".into()).unwrap();
    let groups = session.loops.iter().filter_map(|l| l.parallel_group.as_ref());
    let groups: Vec<_> = groups.map(|g| (&g.all_loop_ids, g.selected_config_index, g.is_selected)).collect();
    assert_eq!(groups, [(&branches, 1, false), (&branches, 1, true)]);
    assert_eq!(ids(session.parallel_siblings(&"b0".into())), ["b1"]);
    assert_eq!(ids(session.parallel_siblings(&"other".into())), [""; 0]);
}

fn calls(loop_id: &str, child: &str) -> AgentEvent {
    AgentEvent::ToolExecutionEnd {
        loop_id: loop_id.into(),
        tool_call_id: "c1".into(),
        tool_name: "delegate".into(),
        result: ToolResult::success("done"),
        is_error: false,
        child_loop_id: Some(format!("run_{child}").into()),
    }
}

// spec: S-04
#[test]
fn session_caller_and_child_loops_refer_to_each_other() {
    let child = [start_in("t", "sub", Some("a"), None, 1), end("sub", &[], 2)];
    let live = [vec![start("a", None, 0)], child.to_vec(), vec![calls("a", "sub")]].concat();
    // From logs, one loop comes after the other.
    let one_by_one = [vec![start("a", None, 0), calls("a", "sub")], child.to_vec()].concat();
    for events in [live, one_by_one] {
        let recorder = recorded(SessionRecorderConfig::default(), &events);
        let (caller, called) =
            (recorder.get_session(&"s".into()).unwrap(), recorder.get_session(&"t".into()).unwrap());
        let link = &caller.loops[0].child_loop_refs;
        assert_eq!(
            serde_json::to_value(link).unwrap(),
            json!([{"tool_call_id": "c1", "tool_name": "delegate", "child_loop_id": "sub", "child_session_id": "t"}])
        );
        assert_eq!(
            serde_json::to_value(&called.parent_spawn_ref).unwrap(),
            json!({"parent_session_id": "s", "parent_loop_id": "a", "tool_call_id": "c1", "tool_name": "delegate"})
        );
        assert_eq!(called.loops[0].parent_loop_id, Some("a".into()));
    }
}

// spec: S-02, S-03
#[test]
fn the_shape_of_a_session() {
    let mut rejected = end("a", &["hi"], 1);
    if let AgentEvent::AgentEnd { rejection, .. } = &mut rejected {
        *rejection = Some("no".into());
    }
    let recorder = recorded(SessionRecorderConfig::default(), &[start("a", None, 0), rejected]);
    let mut session = recorder.get_session(&"s".into()).unwrap().clone();
    session.loops[0].events.clear();
    round_trip(
        &session,
        &expect![[
            r#"{"session_id":"s","agent_id":"agent_1","created_at":"1970-01-01T00:00:00.000Z","last_active_at":"1970-01-01T00:00:01.000Z","formation":"FirstLoop","loops":[{"loop_id":"a","run_id":"run_a","session_id":"s","agent_id":"agent_1","started_at":"1970-01-01T00:00:00.000Z","ended_at":"1970-01-01T00:00:01.000Z","status":"Rejected","rejection":"no","messages":[{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":0}],"usage":{"input":10,"output":5,"cache_read":30,"cache_write":0,"total_tokens":45},"events":[],"children_loop_ids":[],"child_loop_refs":[]}]}"#
        ]],
    );
    use LoopStatus::{Aborted, Completed, Pending, Rejected, Running};
    names(&[Pending, Running, Completed, Rejected, Aborted], "Pending Running Completed Rejected Aborted");
}

// spec: S-11
#[test]
fn messages_are_saved_and_restored() {
    let messages = vec![Message::user("one", at(1)).into(), Message::user("two", at(2)).into()];
    assert_eq!(restore_messages(&save_messages(&messages).unwrap()).unwrap(), messages);
    assert!(restore_messages("{}").is_err());
}

// spec: S-13
#[test]
fn states_of_saving() {
    use SessionState::{NoSession, Saved, Saving, SessionActive};
    let all = [NoSession, SessionActive, Saving, Saved];
    names(&all, "NO_SESSION SESSION_ACTIVE SAVING SAVED");
    transitions(
        &all,
        SessionState::may_become,
        &expect![[r#"
            NoSession -> SessionActive
            SessionActive -> Saving
            Saving -> SessionActive Saved
            Saved -> Saving
        "#]],
    );
}

/// Logs that can be read.
struct Logs(Vec<(RunStarted, Vec<Arc<Record>>)>);

impl Logs {
    fn add(&mut self, run: &str, session: &str, origin: Origin, bodies: Vec<RecordBody>) {
        let mut start = started();
        // Both runs that go on from the first are its second loop.
        let n = if matches!(origin, Origin::Continues { .. }) { 2 } else { 1 };
        start.loop_id = format!("{session}.model.{n}").into();
        (start.run, start.session, start.origin) = (run.into(), session.into(), origin);
        let first = at(self.0.len() as u64 * 1000);
        let bodies = std::iter::once(RecordBody::RunStarted(Box::new(start.clone()))).chain(bodies);
        let records = (0..)
            .zip(bodies)
            .map(|(seq, body)| Arc::new(Record { seq, at: at(first.as_millis() + seq), body }));
        self.0.push((start, records.collect()));
    }
}

impl Journal for Logs {
    fn open<'a>(&'a self, _: &'a RunId, _: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        panic!("nobody writes")
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        let log = self.0.iter().find(|(started, _)| started.run == *run);
        let log =
            log.map(|(_, log)| log.clone()).ok_or_else(|| JournalError::UnknownRun { run: run.clone() });
        Box::pin(async { log })
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        let heads = self.0.iter().map(|(started, log)| RunHead::of(started.run.clone(), log)).collect();
        Box::pin(async { Ok(filter.page(heads)) })
    }
}

// spec: S-01, S-02, S-03, S-04, S-14
#[test]
fn a_session_is_a_fold_over_the_logs_of_its_runs() {
    let ask = |text: &str| prompted(text, PromptSource::Prompt);
    let talk = |text: &str| {
        vec![ask(text), model_call_started(0, 0), answered(0, vec!["ok".into()]), finished("ok")]
    };
    let after = |run: &str, continuation| Origin::Continues { run: run.into(), records: 5, continuation };
    let call = CallId::new(CommandId(0), 0);
    let mut result = ToolResult::success("done");
    result.child_run = Some("child".into());
    let mut logs = Logs(Vec::new());
    logs.add("one", "s", Origin::Prompt, talk("first"));
    let delegates = vec![
        ask("second"),
        model_call_started(0, 0),
        answered(0, vec![ToolCall::new("c9", "delegate", json!({})).into()]),
        RecordBody::ToolCallStarted {
            call,
            attempt: 0,
            effect: Effect::ReadOnly,
            child_run: Some("child".into()),
        },
        RecordBody::ToolCallFinished { call, result: Arc::new(result) },
        ended(OutcomeStatus::Cancelled, None),
    ];
    logs.add("two", "s", after("one", ContinuationKind::Default), delegates);
    logs.add("child", "t", Origin::CalledBy { run: "two".into(), call }, talk("task"));
    let branch = ContinuationKind::Branch { tag: "now".into() };
    logs.add("fork", "s", after("one", branch.clone()), vec![ask("another way"), model_call_started(0, 0)]);

    let session = ready(Session::read(&logs, &SessionId::new("s"))).unwrap().unwrap();
    let all = session.loops.iter();
    let seen: Vec<_> = all.map(|l| (l.run_id.as_ref().unwrap().as_str(), l.status)).collect();
    use LoopStatus::{Aborted, Completed, Running};
    assert_eq!(seen, [("one", Completed), ("two", Aborted), ("fork", Running)]);
    let [one, two, fork] = &session.loops[..] else { panic!("three loops") };
    assert_eq!((two.loop_id.as_str(), fork.loop_id.as_str()), ("s.model.2", "s.model.2.fork"));
    assert_eq!(ids(session.children_of(&one.loop_id)), [two.loop_id.as_str(), fork.loop_id.as_str()]);
    assert_eq!(ids(session.root_loops()), [one.loop_id.as_str()]);
    assert_eq!(fork.continuation_kind, Some(branch));
    assert_eq!(texts(&session.history(&fork.loop_id)), ["first", "ok", "another way"]);
    assert_eq!(one.config.as_ref().unwrap().model, "test-1");
    assert_eq!(two.child_loop_refs[0].child_session_id, "t".into());

    let child = ready(Session::read(&logs, &SessionId::new("t"))).unwrap().unwrap();
    let spawn = child.parent_spawn_ref.as_ref().unwrap();
    assert_eq!((spawn.tool_call_id.as_str(), &spawn.parent_loop_id), ("c9", &two.loop_id));
    assert_eq!(child.total_usage(), Usage { total_tokens: 45, ..usage() });
    assert!(ready(Session::read(&logs, &SessionId::new("none"))).unwrap().is_none());
}
