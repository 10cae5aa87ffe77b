//! Tests of calls that pass hooks: a decision gets stricter only, and the rest of a toolbox is as before.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Mutex;

use archon_testkit::{RealClock, SeededIds, VirtualClock};
use archon_types::{CommandId, Effect};
use proptest::prelude::*;

use super::*;
use crate::HookSet;

/// What permission rules, and then hooks, decide about a call; the strictest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Decision {
    Runs,
    Asks,
    Refuses,
}

fn decision(prepared: &Prepared) -> Decision {
    match prepared {
        Prepared::Ready(_) => Decision::Runs,
        Prepared::Ask(_) => Decision::Asks,
        _ => Decision::Refuses,
    }
}

fn spec() -> ToolSpec {
    ToolSpec::new("bash", "Runs a command.", json!({ "type": "object" }))
}

fn call() -> ToolCall {
    ToolCall::new("c1", "bash", json!({ "command": "ls" }))
}

fn id() -> CallId {
    CallId::new(CommandId(0), 0)
}

fn ready(call: ToolCall) -> ReadyCall {
    ReadyCall::new(id(), call, Effect::ReadOnly)
}

fn prepare_as(decision: Decision, call: &ToolCall) -> Prepared {
    match decision {
        Decision::Runs => {
            let mut ready = ready(call.clone());
            ready.notes = Some(Box::new("notes of the inner toolbox"));
            Prepared::Ready(ready)
        }
        Decision::Asks => Prepared::Ask(Box::new(ApprovalRequest::new("q1", "Run ls", json!({})))),
        Decision::Refuses => Prepared::Refused(Box::new(ToolResult::error("a rule denies it"))),
    }
}

fn context() -> Context {
    Context::new("run".into(), "session".into(), Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)))
}

/// A toolbox with one decision for every call, which notes the calls that ran.
struct Inner {
    decision: Decision,
    ran: Mutex<Vec<String>>,
}

impl Toolbox for Inner {
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        Arc::new(Encoded::new(vec![spec()]))
    }

    fn prepare<'a>(&'a self, _: CallId, call: &'a ToolCall, _: &'a Context) -> BoxFuture<'a, Prepared> {
        Box::pin(std::future::ready(prepare_as(self.decision, call)))
    }

    fn execute<'a>(&'a self, ready: ReadyCall, _: &'a Context) -> BoxFuture<'a, Executed> {
        let notes = ready.notes.and_then(|notes| notes.downcast::<&str>().ok());
        self.ran
            .lock()
            .unwrap()
            .push(notes.map_or_else(|| "no notes".to_owned(), |notes| (*notes).to_owned()));
        Box::pin(std::future::ready(Executed::Done(Box::new(ToolResult::success("done")))))
    }
}

/// Returns a toolbox with this decision, and commands for these events.
fn toolbox(
    decision: Decision,
    commands: &[(HookEvent, &str)],
    folder: &std::path::Path,
) -> (Arc<Inner>, HookedToolbox) {
    let mut set = HookSet::default();
    for (event, command) in commands {
        let entry = json!({ "type": "command", "command": command });
        let text = json!({ "hooks": { event.name(): [{ "hooks": [entry] }] } }).to_string();
        set = set.and(HookSet::of_person("hooks.json".as_ref(), &text).0);
    }
    let inner = Arc::new(Inner { decision, ran: Mutex::default() });
    let hooks = EventHooks::new(set, folder, Arc::new(RealClock::new()));
    (inner.clone(), hooks.toolbox(inner))
}

fn verdicts() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        Just(Verdict::Silent),
        "[a-z]{0,8}".prop_map(Verdict::Ask),
        "[a-z]{0,8}".prop_map(Verdict::Deny),
    ]
}

/// Output of a hook: answers that count and answers that do not, most of them allowing.
fn outputs() -> impl Strategy<Value = crate::answer::Output> {
    let word =
        prop_oneof![Just("allow"), Just("approve"), Just("ask"), Just("deny"), Just("block"), Just("yes")];
    let reply = (word.clone(), word, any::<bool>()).prop_map(|(specific, decision, goes_on)| {
        json!({ "continue": goes_on, "decision": decision, "hookSpecificOutput": { "permissionDecision": specific } })
            .to_string()
    });
    let stdout = prop_oneof![4 => reply, 1 => Just(String::new()), 1 => "\\PC{0,20}"];
    let code = prop_oneof![4 => Just(0), 1 => Just(2), 1 => 0..256];
    (stdout, code).prop_map(|(stdout, code)| crate::answer::Output {
        code: Some(code),
        stdout: stdout.into_bytes(),
        stderr: Vec::new(),
    })
}

