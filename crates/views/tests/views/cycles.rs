//! Cycles and stream events, derived from the log of a run.

use std::sync::Arc;

use archon_types::{
    Answer, ApprovalRequest, CallId, CommandId, Content, Delta, DeltaKind, Effect, Event, ModelFailure,
    Outcome, OutcomeStatus, PromptSource, ProviderError, Record, RecordBody, ToolCall, ToolResult,
};
use archon_views::{Cycle, RunReport, StreamEvents, ToolExecutionState, ToolExecutions};
use expect_test::expect;
use serde_json::json;

use crate::{
    samples::{answered, finished, prompted, started},
    support::{at, round_trip},
};

/// Records that are 10 ms apart.
fn records(bodies: Vec<RecordBody>) -> Vec<Arc<Record>> {
    let start = RecordBody::RunStarted(Box::new(started()));
    let bodies = std::iter::once(start).chain(bodies);
    (0..).zip(bodies).map(|(seq, body)| Arc::new(Record { seq, at: at(seq * 10), body })).collect()
}

fn model_call_started(command: u64, attempt: u32) -> RecordBody {
    let (command, turn) = (CommandId(command), u32::try_from(command).unwrap());
    RecordBody::ModelCallStarted { command, attempt, turn, request_hash: format!("hash {turn}.{attempt}") }
}

fn failed(command: u64) -> RecordBody {
    let failure = ModelFailure::new(&ProviderError::Network("reset".into()), 0.0);
    RecordBody::ModelCallFailed { command: CommandId(command), attempt: 0, failure }
}

fn second_attempt(mut body: RecordBody) -> RecordBody {
    if let RecordBody::ModelCallFinished { attempt, .. } = &mut body {
        *attempt = 1;
    }
    body
}

fn tool_call_started(index: u32) -> RecordBody {
    let call = CallId::new(CommandId(0), index);
    RecordBody::ToolCallStarted { call, attempt: 0, effect: Effect::ReadOnly, child_run: None }
}

fn result(index: u32, result: ToolResult) -> RecordBody {
    RecordBody::ToolCallFinished { call: CallId::new(CommandId(0), index), result: Arc::new(result) }
}

fn two_turns() -> Vec<RecordBody> {
    let thinking = Content::Thinking { thinking: "15% is 0.15".into(), signature: None };
    let long = json!({"expression": "0.15*200", "note": "n".repeat(150), "list": [1, 2]});
    vec![
        prompted(&"What is 15% of 200? ".repeat(20), PromptSource::Prompt),
        model_call_started(0, 0),
        answered(
            0,
            vec![
                thinking,
                "I calculate.".into(),
                ToolCall::new("c1", "calculator", long).into(),
                ToolCall::new("c2", "nothing", json!({})).into(),
            ],
        ),
        tool_call_started(0),
        result(0, ToolResult::success("30")),
        result(1, ToolResult::error("no such tool")),
        model_call_started(1, 0),
        failed(1),
        model_call_started(1, 1),
        // Of the first attempt, which had failed: it comes too late and changes nothing.
        answered(1, vec!["It is 29.".into()]),
        second_attempt(answered(1, vec!["It is 30.".into()])),
        finished("It is 30."),
    ]
}

// spec: OB-02, OB-06
#[test]
fn a_cycle_is_one_structured_entry_under_the_runs_id() {
    let cycles = Cycle::of(&records(two_turns()));
    assert_eq!(cycles.len(), 2);
    assert_eq!(cycles[0].prompt_preview, format!("{}...", "What is 15% of 200? ".repeat(10)));
    let mut first = cycles[0].clone();
    first.prompt_preview.truncate(7);
    round_trip(
        &first,
        &expect![[
            r#"{"timestamp":"1970-01-01T00:00:00.020Z","correlation_id":"run_1","component":"react-loop","cycle":1,"state":"observing","prompt_preview":"What is","thought":"15% is 0.15\nI calculate.","llm_response":"I calculate.","parsed_action":[{"tool":"calculator","arguments":{"expression":"0.15*200","note":"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn","list":[1,2]}},{"tool":"nothing","arguments":{}}],"tool_result":[{"tool":"calculator","status":"success","content":"30"},{"tool":"nothing","status":"error","content":"Error: no such tool"}],"context":{"session_id":"s_1","loop_id":"s_1.default.1","request_hash":"hash 0.0","attempts":1},"performance":{"model_ms":10,"tools_ms":30,"usage":{"input":10,"output":5,"cache_read":30,"cache_write":0,"total_tokens":45},"tool_calls":[{"name":"calculator","args_summary":{"expression":"0.15*200","note":"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn...","list":"[1,2]"},"duration_ms":10,"success":true,"result_status":"success","result_chars":2,"token_attribution":{"input":10,"output":5,"cache_read":30,"cache_write":0,"total_tokens":45}},{"name":"nothing","args_summary":{},"duration_ms":0,"success":false,"result_status":"error","result_chars":19,"token_attribution":{"input":10,"output":5,"cache_read":30,"cache_write":0,"total_tokens":45}}]}}"#
        ]],
    );
    round_trip(
        &cycles[1],
        &expect![[
            r#"{"timestamp":"1970-01-01T00:00:00.070Z","correlation_id":"run_1","component":"react-loop","cycle":2,"state":"finished","prompt_preview":"30\nError: no such tool","llm_response":"It is 30.","parsed_action":[],"tool_result":[],"context":{"session_id":"s_1","loop_id":"s_1.default.1","request_hash":"hash 1.1","attempts":2,"failures":["network: reset"]},"performance":{"model_ms":40,"tools_ms":0,"usage":{"input":10,"output":5,"cache_read":30,"cache_write":0,"total_tokens":45},"tool_calls":[]}}"#
        ]],
    );
}

