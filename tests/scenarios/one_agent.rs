//! The acceptance scenarios of the specification, with a scripted model and the real tools.

use std::sync::{Arc, Mutex};

use archon::{
    Archon, OutcomeStatus, Provider, RunOptions,
    providers::{ScriptedProvider, Step},
    tools::builtin,
    types::{
        BoxStream, CancellationToken, Event, ExecutionLimits, LimitReached, ModelEvent, ProviderError,
        RecordBody, Request, ToolMode,
    },
    views::Cycle,
};
use archon_testkit::{Ended, RecordingSink, SeededIds, VirtualClock};
use expect_test::expect;
use serde_json::json;

use crate::shared::stage::names;

/// The outcome of a run, and its events.
struct Ran {
    outcome: archon::Outcome,
    events: Vec<Event>,
    requests: Vec<Request>,
}

/// A scripted model that keeps what it was asked.
struct Asked {
    script: ScriptedProvider,
    requests: Mutex<Vec<Request>>,
}

impl Provider for Asked {
    fn id(&self) -> &str {
        self.script.id()
    }

    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        self.requests.lock().expect("nobody panics here").push(request.clone());
        self.script.stream(request, cancel)
    }
}

impl Ran {
    /// The text of every tool result, in order.
    fn results(&self) -> Vec<String> {
        self.records()
            .filter_map(|body| match body {
                RecordBody::ToolCallFinished { result, .. } | RecordBody::ToolCallRefused { result, .. } => {
                    Some(result.text())
                }
                _ => None,
            })
            .collect()
    }

    /// The last message of the `n`th request to the model, from 0.
    fn observation(&self, n: usize) -> String {
        self.requests[n].messages.iter().last().map(|message| message.text()).unwrap_or_default()
    }

    fn records(&self) -> impl Iterator<Item = &RecordBody> {
        self.events.iter().filter_map(|e| match e {
            Event::Record { record, .. } => Some(&record.body),
            _ => None,
        })
    }
}

async fn run(task: &str, steps: Vec<Step>, limits: ExecutionLimits, mode: ToolMode) -> Ran {
    let provider = Arc::new(Asked { script: ScriptedProvider::new(steps), requests: Mutex::default() });
    let sink = RecordingSink::new();
    let agent = Archon::builder()
        .provider(provider.clone(), "scripted")
        .tool(builtin::Calculator::new())
        .limits(limits)
        .tool_mode(mode)
        .clock(Arc::new(VirtualClock::new()))
        .ids(Arc::new(SeededIds::new(1)))
        .build()
        .expect("an agent");
    let options = RunOptions::default().watched_by(Arc::new(sink.clone()));
    let outcome = agent.run_with(task, options).await.ended();
    let requests = provider.requests.lock().expect("nobody panics here").clone();
    Ran { outcome, events: sink.events(), requests }
}

async fn native(task: &str, steps: Vec<Step>) -> Ran {
    run(task, steps, ExecutionLimits::default(), ToolMode::Native).await
}

async fn in_text(task: &str, replies: &[&str]) -> Ran {
    let steps = replies.iter().map(|r| Step::text(*r)).collect();
    run(task, steps, ExecutionLimits::default(), ToolMode::Text).await
}

fn calculate(arguments: serde_json::Value) -> Step {
    Step::call("call_1", "calculator", arguments)
}

// spec: A-01
#[tokio::test]
async fn fifteen_percent_of_two_hundred() {
    let steps = vec![calculate(json!({"expression": "15% of 200"})), Step::text("15% of 200 is 30.")];
    let ran = native("What is 15% of 200?", steps).await;
    assert_eq!(ran.outcome.status, OutcomeStatus::Finished);
    assert!(
        ran.outcome.last_text().unwrap_or_default().contains("30") && ran.outcome.turns <= 3,
        "{:?}",
        ran.outcome
    );
    assert_eq!(ran.results(), ["30"]);
}

// spec: A-02, R-20
#[tokio::test]
async fn fifteen_times_three_in_one_line_replies_with_single_quotes() {
    let ran = in_text(
        "Calculate 15 times 3",
        &[
            "Thought: I need to calculate 15 * 3. Action: {'tool': 'calculator', 'arguments': {'expression': '15 * 3'}}",
            "Thought: The result is 45. Final Answer: 45",
        ],
    )
    .await;
    assert_eq!((ran.outcome.turns, ran.outcome.last_text().unwrap_or_default()), (2, "45"));
    assert_eq!(ran.outcome.status, OutcomeStatus::Finished);
}

