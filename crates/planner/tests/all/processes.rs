//! Tests of processes of direct tool calls: they are recorded before they work, and a resume ends them.

use std::sync::{Arc, Mutex};

use archon_planner::{
    OneWorker, PlanRunError, PlanningAgent, PlanningAgentOptions, ScriptedPlanner, Workers,
};
use archon_testkit::{MortalJournal, SeededIds, VirtualClock};
use archon_types::{
    Agent, BoxFuture, CallId, Context, Effect, Encoded, Executed, FailureKind, Outcome, OutcomeStatus,
    Prepared, ProcessGroup, ReadyCall, Record, RecordBody, SubTask, ToolCall, ToolResult, ToolSpec, Toolbox,
};
use serde_json::json;

/// A toolbox whose only tool starts a process.
#[derive(Clone, Default)]
struct Shell {
    logged: Arc<Mutex<Vec<bool>>>,
    ended: Arc<Mutex<Vec<ProcessGroup>>>,
    /// Process groups that cannot be ended.
    left: Vec<ProcessGroup>,
}

impl Toolbox for Shell {
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        Arc::new(Encoded::new(vec![ToolSpec::new("sh", "Runs a command.", json!({"type": "object"}))]))
    }

    fn prepare<'a>(&'a self, id: CallId, call: &'a ToolCall, _: &'a Context) -> BoxFuture<'a, Prepared> {
        let ready = ReadyCall::new(id, call.clone(), Effect::ReadOnly);
        Box::pin(async move { Prepared::Ready(ready) })
    }

    fn execute<'a>(&'a self, ready: ReadyCall, run: &'a Context) -> BoxFuture<'a, Executed> {
        Box::pin(async move {
            let log = run.processes.clone().expect("a place to name processes");
            let is_logged = log.spawned(ready.id, ProcessGroup::new(4_242, "boot/1")).await;
            self.logged.lock().unwrap().push(is_logged);
            Executed::Done(Box::new(ToolResult::success("ran")))
        })
    }

    fn end_processes<'a>(
        &'a self,
        groups: &'a [ProcessGroup],
        _: &'a Context,
    ) -> BoxFuture<'a, Vec<ProcessGroup>> {
        self.ended.lock().unwrap().extend_from_slice(groups);
        let left = self.left.clone();
        Box::pin(async move { left })
    }
}

struct Nobody;

impl Agent for Nobody {
    fn name(&self) -> &str {
        "nobody"
    }

    fn run<'a>(&'a self, _: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(async move { Outcome::failed(context.run.clone(), FailureKind::Other, "there is nobody") })
    }
}

fn agent(journal: &MortalJournal, shell: &Shell) -> PlanningAgent {
    let plan = ScriptedPlanner::new(vec![SubTask::new("a", "Run it").with_tool("sh", Some(json!({})))]);
    let nobody: Arc<dyn Workers> = Arc::new(OneWorker(Arc::new(Nobody)));
    let options = PlanningAgentOptions::default();
    PlanningAgent::new(Arc::new(plan), Arc::new(Nobody), Arc::new(journal.clone()), options)
        .with_workers(nobody)
        .with_toolbox(Arc::new(shell.clone()))
}

fn context() -> Context {
    Context::new("run_1".into(), "s".into(), Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)))
}

fn kinds(log: &[Arc<Record>]) -> Vec<&'static str> {
    let kind = |record: &Arc<Record>| match &record.body {
        RecordBody::ToolCallStarted { .. } => Some("started"),
        RecordBody::ProcessStarted { .. } => Some("spawned"),
        RecordBody::ToolCallFinished { .. } => Some("finished"),
        _ => None,
    };
    log.iter().filter_map(kind).collect()
}

#[tokio::test]
async fn a_process_is_in_the_log_before_its_call_goes_on() {
    let (journal, shell) = (MortalJournal::default(), Shell::default());
    let outcome = agent(&journal, &shell).start("Go", &context()).await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Finished);
    assert_eq!(*shell.logged.lock().unwrap(), [true]);
    assert_eq!(kinds(&journal.log("run_1")), ["started", "spawned", "finished"]);
    assert!(shell.ended.lock().unwrap().is_empty());
}

// spec: ER-13
#[tokio::test]
async fn processes_that_outlived_a_crash_are_ended_before_the_plan_goes_on() {
    let mut cut = 0;
    for appends in 1..20 {
        let (journal, shell) = (MortalJournal::default(), Shell::default());
        journal.die_after(appends, true);
        if agent(&journal, &shell).start("Go", &context()).await.is_ok() {
            break;
        }
        journal.live();
        if kinds(&journal.log("run_1")) != ["started", "spawned"] {
            continue;
        }
        cut += 1;
        let mut stubborn = shell.clone();
        stubborn.left = vec![ProcessGroup::new(4_242, "boot/1")];
        let refused = agent(&journal, &stubborn).resume(&context()).await.unwrap_err();
        assert!(matches!(refused, PlanRunError::ProcessesLeft { group: 4_242, .. }), "{refused}");
        assert!(refused.advice().contains("kill -9 -4242"));
        assert_eq!(kinds(&journal.log("run_1")), ["started", "spawned"], "nothing was begun");
        let outcome = agent(&journal, &shell).resume(&context()).await.unwrap();
        assert_eq!(
            (outcome.status, outcome.last_text().unwrap_or_default()),
            (OutcomeStatus::Finished, "ran")
        );
        assert_eq!(shell.ended.lock().unwrap().len(), 2, "looked for at each resume");
    }
    assert!(cut > 0, "a death between the process and the end of its call was tried");
}
