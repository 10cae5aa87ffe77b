//! `AgentEvent`s: their shape, and their order as it follows from records and deltas.

use std::sync::Arc;

use archon_types::{
    CallId, CommandId, Content, ContinuationKind, Delta, DeltaKind, Effect, Event, LimitReached, Message,
    ModelFailure, Origin, OutcomeStatus, PromptSource, ProviderError, Record, RecordBody, RunStarted,
    StopReason, ToolCall, ToolResult, TurnTrigger,
};
use archon_views::{AgentEvent, AgentEvents, StreamDelta};
use expect_test::{Expect, expect};
use serde_json::json;

use crate::{
    samples::{answered, ended, finished, model_call_started, prompted, started, usage},
    support::{at, round_trip},
};

/// A step of a run: a record, or a delta of command 0 and attempt 0.
#[allow(clippy::large_enum_variant, reason = "there are a few")]
enum Step {
    Is(RecordBody),
    Says(DeltaKind),
}
use Step::{Is, Says};

fn project(steps: impl IntoIterator<Item = Step>) -> Vec<AgentEvent> {
    project_from(started(), steps)
}

fn project_from(start: RunStarted, steps: impl IntoIterator<Item = Step>) -> Vec<AgentEvent> {
    let mut projection = AgentEvents::new();
    let start = Is(RecordBody::RunStarted(Box::new(start)));
    let events = (0..).zip(std::iter::once(start).chain(steps)).map(|(seq, step)| match step {
        Is(body) => {
            Event::Record { run: "run_1".into(), record: Arc::new(Record { seq, at: at(seq), body }) }
        }
        Says(kind) => {
            Event::Delta(Delta { run: "run_1".into(), command: CommandId(0), attempt: 0, offset: 0, kind })
        }
    });
    events.flat_map(|event| projection.push(&event)).collect()
}

/// Pins the events, one line each, the loop's id and the times left out.
#[track_caller]
fn check(steps: impl IntoIterator<Item = Step>, expected: &Expect) {
    let lines: Vec<_> = project(steps).iter().map(line).collect();
    expected.assert_eq(&lines.join("\n"));
}

fn line(event: &AgentEvent) -> String {
    let said = |m: &archon_types::AgentMessage| match m.as_llm() {
        Some(Message::User(_)) => format!("user {:?}", m.as_llm().map(Message::text).unwrap_or_default()),
        Some(Message::Assistant(m)) => {
            format!(
                "assistant {:?}{}",
                m.text(),
                m.error_message.as_ref().map(|e| format!(" ({e})")).unwrap_or_default()
            )
        }
        Some(Message::ToolResult(m)) => {
            format!("result of {} {:?}", m.tool_call_id, Content::join_text(&m.content))
        }
        None => "extension".to_owned(),
    };
    match event {
        AgentEvent::AgentStart { .. } => "AgentStart".into(),
        AgentEvent::AgentEnd { messages, .. } => format!("AgentEnd, {} messages", messages.len()),
        AgentEvent::TurnStart { turn_index, triggered_by, .. } => {
            format!("TurnStart {turn_index} {triggered_by:?}")
        }
        AgentEvent::TurnEnd { message, tool_results, .. } => {
            format!("TurnEnd {}, {} results", said(message), tool_results.len())
        }
        AgentEvent::MessageStart { message, .. } => format!("  MessageStart {}", said(message)),
        AgentEvent::MessageUpdate { delta, .. } => format!("  MessageUpdate {delta:?}"),
        AgentEvent::MessageEnd { message, .. } => format!("  MessageEnd {}", said(message)),
        AgentEvent::ToolExecutionStart { tool_call_id, tool_name, args, .. } => {
            format!("  ToolExecutionStart {tool_call_id} {tool_name} {args}")
        }
        AgentEvent::ToolExecutionUpdate { tool_call_id, partial_result, .. } => {
            format!("  ToolExecutionUpdate {tool_call_id} {:?}", partial_result.text())
        }
        AgentEvent::ToolExecutionEnd { tool_call_id, is_error, .. } => {
            format!("  ToolExecutionEnd {tool_call_id}{}", if *is_error { " failed" } else { "" })
        }
        AgentEvent::ProgressMessage { tool_call_id, text, .. } => {
            format!("  ProgressMessage {tool_call_id} {text:?}")
        }
        other => format!("{other:?}"),
    }
}

