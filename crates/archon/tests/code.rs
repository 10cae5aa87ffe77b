//! Programs whose functions are tools behind an engine's guards: consent, rules, arguments, panics, and the log.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use archon::{
    Archon, Context, OutcomeStatus, Tool, ToolEngine, ToolRegistry,
    code::{CodeExecutor, CodeOptions},
    providers::{ScriptedProvider, Step},
    tools::{Ask, EngineOptions, FnTool, Permissions},
    types::{
        Answer, ApprovalRequest, Approver, Decision, Json, RecordBody, ToolAnnotations, ToolError,
        ToolResult, ToolSpec,
    },
};
use archon_testkit::{Ended, SeededIds, VirtualClock};
use serde_json::json;

fn context() -> Context {
    Context::new("run".into(), "session".into(), Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)))
}

/// A tool that counts its calls; `n` has to be a whole number. 13 makes it fail, 14 panic.
fn counter(counted: &Arc<AtomicUsize>, annotations: ToolAnnotations) -> Arc<dyn Tool> {
    let parameters = json!({
        "type": "object",
        "properties": { "n": { "type": "integer" } },
        "required": ["n"],
        "additionalProperties": false,
    });
    let spec = ToolSpec::new("count", "Counts.", parameters).with_annotations(annotations);
    let counted = counted.clone();
    Arc::new(FnTool::new(spec, move |arguments, _| {
        let counted = counted.clone();
        async move {
            counted.fetch_add(1, Ordering::SeqCst);
            match arguments["n"].as_i64() {
                Some(13) => Err(ToolError::Failed("bad luck".to_owned())),
                Some(14) => panic!("worse luck"),
                _ => Ok(json!({ "got": arguments["n"] }).to_string().into()),
            }
        }
    }))
}

fn engine(tool: Arc<dyn Tool>) -> ToolEngine {
    let registry = ToolRegistry::new();
    registry.register_all([tool]).unwrap();
    ToolEngine::new(registry)
}

/// The tool whose programs call those of `below`, behind an engine of its own.
fn above(below: ToolEngine, options: EngineOptions) -> ToolEngine {
    let mut bounds = CodeOptions::default();
    bounds.time = std::time::Duration::from_secs(60);
    let tool = CodeExecutor::new(bounds).with_tools(Arc::new(below.for_parts()), ["count"]).unwrap();
    engine(Arc::new(tool)).with_options(options.granting(["code_exec"]))
}

async fn run(engine: &ToolEngine, code: &str) -> ToolResult {
    let arguments = json!({ "language": "python", "code": code });
    engine.execute_tool_call("code_executor", arguments, &context()).await
}

struct Says(Answer);

impl Approver for Says {
    async fn decide(&self, _: &ApprovalRequest) -> Decision {
        Decision::Now(self.0.clone())
    }
}

// spec: TE-47
#[tokio::test]
async fn each_call_of_a_program_passes_the_guards() {
    let counted = Arc::new(AtomicUsize::new(0));
    let engine = above(engine(counter(&counted, ToolAnnotations::read_only())), EngineOptions::default());
    assert_eq!(run(&engine, "sum(count(n)['got'] for n in range(5))").await.text(), "10");
    assert_eq!(counted.load(Ordering::SeqCst), 5);
    for (code, words) in [
        ("count('many')", "RuntimeError: count: "),
        ("count()", "RuntimeError: count: "),
        ("count(n=1, m=2)", "RuntimeError: count: "),
        ("count(13)", "RuntimeError: count: bad luck"),
        ("count(14)", "RuntimeError: count: Tool 'count' failed because of a bug in the tool"),
    ] {
        let text = run(&engine, code).await.text();
        assert!(text.contains(words), "{code}: {text}");
    }
    assert_eq!(counted.load(Ordering::SeqCst), 7, "the tool saw valid arguments only");
    let all = "for n in [13, 14, 1]:\n    try:\n        print(count(n))\n    except Exception:\n        print('failed')";
    assert_eq!(run(&engine, all).await.text(), "failed\nfailed\n{'got': 1}\n");
}

