//! What a program writes itself: approvers, hooks, guards and planners of closures and of async functions; text as it
//! comes; and builders that refuse what they would ignore.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use archon::{
    BuildError, SubAgentTool,
    prelude::*,
    providers::{ScriptedProvider, Step},
    store::InMemoryJournal,
    types::{
        AgentMessage, Context, ContextConfig, ExtensionMessage, GoalCheck, Journal, Json, Origin, RecordBody,
        RunAgent, RunFilter, RunSettings, SubTask, Task, ToolAnnotations, ToolCall, ToolSpec,
    },
};
use archon_testkit::{FnProvider, SeededIds, VirtualClock};
use futures_util::StreamExt;
use serde_json::json;

fn builder(model: FnProvider) -> ArchonBuilder {
    Archon::builder()
        .provider(Arc::new(model), "m")
        .clock(Arc::new(VirtualClock::new()))
        .ids(Arc::new(SeededIds::new(1)))
        .tool(pay())
}

// spec: Q-01
#[tokio::test]
async fn an_agent_a_tool_and_a_registry_are_names_of_the_facade() {
    let registry = archon::ToolRegistry::new();
    registry.register_all([Arc::new(pay()) as Arc<dyn archon::Tool>]).unwrap();
    assert_eq!(registry.names(), ["pay"]);
    let model = FnProvider::new(|_, _| FnProvider::text("Done."));
    let agent: Arc<dyn archon::Agent> = Arc::new(builder(model).build().unwrap());
    let (clock, ids) = (Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(2)));
    let context = Context::new("run_1".into(), "s".into(), clock, ids);
    let outcome = archon::Agent::run(&*agent, "Do it", &context).await;
    assert_eq!(outcome.last_text(), Some("Done."));
}

// spec: T-05
#[tokio::test]
async fn extension_messages_are_logged_and_never_sent() {
    let model = FnProvider::new(|_, _| FnProvider::text("Done."));
    let journal = InMemoryJournal::new();
    let agent = builder(model.clone()).journal(Arc::new(journal.clone())).build().unwrap();
    let pane = || AgentMessage::from(ExtensionMessage::new("ui_update", json!({ "pane": "left pane" })));
    let prompts = || vec![pane(), AgentMessage::from("Do it"), pane()];
    let talk = agent.conversation();
    for _ in 0..2 {
        let run = talk.prompt_messages(prompts()).await.unwrap();
        assert_eq!(run.reply().await.unwrap().into_text().unwrap(), "Done.");
    }
    let planner = FnPlanner::new(|goal, _| async move {
        Ok(Task::new("t", goal).with_subtasks(vec![SubTask::new("a", "Do it")]))
    });
    let (clock, ids) = (Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(2)));
    let context = Context::new("plan".into(), "s".into(), clock, ids);
    let planning = agent.planning(planner);
    let outcome = RunAgent::begin(&planning, prompts(), Origin::Prompt, RunSettings::default(), &context);
    assert!(outcome.await.unwrap().is_finished());

    let mut kept = Vec::new();
    for head in journal.list(&RunFilter::all().top_level()).await.unwrap() {
        let records = journal.read(&head.run_id).await.unwrap();
        let is_pane = |body: &RecordBody| matches!(body, RecordBody::MessageAdded { message, .. } if *message == pane());
        kept.push(records.iter().filter(|record| is_pane(&record.body)).count());
    }
    assert_eq!(kept, [2, 2, 2], "two runs of the conversation, and the plan");
    assert!(model.requests().len() > 2);
    for request in model.requests() {
        assert!(!format!("{request:?}").contains("left pane"), "{request:?}");
    }
}

/// A tool that needs consent.
fn pay() -> impl Tool {
    let mut annotations = ToolAnnotations::default();
    annotations.requires_confirmation = true;
    let spec = ToolSpec::new("pay", "Pays.", json!({"type": "object"})).with_annotations(annotations);
    archon::tools::FnTool::new(spec, |_: Json, _: ToolContext| async { Ok(ToolResult::success("paid 42")) })
}

/// Calls the tool once, and then says what came of it.
fn pays() -> FnProvider {
    FnProvider::new(|n, request| match n {
        0 => FnProvider::calls(vec![ToolCall::new("c1", "pay", json!({}))]),
        _ => FnProvider::text(&request.messages.iter().last().unwrap().text()),
    })
}