proptest! {
    #[test]
    fn stricter_of_any_verdicts_never_permits_more_than_the_rules(
        rules in prop_oneof![Just(Decision::Runs), Just(Decision::Asks), Just(Decision::Refuses)],
        verdicts in proptest::collection::vec(verdicts(), 0..6),
        agreed in any::<bool>(),
        has_spec in any::<bool>(),
    ) {
        let (call, mut run, spec) = (call(), context(), spec());
        run.agreed = agreed.then(|| archon_types::binding(&spec, &call.arguments, &Subject::Unknown).into());
        let verdict = verdicts.iter().cloned().fold(Verdict::Silent, Verdict::and);
        let judged = stricter(prepare_as(rules, &call), verdict, &call, has_spec.then_some(&spec), &run);
        let judged = decision(&judged);
        prop_assert!(judged >= rules);
        // And hooks count: a no refuses, and a question is asked unless a person agreed.
        if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Deny(_))) {
            prop_assert_eq!(judged, Decision::Refuses);
        } else if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Ask(_))) && !agreed {
            prop_assert!(judged >= Decision::Asks);
        } else if verdicts.iter().all(|verdict| *verdict == Verdict::Silent) {
            prop_assert_eq!(judged, rules);
        }
    }

    #[test]
    fn stricter_of_any_outputs_never_permits_more_than_the_rules(
        rules in prop_oneof![Just(Decision::Runs), Just(Decision::Asks), Just(Decision::Refuses)],
        outputs in proptest::collection::vec(outputs(), 1..5),
    ) {
        let (call, run, spec) = (call(), context(), spec());
        let answers = outputs.iter().map(|output| crate::answer::read(HookEvent::BeforeTool, output));
        let no = |problem: String| Answer { verdict: Verdict::Deny(problem), ..Answer::default() };
        let answer = Answer::fold(answers.map(|answer| answer.unwrap_or_else(no)));
        let judged = stricter(prepare_as(rules, &call), answer.verdict, &call, Some(&spec), &run);
        prop_assert!(decision(&judged) >= rules);
    }
}

fn text(prepared: &Prepared) -> String {
    match prepared {
        Prepared::Refused(result) => result.text(),
        Prepared::Ask(question) => question.action_summary.clone(),
        other => panic!("{other:?}"),
    }
}

#[cfg(unix)]
mod with_commands {
    use super::*;

    const ASK: &str =
        r#"echo '{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"Sure?"}}'"#;
    const ALLOW: &str = r#"echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'"#;