// spec: OB-01
#[test]
fn the_chronicle_is_thought_action_observation_answer() {
    let lines: Vec<String> = Cycle::of(&records(two_turns())).iter().flat_map(Cycle::lines).collect();
    let lines: Vec<String> = lines.iter().map(|line| line.chars().take(60).collect()).collect();
    expect![[r#"
        Thought: 15% is 0.15
        I calculate.
        Action: calculator {"expression":"0.15*200","note":"nnnnnnnn
        Action: nothing {}
        Observation: 30
        Observation: Error: no such tool
        Failed: network: reset
        Answer: It is 30."#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn a_log_that_was_cut_off_has_the_cycles_so_far() {
    let whole = records(two_turns());
    let states: Vec<String> = (1..=whole.len())
        .map(|n| {
            Cycle::of(&whole[..n]).last().map_or("-".to_owned(), |c| format!("{} {:?}", c.cycle, c.state))
        })
        .collect();
    expect!["-, -, 1 Thinking, 1 Acting, 1 Acting, 1 Acting, 1 Observing, 2 Thinking, 2 Error, 2 Thinking, 2 Thinking, 2 Thinking, 2 Finished"].assert_eq(&states.join(", "));
}

// spec: R-38
#[test]
fn stream_events_have_the_names_that_interfaces_know() {
    let mut bodies = two_turns();
    let question = ApprovalRequest::new("q1", "send an email", json!({}));
    let call = CallId::new(CommandId(0), 0);
    bodies.insert(3, RecordBody::ApprovalRequested { call, request: Box::new(question) });
    bodies.insert(4, RecordBody::Suspended { waiting: vec![call] });
    bodies.insert(5, RecordBody::ApprovalAnswered { call, answer: Answer::Approve });
    bodies.insert(6, RecordBody::Suspended { waiting: vec![call] });
    let mut stream = StreamEvents::new();
    let mut lines = Vec::new();
    for record in records(bodies) {
        let asked = matches!(record.body, RecordBody::ModelCallStarted { command: CommandId(0), .. });
        let mut events = vec![Event::Record { run: "run_1".into(), record }];
        if asked {
            let kind = DeltaKind::Text { text: "I calc".into() };
            let delta = Delta { run: "run_1".into(), command: CommandId(0), attempt: 0, offset: 0, kind };
            events.push(Event::Delta(delta));
        }
        for event in events.iter().flat_map(|event| stream.push(event)) {
            let mut value = serde_json::to_value(&event).unwrap();
            value.as_object_mut().unwrap().remove("loop_id");
            if let Some(arguments) = value.get_mut("arguments") {
                *arguments = json!("...");
            }
            lines.push(value.to_string());
        }
    }
    expect![[r#"
        {"type":"MESSAGE_START"}
        {"type":"MESSAGE_CHUNK","text":"I calc"}
        {"type":"MESSAGE_END","text":"I calculate."}
        {"type":"STATE_CHANGE","state":"WAITING_FOR_APPROVAL"}
        {"type":"STATE_CHANGE","state":"WAITING_FOR_INPUT"}
        {"type":"TOOL_CALL_START","arguments":"...","tool_call_id":"c1","tool_name":"calculator"}
        {"type":"TOOL_RESULT","is_error":false,"tool_call_id":"c1","tool_name":"calculator","text":"30"}
        {"type":"TOOL_RESULT","is_error":true,"tool_call_id":"c2","tool_name":"nothing","text":"Error: no such tool"}
        {"type":"MESSAGE_START"}
        {"type":"MESSAGE_END","text":"It is 30."}
        {"type":"EXECUTION_END"}"#]].assert_eq(&lines.join("\n"));
}

// spec: R-17
#[test]
fn report_of_a_run_names_its_calls_and_those_that_still_wait_for_a_person() {
    let call = |index| CallId::new(CommandId(0), index);
    let ask = |index| {
        let request = Box::new(ApprovalRequest::new(format!("q{index}"), "Run it", json!({})));
        RecordBody::ApprovalRequested { call: call(index), request }
    };
    let calls = ["a", "b", "c"].map(|id| ToolCall::new(id, "t", json!({})).into());
    let mut outcome = Outcome::new("run_1".into(), OutcomeStatus::Cancelled);
    outcome.usage.input = 7;
    let log = records(vec![
        model_call_started(0, 0),
        answered(0, calls.into()),
        ask(0),
        ask(1),
        ask(2),
        RecordBody::ApprovalAnswered { call: call(0), answer: Answer::Approve },
        RecordBody::ToolCallFinished { call: call(0), result: Arc::new(ToolResult::success("30")) },
        RecordBody::ToolCallRefused { call: call(2), result: Arc::new(ToolResult::error("no")) },
        RecordBody::RunFinished(Box::new(outcome.clone())),
    ]);
    let report = RunReport::of(&log).unwrap();
    assert_eq!(report.pending_approvals, [call(1)]);
    assert_eq!(report.outcome, outcome, "its answer and its tokens");
    let calls: Vec<_> = report.tool_calls.iter().map(|c| (c.name.as_str(), c.success)).collect();
    assert_eq!(calls, [("t", true), ("t", false)]);
}

/// What a watcher sees of each record: the calls' places and states.
fn passed(bodies: &[RecordBody]) -> Vec<String> {
    let mut executions = ToolExecutions::default();
    let mut before = std::collections::BTreeMap::new();
    let mut seen = Vec::new();
    for body in bodies {
        let changes = executions.see(body);
        for (call, state) in &changes {
            let was = before.insert(*call, *state).unwrap_or_default();
            assert!(was.may_become(*state), "{was:?} -> {state:?}");
        }
        let line: Vec<_> = changes.iter().map(|(call, state)| format!("{} {state:?}", call.index)).collect();
        seen.extend((!line.is_empty()).then(|| line.join(", ")));
    }
    assert_eq!(executions.state(CallId::new(CommandId(99), 0)), ToolExecutionState::Idle);
    seen
}

// spec: TE-56
#[test]
fn tool_executions_fold_gives_the_state_of_each_call() {
    let expected = [
        "0 Validating, 1 Validating",
        "0 Executing",
        "0 ProcessingResult",
        // The second never ran.
        "1 Executing, 1 Failed, 0 Completed, 1 Completed",
    ];
    assert_eq!(passed(&two_turns()), expected);
}

// spec: TE-56
#[test]
fn tool_executions_call_with_an_approval_waits_then_runs_or_fails() {
    let call = |index| CallId::new(CommandId(0), index);
    let ask = |index| {
        let request = Box::new(ApprovalRequest::new("approval_1", "Run it", json!({})));
        RecordBody::ApprovalRequested { call: call(index), request }
    };
    let refused = |index| {
        let result = Box::new(ToolResult::error("declined"));
        RecordBody::ToolCallRefused { call: call(index), result: result.into() }
    };
    let calls = ["c1", "c2", "c3"].map(|id| ToolCall::new(id, "t", json!({})).into());
    let bodies = [
        answered(0, calls.into()),
        refused(0),
        ask(1),
        ask(2),
        refused(2),
        tool_call_started(1),
        // An agent that asks while it works, and goes on.
        ask(1),
        tool_call_started(1),
        result(1, ToolResult::success("done")),
        // Nothing of a call that ended counts any more.
        tool_call_started(1),
    ];
    let expected = [
        "0 Validating, 1 Validating, 2 Validating",
        "0 Failed",
        "1 RequestingPermission",
        "2 RequestingPermission",
        "2 Failed",
        "1 Executing",
        "1 RequestingPermission",
        "1 Executing",
        "1 ProcessingResult, 0 Completed, 1 Completed, 2 Completed",
    ];
    assert_eq!(passed(&bodies), expected);
}
