//! Limits, system text and tools of one run, also when another process takes it up; and agents from one builder.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use archon::{
    Archon, ArchonBuilder, OutcomeStatus, RunError, RunOptions, ToolEngine, ToolRegistry,
    store::InMemoryJournal,
    tool,
    tools::EngineOptions,
    types::{
        Answer, AskLater, ExecutionLimits, LimitReached, Message, ModelPrice, RecordBody, Request, ToolCall,
    },
};
use archon_testkit::{Ended, FnProvider};
use serde_json::json;

/// Gives a customer money back.
#[tool(requires_confirmation, summary = "Refund {cents} cents of order {order}")]
async fn refund(#[state] ledger: &Arc<AtomicU64>, order: String, cents: u64) -> String {
    ledger.fetch_add(cents, Ordering::Relaxed);
    format!("refunded {order}")
}

/// Deletes a customer.
#[tool]
async fn delete(#[state] deleted: &Arc<AtomicU64>) -> String {
    deleted.fetch_add(1, Ordering::Relaxed);
    "deleted".to_owned()
}

#[derive(Default)]
struct Shop {
    ledger: Arc<AtomicU64>,
    deleted: Arc<AtomicU64>,
    journal: InMemoryJournal,
}

impl Shop {
    fn desk(&self, model: &FnProvider) -> ArchonBuilder {
        Archon::builder()
            .name("support desk")
            .system("Help.")
            .provider(Arc::new(model.clone()), "scripted")
            .journal(Arc::new(self.journal.clone()))
            .tool(refund(self.ledger.clone()))
            .tool(delete(self.deleted.clone()))
            .approver(Arc::new(AskLater))
    }
}

/// Refunds, then deletes whom it can, then says so.
fn model() -> FnProvider {
    FnProvider::new(|_, request| {
        let results = request.messages.iter().filter(|m| matches!(&***m, Message::ToolResult(_))).count();
        match results {
            0 => FnProvider::calls(vec![ToolCall::new("a", "refund", json!({"order": "A-1", "cents": 40}))]),
            1 => FnProvider::calls(vec![ToolCall::new("b", "delete", json!({}))]),
            _ => FnProvider::text("Done."),
        }
    })
}

fn system_and_tools(request: &Request) -> (String, Vec<String>) {
    let system = request.system.as_ref().map(|system| String::clone(system)).unwrap_or_default();
    (system, request.tools.iter().map(|tool| tool.name.clone()).collect())
}

fn narrow() -> RunOptions {
    RunOptions::default()
        .with_limits(ExecutionLimits::default().with_max_turns(2))
        .with_system("Refund, nothing else.")
        .with_tools(["refund"])
}

// spec: AP-05
#[tokio::test]
async fn resume_elsewhere_of_a_run_with_limits_system_and_tools_of_its_own_keeps_them() {
    let (shop, first, second) = (Shop::default(), model(), model());
    let desk = shop.desk(&first).build().unwrap();
    let waits = desk.run_with("My chair is broken.", narrow()).await.ended();
    assert_eq!(waits.status, OutcomeStatus::Suspended, "{waits:?}");
    let question = desk.approvals(None).await.unwrap().remove(0).request;
    assert_eq!(question.agent_name, "support desk");
    assert_eq!(question.action_summary, "Refund 40 cents of order A-1");
    drop(desk);

    // Another process, whose agent may do more.
    let desk = shop.desk(&second).system("Do whatever is asked.").build().unwrap();
    assert!(desk.answer(&question.request_id, Answer::Approve).await.unwrap());
    let outcome = desk.resume(waits.run.clone()).await.unwrap().reply().await.ended();
    assert_eq!(shop.ledger.load(Ordering::Relaxed), 40);
    assert_eq!(shop.deleted.load(Ordering::Relaxed), 0, "the run has no such tool");
    assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Turns { max: 2 }), "{outcome:?}");
    for request in first.requests().iter().chain(&second.requests()) {
        assert_eq!(
            system_and_tools(request),
            ("Refund, nothing else.".to_owned(), vec!["refund".to_owned()])
        );
    }
    let log = desk.journal().read(&waits.run).await.unwrap();
    let refused = log.iter().filter_map(|record| match &record.body {
        RecordBody::ToolCallRefused { result, .. } => Some(result.text()),
        _ => None,
    });
    assert_eq!(refused.collect::<Vec<_>>(), ["Error: Tool 'delete' not found. Available tools: refund."]);
}