    #[tokio::test]
    async fn prepare_denied_by_a_hook_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let (_, tools) =
            toolbox(Decision::Runs, &[(HookEvent::BeforeTool, "echo No. >&2; exit 2")], folder.path());
        let Prepared::Refused(result) = tools.prepare(id(), &call(), &context()).await else { panic!() };
        assert_eq!(
            result.text(),
            "Error: A hook refused this call of 'bash': No. It was not run. Go on without it."
        );
        assert_eq!(result.metadata["error_type"], "hook_refused");
    }

    #[tokio::test]
    async fn prepare_allowed_by_a_hook_is_as_the_rules_say() {
        let folder = tempfile::tempdir().unwrap();
        for rules in [Decision::Runs, Decision::Asks, Decision::Refuses] {
            let (_, tools) = toolbox(rules, &[(HookEvent::BeforeTool, ALLOW)], folder.path());
            assert_eq!(decision(&tools.prepare(id(), &call(), &context()).await), rules);
        }
    }

    #[tokio::test]
    async fn prepare_asked_by_a_hook_runs_after_a_person_agreed_to_this_call() {
        let folder = tempfile::tempdir().unwrap();
        let (_, tools) = toolbox(Decision::Runs, &[(HookEvent::BeforeTool, ASK)], folder.path());
        let mut run = context();
        let Prepared::Ask(question) = tools.prepare(id(), &call(), &run).await else { panic!() };
        assert_eq!(question.action_summary, "Run bash with {\"command\":\"ls\"} (a hook asks: Sure?)");
        run.agreed = Some(question.binding.into());
        assert_eq!(decision(&tools.prepare(id(), &call(), &run).await), Decision::Runs);
        let other = ToolCall::new("c1", "bash", json!({ "command": "rm -rf ." }));
        assert_eq!(decision(&tools.prepare(id(), &other, &run).await), Decision::Asks);
        // The question of a rule shows the hook's reason, too.
        let (_, tools) = toolbox(Decision::Asks, &[(HookEvent::BeforeTool, ASK)], folder.path());
        assert_eq!(text(&tools.prepare(id(), &call(), &context()).await), "Run ls (a hook asks: Sure?)");
    }

    #[tokio::test]
    async fn prepare_before_a_question_tells_hooks_and_may_refuse() {
        let folder = tempfile::tempdir().unwrap();
        let events =
            [(HookEvent::Permission, "cat > asked; exit 0"), (HookEvent::Notification, "cat > told")];
        let (_, tools) = toolbox(Decision::Asks, &events, folder.path());
        assert_eq!(decision(&tools.prepare(id(), &call(), &context()).await), Decision::Asks);
        let read = |name: &str| -> Json {
            serde_json::from_str(&std::fs::read_to_string(folder.path().join(name)).unwrap()).unwrap()
        };
        let asked = read("asked");
        assert_eq!((&asked["session_id"], &asked["tool_use_id"]), (&json!("session"), &json!("c1")));
        let told = read("told");
        assert_eq!(
            (&told["notification_type"], &told["message"]),
            (&json!("permission_prompt"), &json!("Run ls"))
        );
        let deny = r#"echo '{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"Not now"}}}'"#;
        let (_, tools) = toolbox(Decision::Asks, &[(HookEvent::Permission, deny)], folder.path());
        assert!(text(&tools.prepare(id(), &call(), &context()).await).contains("Not now."));
    }

    #[tokio::test]
    async fn execute_gives_the_inner_toolbox_its_notes_and_the_model_the_context() {
        let folder = tempfile::tempdir().unwrap();
        let events = [
            (HookEvent::BeforeTool, "true"),
            (HookEvent::AfterTool, "cat > after; echo Format. >&2; exit 2"),
        ];
        let (inner, tools) = toolbox(Decision::Runs, &events, folder.path());
        let run = context();
        let Prepared::Ready(ready) = tools.prepare(id(), &call(), &run).await else { panic!() };
        let Executed::Done(result) = tools.execute(ready, &run).await else { panic!() };
        assert_eq!(result.text(), "done\nA hook of this machine adds: Format.");
        assert_eq!(*inner.ran.lock().unwrap(), ["notes of the inner toolbox"]);
        let after = std::fs::read_to_string(folder.path().join("after")).unwrap();
        let after: Json = serde_json::from_str(&after).unwrap();
        assert_eq!(after["tool_response"], json!({ "text": "done", "is_error": false }));
    }

    #[tokio::test]
    async fn execute_of_a_call_that_hooks_have_not_seen_asks_them() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, tools) = toolbox(Decision::Runs, &[(HookEvent::BeforeTool, "exit 2")], folder.path());
        let Executed::Done(result) = tools.execute(ready(call()), &context()).await else { panic!() };
        assert_eq!(result.metadata["error_type"], "hook_refused");
        assert!(inner.ran.lock().unwrap().is_empty());
        let (inner, tools) = toolbox(Decision::Runs, &[(HookEvent::BeforeTool, ASK)], folder.path());
        tools.execute(ready(call()), &context()).await;
        assert_eq!(*inner.ran.lock().unwrap(), ["no notes"]);
    }

    #[tokio::test]
    async fn cancelled_run_does_not_wait_for_a_hook() {
        let folder = tempfile::tempdir().unwrap();
        let (_, tools) = toolbox(Decision::Runs, &[(HookEvent::BeforeTool, "sleep 1000")], folder.path());
        let run = context();
        run.cancel.cancel();
        let Prepared::Refused(result) = tools.prepare(id(), &call(), &run).await else { panic!() };
        assert_eq!(result.status, ToolResultStatus::Cancelled);
    }
}