// spec: A-03
#[tokio::test]
async fn eighteen_percent_of_two_hundred_and_fifty_step_by_step() {
    let ran = in_text(
        "What is 18% of 250?",
        &[
            "Thought: I need to calculate 18% of 250\nAction: {\"tool\": \"calculator\", \"arguments\": \
             {\"operation\": \"percentage\", \"value\": 250, \"percentage\": 18}}",
            "Thought: I have it\nFinal Answer: 18% of 250 is 45",
        ],
    )
    .await;
    assert_eq!(ran.results(), ["45"]);
    assert_eq!(ran.outcome.last_text(), Some("18% of 250 is 45"));
    let observed = ran.observation(1);
    // Between tags whose name is another in each run.
    let (before, result) = observed.split_once('<').unwrap();
    assert_eq!(before, "Observation: Tool calculator succeeded: ");
    let (mark, result) = result.split_once('>').unwrap();
    assert_eq!(result, format!("45</{mark}>"));
    // Step by step, as somebody reads it who wants to know everything.
    let record = |event: &Event| match event {
        Event::Record { record, .. } => Some(record.clone()),
        _ => None,
    };
    let records: Vec<_> = ran.events.iter().filter_map(record).collect();
    let cycles = Cycle::of(&records);
    let thoughts: Vec<_> = cycles.iter().map(|cycle| cycle.llm_response.lines().next().unwrap()).collect();
    assert_eq!(thoughts, ["Thought: I need to calculate 18% of 250", "Thought: I have it"]);
    let [action] = &cycles[0].parsed_action[..] else { panic!("{cycles:?}") };
    let arguments = json!({"operation": "percentage", "value": 250, "percentage": 18});
    assert_eq!((action.tool.as_str(), &action.arguments), ("calculator", &arguments));
    assert_eq!(cycles[0].tool_result[0].content, "45");
    assert_eq!((ran.outcome.status, ran.outcome.turns), (OutcomeStatus::Finished, 2));
}

// spec: A-04
#[tokio::test]
async fn twenty_percent_of_fifty() {
    let steps = vec![calculate(json!({"expression": "20% of 50"})), Step::text("10")];
    assert_eq!(native("Calculate 20% of 50", steps).await.outcome.last_text(), Some("10"));
}

// spec: A-06, R-14
#[tokio::test]
async fn a_model_that_never_finishes_is_stopped_exactly_at_the_limit() {
    for max in [3, 5] {
        let steps = (0..10).map(|n| calculate(json!({"expression": format!("{n} + 1")}))).collect();
        let mut limits = ExecutionLimits::default();
        limits.max_turns = max;
        let ran = run("go on for ever", steps, limits, ToolMode::Native).await;
        assert_eq!(ran.outcome.status, OutcomeStatus::Limit(LimitReached::Turns { max }));
        assert_eq!(ran.requests.len(), max as usize);
    }
}

// spec: A-29, TE-07
#[tokio::test]
async fn an_invented_tool_is_answered_with_the_tools_there_are() {
    let steps = vec![
        Step::call("call_1", "send_email", json!({"to": "bob"})),
        calculate(json!({"expression": "1 + 1"})),
        Step::text("2"),
    ];
    let ran = native("send bob an email", steps).await;
    assert_eq!(ran.outcome.last_text(), Some("2"));
    let results = ran.results();
    assert!(
        results[0].contains("Tool 'send_email' not found") && results[0].contains("calculator"),
        "{results:?}"
    );
    assert_eq!(results[1], "2");
}

// spec: A-29, R-23
#[tokio::test]
async fn an_invented_tool_in_text_mode_is_answered_with_the_tools_there_are() {
    let ran = in_text(
        "send bob an email",
        &["Action: {\"tool\": \"send_email\", \"arguments\": {}}", "Final Answer: I cannot."],
    )
    .await;
    assert_eq!(ran.outcome.last_text(), Some("I cannot."));
    let observed = ran.observation(1);
    assert!(
        observed.contains("Tool `send_email` is not available. Available tools are: [calculator"),
        "{observed}"
    );
}

// spec: A-42, R-03
#[tokio::test]
async fn the_events_of_a_plain_prompt_come_in_order() {
    let ran = native("What is 2+2?", vec![Step::text("2+2 is 4.")]).await;
    expect![[r#"
        AgentStart
        TurnStart
        MessageStart(user)
        MessageEnd(user)
        MessageStart(assistant)
        MessageUpdate
        MessageEnd(assistant)
        TurnEnd
        AgentEnd"#]]
    .assert_eq(&names(&ran.events));
}

// spec: R-04
#[tokio::test]
async fn the_events_of_a_tool_turn_come_in_order() {
    let steps = vec![calculate(json!({"expression": "2+2"})), Step::text("4")];
    let ran = native("What is 2+2?", steps).await;
    expect![[r#"
        AgentStart
        TurnStart
        MessageStart(user)
        MessageEnd(user)
        MessageStart(assistant)
        MessageUpdate
        MessageEnd(assistant)
        ToolExecutionStart
        ToolExecutionEnd
        MessageStart(toolResult)
        MessageEnd(toolResult)
        TurnEnd
        TurnStart
        MessageStart(assistant)
        MessageUpdate
        MessageEnd(assistant)
        TurnEnd
        AgentEnd"#]]
    .assert_eq(&names(&ran.events));
}

// spec: Q-10
#[tokio::test]
async fn the_same_inputs_give_the_same_log() {
    let steps = || vec![calculate(json!({"expression": "2+2"})), Step::text("4")];
    let records = |ran: &Ran| {
        let kept = ran.events.iter().filter(|e| matches!(e, Event::Record { .. }));
        kept.map(|e| serde_json::to_string(e).expect("a record is JSON")).map(untimed).collect::<Vec<_>>()
    };
    let (a, b) = (native("2+2?", steps()).await, native("2+2?", steps()).await);
    assert_eq!(records(&a), records(&b));
}

/// How long a tool took by the system's clock is the one thing that differs.
fn untimed(line: String) -> String {
    let mut value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    if let Some(metadata) = value.pointer_mut("/result/metadata").and_then(|m| m.as_object_mut()) {
        metadata.retain(|key, _| !key.ends_with("_ms"));
    }
    value.to_string()
}
