//! Tests of the context that toolboxes get from the loop, and of the loop's reaction to their faults.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::sync::{Arc, Mutex};

use archon_react_loop::{ReactAgent, ReactAgentOptions};
use archon_testkit::{FnProvider, InboxJournal, MortalJournal, SeededIds, VirtualClock};
use archon_types::{
    Agent, Answer, ApprovalRequest, ApprovalSettings, AskLater, BoxFuture, CallId, CommandId, Context,
    Decision, Delegation, Effect, Encoded, Executed, FnApprover, InboxRequest, Lease, OnDeny,
    OnStorageFailure, Outcome, OutcomeStatus, Prepared, ReadyCall, RecordBody, RunId, ToolCall, ToolContext,
    ToolMode, ToolResult, ToolSpec, Toolbox,
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

/// A toolbox whose tool asks twice during a call, and then returns what it was answered.
struct Asks;

impl Toolbox for Asks {
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        Arc::default()
    }

    fn prepare<'a>(&'a self, id: CallId, call: &'a ToolCall, _: &'a Context) -> BoxFuture<'a, Prepared> {
        Box::pin(async move { Prepared::Ready(ReadyCall::new(id, call.clone(), Effect::SideEffect)) })
    }

    fn execute<'a>(&'a self, ready: ReadyCall, run: &'a Context) -> BoxFuture<'a, Executed> {
        let mut context = ToolContext::new(run.clone(), ready.call.id.clone(), ready.call.name.as_str());
        context.call = Some(ready.id);
        let ask = |n: u32, state| {
            let id = format!("q{n}");
            Executed::Suspended(Box::new(ApprovalRequest::of_tool(
                id,
                format!("Name {n}?"),
                json!({}),
                state,
            )))
        };
        let done = |text: String| Executed::Done(Box::new(ToolResult::success(text)));
        let executed = match context.answered() {
            None if context.may_suspend() => ask(1, json!({ "names": [] })),
            None => done("nobody can be asked".to_owned()),
            Some(answered) => {
                let mut state = answered.request.tool_state.clone();
                let answer = serde_json::to_value(&answered.answer).unwrap();
                state["names"].as_array_mut().unwrap().push(answer);
                match state["names"].as_array().unwrap().len() {
                    1 => ask(2, state),
                    _ => done(state["names"].to_string()),
                }
            }
        };
        Box::pin(async move { executed })
    }
}

fn asking_agent(journal: &InboxJournal) -> ReactAgent {
    let model = FnProvider::new(|n, request| match n {
        0 if request.messages.len() < 3 => FnProvider::calls(vec![ToolCall::new("c", "ask", json!({}))]),
        _ => FnProvider::text(&request.messages.iter().last().unwrap().text()),
    });
    let mut options = ReactAgentOptions::new("m");
    options.tool_mode = Some(ToolMode::Native);
    options.approvals = ApprovalSettings::default().with_on_deny(OnDeny::Abort);
    ReactAgent::new(Arc::new(model), Arc::new(journal.clone()), options).with_toolbox(Arc::new(Asks))
}

#[tokio::test]
async fn run_waits_for_the_questions_of_a_tool_and_the_tool_gets_every_answer() {
    let journal = InboxJournal::default();
    let agent = asking_agent(&journal).with_approver(AskLater);
    let outcome = agent.run("ask", &context()).await;
    assert_eq!(outcome.status, OutcomeStatus::Suspended);
    for (id, answer) in [
        ("q1", Answer::Reply { text: "Ann".to_owned() }),
        // A no is an answer, too, and ends no run.
        ("q2", Answer::Cancel { reason: "enough".to_owned() }),
    ] {
        let answer = InboxRequest::Answer { request_id: id.to_owned(), binding: String::new(), answer };
        journal.post("r", id, answer);
        let agent = asking_agent(&journal).with_approver(AskLater);
        let mut context = context();
        context.can_ask = true;
        let outcome = agent.resume(&context).await.unwrap();
        let expected = if id == "q1" { OutcomeStatus::Suspended } else { OutcomeStatus::Finished };
        assert_eq!(outcome.status, expected, "{outcome:?}");
        if id == "q2" {
            let said = outcome.last_text().unwrap();
            assert!(said.contains(r#"{"answer":"reply","text":"Ann"}"#) && said.contains("enough"), "{said}");
        }
    }
    let log = journal.logs().log("r");
    let started = log.iter().filter(|record| matches!(record.body, RecordBody::ToolCallStarted { .. }));
    assert_eq!(started.count(), 3);
}

#[tokio::test]
async fn run_asks_the_approver_here_about_a_question_of_a_tool() {
    let journal = InboxJournal::default();
    let names = FnApprover::new(|request: ApprovalRequest| {
        let text = request.action_summary.replace('?', "!");
        async { Decision::Now(Answer::Reply { text }) }
    });
    let outcome = asking_agent(&journal).with_approver(names).run("ask", &context()).await;
    let said = outcome.last_text().unwrap();
    assert!(said.contains("Name 1!") && said.contains("Name 2!"), "{said}");
}

#[tokio::test]
async fn run_without_a_person_lets_no_tool_ask() {
    let outcome = asking_agent(&InboxJournal::default()).run("ask", &context()).await;
    assert_eq!(outcome.last_text(), Some("nobody can be asked"));
}
