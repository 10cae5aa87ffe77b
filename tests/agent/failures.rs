//! What a run does about a model that gives no answer, and about a tool that keeps failing.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use archon::{
    Archon, ArchonBuilder, Outcome, OutcomeStatus, RunId, RunOptions, Tool, ToolContext, ToolError,
    providers::{OpenAiCompatible, OpenAiOptions, model_info},
    react_loop::{Fallback, LoopError, replay},
    store::InMemoryJournal,
    tools::FnTool,
    types::{
        ApiErrorKind, BoxStream, CancellationToken, Capabilities, CircuitBreaker, Delta, DeltaKind,
        Durability, Event, ExecutionLimits, FallbackStep, Journal, LimitReached, ModelEvent, ModelPrice,
        OpenMode, Provider, ProviderError, Record, RecordBody, Request, RequestOptions, RetryConfig,
        ThinkingLevel, ToolCall, ToolResult, ToolSpec,
    },
};
use archon_testkit::{Ended, FnProvider, MockResponse, MockServer, RecordingSink, SeededIds, VirtualClock};
use expect_test::{Expect, expect};
use serde_json::json;

use crate::shared::wire;

type Events = Vec<Result<ModelEvent, ProviderError>>;

/// A model under a name of its own.
struct Named(&'static str, FnProvider);

impl Provider for Named {
    fn id(&self) -> &str {
        self.0
    }

    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        self.1.stream(request, cancel)
    }
}

fn model(
    id: &'static str,
    answer: impl Fn(usize, &Request) -> Events + Send + Sync + 'static,
) -> (Arc<dyn Provider>, FnProvider) {
    let model = FnProvider::new(answer);
    (Arc::new(Named(id, model.clone())), model)
}

/// A model that always says this.
fn says(id: &'static str, text: &'static str) -> Arc<dyn Provider> {
    model(id, move |_, _| FnProvider::text(text)).0
}

/// A model that always fails like this.
fn fails(id: &'static str, error: ProviderError) -> (Arc<dyn Provider>, FnProvider) {
    model(id, move |_, _| vec![Err(error.clone())])
}

fn busy() -> ProviderError {
    ProviderError::Overloaded { status: 503, retry_after: None, message: "busy".into() }
}

fn call(name: &str, n: usize) -> ToolCall {
    ToolCall::new(format!("{name}_{n}"), name, json!({ "n": n }))
}

/// A tool, and how often it ran.
fn tool(
    spec: ToolSpec,
    work: impl Fn(usize) -> Result<ToolResult, ToolError> + Send + Sync + 'static,
) -> (Arc<dyn Tool>, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let (count, work) = (runs.clone(), Arc::new(work));
    let run = move |_: serde_json::Value, _: ToolContext| {
        let (n, work) = (count.fetch_add(1, Ordering::SeqCst), work.clone());
        async move { work(n) }
    };
    (Arc::new(FnTool::new(spec, run)), runs)
}

fn spec(name: &str) -> ToolSpec {
    ToolSpec::new(name, format!("Does {name}."), json!({"type": "object"}))
}

/// An agent on a clock that jumps to whatever it waits for.
fn agent(journal: &InMemoryJournal) -> ArchonBuilder {
    Archon::builder()
        .journal(Arc::new(journal.clone()))
        .clock(Arc::new(VirtualClock::jumping()))
        .ids(Arc::new(SeededIds::new(1)))
}

fn run_id() -> RunId {
    RunId::new("run")
}

async fn work(agent: ArchonBuilder) -> Outcome {
    let mut options = RunOptions::default();
    options.run = Some(run_id());
    agent.build().unwrap().run_with("Do it.", options).await.ended()
}

async fn log(journal: &InMemoryJournal) -> Vec<Arc<Record>> {
    journal.read(&run_id()).await.unwrap()
}

/// What became of each attempt, a line each; and the log replays to itself.
async fn check_attempts(journal: &InMemoryJournal, expected: Expect) {
    let log = log(journal).await;
    let line = |record: &Arc<Record>| match &record.body {
        RecordBody::ModelCallFinished { attempt, message, .. } => {
            Some(format!("attempt {attempt} answered by {}:{}\n", message.provider, message.model))
        }
        RecordBody::ModelCallFailed { attempt, failure, .. } => {
            Some(format!("attempt {attempt} failed: {}\n", failure.message))
        }
        RecordBody::FallbackSelected { fallback: step, code, .. } => Some(format!("{code}: {step}\n")),
        RecordBody::ToolCallFinished { call, result } | RecordBody::ToolCallRefused { call, result } => {
            Some(format!("{call}: {}\n", result.text()))
        }
        _ => None,
    };
    expected.assert_eq(&log.iter().filter_map(line).collect::<String>());
    assert!(replay(journal, &run_id()).await.unwrap().is_identical(), "{log:#?}");
}

