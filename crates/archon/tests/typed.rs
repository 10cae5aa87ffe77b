//! Answers as values: right at once, wrong and then right, never right; in every mode, across crashes, and when the
//! budget ends.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use archon::{
    Archon, ArchonBuilder, Journal, Outcome, OutcomeStatus, OutputSchema, RunError, RunId, RunOptions, Typed,
    providers::{
        Anthropic, AnthropicOptions, Compat, OpenAiCompatible, OpenAiOptions, ResponseFormatSupport,
    },
    react_loop::{LoopError, replay},
    schemars::{self, JsonSchema},
    store::InMemoryJournal,
    tools::builtin::Calculator,
    types::{
        ExecutionLimits, GoalCheck, LimitReached, ModelEvent, OnLimit, ProviderError, RecordBody, Request,
        ToolMode,
    },
};
use archon_testkit::{Ended, FnProvider, MockResponse, MockServer, MortalJournal, SeededIds, VirtualClock};
use serde_json::json;

type Events = Vec<Result<ModelEvent, ProviderError>>;

#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
struct Trip {
    city: String,
    days: u8,
}

const PARIS: &str = r#"{"city": "Paris", "days": 3}"#;
const NO_DAYS: &str = r#"{"city": "Paris", "days": "three"}"#;

fn paris() -> Trip {
    Trip { city: "Paris".into(), days: 3 }
}

struct Stage {
    journal: InMemoryJournal,
    model: FnProvider,
    agent: Archon,
}

fn stage(
    answer: impl Fn(usize, &Request) -> Events + Send + Sync + 'static,
    change: impl FnOnce(ArchonBuilder) -> ArchonBuilder,
) -> Stage {
    let (journal, model) = (InMemoryJournal::new(), FnProvider::new(answer));
    let agent = change(builder(&model)).journal(Arc::new(journal.clone())).build().unwrap();
    Stage { journal, model, agent }
}

fn builder(model: &FnProvider) -> ArchonBuilder {
    Archon::builder()
        .provider(Arc::new(model.clone()), "scripted")
        .tool(Calculator::new())
        .clock(Arc::new(VirtualClock::new()))
        .ids(Arc::new(SeededIds::new(1)))
}

/// Says these texts, and the last one for ever.
fn texts(all: &'static [&'static str]) -> impl Fn(usize, &Request) -> Events + Send + Sync + 'static {
    move |n, _| FnProvider::text(all[n.min(all.len() - 1)])
}

impl Stage {
    async fn bodies(&self, outcome: &Outcome) -> Vec<RecordBody> {
        assert!(replay(&self.journal, &outcome.run).await.unwrap().is_identical());
        self.journal.read(&outcome.run).await.unwrap().iter().map(|record| record.body.clone()).collect()
    }

