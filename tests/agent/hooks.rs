//! Hooks and input filters: the order in which they are called, and what their verdicts lead to.

use archon_testkit::Ended as _;
use std::sync::{Arc, Mutex};

use archon::{
    Archon, Event, OutcomeStatus, RunOptions, Tool, ToolContext, ToolError, ToolResult,
    providers::{ScriptedProvider, Step},
    types::{
        BoxFuture, Hooks, InputFilter, InputVerdict, Json, Message, Outcome, ProviderError, Sink,
        ToolAnnotations, ToolCall, ToolSpec, Transcript, Usage,
    },
    views::{AgentEvent, AgentEvents},
};
use serde_json::json;

type Line = Arc<Mutex<Vec<String>>>;

/// Writes down every hook, and lets pass what is not forbidden.
#[derive(Clone, Default)]
struct Scribe {
    line: Line,
    forbidden: Vec<&'static str>,
}

impl Scribe {
    fn forbidding(forbidden: &[&'static str]) -> Self {
        Self { forbidden: forbidden.to_vec(), ..Self::default() }
    }

    fn note(&self, what: impl Into<String>) -> bool {
        let what = what.into();
        let pass = !self.forbidden.iter().any(|f| what.starts_with(f));
        self.line.lock().unwrap().push(what);
        pass
    }

    fn lines(&self) -> Vec<String> {
        self.line.lock().unwrap().clone()
    }
}

impl Hooks for Scribe {
    async fn before_loop(&self, messages: &Transcript, index: u32) -> bool {
        self.note(format!("before_loop {} {index}", messages.iter().count()))
    }

    async fn after_loop(&self, _: &Outcome) {
        self.note("after_loop");
    }

    async fn before_turn(&self, _: &Transcript, turn: u32) -> bool {
        self.note(format!("before_turn {turn}"))
    }

    async fn after_turn(&self, _: &Transcript, _: Usage) {
        self.note("after_turn");
    }

    async fn on_error(&self, error: &str) {
        self.note(format!("on_error {error}"));
    }

    async fn before_tool(&self, call: &ToolCall) -> bool {
        self.note(format!("before_tool {}", call.id))
    }

    async fn after_tool(&self, call: &ToolCall, _: &ToolResult) {
        self.note(format!("after_tool {}", call.id));
    }

    fn before_update(&self, call: &ToolCall, _: &ToolResult) -> bool {
        self.note(format!("before_update {}", call.id))
    }

    fn after_update(&self, call: &ToolCall, _: &ToolResult) {
        self.note(format!("after_update {}", call.id));
    }
}

/// Shows one partial result.
struct Shows(ToolSpec);

impl Tool for Shows {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, _: Json, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        context.on_update("half".into());
        Box::pin(async { Ok("whole".into()) })
    }
}

/// Writes the events of the run between the hooks.
struct Watch(Scribe, Mutex<AgentEvents>);

impl Sink for Watch {
    fn emit(&self, event: Event) {
        for event in self.1.lock().unwrap().push(&event) {
            let what = match &event {
                AgentEvent::MessageStart { .. }
                | AgentEvent::MessageEnd { .. }
                | AgentEvent::MessageUpdate { .. } => {
                    continue;
                }
                AgentEvent::ToolExecutionStart { tool_call_id, .. } => format!("Start {tool_call_id}"),
                AgentEvent::ToolExecutionUpdate { tool_call_id, .. } => format!("Update {tool_call_id}"),
                AgentEvent::ToolExecutionEnd { tool_call_id, .. } => format!("End {tool_call_id}"),
                AgentEvent::AgentEnd { messages, rejection, .. } => {
                    format!(
                        "AgentEnd {}{}",
                        messages.len(),
                        rejection.as_ref().map(|r| format!(" {r}")).unwrap_or_default()
                    )
                }
                other => serde_json::to_value(other).unwrap()["type"].as_str().unwrap().to_owned(),
            };
            self.0.note(what);
        }
    }
}