#[tokio::test]
async fn options_of_one_run_change_no_other_run_of_the_agent() {
    let (shop, model) = (Shop::default(), model());
    let desk = shop.desk(&model).build().unwrap();
    desk.run_with("My chair is broken.", narrow().without_tools()).await.ended();
    let talk = desk.conversation();
    talk.prompt_with(vec![Message::user("Hello", desk_time()).into()], narrow())
        .await
        .unwrap()
        .reply()
        .await
        .ended();
    desk.run("My table is broken.").await.ended();
    let told: Vec<_> = model.requests().iter().map(system_and_tools).collect();
    let own = |system: &str, tools: &[&str]| {
        (system.to_owned(), tools.iter().map(|&tool| tool.to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(told.first(), Some(&own("Refund, nothing else.", &[])));
    assert_eq!(told[told.len() - 2], own("Refund, nothing else.", &["refund"]));
    assert_eq!(told.last(), Some(&own("Help.", &["delete", "refund"])));
}

fn desk_time() -> archon::types::Timestamp {
    archon::types::Timestamp::from_millis(0)
}

#[tokio::test]
async fn run_with_a_cost_limit_that_is_spent_ends_at_it() {
    let (shop, model) = (Shop::default(), model());
    let mut price = ModelPrice::default();
    (price.input, price.output) = (1_000_000, 1_000_000);
    let desk = shop.desk(&model).price(price).build().unwrap();
    let limits = desk.limits().clone().with_max_cost_micros(1);
    let outcome = desk.run_with("Hello", RunOptions::default().with_limits(limits)).await.ended();
    assert_eq!(
        outcome.status,
        OutcomeStatus::Limit(LimitReached::Cost { max_cost_micros: 1 }),
        "{outcome:?}"
    );
    assert!(model.requests().is_empty());
}

#[tokio::test]
async fn run_with_an_unknown_tool_is_refused_with_the_nearest_name() {
    let shop = Shop::default();
    let desk = shop.desk(&model()).build().unwrap();
    let refused = desk.run_with("Hello", RunOptions::default().with_tools(["refunds"])).await.unwrap_err();
    assert_eq!(refused.to_string(), "the agent has no tool `refunds`; did you mean `refund`?");
    assert!(desk.start("Hello", RunOptions::default().with_tools(["pay"])).await.is_err());
}

#[tokio::test]
async fn agents_side_by_side_with_tools_for_one_run_are_refused() {
    let shop = Shop::default();
    let desk = shop.desk(&model()).build().unwrap();
    let both = desk.parallel([desk.clone()], Arc::new(archon::react_loop::Transparent)).unwrap();
    let options = RunOptions::default().with_tools(["refund"]);
    let refused = both.run_with("Hello", options).await.unwrap_err();
    assert!(matches!(refused, RunError::NoEffect { option: "tools", .. }), "{refused}");
}

#[tokio::test]
async fn builder_that_is_cloned_or_taken_from_an_agent_builds_agents_with_the_same_parts() {
    let (shop, model) = (Shop::default(), model());
    let builder =
        Archon::builder().provider(Arc::new(model.clone()), "scripted").tool(refund(shop.ledger.clone()));
    let desk = builder.clone().system("Short.").build().unwrap();
    let other = desk.to_builder().system("Long.").build().unwrap();
    assert!(Arc::ptr_eq(desk.journal(), other.journal()), "one journal in memory");
    let apart = builder.build().unwrap();
    assert!(!Arc::ptr_eq(desk.journal(), apart.journal()), "each build has its own");
    for agent in [&desk, &other, &apart] {
        agent.run("Hello").await.ended();
    }
    let systems: Vec<_> = model.requests().iter().map(|request| system_and_tools(request).0).collect();
    assert!(
        systems.starts_with(&["Short.".to_owned()]) && systems.contains(&"Long.".to_owned()),
        "{systems:?}"
    );
}

#[tokio::test]
async fn to_builder_keeps_the_structured_output() {
    let form = archon::OutputSchema::of::<u32>();
    let agent = Shop::default().desk(&model()).build().unwrap().answering(form);
    let other = agent.to_builder().build().unwrap();
    let model = FnProvider::new(|_, _| FnProvider::text("{\"value\": 7}"));
    let third = other.to_builder().provider(Arc::new(model.clone()), "scripted").build().unwrap();
    third.run("How many?").await.ended();
    assert!(model.requests()[0].options.response_format.is_some());
}

#[test]
fn data_dir_of_a_builder_that_is_cloned_is_opened_once() {
    let dir = tempfile::tempdir().unwrap();
    let builder = Shop::default().desk(&model()).data_dir(dir.path().join("runs"));
    let (one, two) = (builder.clone().build().unwrap(), builder.build().unwrap());
    assert!(Arc::ptr_eq(one.journal(), two.journal()));
}

#[test]
fn build_with_a_part_that_has_no_effect_is_refused() {
    let toolbox = || Arc::new(ToolEngine::new(ToolRegistry::new()));
    let desk = || Archon::builder().provider(Arc::new(model()), "scripted");
    for (builder, expected) in [
        (
            desk().tool(delete(Arc::default())).toolbox(toolbox()),
            "`tool` has no effect together with `toolbox`",
        ),
        (
            desk().toolbox(toolbox()).engine_options(EngineOptions::default()),
            "`engine_options` has no effect together with `toolbox`",
        ),
        (desk().api_keys(["sk-1"]), "`api_keys` has no effect together with `provider`"),
    ] {
        let refused = builder.build().unwrap_err();
        assert_eq!(refused.to_string(), expected);
        assert!(!refused.advice().is_empty());
    }
    assert!(desk().toolbox(toolbox()).build().is_ok());
}
