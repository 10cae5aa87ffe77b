//! Tests of the output for people and for programs, for the same events.

use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use archon::types::{
    CallId, CommandId, Delta, DeltaKind, Event, ForEach, Message, PlanRecord, PlanSettings, PromptSource,
    Record, RecordBody, RunId, SubTask, SubTaskRules, Task, Timestamp,
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;

/// A stream that writes into a log shared with the other one, each piece marked with its name.
#[derive(Clone)]
struct Marked(&'static str, Arc<Mutex<String>>);

impl Write for Marked {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.1.lock().unwrap().push_str(&format!("{}{}", self.0, std::str::from_utf8(bytes).unwrap()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn check(json: bool, terminal: bool, events: &[Event], expected: Expect) {
    let log = Arc::new(Mutex::new(String::new()));
    let mut output = Output::to(Box::new(Marked("1|", log.clone())), Box::new(Marked("2|", log.clone())));
    (output.live, output.spins) = (terminal, terminal);
    let mut renderer = renderer(json);
    for event in events {
        renderer.event(event, &output);
    }
    output.stop_waiting();
    expected.assert_eq(&log.lock().unwrap());
}

fn record(seq: u64, mut body: Value) -> Event {
    body["seq"] = json!(seq);
    body["at"] = json!(1_767_225_600_000_u64 + seq * 40);
    let record: Record = serde_json::from_value(body).unwrap();
    Event::Record { run: RunId::new("run_1"), record: Arc::new(record) }
}

fn text(command: u64, text: &str) -> Event {
    delta(command, DeltaKind::Text { text: text.into() })
}

fn delta(command: u64, kind: DeltaKind) -> Event {
    Event::Delta(Delta { run: RunId::new("run_1"), command: CommandId(command), attempt: 0, offset: 0, kind })
}

fn started(mode: &str) -> Event {
    record(
        0,
        json!({
            "type": "run_started", "format": 2, "kind": "loop", "run": "run_1", "session": "s", "agent": "a", "loop_id": "l",
            "tenant": "local", "origin": {"kind": "prompt"}, "first_trigger": "user",
            "config": {"provider": "scripted", "model": "m", "tool_mode": mode},
        }),
    )
}

fn answered(seq: u64, command: u64, content: Value) -> Event {
    let message = json!({
        "content": content, "stop_reason": "stop", "model": "m", "provider": "scripted", "usage": {}, "timestamp": 0,
    });
    record(seq, json!({"type": "model_call_finished", "command": command, "attempt": 0, "message": message}))
}

fn finished(seq: u64, status: Value, answer: &str) -> Event {
    let mut body = json!({"type": "run_finished", "run": "run_1", "answer": answer, "turns": 2, "usage": {"total_tokens": 99}});
    body.as_object_mut().unwrap().extend(status.as_object().unwrap().clone());
    record(seq, body)
}

fn model_call_started(seq: u64, command: u64) -> Event {
    record(
        seq,
        json!({"type": "model_call_started", "command": command, "attempt": 0, "turn": command, "request_hash": ""}),
    )
}

/// A thought, a call that works, one that is refused, and an answer.
fn a_run() -> Vec<Event> {
    let call = |id: &str, name: &str, arguments: Value| json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments});
    let id = |index: u32| json!({"command": 0, "index": index});
    vec![
        started("native"),
        model_call_started(1, 0),
        delta(0, DeltaKind::Thinking { text: "It is a ".into() }),
        delta(0, DeltaKind::Thinking { text: "percentage.".into() }),
        text(0, "I will "),
        text(0, "calculate."),
        delta(0, DeltaKind::ToolCallStarted { index: 0, id: "c1".into(), name: "calculator".into() }),
        answered(
            2,
            0,
            json!([
                {"type": "thinking", "thinking": "It is a percentage."},
                {"type": "text", "text": "I will calculate."},
                call("c1", "calculator", json!({"expression": "200*15/100"})),
                call("c2", "send_\u{1b}[31mmail", json!({"to": "x".repeat(300)})),
            ]),
        ),
        record(3, json!({"type": "tool_call_started", "call": id(0), "attempt": 0, "effect": "read_only"})),
        record(
            30,
            json!({
                "type": "tool_call_finished", "call": id(0), "result": {"content": [{"type": "text", "text": "30"}]},
            }),
        ),
        record(
            31,
            json!({
                "type": "tool_call_refused", "call": id(1),
                "result": {"status": "error", "content": [{"type": "text", "text": "Error: no such tool\nTools: calculator"}]},
            }),
        ),
        model_call_started(32, 1),
        text(1, "15% of 200 "),
        text(1, "is **30**."),
        answered(60, 1, json!([{"type": "text", "text": "15% of 200 is **30**."}])),
        finished(61, json!({"status": "finished"}), "15% of 200 is **30**."),
    ]
}

#[test]
fn without_a_terminal_the_answer_alone_is_on_stdout() {
    check(
        false,
        false,
        &a_run(),
        expect![[r#"
            2|run run_1, model m (scripted)
            2|   It is a percentage.
            2|   I will calculate.
            2|-> calculator {"expression":"200*15/100"}
            2|<- calculator: 30 (1.0 s)
            2|-> send_\u{1b}[31mmail {"to":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
            2|<- send_\u{1b}[31mmail: Error: no such tool Tools: calculator (0 ms)
            1|15% of 200 is **30**.
            2|finished: 2 turns, 99 tokens, 2.4 s, session s
        "#]],
    );
}

#[test]
fn on_a_terminal_text_comes_as_it_arrives_and_only_once() {
    check(
        false,
        true,
        &a_run(),
        expect![[r#"
            2|run run_1, model m (scripted)
            2|It is a 2|percentage.2|
            1|I will 1|calculate.2|
            2|-> calculator {"expression":"200*15/100"}
            2|<- calculator: 30 (1.0 s)
            2|-> send_\u{1b}[31mmail {"to":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
            2|<- send_\u{1b}[31mmail: Error: no such tool Tools: calculator (0 ms)
            1|15% of 200 1|is **30**.2|
            2|finished: 2 turns, 99 tokens, 2.4 s, session s
        "#]],
    );
}

#[test]
fn for_programs_every_event_is_a_line_of_json() {
    check(
        true,
        false,
        &a_run()[..4],
        expect![[r#"
        1|{"run_id":"run_1","seq":0,"at":1767225600000,"type":"run_started","format":2,"kind":"loop","run":"run_1","session":"s","agent":"a","loop_id":"l","tenant":"local","origin":{"kind":"prompt"},"first_trigger":"user","config":{"provider":"scripted","model":"m","tools":[],"options":{"tool_choice":"auto","thinking":"off"},"limits":{"max_turns":50,"max_total_tokens":1000000,"max_duration_ms":600000,"max_repeats":3,"max_parse_failures":3,"max_depth":1,"on_limit":"stop"},"retry":{"max_retries":3,"initial_delay_ms":1000,"backoff_multiplier":2.0,"max_delay_ms":30000},"tool_mode":"native"}}
        1|{"run_id":"run_1","seq":1,"at":1767225600040,"type":"model_call_started","command":0,"attempt":0,"turn":0,"request_hash":""}
        1|{"run_id":"run_1","command":0,"attempt":0,"offset":0,"delta":"thinking","text":"It is a "}
        1|{"run_id":"run_1","command":0,"attempt":0,"offset":0,"delta":"thinking","text":"percentage."}
    "#]],
    );
}

#[test]
fn in_text_mode_the_answer_begins_at_its_mark() {
    let events = [
        started("text"),
        model_call_started(1, 0),
        text(0, "Thought: easy.\nFinal"),
        text(0, " Ans"),
        text(0, "wer: "),
        text(0, "30 it"),
        text(0, " is"),
        answered(2, 0, json!([{"type": "text", "text": "30 it is"}])),
        finished(3, json!({"status": "finished"}), "30 it is"),
    ];
    check(
        false,
        true,
        &events,
        expect![[r#"
            2|run run_1, model m (scripted)
            2|Thought: easy.
            1|30 it1| is2|
            2|finished: 2 turns, 99 tokens, 120 ms, session s
        "#]],
    );
}

#[test]
fn human_renders_failures_limits_and_cancels() {
    let failure = json!({"code": "rate_limited", "message": "slow\u{1b}[2J down", "retryable": true});
    let cancelled = json!({"code": "cancelled", "message": "cancelled", "retryable": false});
    let events = [
        started("native"),
        model_call_started(1, 0),
        text(0, "half an ans"),
        record(2, json!({"type": "model_call_failed", "command": 0, "attempt": 0, "failure": failure})),
        record(3, json!({"type": "hint_added", "text": "Say it shorter."})),
        record(4, json!({"type": "limit_reached", "limit": "turns", "max": 2})),
        record(5, json!({"type": "cancel_requested", "reason": "Ctrl-C"})),
        record(6, json!({"type": "model_call_failed", "command": 0, "attempt": 1, "failure": cancelled})),
        finished(7, json!({"status": "cancelled"}), ""),
        record(8, json!({"type": "resumed"})),
        finished(9, json!({"status": "limit", "detail": {"limit": "turns", "max": 2}}), "So far: 30"),
    ];
    check(
        false,
        true,
        &events,
        expect![[r#"
            2|run run_1, model m (scripted)
            1|half an ans2|
            2|the model call failed (attempt 1): slow\u{1b}[2J down
            2|  Say it shorter.
            2|cancelling
            2|cancelled: 2 turns, 99 tokens, 280 ms, session s
            2|resumed; the interrupted answer is given again from its beginning
            1|So far: 30
            2|Max turns reached (2): 2 turns, 99 tokens, 360 ms, session s
        "#]],
    );
}

#[test]
fn human_resumed_run_shows_its_earlier_calls() {
    let events = a_run();
    let log = Arc::new(Mutex::new(String::new()));
    let output = Output::to(Box::new(Marked("1|", log.clone())), Box::new(Marked("2|", log.clone())));
    let mut renderer = renderer(false);
    let (before, after) = events.split_at(8);
    for event in before {
        if let Event::Record { record, .. } = event {
            renderer.remember(record);
        }
    }
    after.iter().for_each(|event| renderer.event(event, &output));
    expect![[r#"
        2|-> calculator {"expression":"200*15/100"}
        2|<- calculator: 30 (1.0 s)
        2|-> send_\u{1b}[31mmail {"to":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
        2|<- send_\u{1b}[31mmail: Error: no such tool Tools: calculator (0 ms)
        1|15% of 200 is **30**.
        2|finished: 2 turns, 99 tokens, 2.3 s, session s
    "#]].assert_eq(&log.lock().unwrap());
}

// spec: MA-30
#[test]
fn human_child_run_shows_its_call_and_its_end() {
    let of_child = |event| match event {
        Event::Record { record, .. } => Event::Record { run: RunId::new("run_1.0-0"), record },
        Event::Delta(delta) => Event::Delta(Delta { run: RunId::new("run_1.0-0"), ..delta }),
        other => other,
    };
    let id = json!({"command": 0, "index": 0});
    let call = json!({"type": "toolCall", "id": "c1", "name": "researcher", "arguments": {"task": "Count."}});
    let result = json!({"content": [{"type": "text", "text": "2,102,650"}], "child_run": "run_1.0-0"});
    let mut events = vec![
        started("native"),
        model_call_started(1, 0),
        answered(2, 0, json!([call])),
        record(3, json!({"type": "tool_call_started", "call": id, "attempt": 0, "effect": "idempotent"})),
    ];
    events.extend(a_run().into_iter().map(of_child));
    events.extend([
        record(63, json!({"type": "tool_call_finished", "call": id, "result": result})),
        model_call_started(64, 1),
        answered(65, 1, json!([{"type": "text", "text": "About two million."}])),
        finished(66, json!({"status": "finished"}), "About two million."),
    ]);
    check(
        false,
        false,
        &events,
        expect![[r#"
            2|run run_1, model m (scripted)
            2|-> researcher {"task":"Count."}
            2|<- researcher: Complete (2.4 s)
            1|About two million.
            2|finished: 2 turns, 99 tokens, 2.6 s, session s
        "#]],
    );
}

/// A plan of two subtasks, of which the second is tried again.
fn a_plan() -> Vec<Event> {
    let body = |seq, body: RecordBody| record(seq, serde_json::to_value(body).unwrap());
    let plan = |seq, said| body(seq, RecordBody::Plan(Box::new(said)));
    let subtasks = vec![
        SubTask::new("sum", "Calculate").with_tool("calculator", Some(json!({"expression": "2+2"}))),
        SubTask::new("say", "Say\u{1b}[31m it").after(["sum"]),
    ];
    let task = Box::new(Task::new("t", "What is 2 + 2?").with_subtasks(subtasks));
    let warnings = vec!["2 subtasks are few (it may be right)".to_owned()];
    let (command, attempt) = (CommandId(0), 0);
    let id = |command: u32, index: u32| json!({"command": command, "index": index});
    let message = Message::user("What is 2 + 2?", Timestamp::from_millis(0)).into();
    let result = |text: &str, status: &str, tokens: u32| json!({"status": status, "content": [{"type": "text", "text": text}], "metadata": {"token_usage": tokens}});
    vec![
        started("native"),
        plan(1, PlanRecord::Settings(PlanSettings::default())),
        body(2, RecordBody::MessageAdded { message, source: PromptSource::Prompt }),
        plan(3, PlanRecord::PlanningStarted { command, attempt, reason: None }),
        plan(4, PlanRecord::Planned { command, task, warnings }),
        record(
            5,
            json!({"type": "tool_call_started", "call": id(1, 0), "attempt": 0, "effect": "read_only"}),
        ),
        record(
            6,
            json!({"type": "tool_call_finished", "call": id(1, 0), "result": {"content": [{"type": "text", "text": "4"}]}}),
        ),
        record(
            7,
            json!({"type": "tool_call_started", "call": id(2, 0), "attempt": 0, "effect": "idempotent"}),
        ),
        record(
            57,
            json!({"type": "tool_call_finished", "call": id(2, 0), "result": result("it broke", "error", 12)}),
        ),
        record(
            58,
            json!({"type": "tool_call_started", "call": id(2, 1), "attempt": 0, "effect": "idempotent"}),
        ),
        record(
            59,
            json!({"type": "tool_call_finished", "call": id(2, 1), "result": result("It is 4.", "success", 34)}),
        ),
        plan(60, PlanRecord::AnswerStarted { command: CommandId(3) }),
        finished(61, json!({"status": "finished"}), "It is 4."),
    ]
}

#[test]
fn human_same_failure_again_is_shown_once() {
    let failure = json!({"code": "network", "message": "the line is dead", "retryable": true});
    let failed = |seq: u64, attempt: u32| {
        record(
            seq,
            json!({"type": "model_call_failed", "command": 0, "attempt": attempt, "failure": failure}),
        )
    };
    check(
        false,
        false,
        &[
            started("native"),
            model_call_started(1, 0),
            failed(2, 0),
            failed(3, 1),
            failed(4, 2),
            finished(5, json!({"status": "failed", "error": "the line is dead"}), ""),
        ],
        expect![[r#"
            2|run run_1, model m (scripted)
            2|the model call failed (attempt 1): the line is dead
            2|failed: 2 turns, 99 tokens, 200 ms, session s
        "#]],
    );
}

#[test]
fn human_resumed_run_notes_that_the_answer_is_repeated() {
    let failure = json!({"code": "cancelled", "message": "cancelled", "retryable": false});
    let whole = json!([{"type": "text", "text": "whole"}]);
    check(
        false,
        false,
        &[
            started("native"),
            model_call_started(1, 0),
            record(2, json!({"type": "model_call_failed", "command": 0, "attempt": 0, "failure": failure})),
            record(3, json!({"type": "resumed"})),
            model_call_started(4, 1),
            answered(5, 1, whole),
            record(6, json!({"type": "resumed"})),
        ],
        expect![[r#"
            2|run run_1, model m (scripted)
            2|resumed; the interrupted answer is given again from its beginning
            2|resumed
        "#]],
    );
}

#[test]
fn human_last_line_has_a_known_cost() {
    for (cost, expected) in
        [(None, ""), (Some(0), "$0, "), (Some(99), "less than $0.0001, "), (Some(1_234_567), "$1.2345, ")]
    {
        let log = Arc::new(Mutex::new(String::new()));
        let output = Output::to(Box::new(Marked("1|", log.clone())), Box::new(Marked("2|", log.clone())));
        let mut renderer = renderer(false);
        let status = json!({"status": "finished", "cost_micros": cost});
        for event in [started("native"), finished(1, status, "30")] {
            renderer.event(&event, &output);
        }
        let line = format!("2|finished: 2 turns, 99 tokens, {expected}40 ms, session s\n");
        assert!(log.lock().unwrap().ends_with(&line), "{line}: {}", log.lock().unwrap());
    }
}

#[test]
fn human_plan_shows_the_plan_and_each_subtask() {
    check(
        false,
        false,
        &a_plan(),
        expect![[r#"
            2|run run_1, model m (scripted)
            2|> What is 2 + 2?
            2|the plan (* marks the critical path):
            2|  What is 2 + 2?
            2|  * pending   sum: Calculate [calculator]
            2|  * blocked   say: Say\u{1b}[31m it <- sum
            2|2 subtasks are few (it may be right)
            2|-> sum: Calculate [calculator]
            2|<- sum: 4 (40 ms; 1 of 2 done)
            2|-> say: Say\u{1b}[31m it
            2|<- say: failed: it broke (2.0 s, 12 tokens; 1 of 2 done)
            2|-> say: Say\u{1b}[31m it (again)
            2|<- say: It is 4. (40 ms, 34 tokens; 2 of 2 done)
            1|It is 4.
            2|finished: 2 of 2 subtasks, 99 tokens, 2.4 s, session s
        "#]],
    );
    let log: Vec<String> = a_plan()
        .iter()
        .filter_map(|event| match event {
            Event::Record { record, .. } => Some(body_line(&record.body)),
            _ => None,
        })
        .filter(|line| line.starts_with("plan"))
        .collect();
    expect![[r#"
        plan                   settings, 4 at the same time
        plan                   asked, attempt 0
        plan                   made, 2 subtasks: sum, say
        plan                   concluding"#]]
    .assert_eq(&log.join("\n"));
}

/// A plan with a loop over what its first subtask finds: two items.
fn a_loop() -> Vec<Event> {
    let body = |seq, body: RecordBody| record(seq, serde_json::to_value(body).unwrap());
    let plan = |seq, said| body(seq, RecordBody::Plan(Box::new(said)));
    let mut rules = SubTaskRules::default();
    let read = SubTask::new("read", "Read it").with_tool("fetch", Some(json!({"of": "{page}"})));
    rules.each = Some(Box::new(ForEach::new(json!("{find}"), "page", vec![read])));
    let subtasks = vec![
        SubTask::new("find", "Find pages").with_tool("search", Some(json!({}))),
        SubTask::new("pages", "Read all").after(["find"]).with_rules(rules),
    ];
    let task = Box::new(Task::new("t", "Read").with_subtasks(subtasks));
    let item =
        |id: &str| SubTask::new(id, "Read it").with_tool("fetch", Some(json!({"of": id}))).after(["find"]);
    let call = |command: u64| CallId::new(CommandId(command), 0);
    let message = Message::user("Read", Timestamp::from_millis(0)).into();
    let started_call = |seq, command: u32| {
        record(
            seq,
            json!({"type": "tool_call_started", "call": {"command": command, "index": 0}, "attempt": 0, "effect": "read_only"}),
        )
    };
    let done = |seq, command: u32, text: &str| {
        let result = json!({"content": [{"type": "text", "text": text}]});
        record(
            seq,
            json!({"type": "tool_call_finished", "call": {"command": command, "index": 0}, "result": result}),
        )
    };
    let unfolded = PlanRecord::LoopExpanded {
        call: call(2),
        subtasks: vec![item("pages_1"), item("pages_2")],
        results: vec![vec!["pages_1".into()], vec!["pages_2".into()]],
    };
    vec![
        started("native"),
        plan(1, PlanRecord::Settings(PlanSettings::default())),
        body(2, RecordBody::MessageAdded { message, source: PromptSource::Prompt }),
        plan(3, PlanRecord::Planned { command: CommandId(0), task, warnings: vec![] }),
        started_call(4, 1),
        done(5, 1, "[\"a\", \"b\"]"),
        plan(6, unfolded),
        started_call(7, 3),
        done(8, 3, "A"),
        started_call(9, 4),
        done(10, 4, "B"),
        plan(11, PlanRecord::LoopFinished { call: call(2) }),
    ]
}

// spec: EX-07
#[test]
fn human_for_each_shows_its_items_and_its_end() {
    check(
        false,
        false,
        &a_loop(),
        expect![[r#"
        2|run run_1, model m (scripted)
        2|> Read
        2|the plan (* marks the critical path):
        2|  Read
        2|  * pending   find: Find pages [search]
        2|  * blocked   pages: Read all <- find
        2|-> find: Find pages [search]
        2|<- find: ["a", "b"] (40 ms; 1 of 2 done)
        2|-- pages has 2 items:
        2|  + pages_1: Read it [fetch] (after find)
        2|  + pages_2: Read it [fetch] (after find)
        2|-> pages_1: Read it [fetch]
        2|<- pages_1: A (40 ms; 2 of 4 done)
        2|-> pages_2: Read it [fetch]
        2|<- pages_2: B (40 ms; 3 of 4 done)
        2|<- pages: its items are done (4 of 4 done)
    "#]],
    );
    let log: Vec<String> = a_loop()
        .iter()
        .filter_map(|event| match event {
            Event::Record { record, .. } => Some(body_line(&record.body)),
            _ => None,
        })
        .filter(|line| line.contains("unfolded") || line.contains("joined"))
        .collect();
    expect![[r#"
        plan                   unfolded 2.0, 2 items: pages_1, pages_2
        plan                   joined 2.0"#]]
    .assert_eq(&log.join("\n"));
}