// spec: ER-09, P-32
#[tokio::test]
async fn refused_key_falls_back_to_the_next_and_no_key_is_logged() {
    let unauthorised = MockResponse::json(401, &json!({"error": {"message": "sk-first is not valid"}}));
    let asks = wire::asks_for("c", "look", "{}");
    let server = MockServer::start([unauthorised, asks, wire::answer("done")]).await;
    let journal = InMemoryJournal::new();
    let agent = agent(&journal)
        .clock(Arc::new(VirtualClock::new())) // A real server takes real time.
        .model(format!("openai-compatible@{}/v1:mock", server.url()))
        .api_keys(["sk-first", "sk-second", "sk-third"])
        .tools([tool(spec("look"), |_| Ok("seen".into())).0]);
    assert_eq!(work(agent).await.last_text(), Some("done"));
    let sent: Vec<_> =
        server.requests().iter().map(|r| r.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(sent, ["Bearer sk-first", "Bearer sk-second", "Bearer sk-second"], "it stays with the key");
    check_attempts(
        &journal,
        expect![[r#"
            attempt 0 failed: not authorised: **** is not valid
            auth: going on with key 2
            attempt 1 answered by openai-compatible:mock
            0.0: seen
            attempt 0 answered by openai-compatible:mock
        "#]],
    )
    .await;
    let kept = serde_json::to_string(&log(&journal).await).unwrap();
    assert!(!kept.contains("sk-"), "{kept}");
}

// spec: P-31
#[tokio::test]
async fn dead_reused_connection_costs_a_recorded_attempt() {
    let asks = wire::asks_for("c", "look", "{}");
    let server = MockServer::start([asks, MockResponse::nothing(), wire::answer("done")]).await;
    let journal = InMemoryJournal::new();
    let mut retry = RetryConfig::default();
    retry.initial_delay_ms = 1;
    let agent = agent(&journal)
        .clock(Arc::new(archon::SystemClock)) // A real server takes real time.
        .model(format!("openai-compatible@{}/v1:mock", server.url()))
        .retry(retry)
        .tools([tool(spec("look"), |_| Ok("seen".into())).0]);
    assert_eq!(work(agent).await.last_text(), Some("done"));
    let connections: Vec<_> = server.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 0, 1], "one request for each attempt");
    let codes: Vec<_> = log(&journal)
        .await
        .iter()
        .filter_map(|record| match &record.body {
            RecordBody::ModelCallFailed { attempt, failure, .. } => Some((*attempt, failure.code)),
            _ => None,
        })
        .collect();
    assert_eq!(codes, [(0, archon::types::ModelErrorCode::Network)]);
}

// spec: P-40
#[tokio::test]
async fn a_run_that_may_cost_so_much_knows_the_price_from_the_catalogue() {
    let used = json!({"choices": [], "usage": {"prompt_tokens": 100_000, "completion_tokens": 0}});
    let asks = || {
        let (call, finish) = (wire::call(0, "c", "look", "{}"), wire::finish("tool_calls"));
        MockResponse::events([call, finish, used.to_string(), "[DONE]".to_owned()])
    };
    let agent = |id: &str, server: &MockServer, cap| {
        let mut limits = ExecutionLimits::default();
        limits.max_cost_micros = cap;
        let mut options = RequestOptions::default();
        options.max_tokens = Some(10);
        let service = OpenAiOptions::default().with_id(id);
        agent(&InMemoryJournal::new())
            .clock(Arc::new(VirtualClock::new())) // A real server takes real time.
            .provider(Arc::new(OpenAiCompatible::new(&server.url(), service).unwrap()), "gpt-5-mini")
            .limits(limits)
            .request_options(options)
            .tools([tool(spec("look"), |_| Ok("seen".into())).0])
            .build()
            .unwrap()
    };
    let price = model_info("openai", "gpt-5-mini").unwrap().price.unwrap();
    let max = price.input / 10 + 1;
    let server = MockServer::start([asks(), asks()]).await;
    let outcome = agent("openai", &server, Some(max)).run("?").await.ended();
    assert_eq!(
        outcome.status,
        OutcomeStatus::Limit(LimitReached::Cost { max_cost_micros: max }),
        "{outcome:?}"
    );
    assert_eq!((outcome.cost_micros, server.requests().len()), (Some(max - 1), 1));

    let server = MockServer::start([wire::answer("done")]).await;
    let unknown = agent("somebody", &server, Some(max)).run("?").await.unwrap_err();
    assert!(unknown.to_string().contains("the price of gpt-5-mini is unknown"), "{unknown}");
    assert!(server.requests().is_empty());
    let unlimited = agent("somebody", &server, None).run("?").await.ended();
    assert_eq!((unlimited.last_text().unwrap_or_default(), unlimited.cost_micros), ("done", None));
}

// spec: ER-09
#[tokio::test]
async fn a_model_that_cannot_think_so_much_thinks_less() {
    let (provider, model) = model("own", |_, request| match request.options.thinking {
        ThinkingLevel::High | ThinkingLevel::Medium => vec![Err(ProviderError::Api {
            status: 400,
            kind: ApiErrorKind::Thinking,
            message: "not so much".into(),
        })],
        _ => FnProvider::text("done"),
    });
    let mut options = RequestOptions::default();
    options.thinking = ThinkingLevel::High;
    let journal = InMemoryJournal::new();
    assert_eq!(
        work(agent(&journal).provider(provider, "m").request_options(options))
            .await
            .last_text()
            .unwrap_or_default(),
        "done"
    );
    let levels: Vec<_> = model.requests().iter().map(|r| r.options.thinking).collect();
    assert_eq!(levels, [ThinkingLevel::High, ThinkingLevel::Medium, ThinkingLevel::Low]);
    check_attempts(
        &journal,
        expect![[r#"
            attempt 0 failed: the service refused the request (Thinking, status 400): not so much
            api: going on with thinking medium
            attempt 1 failed: the service refused the request (Thinking, status 400): not so much
            api: going on with thinking low
            attempt 2 answered by test:test
        "#]],
    )
    .await;
}

/// An agent whose model answers once, with a call, and then no more; a second has no key; a third answers.
fn worn_down(journal: &InMemoryJournal) -> (ArchonBuilder, Vec<FnProvider>, Arc<AtomicUsize>) {
    let (own, first) = model("own", |_, request| match request.messages.len() {
        1 => FnProvider::calls(vec![call("send", 0)]),
        _ => vec![Err(busy())],
    });
    let (refuses, second) = fails("b", ProviderError::Auth("no".into()));
    let (answers, third) = model("c", |_, _| FnProvider::text("done"));
    let (send, runs) = tool(spec("send"), |_| Ok("sent".into()));
    let mut retry = RetryConfig::default();
    retry.max_retries = 1;
    let agent = agent(journal)
        .provider(own, "m1")
        .fallback_provider(Fallback::new(refuses, "m2").with_price(ModelPrice::new(1, 1)))
        .fallback_provider(Fallback::new(answers, "m3").with_price(ModelPrice::new(1, 1)))
        .price(ModelPrice::new(1, 1))
        .retry(retry)
        .tools([send]);
    (agent, vec![first, second, third], runs)
}

// spec: ER-09, ER-08, A-28
#[tokio::test]
async fn fallback_after_retries_repeats_no_tool_call() {
    let journal = InMemoryJournal::new();
    let (agent, models, runs) = worn_down(&journal);
    let outcome = work(agent).await;
    assert_eq!(
        (outcome.last_text().unwrap_or_default(), outcome.turns),
        ("done", 2),
        "the attempts are one turn"
    );
    check_attempts(
        &journal,
        expect![[r#"
            attempt 0 answered by test:test
            0.0: sent
            attempt 0 failed: the service is overloaded or failed (status 503): busy
            attempt 1 failed: the service is overloaded or failed (status 503): busy
            overloaded: going on with b:m2
            attempt 2 failed: not authorised: no
            auth: going on with c:m3
            attempt 3 answered by test:test
        "#]],
    )
    .await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    let asked = models[2].requests();
    assert_eq!((asked[0].model.as_str(), asked[0].messages[2].text().as_str()), ("m3", "sent"));
}

// spec: ER-09, R-39
#[tokio::test]
async fn resumed_run_asks_the_last_used_model() {
    let journal = InMemoryJournal::new();
    work(worn_down(&journal).0).await;
    let whole = log(&journal).await;
    for kept in 2..whole.len() {
        let journal = InMemoryJournal::new();
        let mut open = journal.open(&run_id(), OpenMode::Create).await.unwrap();
        open.writer.append(&whole[..kept], Durability::Synced).await.unwrap();
        drop(open);
        // The failure that leads to a step is the record before it.
        let gave_way = |to: &str| {
            let is_step = |r: &Arc<Record>| matches!(&r.body, RecordBody::FallbackSelected { fallback: step, .. } if step.to_string().ends_with(to));
            kept >= whole.iter().position(is_step).unwrap()
        };
        let (agent, models, _) = worn_down(&journal);
        let resumed = agent.build().unwrap().resume(run_id()).await.unwrap();
        assert!(resumed.reply().await.ended().is_finished(), "{kept}");
        assert_eq!(gave_way("b:m2"), models[0].requests().is_empty(), "{kept}");
        assert_eq!(gave_way("c:m3"), models[1].requests().is_empty(), "{kept}");
        assert!(replay(&journal, &run_id()).await.unwrap().is_identical(), "{kept}");
    }
}

// spec: ER-09
#[tokio::test]
async fn resumed_failed_run_starts_with_its_own_model() {
    let journal = InMemoryJournal::new();
    let mended = Arc::new(Mutex::new(false));
    let build = || {
        let mended = mended.clone();
        let (own, _) = model("own", move |_, _| match *mended.lock().unwrap() {
            true => FnProvider::text("done"),
            false => vec![Err(ProviderError::Auth("no".into()))],
        });
        agent(&journal)
            .provider(own, "m1")
            .fallback_provider(Fallback::new(fails("b", ProviderError::Auth("neither".into())).0, "m2"))
    };
    let outcome = work(build()).await;
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    assert_eq!(outcome.error.as_deref(), Some("not authorised: neither"), "the last failure is told");
    *mended.lock().unwrap() = true;
    let resumed = build().build().unwrap().resume(run_id()).await.unwrap();
    assert_eq!(resumed.reply().await.ended().last_text(), Some("done"));
}

// spec: ER-09, R-38
#[tokio::test]
async fn deltas_of_a_failed_model_are_void_after_a_fallback() {
    let (own, _) = model("own", |_, _| {
        vec![
            Ok(ModelEvent::Start),
            Ok(ModelEvent::TextDelta("The answer is 4".into())),
            Err(ProviderError::Network("reset".into())),
        ]
    });
    let (journal, sink) = (InMemoryJournal::new(), RecordingSink::new());
    let agent = agent(&journal)
        .provider(own, "m1")
        .retry(RetryConfig::none())
        .fallback_provider(Fallback::new(says("b", "It is 5."), "m2"))
        .build()
        .unwrap();
    let options = RunOptions::default().watched_by(Arc::new(sink.clone()));
    assert_eq!(agent.run_with("?", options).await.ended().last_text(), Some("It is 5."));
    let seen = sink.events().into_iter().filter_map(|event| match event {
        Event::Delta(Delta { attempt, kind: DeltaKind::Text { text }, .. }) => {
            Some(format!("{attempt} {text}"))
        }
        Event::Record { record, .. } => match &record.body {
            RecordBody::ModelCallFailed { failure, .. } => Some(format!("void: {}", failure.had_output)),
            RecordBody::FallbackSelected { fallback: step, .. } => Some(step.to_string()),
            _ => None,
        },
        _ => None,
    });
    let seen: Vec<_> = seen.collect();
    assert_eq!(seen, ["0 The answer is 4", "void: true", "going on with b:m2", "1 It is 5."]);
}

// spec: ER-15
#[tokio::test]
async fn a_provider_that_panics_has_failed_like_any_other() {
    let (own, _) = model("own", |_, _| panic!("a bug in the provider"));
    let journal = InMemoryJournal::new();
    let standby = Fallback::new(says("b", "done"), "m2");
    assert_eq!(
        work(agent(&journal).provider(own, "m1").fallback_provider(standby))
            .await
            .last_text()
            .unwrap_or_default(),
        "done"
    );
    check_attempts(
        &journal,
        expect![[r#"
            attempt 0 failed: the provider panicked: a bug in the provider
            other: going on with b:m2
            attempt 1 answered by test:test
        "#]],
    )
    .await;
}

// spec: P-34
#[tokio::test]
async fn failure_text_is_in_the_outcome_and_not_in_a_request() {
    let refused = |_: usize, request: &Request| match request.messages.len() {
        1 => vec![Err(ProviderError::Auth("no such key".into()))],
        _ => FnProvider::text("done"),
    };
    let (own, asked) = model("own", refused);
    let journal = InMemoryJournal::new();
    let archon = agent(&journal).provider(own, "m1").build().unwrap();
    let mut options = RunOptions::default();
    options.run = Some(run_id());
    let outcome = archon.run_with("Do it.", options).await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    assert!(outcome.error.is_some_and(|error| error.contains("no such key")));
    check_attempts(
        &journal,
        expect![[r#"
            attempt 0 failed: not authorised: no such key
        "#]],
    )
    .await;
    let session = archon.newest_run(None).await.unwrap().unwrap().session.unwrap();
    let again = RunOptions::in_session(session);
    assert_eq!(archon.run_with("Again.", again).await.ended().last_text(), Some("done"));
    let told = format!("{:?}", asked.requests().last().unwrap().messages);
    assert!(!told.contains("no such key"), "{told}");
}

// spec: P-03
#[tokio::test]
async fn own_provider_gets_any_model_name() {
    let (own, asked) = model("own", |_, _| FnProvider::text("done"));
    let journal = InMemoryJournal::new();
    assert_eq!(
        work(agent(&journal).provider(own, "opnai:gtp-5@nowhere")).await.last_text().unwrap_or_default(),
        "done"
    );
    assert_eq!(asked.requests()[0].model, "opnai:gtp-5@nowhere");
}

// spec: R-14, ER-09
#[tokio::test]
async fn a_fallback_that_the_run_cannot_use_is_refused_at_the_start() {
    let mut limits = ExecutionLimits::default();
    limits.max_cost_micros = Some(1);
    let priced = agent(&InMemoryJournal::new())
        .provider(says("own", "x"), "m1")
        .price(ModelPrice::new(1, 1))
        .limits(limits)
        .fallback_provider(Fallback::new(says("b", "x"), "m2"));
    let error = priced.build().unwrap().run("?").await.unwrap_err();
    assert!(error.to_string().contains("the price of m2 is unknown"), "{error}");

    struct Speechless;
    impl Provider for Speechless {
        fn id(&self) -> &str {
            "speechless"
        }
        fn stream(
            &self,
            _: Request,
            _: CancellationToken,
        ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
            Box::pin(futures_util::stream::empty())
        }
        fn capabilities(&self, _: &str) -> Capabilities {
            let mut can = Capabilities::default();
            can.native_tools = false;
            can
        }
    }
    let with = |tools: Vec<Arc<dyn Tool>>| {
        agent(&InMemoryJournal::new())
            .provider(says("own", "x"), "m1")
            .fallback_provider(Fallback::new(Arc::new(Speechless), "m2"))
            .tools(tools)
            .build()
            .unwrap()
    };
    let error = with(vec![tool(spec("look"), |_| Ok("".into())).0]).run("?").await.unwrap_err();
    assert!(
        matches!(error.cause(), Some(LoopError::FallbackWithoutTools { model, .. }) if model == "m2"),
        "{error}"
    );
    assert!(with(vec![]).run("?").await.ended().is_finished(), "without tools it may stand in");
}

/// Calls `calls` tools in each turn as `turn` decides, and waits in between as `wait` says.
fn caller(
    clock: &VirtualClock,
    turns: usize,
    calls: impl Fn(usize) -> Vec<ToolCall> + Send + Sync + 'static,
    wait: impl Fn(usize) -> u64 + Send + Sync + 'static,
) -> Arc<dyn Provider> {
    let clock = clock.clone();
    let answer = move |n, _: &Request| {
        clock.advance(Duration::from_secs(wait(n)));
        match n {
            n if n < turns => FnProvider::calls(calls(n)),
            _ => FnProvider::text("done"),
        }
    };
    model("own", answer).0
}

// spec: ER-06, ER-07
#[tokio::test]
async fn a_tool_that_fails_five_times_is_left_alone_until_it_works_again() {
    let (journal, clock) = (InMemoryJournal::new(), VirtualClock::new());
    let (flaky, runs) = tool(spec("flaky").with_alternatives(["steady"]), |n| match n {
        0..6 => Err(ToolError::Failed(format!("failure {n}"))),
        _ => Ok("works".into()),
    });
    let (steady, _) = tool(spec("steady"), |_| Ok("works".into()));
    // Turns 0 to 5 at once, turn 6 after the cool-down, turn 7 after the next one.
    let provider = caller(&clock, 8, |n| vec![call("flaky", n)], |n| if n == 6 || n == 7 { 60 } else { 0 });
    let mut limits = ExecutionLimits::default();
    limits.stuck_after = 0;
    let agent = agent(&journal).clock(Arc::new(clock)).provider(provider, "m").tools([flaky, steady]);
    assert_eq!(work(agent.limits(limits)).await.last_text().unwrap_or_default(), "done");
    assert_eq!(runs.load(Ordering::SeqCst), 7);
    let results: Vec<String> = log(&journal)
        .await
        .iter()
        .filter_map(|record| match &record.body {
            RecordBody::ToolCallFinished { result, .. } => Some(format!("ran: {}", result.text())),
            RecordBody::ToolCallRefused { result, .. } => Some(result.text()),
            _ => None,
        })
        .collect();
    expect![[r#"
        ran: Error: failure 0
        ran: Error: failure 1
        ran: Error: failure 2
        ran: Error: failure 3
        ran: Error: failure 4
        Tool flaky is temporarily unavailable. Tool steady can do about the same.
        ran: Error: failure 5
        ran: works"#]]
    .assert_eq(&results.join("\n"));
    assert!(replay(&journal, &run_id()).await.unwrap().is_identical());
}

// spec: ER-06
#[tokio::test]
async fn one_call_shows_whether_a_tool_works_again_and_the_others_wait_for_it() {
    let (journal, clock) = (InMemoryJournal::new(), VirtualClock::new());
    let mut spec = spec("flaky");
    spec.annotations.concurrency_safe = true;
    let (flaky, runs) = tool(spec, |_| Err(ToolError::Failed("no".into())));
    let three = |n: usize| (0..3).map(|i| call("flaky", 3 * n + i)).collect();
    let provider = caller(&clock, 2, three, |n| 60 * n as u64);
    let agent = agent(&journal)
        .clock(Arc::new(clock))
        .provider(provider, "m")
        .tools([flaky])
        .circuit_breaker(CircuitBreaker::new(3, Duration::from_secs(60)));
    assert_eq!(work(agent).await.last_text(), Some("done"));
    assert_eq!(runs.load(Ordering::SeqCst), 4, "three at once, then one on trial");
    check_attempts(
        &journal,
        expect![[r#"
            attempt 0 answered by test:test
            0.0: Error: no
            0.1: Error: no
            0.2: Error: no
            attempt 0 answered by test:test
            1.0: Error: no
            1.1: Tool flaky is temporarily unavailable
            1.2: Tool flaky is temporarily unavailable
            attempt 0 answered by test:test
        "#]],
    )
    .await;
}

// spec: ER-06
#[tokio::test]
async fn a_breaker_that_is_off_leaves_no_tool_alone() {
    let (journal, clock) = (InMemoryJournal::new(), VirtualClock::new());
    let (flaky, runs) = tool(spec("flaky"), |_| Err(ToolError::Failed("no".into())));
    let provider = caller(&clock, 9, |n| vec![call("flaky", n)], |_| 0);
    let agent = agent(&journal).provider(provider, "m").tools([flaky]).circuit_breaker(None);
    assert_eq!(work(agent).await.last_text(), Some("done"));
    assert_eq!(runs.load(Ordering::SeqCst), 9);
    let stepped = |r: &Arc<Record>| {
        matches!(&r.body, RecordBody::FallbackSelected { fallback: FallbackStep::NextKey { .. }, .. })
    };
    assert!(!log(&journal).await.iter().any(stepped));
}

// spec: P-04
#[tokio::test]
async fn agents_of_one_http_share_one_pool_of_connections_and_so_does_a_fallback() {
    let refused = MockResponse::json(401, &json!({ "error": { "message": "no" } }));
    let server =
        MockServer::start([wire::answer("one"), wire::answer("two"), refused, wire::answer("three")]).await;
    let http = archon::providers::HttpOptions::default();
    let named = |model: &str| format!("openai-compatible@{}/v1:{model}", server.url());
    for expected in ["one", "two", "three"] {
        let agent =
            Archon::builder().model(named("m")).fallback(named("n")).http(http.clone()).build().unwrap();
        assert_eq!(agent.run("Hello").await.ended().last_text().unwrap_or_default(), expected);
    }
    let connections: Vec<_> = server.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0; 4]);
}
