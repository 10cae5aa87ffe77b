//! Tests of the context that toolboxes get from the loop, and of the loop's reaction to their faults.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::sync::{Arc, Mutex};

use archon_react_loop::{ReactAgent, ReactAgentOptions};
use archon_testkit::{FnProvider, MortalJournal, SeededIds, VirtualClock};
use archon_types::{
    Agent, BoxFuture, CallId, CommandId, Context, Delegation, Effect, Encoded, Executed, Lease,
    OnStorageFailure, Outcome, Prepared, ReadyCall, RunId, ToolCall, ToolMode, ToolResult, ToolSpec, Toolbox,
};
use serde_json::json;

/// A toolbox that records the delegation of each call. A call of `fail` panics.
#[derive(Default)]
struct Notes(Mutex<Vec<Option<RunId>>>);

impl Toolbox for Notes {
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        Arc::default()
    }

    fn prepare<'a>(&'a self, id: CallId, call: &'a ToolCall, _: &'a Context) -> BoxFuture<'a, Prepared> {
        Box::pin(async move { Prepared::Ready(ReadyCall::new(id, call.clone(), Effect::ReadOnly)) })
    }

    fn execute<'a>(&'a self, ready: ReadyCall, run: &'a Context) -> BoxFuture<'a, Executed> {
        assert!(ready.call.name != "fail", "on purpose");
        let of = run.delegation.as_ref().map(|delegation| delegation.child.clone());
        self.0.lock().unwrap().push(of);
        Box::pin(async { Executed::Done(Box::new(ToolResult::success("noted"))) })
    }
}

/// Runs an agent whose model calls these tools in one turn, and then repeats their results.
async fn run(tools: &[&'static str], journal: &MortalJournal, context: &Context) -> (Outcome, Arc<Notes>) {
    let calls: Vec<_> = tools.iter().map(|tool| ToolCall::new(*tool, *tool, json!({}))).collect();
    let model = FnProvider::new(move |n, request| match n {
        0 => FnProvider::calls(calls.clone()),
        _ => {
            let results = request.messages.iter().skip(2).map(|message| message.text());
            FnProvider::text(&results.collect::<Vec<_>>().join(", "))
        }
    });
    let mut options = ReactAgentOptions::new("m");
    (options.on_storage_failure, options.tool_mode) = (OnStorageFailure::Ephemeral, Some(ToolMode::Native));
    let notes = Arc::new(Notes::default());
    let agent = ReactAgent::new(Arc::new(model), Arc::new(journal.clone()), options);
    (agent.with_toolbox(notes.clone()).run("note", context).await, notes)
}

fn context() -> Context {
    Context::new("r".into(), "s".into(), Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)))
}

#[tokio::test]
async fn run_called_run_without_a_log_keeps_its_delegation() {
    let journal = MortalJournal::default();
    journal.die_after(0, false);
    let (call, lease) = (CallId::new(CommandId(0), 0), Lease::new(100_000, 60_000));
    let delegation = Delegation::new("caller".into(), call, lease, 3, Arc::new(journal.clone()));
    let (mut context, child) = (context(), delegation.child.clone());
    context.run = child.clone();
    context.delegation = Some(Arc::new(delegation));
    let (outcome, notes) = run(&["note"], &journal, &context).await;
    assert_eq!(outcome.last_text(), Some("noted"));
    assert_eq!(*notes.0.lock().unwrap(), [Some(child.clone())]);
    assert!(journal.log(child.as_str()).is_empty(), "it has no log");
}

#[tokio::test]
async fn run_toolbox_that_panics_gives_the_call_an_error() {
    let (outcome, notes) = run(&["fail", "note"], &MortalJournal::default(), &context()).await;
    assert_eq!(outcome.last_text(), Some("Error: the toolbox panicked, noted"));
    assert_eq!(*notes.0.lock().unwrap(), [None]);
}