#[tokio::test]
async fn approver_and_hooks_from_closures_are_called() {
    let agrees = FnApprover::new(|request: ApprovalRequest| async move {
        assert!(request.action_summary.contains("pay"), "{request:?}");
        Decision::Now(Answer::Approve)
    });
    let ended = Arc::new(AtomicUsize::new(0));
    let count = ended.clone();
    let hooks =
        FnHooks::new().before_tool(|call| async move { call.name == "pay" }).after_loop(move |outcome| {
            let count = count.clone();
            async move { _ = count.fetch_add(outcome.turns as usize, Ordering::SeqCst) }
        });
    let agent = builder(pays()).approver(agrees).hooks(hooks).build().unwrap();
    assert_eq!(agent.run("Pay.").await.unwrap().into_text().unwrap(), "paid 42");
    assert_eq!(ended.load(Ordering::SeqCst), 2);

    let skips = FnHooks::new().before_tool(|_| async { false });
    let agrees = FnApprover::new(|_| async { Decision::Now(Answer::Approve) });
    let agent = builder(pays()).approver(agrees).hooks(skips).build().unwrap();
    assert!(!agent.run("Pay.").await.unwrap().into_text().unwrap().contains("paid"));
}

/// Blacks the sum out.
struct Discreet;

impl CallGuard for Discreet {
    fn after(&self, tool: &ToolSpec, _: &Context, result: &mut ToolResult) {
        assert_eq!(tool.name, "pay");
        *result = ToolResult::success(result.text().replace("42", "some"));
    }
}

#[tokio::test]
async fn own_guard_refuses_before_approval_and_changes_results() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let agrees = move |_: ApprovalRequest| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Decision::Now(Answer::Approve) }
    };
    let closed = FnGuard::new(|call| match call.tool.name.as_str() {
        "pay" => Err(format!("The bank is closed for {}.", call.arguments)),
        _ => Ok(()),
    });
    let agent = builder(pays()).approver(FnApprover::new(agrees.clone())).guard(closed).build().unwrap();
    let said = agent.run("Pay.").await.unwrap().into_text().unwrap();
    assert!(said.contains("The bank is closed for {}."), "{said}");
    assert_eq!(asked.load(Ordering::SeqCst), 0, "nobody is asked about what is refused");

    let agent = builder(pays()).approver(FnApprover::new(agrees)).guard(Discreet).build().unwrap();
    assert_eq!(agent.run("Pay.").await.unwrap().into_text().unwrap(), "paid some");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn planner_of_a_closure_makes_the_plan() {
    let planner = FnPlanner::new(|goal, _| async move {
        let step = SubTask::new("a", format!("Ponder why {goal}"));
        Ok(Task::new("t", goal).with_subtasks(vec![step]))
    });
    let model = FnProvider::new(|_, _| FnProvider::text("thought"));
    let agent = builder(model.clone()).build().unwrap();
    let reply = agent.planning(planner).run("the sky is blue").await.unwrap();
    assert_eq!(reply.into_text().unwrap(), "thought");
    let asked: Vec<_> = model.requests().iter().map(|r| r.messages.iter().last().unwrap().text()).collect();
    assert!(asked[0].contains("Ponder why the sky is blue"), "{asked:?}");
}

#[tokio::test]
async fn text_of_a_run_comes_in_pieces_or_whole() {
    let agent = || {
        let model = ScriptedProvider::new([Step::text("one two three")]);
        Archon::builder().provider(Arc::new(model), "scripted").build().unwrap()
    };
    let mut run = agent().start("Count", RunOptions::default()).await.unwrap();
    let pieces: Vec<String> = run.text_stream().collect().await;
    assert!(!pieces.is_empty());
    assert_eq!(pieces.concat(), "one two three");
    assert_eq!(run.text().await.unwrap(), "one two three", "the reply is there after the pieces");
    let run = agent().start("Count", RunOptions::default()).await.unwrap();
    assert_eq!(run.text().await.unwrap(), "one two three");
}