// spec: TE-47
#[tokio::test]
async fn without_the_permission_no_program_runs() {
    let tool = CodeExecutor::new(CodeOptions::default());
    let refused = run(&engine(Arc::new(tool)), "1").await.text();
    assert!(refused.contains("needs the permission code_exec"), "{refused}");
    let unknown =
        above(engine(counter(&Arc::default(), ToolAnnotations::read_only())), EngineOptions::default());
    let arguments = json!({ "language": "ruby", "code": "1" });
    let refused = unknown.execute_tool_call("code_executor", arguments, &context()).await.text();
    assert!(refused.contains("python") && refused.contains("javascript"), "{refused}");
}

// spec: TE-47, EX-02
#[tokio::test]
async fn program_call_with_consent_runs_if_it_is_approved_at_once() {
    let counted = Arc::new(AtomicUsize::new(0));
    let mut asks = ToolAnnotations::read_only();
    asks.requires_confirmation = true;
    let below = || engine(counter(&counted, asks.clone()));
    let refused = run(&above(below(), EngineOptions::default()), "count(1)").await.text();
    assert!(refused.contains("PermissionError: count: Tool 'count' needs a person's consent"), "{refused}");
    let no = Answer::Cancel { reason: "not today".to_owned() };
    let declined = above(below().with_approver(Arc::new(Says(no))), EngineOptions::default());
    let declined = run(&declined, "count(1)").await.text();
    assert!(declined.contains("not today"), "{declined}");
    assert_eq!(counted.load(Ordering::SeqCst), 0);
    let yes = above(below().with_approver(Arc::new(Says(Answer::Approve))), EngineOptions::default());
    assert_eq!(run(&yes, "count(1)['got']").await.text(), "1");
    assert_eq!(counted.load(Ordering::SeqCst), 1);
}

// spec: TE-47
#[tokio::test]
async fn program_call_is_denied_what_its_caller_may_not_do() {
    let counted = Arc::new(AtomicUsize::new(0));
    let mut writes = ToolAnnotations::default();
    writes.permissions = vec!["fs_write".to_owned()];
    let below = || {
        engine(counter(&counted, writes.clone()))
            .with_options(EngineOptions::default().granting(["fs_write"]))
    };
    let without = run(&above(below(), EngineOptions::default()), "count(1)").await.text();
    assert!(without.contains("needs the permission fs_write"), "{without}");
    let mut denying = EngineOptions::default().granting(["fs_write"]);
    denying.permissions = Permissions::parse(["count"], [], []).unwrap();
    let denied = run(&above(below(), denying), "count(1)").await.text();
    assert!(denied.contains("PermissionError: count: ") && denied.contains("denies it"), "{denied}");
    let mut asking = EngineOptions::default().granting(["fs_write"]);
    asking.ask = Ask::BeforeChanges;
    let refused = run(&above(below(), asking), "count(1)").await.text();
    assert!(refused.contains("consent"), "{refused}");
    assert_eq!(counted.load(Ordering::SeqCst), 0);
}

// spec: TE-47
#[tokio::test]
async fn an_agent_runs_a_program_and_its_log_has_one_call() {
    let counted = Arc::new(AtomicUsize::new(0));
    let below = engine(counter(&counted, ToolAnnotations::read_only()));
    let tool =
        CodeExecutor::new(CodeOptions::default()).with_tools(Arc::new(below.for_parts()), ["count"]).unwrap();
    let code = "const all = []; for (const n of [1, 2]) all.push(count({n}).got); all";
    let provider = Arc::new(ScriptedProvider::new([
        Step::call("c1", "code_executor", json!({ "language": "javascript", "code": code })),
        Step::text("[1,2]"),
    ]));
    let agent = Archon::builder()
        .provider(provider, "mock")
        .engine_options(EngineOptions::default().granting(["code_exec"]))
        .tool(tool)
        .build()
        .unwrap();
    let outcome = agent.run("Which?").await.ended();
    assert_eq!((outcome.status, counted.load(Ordering::SeqCst)), (OutcomeStatus::Finished, 2));
    let records = agent.journal().read(&outcome.run).await.unwrap();
    let finished: Vec<Json> = records
        .iter()
        .filter_map(|record| match &record.body {
            RecordBody::ToolCallFinished { result, .. } => result.metadata.get("value").cloned(),
            _ => None,
        })
        .collect();
    assert_eq!(finished, [json!([1, 2])]);
}