    /// What each check found, and what the model was told.
    async fn checks(&self, outcome: &Outcome) -> (Vec<String>, Vec<String>) {
        let (mut checks, mut notes) = (Vec::new(), Vec::new());
        for body in self.bodies(outcome).await {
            match body {
                RecordBody::OutputChecked { problems } => {
                    checks.push(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
                }
                RecordBody::HintAdded { text } => notes.push(text),
                _ => {}
            }
        }
        (checks, notes)
    }
}

fn untyped(result: Result<Typed<Trip>, RunError>) -> (String, Outcome) {
    match result.unwrap_err() {
        RunError::NotTyped { problem, outcome } => (problem, *outcome),
        RunError::Failed { outcome } => (outcome.error.clone().unwrap(), *outcome),
        error @ RunError::NotFinished { .. } => {
            let problem = error.to_string();
            (problem, Outcome::of_result(Err(error)).unwrap())
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn typed_answer_that_fits_is_returned_as_a_value() {
    let stage = stage(texts(&[PARIS]), |b| b);
    let typed = stage.agent.run_typed::<Trip>("A trip to Paris").await.unwrap();
    assert_eq!((&typed.value, typed.outcome.turns), (&paris(), 1));
    assert_eq!(stage.checks(&typed.outcome).await, (vec![String::new()], vec![]));
    // A model that holds its answer to a schema by itself is given it, and the tools stay.
    let requests = stage.model.requests();
    let format = requests[0].options.response_format.as_ref().unwrap();
    assert_eq!((format.name.as_str(), requests[0].tools.len()), ("Trip", 1));
    assert_eq!(format.schema["required"], json!(["city", "days"]));
    // Without a form nobody looks.
    let outcome = stage.agent.run("A trip to Paris").await.ended();
    assert!(stage.model.requests()[1].options.response_format.is_none());
    assert_eq!(stage.checks(&outcome).await.0.len(), 0);
}

#[tokio::test]
async fn invalid_structured_output_is_sent_back_with_its_problems() {
    let stage = stage(texts(&["It is three days in Paris.", NO_DAYS, PARIS]), |b| b);
    let typed = stage.agent.run_typed::<Trip>("A trip to Paris").await.unwrap();
    assert_eq!((&typed.value, typed.outcome.turns), (&paris(), 3));
    let (checks, notes) = stage.checks(&typed.outcome).await;
    assert_eq!(checks[1..], [r#"at /days: "three" is not of type "integer""#, ""]);
    assert!(checks[0].starts_with("it is not JSON: "), "{checks:?}");
    assert_eq!(
        notes[1],
        "Your answer does not match the JSON schema that it must have:\n- at /days: \"three\" is not of type \"integer\"\nAnswer \
         again: the whole JSON, and nothing else."
    );
    let last = stage.model.requests().pop().unwrap();
    assert_eq!(last.messages.iter().last().unwrap().text(), notes[1], "the model reads it");
}

#[tokio::test]
async fn typed_answer_that_never_fits_fails_with_the_last_answer() {
    let stage = stage(texts(&[NO_DAYS]), |b| b);
    let (problem, outcome) = untyped(stage.agent.run_typed("A trip to Paris").await);
    assert_eq!(
        problem,
        "the answer does not fit its schema (try 3 of 3): at /days: \"three\" is not of type \"integer\""
    );
    assert_eq!(
        (outcome.status, outcome.turns, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Failed, 3, NO_DAYS)
    );
    assert_eq!(stage.checks(&outcome).await.0.len(), 3);
    // Whoever takes it up asks again, as often as before.
    let again = stage.agent.resume(outcome.run.clone()).await.unwrap().typed::<Trip>().await;
    assert_eq!(untyped(again).1.turns, 6);
    let none = stage.agent.answering(OutputSchema::of::<Trip>().with_retries(0));
    let outcome = none.run("A trip to Paris").await.ended();
    assert_eq!((outcome.status, outcome.turns), (OutcomeStatus::Failed, 1));
}

#[tokio::test]
async fn tools_are_called_before_the_answer_and_between_two() {
    let call = |n: usize| crate_call(&format!("c{n}"), &format!("{n}+2"));
    let stage = stage(
        move |n, _| match n {
            0 | 2 => call(n),
            1 => FnProvider::text(NO_DAYS),
            _ => FnProvider::text(PARIS),
        },
        |b| b,
    );
    let typed = stage.agent.run_typed::<Trip>("A trip to Paris").await.unwrap();
    assert_eq!((typed.value, typed.outcome.turns), (paris(), 4));
    assert!(stage.model.requests().iter().all(|request| request.tools.len() == 1));
}

fn crate_call(id: &str, expression: &str) -> Events {
    let arguments = json!({ "expression": expression });
    FnProvider::calls(vec![archon::types::ToolCall::new(id, "calculator", arguments)])
}

#[tokio::test]
async fn text_mode_puts_the_schema_into_the_instructions() {
    let stage = stage(
        |n, request| {
            assert!(request.options.response_format.is_none(), "the model has to write more than the answer");
            assert!(request.system.as_ref().unwrap().as_str().contains(r#""required":["city","days"]"#));
            FnProvider::text(match n {
                0 => "Action: {\"tool\": \"calculator\", \"arguments\": {\"expression\": \"1+2\"}}",
                1 => "Thought: done\nFinal Answer: three days in Paris",
                _ => "Final Answer: ```json\n{\"city\": \"Paris\", \"days\": 3}\n```",
            })
        },
        |b| b.tool_mode(ToolMode::Text),
    );
    let typed = stage.agent.run_typed::<Trip>("A trip to Paris").await.unwrap();
    assert_eq!((&typed.value, typed.outcome.last_text().unwrap_or_default()), (&paris(), PARIS));
    let (_, notes) = stage.checks(&typed.outcome).await;
    assert!(notes[0].ends_with("write `Final Answer:`, then the whole JSON and nothing else."), "{notes:?}");
}

fn delta(text: &str) -> String {
    let choice = json!({"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": null});
    json!({"id": "r1", "choices": [choice]}).to_string()
}

/// What an OpenAI-compatible service is asked for, and with what it answers in prose.
async fn over_openai(support: ResponseFormatSupport) -> serde_json::Value {
    let end =
        json!({"id": "r1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).to_string();
    let said = |text: &str| MockResponse::events([delta(text), end.clone(), "[DONE]".to_owned()]);
    let server = MockServer::start([said(NO_DAYS), said(&format!("Here:\n```json\n{PARIS}\n```"))]).await;
    let mut compat = Compat::default();
    compat.response_format = support;
    let provider =
        OpenAiCompatible::new(&server.url(), OpenAiOptions::default().with_compat(compat)).unwrap();
    let agent = Archon::builder().provider(Arc::new(provider), "m").tool(Calculator::new()).build().unwrap();
    let typed = agent.run_typed::<Trip>("A trip to Paris").await.unwrap();
    assert_eq!((typed.value, typed.outcome.turns), (paris(), 2));
    server.requests()[1].body.clone()
}

#[tokio::test]
async fn structured_output_is_requested_natively_as_a_tool_or_in_text() {
    let native = over_openai(ResponseFormatSupport::JsonSchema).await;
    assert_eq!(native["response_format"]["json_schema"]["name"], "Trip");
    let prompted = over_openai(ResponseFormatSupport::Instructions).await;
    assert!(prompted.get("response_format").is_none());
    assert!(prompted["messages"][0]["content"].to_string().contains("days"), "{prompted}");

    let block = |index: u32, input: &str| {
        [
            json!({"type": "content_block_start", "index": index,
                "content_block": {"type": "tool_use", "id": "t", "name": "Trip", "input": {}}}),
            json!({"type": "content_block_delta", "index": index,
                "delta": {"type": "input_json_delta", "partial_json": input}}),
            json!({"type": "content_block_stop", "index": index}),
        ]
    };
    let said = |input: &str| {
        let mut events = vec![json!({"type": "message_start", "message": {"id": "m", "type": "message",
            "role": "assistant", "content": [], "model": "claude", "usage": {"input_tokens": 1, "output_tokens": 1}}})];
        events.extend(block(0, input));
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}}));
        events.push(json!({"type": "message_stop"}));
        MockResponse::events(events.iter().map(ToString::to_string))
    };
    let server = MockServer::start([said(NO_DAYS), said(PARIS)]).await;
    let provider = Anthropic::new(&server.url(), AnthropicOptions::default()).unwrap();
    // A model that has no other way.
    let model = "claude-3-5-haiku-latest";
    let agent =
        Archon::builder().provider(Arc::new(provider), model).tool(Calculator::new()).build().unwrap();
    let typed = agent.run_typed::<Trip>("A trip to Paris").await.unwrap();
    assert_eq!((typed.value, typed.outcome.turns), (paris(), 2));
    let body = server.requests()[1].body.clone();
    let tools: Vec<_> = body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(tools, ["calculator", "Trip"]);
}

#[derive(Debug, PartialEq, serde::Deserialize, JsonSchema)]
enum Tree {
    Leaf,
    Twigs(Vec<Tree>),
}

#[tokio::test]
async fn typed_answer_of_a_non_object_is_wrapped_in_an_object() {
    let stage = stage(texts(&["[1, 2]", r#"{"value": [1, 2]}"#]), |b| b);
    let typed = stage.agent.run_typed::<Vec<u8>>("Two numbers").await.unwrap();
    assert_eq!((typed.value, typed.outcome.turns), (vec![1, 2], 2));
    let format = stage.model.requests()[0].options.response_format.clone().unwrap();
    assert_eq!((&format.schema["type"], &format.schema["required"]), (&json!("object"), &json!(["value"])));
    const SAID: &str = r#"{"value": {"Twigs": ["Leaf", {"Twigs": []}]}}"#;
    let stage = self::stage(texts(&[r#"{"value": {"Twigs": ["Fruit"]}}"#, SAID]), |b| b);
    let typed = stage.agent.run_typed::<Tree>("A tree").await.unwrap();
    let tree = Tree::Twigs(vec![Tree::Leaf, Tree::Twigs(vec![])]);
    assert_eq!((typed.value, typed.outcome.turns), (tree, 2), "a type that holds itself");
    let schema = json!({"type": "thing"});
    let error = stage.agent.answering(OutputSchema::new("x", schema)).run("?").await.unwrap_err();
    assert!(matches!(error.cause(), Some(LoopError::InvalidSchema { .. })), "{error:?}");
}

#[tokio::test]
async fn structured_output_retries_count_in_the_budget() {
    let limits = |turns, on_limit| {
        let mut limits = ExecutionLimits::default();
        (limits.max_turns, limits.on_limit) = (turns, on_limit);
        limits
    };
    let stage = stage(texts(&[NO_DAYS]), |b| b.limits(limits(2, OnLimit::Stop)));
    let (problem, outcome) = untyped(stage.agent.run_typed("A trip to Paris").await);
    assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Turns { max: 2 }));
    assert_eq!((outcome.turns, outcome.last_text().unwrap_or_default()), (2, NO_DAYS));
    assert!(problem.contains("at /days"), "{problem}");
    assert_eq!(stage.checks(&outcome).await.0.len(), 2);
    // The last words at a limit are held against the form, too, and count if they fit.
    let stage = self::stage(texts(&[NO_DAYS, PARIS]), |b| b.limits(limits(1, OnLimit::ForceSummary)));
    let typed = stage.agent.run_typed::<Trip>("A trip to Paris").await.unwrap();
    assert_eq!(
        (typed.value, typed.outcome.status),
        (paris(), OutcomeStatus::Limit(LimitReached::Turns { max: 1 }))
    );
    let stage = self::stage(texts(&[NO_DAYS]), |b| b.limits(limits(1, OnLimit::ForceSummary)));
    assert!(untyped(stage.agent.run_typed("A trip to Paris").await).0.contains("at /days"));
    // No answer at all is none, whatever the type would make of nothing.
    let stage =
        self::stage(|n, _| crate_call(&format!("c{n}"), "1+1"), |b| b.limits(limits(1, OnLimit::Stop)));
    assert_eq!(
        untyped(stage.agent.run_typed("A trip to Paris").await).0,
        "run run_00010002 reached a limit: Max turns reached (1)"
    );
}

#[tokio::test]
async fn structured_output_is_checked_before_the_goal() {
    const FAR: &str = r#"{"city": "Paris", "days": 9}"#;
    let stage = stage(texts(&[NO_DAYS, FAR, NO_DAYS, PARIS]), |b| {
        b.expected_output("\"days\": 3").goal_check(GoalCheck::Text)
    });
    let typed = stage.agent.run_typed::<Trip>("A trip to Paris").await.unwrap();
    assert_eq!((typed.value, typed.outcome.turns), (paris(), 4));
    assert_eq!(stage.checks(&typed.outcome).await.0.len(), 4);
}

/// The run dies before or after each of its appends; whoever takes it up comes to the same value, and asks for the
/// same form without being told.
#[tokio::test]
async fn structured_output_run_killed_anywhere_resumes_with_its_schema() {
    let mut deaths = 0;
    for is_written in [false, true] {
        for appends in 1..40 {
            let journal = MortalJournal::default();
            let model = FnProvider::new(|_, request| {
                let said = |text: &str| request.messages.iter().any(|m| m.text().contains(text));
                assert!(request.options.response_format.is_some());
                match (request.messages.iter().any(|m| m.text() == "3"), said("must have")) {
                    (false, _) => crate_call("c", "1+2"),
                    (true, false) => FnProvider::text(NO_DAYS),
                    (true, true) => FnProvider::text(PARIS),
                }
            });
            let agent = builder(&model).journal(Arc::new(journal.clone())).build().unwrap();
            let mut options = RunOptions::default();
            options.run = Some(RunId::new("run_1"));
            journal.die_after(appends, is_written);
            let first = agent.run_typed_with::<Trip>("A trip to Paris", options).await;
            journal.live();
            if let Ok(typed) = first {
                assert_eq!(typed.value, paris());
                break;
            }
            let kept = journal.log("run_1");
            let is_asked = kept.iter().any(|record| matches!(record.body, RecordBody::MessageAdded { .. }));
            let has_ended = kept.iter().any(|record| matches!(record.body, RecordBody::RunFinished(_)));
            if !is_asked || has_ended {
                continue;
            }
            deaths += 1;
            // Another process, which knows nothing of the type until it reads the answer.
            let typed = agent.resume(RunId::new("run_1")).await.unwrap().typed::<Trip>().await.unwrap();
            assert_eq!((typed.value, typed.outcome.status), (paris(), OutcomeStatus::Finished));
            assert!(replay(&journal, &RunId::new("run_1")).await.unwrap().is_identical());
        }
    }
    assert!(deaths > 15, "{deaths}");
}

#[tokio::test]
async fn a_run_is_watched_and_cancelled_like_any_other() {
    use futures_util::StreamExt;
    let stage = stage(texts(&[NO_DAYS, PARIS]), |b| b);
    let agent = stage.agent.answering(OutputSchema::of::<Trip>());
    let mut handle = agent.start("A trip to Paris", RunOptions::default()).await.unwrap();
    let mut checks = 0;
    while let Some(event) = handle.next().await {
        if let archon::types::Event::Record { record, .. } = event {
            checks += u32::from(matches!(record.body, RecordBody::OutputChecked { .. }));
        }
    }
    assert_eq!((handle.typed::<Trip>().await.unwrap().value, checks), (paris(), 2));
    let cancel = archon::types::CancellationToken::new();
    cancel.cancel();
    let mut options = RunOptions::default();
    options.cancel = Some(cancel);
    let (problem, outcome) = untyped(stage.agent.run_typed_with("A trip to Paris", options).await);
    assert_eq!(
        (problem.as_str(), outcome.status),
        ("run run_00010004 was cancelled", OutcomeStatus::Cancelled)
    );
    assert_eq!(stage.agent.resume(outcome.run).await.unwrap().typed::<Trip>().await.unwrap().value, paris());
}