#[tokio::test]
async fn text_stream_has_the_words_of_the_run_and_not_of_agents_that_it_calls() {
    let agent = |model| Archon::builder().provider(Arc::new(model), "m");
    let helper = agent(FnProvider::new(|_, _| FnProvider::text("whispered"))).build().unwrap();
    let caller = || {
        let model = FnProvider::new(|n, _| match n {
            0 => FnProvider::calls(vec![ToolCall::new("c", "helper", json!({"task": "Whisper"}))]),
            _ => FnProvider::text("said aloud"),
        });
        agent(model).tool(SubAgentTool::new("helper", helper.clone())).build().unwrap()
    };
    let run = caller().start("Ask the helper", RunOptions::default()).await.unwrap();
    let all: String = run.collect::<Vec<_>>().await.iter().filter_map(Event::as_text).collect();
    assert!(all.contains("whispered"), "{all}");
    let mut run = caller().start("Ask the helper", RunOptions::default()).await.unwrap();
    let pieces: Vec<String> = run.text_stream().collect().await;
    assert_eq!(pieces.concat(), "said aloud");
}

#[tokio::test]
async fn hooks_of_closures_end_a_run_before_a_turn_and_hear_results() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let results = heard.clone();
    let hooks =
        FnHooks::new().before_turn(|turn| async move { turn == 0 }).after_tool(move |call, result| {
            results.lock().unwrap().push(format!("{}: {}", call.name, result.text()));
            async {}
        });
    let agrees = FnApprover::new(|_| async { Decision::Now(Answer::Approve) });
    let model = pays();
    let agent = builder(model.clone()).approver(agrees).hooks(hooks).build().unwrap();
    agent.run("Pay.").await.ok();
    assert_eq!(model.requests().len(), 1, "the second turn is not begun");
    assert_eq!(*heard.lock().unwrap(), ["pay: paid 42"]);
}

#[tokio::test]
async fn hooks_from_closures_get_the_failure() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let errors = heard.clone();
    let hooks = FnHooks::new().on_error(move |error| {
        errors.lock().unwrap().push(error);
        async {}
    });
    let refuses = FnProvider::new(|_, _| vec![Err(archon::types::ProviderError::Auth("no key".into()))]);
    let agent = builder(refuses).hooks(hooks).build().unwrap();
    agent.run("Pay.").await.unwrap_err();
    assert!(heard.lock().unwrap().iter().any(|error| error.contains("no key")), "{heard:?}");
}

#[test]
fn builder_with_an_ignored_option_is_refused() {
    let toolbox = builder(pays()).build().unwrap().toolbox().clone();
    let plain = || Archon::builder().provider(Arc::new(pays()), "m");
    let refused = [
        (plain().toolbox(toolbox.clone()).guard(Discreet), "guard", "toolbox"),
        (plain().toolbox(toolbox.clone()).tool(pay()), "tool", "toolbox"),
        (plain().toolbox(toolbox).engine_options(EngineOptions::default()), "engine_options", "toolbox"),
        (plain().api_keys(["k"]), "api_keys", "provider"),
        (plain().http(archon::providers::HttpOptions::default()), "http", "provider"),
        (
            plain().context(None::<ContextConfig>).context_parts(Default::default()),
            "context_parts",
            "context(None)",
        ),
    ];
    for (builder, given, reason) in refused {
        let error = builder.build().unwrap_err();
        let is_as_said =
            matches!(error, BuildError::NoEffect { setting, beside } if setting == given && beside == reason);
        assert!(is_as_said && !error.advice().is_empty(), "{error}");
    }
    let error = plain().goal_check(GoalCheck::Text).build().unwrap_err();
    assert!(matches!(error, BuildError::Needs { setting: "goal_check", .. }), "{error}");
}

#[tokio::test]
async fn conversation_refuses_options_that_choose_a_run() {
    let talk = builder(pays()).build().unwrap().conversation();
    let said = || vec![archon::types::Message::user("Hi", Default::default()).into()];
    for options in [
        RunOptions::default().with_run("r".into()),
        RunOptions::in_session("s".into()),
        RunOptions::default().branch(),
    ] {
        let error = talk.prompt_with(said(), options).await.unwrap_err();
        assert!(matches!(error, RunError::NoEffect { on: "a prompt of a conversation", .. }), "{error}");
    }
}