fn ask(text: &str) -> Step {
    Is(prompted(text, PromptSource::Prompt))
}

fn text(piece: &str) -> Step {
    Says(DeltaKind::Text { text: piece.into() })
}

fn id(index: u32) -> CallId {
    CallId::new(CommandId(0), index)
}

fn calls(names: &[&str]) -> Step {
    let calls = names.iter().map(|n| ToolCall::new(*n, "calculator", json!({"x": 1})).into());
    Is(answered(0, calls.collect()))
}

fn start(index: u32, attempt: u32) -> Step {
    Is(RecordBody::ToolCallStarted { call: id(index), attempt, effect: Effect::ReadOnly, child_run: None })
}

fn end(index: u32, result: ToolResult) -> Step {
    Is(RecordBody::ToolCallFinished { call: id(index), result: Arc::new(result) })
}

fn refuse(index: u32, why: &str) -> Step {
    Is(RecordBody::ToolCallRefused { call: id(index), result: Arc::new(ToolResult::error(why)) })
}

fn fail(attempt: u32) -> Step {
    let failure = ModelFailure::new(&ProviderError::Network("gone".into()), 0.0);
    Is(RecordBody::ModelCallFailed { command: CommandId(0), attempt, failure })
}

// spec: T-08, R-03, A-42
#[test]
fn a_plain_prompt() {
    check(
        [
            ask("What is 2+2?"),
            Is(model_call_started(0, 0)),
            Says(DeltaKind::Thinking { text: "easy".into() }),
            text("It is"),
            text(" 4."),
            Is(answered(0, vec!["It is 4.".into()])),
            Is(finished("It is 4.")),
        ],
        &expect![[r#"
            AgentStart
            TurnStart 0 User
              MessageStart user "What is 2+2?"
              MessageEnd user "What is 2+2?"
              MessageStart assistant ""
              MessageUpdate Thinking { delta: "easy" }
              MessageUpdate Text { delta: "It is" }
              MessageUpdate Text { delta: " 4." }
              MessageEnd assistant "It is 4."
            TurnEnd assistant "It is 4.", 0 results
            AgentEnd, 2 messages"#]],
    );
}

// spec: T-08, R-03
#[test]
fn agent_events_answer_without_deltas_has_message_start_and_end() {
    check(
        [
            ask("hi"),
            Is(model_call_started(0, 0)),
            Is(answered(0, vec!["hello".into()])),
            Is(finished("hello")),
        ],
        &expect![[r#"
            AgentStart
            TurnStart 0 User
              MessageStart user "hi"
              MessageEnd user "hi"
              MessageStart assistant ""
              MessageEnd assistant "hello"
            TurnEnd assistant "hello", 0 results
            AgentEnd, 2 messages"#]],
    );
}

// spec: T-08, R-04
#[test]
fn a_turn_with_tools_ends_after_them() {
    let arguments =
        |piece: &str| Says(DeltaKind::ToolCallArguments { index: 0, id: "a".into(), text: piece.into() });
    check(
        [
            ask("What is 15% of 200?"),
            Is(model_call_started(0, 0)),
            Says(DeltaKind::ToolCallStarted { index: 0, id: "a".into(), name: "calculator".into() }),
            arguments("{\"x\""),
            arguments(":1}"),
            calls(&["a", "b"]),
            start(0, 0),
            start(1, 0),
            Says(DeltaKind::ToolProgress { call: id(1), text: "half way".into() }),
            Says(DeltaKind::ToolPartialResult { call: id(0), result: Box::new(ToolResult::success("3")) }),
            end(1, ToolResult::error("broke")),
            end(0, ToolResult::success("30")),
            Is(model_call_started(1, 0)),
            Is(RecordBody::ModelCallFinished {
                command: CommandId(1),
                attempt: 0,
                message: Box::new(crate::samples::answer(vec!["30".into()])),
            }),
            Is(finished("30")),
        ],
        &expect![[r#"
            AgentStart
            TurnStart 0 User
              MessageStart user "What is 15% of 200?"
              MessageEnd user "What is 15% of 200?"
              MessageStart assistant ""
              MessageUpdate ToolCallDelta { delta: "{\"x\"" }
              MessageUpdate ToolCallDelta { delta: ":1}" }
              MessageEnd assistant ""
              ToolExecutionStart a calculator {"x":1}
              ToolExecutionStart b calculator {"x":1}
              ProgressMessage b "half way"
              ToolExecutionUpdate a "3"
              ToolExecutionEnd b failed
              MessageStart result of b "Error: broke"
              MessageEnd result of b "Error: broke"
              ToolExecutionEnd a
              MessageStart result of a "30"
              MessageEnd result of a "30"
            TurnEnd assistant "", 2 results
            TurnStart 1 Continuation
              MessageStart assistant ""
              MessageEnd assistant "30"
            TurnEnd assistant "30", 0 results
            AgentEnd, 5 messages"#]],
    );
}

// spec: T-08, R-04
#[test]
fn the_results_of_a_turn_stand_in_the_order_of_its_calls() {
    let steps = [
        ask("q"),
        Is(model_call_started(0, 0)),
        calls(&["a", "b"]),
        start(0, 0),
        start(1, 0),
        end(1, "2".into()),
        end(0, "1".into()),
        Is(model_call_started(1, 0)),
    ];
    let events = project(steps);
    let ended = events.iter().position(|event| matches!(event, AgentEvent::TurnEnd { .. })).unwrap();
    let AgentEvent::TurnEnd { tool_results, usage: of_turn, .. } = &events[ended] else {
        panic!("{events:?}")
    };
    assert!(matches!(events[ended + 1], AgentEvent::TurnStart { .. }), "{events:?}");
    assert_eq!(tool_results.iter().map(Message::text).collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(*of_turn, usage());
}

#[test]
fn starts_and_ends_of_tools_pair_up() {
    check(
        [
            ask("q"),
            Is(model_call_started(0, 0)),
            calls(&["refused", "retried", "in_doubt", "late"]),
            refuse(0, "not allowed"),
            start(1, 0),
            start(1, 1),
            end(1, "ok".into()),
            start(2, 0),
            refuse(2, "the effect is unknown"),
            end(2, "too late".into()),
            start(3, 0),
            end(3, "ok".into()),
            end(3, "again".into()),
        ],
        &expect![[r#"
            AgentStart
            TurnStart 0 User
              MessageStart user "q"
              MessageEnd user "q"
              MessageStart assistant ""
              MessageEnd assistant ""
              MessageStart result of refused "Error: not allowed"
              MessageEnd result of refused "Error: not allowed"
              ToolExecutionStart retried calculator {"x":1}
              ToolExecutionEnd retried
              MessageStart result of retried "ok"
              MessageEnd result of retried "ok"
              ToolExecutionStart in_doubt calculator {"x":1}
              ToolExecutionEnd in_doubt failed
              MessageStart result of in_doubt "Error: the effect is unknown"
              MessageEnd result of in_doubt "Error: the effect is unknown"
              ToolExecutionStart late calculator {"x":1}
              ToolExecutionEnd late
              MessageStart result of late "ok"
              MessageEnd result of late "ok"
            TurnEnd assistant "", 4 results"#]],
    );
}

#[test]
fn agent_events_retry_restarts_the_message_and_drops_late_deltas() {
    let late = Is(answered(0, vec!["late".into()]));
    check(
        [
            ask("q"),
            Is(model_call_started(0, 0)),
            text("It"),
            fail(0),
            text("is"),
            Is(model_call_started(0, 1)),
            late,
            Is(RecordBody::ModelCallLost { command: CommandId(0), attempt: 1 }),
            Is(model_call_started(1, 0)),
            Is(answered(1, vec!["4".into()])),
            Is(finished("4")),
        ],
        &expect![[r#"
            AgentStart
            TurnStart 0 User
              MessageStart user "q"
              MessageEnd user "q"
              MessageStart assistant ""
              MessageUpdate Text { delta: "It" }
              MessageStart assistant ""
              MessageEnd assistant "4"
            TurnEnd assistant "4", 0 results
            AgentEnd, 2 messages"#]],
    );
}

// spec: T-08
#[test]
fn agent_events_turn_without_an_answer_ends_with_an_error_message() {
    let steps = || [ask("q"), Is(model_call_started(0, 0)), text("It"), fail(0)].into_iter();
    let failed = Is(ended(OutcomeStatus::Failed, Some("network: gone")));
    check(
        steps().chain([failed]),
        &expect![[r#"
        AgentStart
        TurnStart 0 User
          MessageStart user "q"
          MessageEnd user "q"
          MessageStart assistant ""
          MessageUpdate Text { delta: "It" }
          MessageStart assistant ""
          MessageEnd assistant "" (network: gone)
        TurnEnd assistant "" (network: gone), 0 results
        AgentEnd, 2 messages"#]],
    );

    let limit = Is(ended(OutcomeStatus::Limit(LimitReached::Turns { max: 1 }), None));
    for (end, reason) in
        [(limit, StopReason::Error), (Is(ended(OutcomeStatus::Cancelled, None)), StopReason::Aborted)]
    {
        let events = project(steps().chain([end]));
        let turn = events.iter().rev().find_map(|e| match e {
            AgentEvent::TurnEnd { message, .. } => message.as_llm(),
            _ => None,
        });
        let Some(Message::Assistant(message)) = turn else { panic!("{events:?}") };
        assert_eq!((message.stop_reason, message.model.as_str()), (reason, "test-1"));
    }
}

#[test]
fn notes_between_turns_and_prompts_inside_answers_wait_for_their_place() {
    check(
        [
            ask("q"),
            Is(model_call_started(0, 0)),
            text("Hm"),
            Is(prompted("by the way", PromptSource::Steer)),
            Is(answered(0, vec!["Hm.".into()])),
            Is(RecordBody::HintAdded { text: "Say it in JSON.".into() }),
            Is(model_call_started(1, 0)),
            Is(answered(1, vec!["{}".into()])),
            Is(RecordBody::HintAdded { text: "[Agent stopped]".into() }),
            Is(finished("{}")),
        ],
        &expect![[r#"
            AgentStart
            TurnStart 0 User
              MessageStart user "q"
              MessageEnd user "q"
              MessageStart assistant ""
              MessageUpdate Text { delta: "Hm" }
              MessageEnd assistant "Hm."
            TurnEnd assistant "Hm.", 0 results
            TurnStart 1 Continuation
              MessageStart user "by the way"
              MessageEnd user "by the way"
              MessageStart user "Say it in JSON."
              MessageEnd user "Say it in JSON."
              MessageStart assistant ""
              MessageEnd assistant "{}"
            TurnEnd assistant "{}", 0 results
              MessageStart user "[Agent stopped]"
              MessageEnd user "[Agent stopped]"
            AgentEnd, 6 messages"#]],
    );
}

#[test]
fn a_run_that_goes_on_after_its_end_starts_again() {
    check(
        [
            ask("q"),
            Is(model_call_started(0, 0)),
            Is(ended(OutcomeStatus::Cancelled, None)),
            Is(RecordBody::Resumed),
            Is(model_call_started(1, 0)),
            Is(answered(1, vec!["4".into()])),
            Is(finished("4")),
        ],
        &expect![[r#"
            AgentStart
            TurnStart 0 User
              MessageStart user "q"
              MessageEnd user "q"
              MessageStart assistant ""
              MessageEnd assistant ""
            TurnEnd assistant "", 0 results
            AgentEnd, 2 messages
            AgentStart
            TurnStart 1 Continuation
              MessageStart assistant ""
              MessageEnd assistant "4"
            TurnEnd assistant "4", 0 results
            AgentEnd, 1 messages"#]],
    );
}

// spec: T-08, T-11, T-12
#[test]
fn agent_start_names_the_parent_and_the_continuation() {
    let branch = ContinuationKind::Branch { tag: "t".into() };
    let call = CallId::new(CommandId(0), 0);
    let table = [
        (Origin::Prompt, None, None, TurnTrigger::User),
        (
            Origin::Continues { run: "run_0".into(), records: 4, continuation: branch.clone() },
            Some("run_0"),
            Some(branch),
            TurnTrigger::Branch,
        ),
        (Origin::CalledBy { run: "run_0".into(), call }, Some("run_0"), None, TurnTrigger::User),
    ];
    for (origin, parent, kind, trigger) in table {
        let mut from = started();
        from.origin = origin;
        let events = project_from(from, [ask("q"), Is(model_call_started(0, 0))]);
        let [
            AgentEvent::AgentStart { parent_loop_id, continuation_kind, .. },
            AgentEvent::TurnStart { triggered_by, .. },
            ..,
        ] = &events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!(parent_loop_id.as_ref().map(|p| p.as_str()), parent);
        assert_eq!((continuation_kind, *triggered_by), (&kind, trigger));
    }
}

// spec: T-09
#[test]
fn stream_deltas() {
    round_trip(&StreamDelta::Text { delta: "a".into() }, &expect![[r#"{"type":"text","delta":"a"}"#]]);
    round_trip(
        &StreamDelta::Thinking { delta: "a".into() },
        &expect![[r#"{"type":"thinking","delta":"a"}"#]],
    );
    round_trip(
        &StreamDelta::ToolCallDelta { delta: "{".into() },
        &expect![[r#"{"type":"toolCallDelta","delta":"{"}"#]],
    );
}

// spec: T-08, T-33
#[test]
fn agent_events_as_json() {
    let (loop_id, tool_call_id, tool_name) = (|| "s_1.default.1".into(), || "c1".into(), || "t".to_owned());
    let message = || Message::user("hi", at(1)).into();
    let events = [
        AgentEvent::AgentStart {
            agent_id: "agent_1".into(),
            session_id: "s_1".into(),
            loop_id: loop_id(),
            run_id: Some("run_1".into()),
            parent_loop_id: Some("run_0".into()),
            continuation_kind: Some(ContinuationKind::Default),
            timestamp: at(0),
            metadata: Some(json!({"k": 1})),
        },
        AgentEvent::AgentEnd {
            loop_id: loop_id(),
            messages: vec![message()],
            usage: usage(),
            timestamp: at(0),
            rejection: Some("no".into()),
        },
        AgentEvent::TurnStart {
            loop_id: loop_id(),
            turn_index: 0,
            timestamp: at(0),
            triggered_by: TurnTrigger::SubAgent,
        },
        AgentEvent::TurnEnd {
            loop_id: loop_id(),
            message: message(),
            usage: usage(),
            timestamp: at(0),
            tool_results: vec![Message::user("hi", at(1))],
        },
        AgentEvent::MessageStart { loop_id: loop_id(), message: message() },
        AgentEvent::MessageUpdate { loop_id: loop_id(), delta: StreamDelta::Text { delta: "a".into() } },
        AgentEvent::MessageEnd { loop_id: loop_id(), message: message() },
        AgentEvent::ToolExecutionStart {
            loop_id: loop_id(),
            tool_call_id: tool_call_id(),
            tool_name: tool_name(),
            args: json!({"x": 1}),
        },
        AgentEvent::ToolExecutionUpdate {
            loop_id: loop_id(),
            tool_call_id: tool_call_id(),
            tool_name: tool_name(),
            partial_result: "so far".into(),
        },
        AgentEvent::ToolExecutionEnd {
            loop_id: loop_id(),
            tool_call_id: tool_call_id(),
            tool_name: tool_name(),
            result: "30".into(),
            is_error: false,
            child_loop_id: Some("run_2".into()),
        },
        AgentEvent::ProgressMessage {
            loop_id: loop_id(),
            tool_call_id: tool_call_id(),
            tool_name: tool_name(),
            text: "half".into(),
        },
        AgentEvent::InputRejected { loop_id: loop_id(), reason: "no".into() },
        AgentEvent::ParallelLoopStart {
            session_id: "s_1".into(),
            loop_ids: vec![loop_id()],
            timestamp: at(0),
        },
        AgentEvent::ParallelLoopEnd {
            session_id: "s_1".into(),
            selected_loop_id: loop_id(),
            selected_config_index: 1,
            evaluation_usage: usage(),
            timestamp: at(0),
        },
    ];
    let lines = events.map(|event| {
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<AgentEvent>(&json).unwrap(), event);
        json
    });
    expect![[r#"
        {"type":"AgentStart","agent_id":"agent_1","session_id":"s_1","loop_id":"s_1.default.1","run_id":"run_1","parent_loop_id":"run_0","continuation_kind":{"kind":"default"},"timestamp":"1970-01-01T00:00:00.000Z","metadata":{"k":1}}
        {"type":"AgentEnd","loop_id":"s_1.default.1","messages":[{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1}],"usage":{"input":10,"output":5,"cache_read":30,"cache_write":0,"total_tokens":45},"timestamp":"1970-01-01T00:00:00.000Z","rejection":"no"}
        {"type":"TurnStart","loop_id":"s_1.default.1","turn_index":0,"timestamp":"1970-01-01T00:00:00.000Z","triggered_by":"sub_agent"}
        {"type":"TurnEnd","loop_id":"s_1.default.1","message":{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1},"usage":{"input":10,"output":5,"cache_read":30,"cache_write":0,"total_tokens":45},"timestamp":"1970-01-01T00:00:00.000Z","tool_results":[{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1}]}
        {"type":"MessageStart","loop_id":"s_1.default.1","message":{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1}}
        {"type":"MessageUpdate","loop_id":"s_1.default.1","delta":{"type":"text","delta":"a"}}
        {"type":"MessageEnd","loop_id":"s_1.default.1","message":{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1}}
        {"type":"ToolExecutionStart","loop_id":"s_1.default.1","tool_call_id":"c1","tool_name":"t","args":{"x":1}}
        {"type":"ToolExecutionUpdate","loop_id":"s_1.default.1","tool_call_id":"c1","tool_name":"t","partial_result":{"content":[{"type":"text","text":"so far"}],"status":"success"}}
        {"type":"ToolExecutionEnd","loop_id":"s_1.default.1","tool_call_id":"c1","tool_name":"t","result":{"content":[{"type":"text","text":"30"}],"status":"success"},"is_error":false,"child_loop_id":"run_2"}
        {"type":"ProgressMessage","loop_id":"s_1.default.1","tool_call_id":"c1","tool_name":"t","text":"half"}
        {"type":"InputRejected","loop_id":"s_1.default.1","reason":"no"}
        {"type":"ParallelLoopStart","session_id":"s_1","loop_ids":["s_1.default.1"],"timestamp":"1970-01-01T00:00:00.000Z"}
        {"type":"ParallelLoopEnd","session_id":"s_1","selected_loop_id":"s_1.default.1","selected_config_index":1,"evaluation_usage":{"input":10,"output":5,"cache_read":30,"cache_write":0,"total_tokens":45},"timestamp":"1970-01-01T00:00:00.000Z"}"#]].assert_eq(&lines.join("\n"));
}