struct Judge(&'static str);

impl InputFilter for Judge {
    fn check<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, InputVerdict> {
        let verdict = match self.0 {
            "reject" if message.text().contains("secret") => InputVerdict::Reject("no secrets".into()),
            "warn" => InputVerdict::Warn(format!("[checked after {} characters]", message.text().len())),
            _ => InputVerdict::Pass,
        };
        Box::pin(async { verdict })
    }
}

struct Ran {
    lines: Vec<String>,
    outcome: Outcome,
    provider: Arc<ScriptedProvider>,
}

async fn run(
    task: &str,
    steps: Vec<Step>,
    scribe: Scribe,
    side_by_side: bool,
    filters: &[&'static str],
) -> Ran {
    let provider = Arc::new(ScriptedProvider::new(steps));
    let mut annotations = ToolAnnotations::read_only();
    annotations.concurrency_safe = side_by_side;
    let spec = ToolSpec::new("show", "Shows.", json!({"type": "object"})).with_annotations(annotations);
    let mut builder = Archon::builder()
        .provider(provider.clone(), "m")
        .tools([Arc::new(Shows(spec)) as Arc<dyn Tool>])
        .retry(archon::types::RetryConfig::none())
        .hooks(Arc::new(scribe.clone()));
    for filter in filters {
        builder = builder.input_filter(Arc::new(Judge(filter)));
    }
    let watch = Arc::new(Watch(scribe.clone(), Mutex::default()));
    let agent = builder.build().unwrap();
    let outcome = agent.run_with(task, RunOptions::default().watched_by(watch)).await.ended();
    Ran { lines: scribe.lines(), outcome, provider }
}

fn calls(ids: &[&str]) -> Step {
    Step::calls(ids.iter().map(|id| ToolCall::new(*id, "show", json!({ "id": id }))).collect())
}

// spec: R-05
#[tokio::test]
async fn hooks_and_events_come_in_strict_order() {
    let ran = run("x", vec![calls(&["a"]), Step::text("ok")], Scribe::default(), false, &[]).await;
    let expected = "before_loop 0 0, AgentStart, before_turn 0, TurnStart, before_tool a, Start a, before_update a, \
                    Update a, after_update a, End a, after_tool a, TurnEnd, after_turn, before_turn 1, TurnStart, \
                    TurnEnd, after_turn, AgentEnd 4, after_loop";
    assert_eq!(ran.lines.join(", "), expected);
}

/// Keeps what the hooks are told.
#[derive(Clone, Default)]
struct Told(Line);

impl Told {
    /// Hooks may take their time.
    async fn hears(&self, what: String) -> bool {
        tokio::task::yield_now().await;
        self.0.lock().unwrap().push(what);
        true
    }
}

impl Hooks for Told {
    async fn before_turn(&self, messages: &Transcript, turn: u32) -> bool {
        let last = messages.iter().last().map(|m| m.text()).unwrap_or_default();
        self.hears(format!("turn {turn} after {last:?}")).await
    }

    async fn after_turn(&self, messages: &Transcript, usage: Usage) {
        self.hears(format!("{} messages, {} tokens", messages.len(), usage.total())).await;
    }

    async fn on_error(&self, error: &str) {
        self.hears(format!("error {error}")).await;
    }

    async fn before_tool(&self, call: &ToolCall) -> bool {
        self.hears(format!("{} {} {}", call.name, call.id, call.arguments)).await
    }

    async fn after_tool(&self, call: &ToolCall, result: &ToolResult) {
        self.hears(format!("{} said {}", call.name, result.text())).await;
    }
}

// spec: R-08
#[tokio::test]
async fn hooks_get_the_data_of_their_point() {
    let usage = Usage { input: 10, output: 5, ..Usage::default() };
    let steps =
        [calls(&["a"]).with_usage(usage), Step::error(archon::types::ProviderError::Auth("no".into()))];
    let spec = ToolSpec::new("show", "Shows.", json!({"type": "object"}));
    let told = Told::default();
    let agent = Archon::builder()
        .provider(Arc::new(ScriptedProvider::new(steps)), "m")
        .tools([Arc::new(Shows(spec)) as Arc<dyn Tool>])
        .hooks(Arc::new(told.clone()))
        .build()
        .unwrap();
    agent.run("look").await.ended();
    let lines = told.0.lock().unwrap().clone();
    expect_test::expect![[r#"
        turn 0 after "look"
        show a {"id":"a"}
        show said whole
        3 messages, 15 tokens
        turn 1 after "whole"
        error not authorised: no
        3 messages, 15 tokens"#]]
    .assert_eq(&lines.join("\n"));
}

fn position(lines: &[String], line: &str) -> usize {
    lines.iter().position(|l| l == line).unwrap_or_else(|| panic!("no {line} in {lines:?}"))
}

// spec: R-06, R-07
#[tokio::test]
async fn a_hook_stops_a_run_a_turn_a_call_or_an_update_and_nothing_else() {
    let steps = || vec![calls(&["a", "b"]), Step::text("ok")];
    let stopped = async |forbidden| run("x", steps(), Scribe::forbidding(&[forbidden]), false, &[]).await;

    let ran = stopped("before_loop").await;
    assert_eq!(ran.lines, ["before_loop 0 0", "AgentEnd 0"]);
    assert_eq!((ran.outcome.status, ran.provider.call_count()), (OutcomeStatus::Cancelled, 0));

    let ran = stopped("before_turn 1").await;
    let rest = &ran.lines[position(&ran.lines, "before_turn 1")..];
    assert_eq!(rest, ["before_turn 1", "AgentEnd 4", "after_loop"]);
    assert_eq!((ran.outcome.status, ran.provider.call_count()), (OutcomeStatus::Cancelled, 1));

    let ran = stopped("before_tool a").await;
    assert_eq!(ran.outcome.last_text(), Some("ok"));
    assert!(
        !ran.lines.iter().any(|l| l == "Start a" || l == "End a" || l == "after_tool a"),
        "{:?}",
        ran.lines
    );
    assert!(ran.lines.iter().any(|l| l == "Start b"), "{:?}", ran.lines);

    let ran = stopped("before_update a").await;
    assert!(!ran.lines.iter().any(|l| l == "Update a" || l == "after_update a"), "{:?}", ran.lines);
    assert!(ran.lines.iter().any(|l| l == "End a") && ran.lines.iter().any(|l| l == "Update b"));
}

// spec: R-31
#[tokio::test]
async fn filters_add_to_the_input_or_keep_it_from_the_model() {
    let echo = || vec![Step::reply(|request| Step::text(request.messages.iter().last().unwrap().text()))];
    let ran = run("hello", echo(), Scribe::default(), false, &["pass", "warn", "reject", "warn"]).await;
    assert_eq!(
        ran.outcome.last_text(),
        Some("hello\n[checked after 5 characters]\n[checked after 34 characters]")
    );
    let ran = run("a secret", echo(), Scribe::default(), false, &["pass", "reject", "warn"]).await;
    assert_eq!(ran.outcome.error.as_deref(), Some("the input was rejected: no secrets"));
    assert_eq!(
        ran.lines,
        [
            "before_loop 0 0",
            "AgentStart",
            "InputRejected",
            "AgentEnd 0 no secrets",
            "on_error the input was rejected: no secrets",
            "after_loop"
        ]
    );
    assert_eq!(ran.provider.call_count(), 0);
}

// spec: R-05, R-06
#[tokio::test]
async fn resume_of_an_ended_run_asks_before_loop_first_and_a_refused_run_has_no_prompt() {
    let agent = |scribe: &Scribe| {
        let steps = [Step::error(ProviderError::Auth("no".into())), Step::text("ok")];
        let provider = Arc::new(ScriptedProvider::new(steps));
        Archon::builder().provider(provider, "m").hooks(Arc::new(scribe.clone())).build().unwrap()
    };
    let scribe = Scribe::default();
    let allowed = agent(&scribe);
    let failed = allowed.run("look").await.ended();
    let before = scribe.lines().len();
    let done = allowed.resume(failed.run).await.unwrap().reply().await.ended();
    assert_eq!(done.last_text(), Some("ok"));
    assert_eq!(scribe.lines()[before], "before_loop 0 0");

    let refusing = agent(&Scribe::forbidding(&["before_loop"]));
    let refused = refusing.run("look").await.ended();
    let error = match refusing.resume(refused.run).await {
        Ok(handle) => handle.reply().await.unwrap_err(),
        Err(error) => error,
    };
    assert!(error.to_string().contains("stopped before its prompt was recorded"), "{error}");
}

/// What is wrong with the order of a run's hooks and events.
fn faults(lines: &[String]) -> Vec<String> {
    let (mut faults, mut turn, mut asked) = (Vec::new(), false, Vec::<String>::new());
    let mut started = Vec::<String>::new();
    for (place, line) in lines.iter().enumerate() {
        let (what, id) = line.split_once(' ').unwrap_or((line, ""));
        let ok = match what {
            "before_loop" => place == 0,
            "AgentStart" => place == 1,
            "AgentEnd" => place + 2 == lines.len() || lines[place + 1].starts_with("on_error"),
            "after_loop" => place + 1 == lines.len(),
            "before_turn" => !std::mem::replace(&mut turn, true),
            "after_turn" => std::mem::replace(&mut turn, false) && asked.is_empty() && started.is_empty(),
            "TurnStart" => lines[place - 1].starts_with("before_turn"),
            "TurnEnd" => lines[place + 1] == "after_turn" && asked.is_empty() && started.is_empty(),
            "before_tool" => {
                asked.push(id.into());
                turn
            }
            "Start" => {
                started.push(id.into());
                asked.contains(&id.to_owned())
            }
            "before_update" => started.contains(&id.to_owned()),
            "Update" => lines[place - 1] == format!("before_update {id}"),
            "after_update" => lines[place - 1] == format!("Update {id}"),
            "End" => started.contains(&id.to_owned()),
            "after_tool" => {
                asked.retain(|open| open != id);
                started.retain(|open| open != id);
                lines[..place].iter().any(|l| *l == format!("End {id}"))
            }
            _ => true,
        };
        if !ok {
            faults.push(format!("{line} at {place}"));
        }
    }
    faults
}

// spec: R-05, R-06
#[tokio::test]
async fn hooks_random_models_keep_the_order() {
    // Every short script of turns with none to three calls, and an end of either kind.
    for script in 0..128_usize {
        let mut steps = Vec::new();
        for turn in 0..3 {
            let ids: Vec<String> = (0..(script >> (2 * turn)) % 4).map(|n| format!("t{turn}c{n}")).collect();
            if !ids.is_empty() {
                steps.push(calls(&ids.iter().map(String::as_str).collect::<Vec<_>>()));
            }
        }
        steps.push(match script % 3 {
            0 => Step::error(ProviderError::Auth("no".into())),
            _ => Step::text("ok"),
        });
        let ran = run("x", steps, Scribe::default(), script >= 64, &[]).await;
        assert_eq!(faults(&ran.lines), [""; 0], "{:?}", ran.lines);
        let count = |what: &str| ran.lines.iter().filter(|l| l.starts_with(what)).count();
        for (before, after) in
            [("before_turn", "after_turn"), ("TurnStart", "TurnEnd"), ("before_tool", "after_tool")]
        {
            assert_eq!(count(before), count(after), "{before}: {:?}", ran.lines);
        }
    }
}
