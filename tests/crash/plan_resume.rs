//! A plan whose process dies at any record, of its own log or of a subtask's: it goes on, and what was done is not
//! done again. Cancels, answers and budgets across the runs of a plan.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use archon::{
    OutcomeStatus,
    providers::Step,
    store::InMemoryJournal,
    types::{
        Answer, BoxFuture, Durability, InboxEntry, InboxRequest, Journal, JournalError, LimitReached,
        OpenMode, OpenRun, Record, RecordBody, RunFilter, RunHead, RunId, RunRefused, RunWriter, SubTask,
        Timestamp, ToolResult, Usage,
    },
};
use archon_planner::{PlanControl, PlanRunError, ScriptedPlanner, fold};
use serde_json::json;

use crate::scenarios::plan_world::{World, first};

/// A journal whose process dies at a chosen append, counted over all runs.
struct Dying {
    inner: InMemoryJournal,
    left: Arc<AtomicU64>,
}

struct DyingWriter(Box<dyn RunWriter>, Arc<AtomicU64>);

impl Journal for Dying {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move {
            let OpenRun { records, writer } = self.inner.open(run, mode).await?;
            Ok(OpenRun { records, writer: Box::new(DyingWriter(writer, self.left.clone())) })
        })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.inner.read(run)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.inner.list(filter)
    }
}

impl RunWriter for DyingWriter {
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        durability: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            if self.1.load(Ordering::Relaxed) == 0 {
                // A process that is dead says nothing more.
                return std::future::pending().await;
            }
            self.0.append(records, durability).await?;
            match self.1.fetch_sub(1, Ordering::Relaxed) {
                1 => std::future::pending().await,
                _ => Ok(()),
            }
        })
    }
}

fn steps() -> Vec<SubTask> {
    vec![
        SubTask::new("a", "First").with_tool("look", Some(json!({"at": "a"}))),
        SubTask::new("b", "Second").after(["a"]),
        SubTask::new("c", "Third").after(["a"]),
        SubTask::new("d", "Last").with_tool("look", Some(json!({"at": "{b} {c}"}))).after(["b", "c"]),
    ]
}

// spec: PL-25, A-15
#[tokio::test]
async fn a_plan_that_was_killed_at_any_record_goes_on_to_the_same_end() {
    let mut kills = 0;
    for kill_at in 1.. {
        let left = Arc::new(AtomicU64::new(kill_at));
        let inner = InMemoryJournal::new();
        let mut world =
            World::new().tool("look", |a| ToolResult::success(format!("saw {}", a["at"].as_str().unwrap())));
        world.journal = Arc::new(Dying { inner: inner.clone(), left: left.clone() });
        let reply =
            |request: &archon::types::Request| Step::text(first(request).lines().next().unwrap().to_owned());
        let agent = world.agent(ScriptedPlanner::new(steps()), reply);
        let context = world.context();
        // The dead process hangs; whoever waits for it lets go.
        let died = tokio::select! {
            biased;
            outcome = agent.start("Look around", &context) => Some(outcome.unwrap()),
            () = async { while left.load(Ordering::Relaxed) > 0 { tokio::task::yield_now().await; } for _ in 0..50 { tokio::task::yield_now().await; } } => None,
        };
        drop(agent);
        left.store(u64::MAX, Ordering::Relaxed);
        let before = inner.read(&"run_1".into()).await.unwrap();
        let outcome = match died {
            Some(outcome) => outcome,
            None => {
                kills += 1;
                let agent = world.agent(ScriptedPlanner::new(steps()), reply);
                match agent.resume(&context).await {
                    Ok(outcome) => outcome,
                    Err(PlanRunError::Refused(RunRefused::Ended { .. })) => continue,
                    // Nothing had been asked yet.
                    Err(error) => panic!("killed at {kill_at}: {error}"),
                }
            }
        };
        let is_asked = before.iter().any(|record| matches!(record.body, RecordBody::MessageAdded { .. }));
        assert!(is_asked, "killed at {kill_at}: the run is there, and nobody knows what it is to do");
        assert_eq!(
            (outcome.status, outcome.last_text().unwrap_or_default()),
            (OutcomeStatus::Finished, "saw Second Third"),
            "killed at {kill_at}"
        );
        let log = inner.read(&"run_1".into()).await.unwrap();
        let finished = |log: &[Arc<Record>]| -> Vec<String> {
            let call = |r: &Arc<Record>| match &r.body {
                RecordBody::ToolCallFinished { call, .. } => Some(call.to_string()),
                _ => None,
            };
            log.iter().filter_map(call).collect()
        };
        let mut all = finished(&log);
        all.sort();
        all.dedup();
        assert_eq!((all.len(), finished(&log).len()), (4, 4), "killed at {kill_at}: each call ends once");
        for call in finished(&before) {
            let starts = log.iter().filter(
                |r| matches!(&r.body, RecordBody::ToolCallStarted { call: c, .. } if c.to_string() == call),
            );
            assert_eq!(starts.count(), 1, "killed at {kill_at}: what was done began again");
        }
        if kills > 0 && left.load(Ordering::Relaxed) > u64::MAX / 2 && kill_at > 60 {
            break;
        }
    }
    assert!(kills > 20, "{kills}");
}

// spec: PL-23
#[tokio::test]
async fn plan_can_be_paused_cancelled_and_resumed() {
    let world = World::new().tool("look", |_| ToolResult::success("seen"));
    let control = PlanControl::new();
    control.pause("not yet");
    let reply =
        |request: &archon::types::Request| Step::text(first(request).lines().next().unwrap().to_owned());
    let agent = world.agent(ScriptedPlanner::new(steps()), reply).with_control(control.clone());
    let context = world.context();
    let outcome = agent.start("Look around", &context).await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Suspended);
    assert!(world.called().is_empty());
    control.go_on();
    context.cancel.cancel();
    let outcome = agent.resume(&context).await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Cancelled);
    let outcome = agent.resume(&world.context()).await.unwrap();
    assert_eq!((outcome.status, outcome.last_text().unwrap_or_default()), (OutcomeStatus::Finished, "seen"));
    assert!(matches!(
        agent.resume(&world.context()).await,
        Err(PlanRunError::Refused(RunRefused::Ended { .. }))
    ));
}

#[tokio::test]
async fn plan_is_cancelled_by_another_process_through_its_inbox() {
    let world = World::new().tool("look", |_| ToolResult::success("seen"));
    let control = PlanControl::new();
    control.pause("until somebody cancels");
    let agent = world.agent(ScriptedPlanner::new(steps()), |_| Step::text("x")).with_control(control.clone());
    let (outcome, _, _) = world.run(&agent, "Look around").await;
    assert_eq!(outcome.status, OutcomeStatus::Suspended);
    let inbox = world.journal.inbox().unwrap();
    let request = InboxRequest::Cancel { reason: "somebody else said so".into() };
    inbox.post(&"run_1".into(), InboxEntry::new("in_1", Timestamp::default(), request)).await.unwrap();
    control.go_on();
    let outcome = agent.resume(&world.context()).await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Cancelled);
    let records = world.journal.read(&"run_1".into()).await.unwrap();
    let reason = |r: &Arc<Record>| match &r.body {
        RecordBody::CancelRequested { reason } => Some(reason.clone()),
        _ => None,
    };
    assert_eq!(records.iter().find_map(reason).as_deref(), Some("somebody else said so"));
    assert!(inbox.waiting(&"run_1".into()).await.unwrap().is_empty());
    let outcome = agent.resume(&world.context()).await.unwrap();
    assert_eq!((outcome.status, outcome.last_text().unwrap_or_default()), (OutcomeStatus::Finished, "seen"));
}

// spec: PL-24
#[tokio::test]
async fn a_cancel_goes_before_a_question_and_a_subtask_is_not_edited_by_an_answer() {
    let world = World::new().tool("look", |_| ToolResult::success("seen"));
    let mut plan = steps();
    plan[0].rules.gate = Some("Look there?".into());
    let agent = world.agent(ScriptedPlanner::new(plan), |_| Step::text("x"));
    let context = world.context();
    assert_eq!(agent.start("Look around", &context).await.unwrap().status, OutcomeStatus::Suspended);
    let log = world.journal.read(&"run_1".into()).await.unwrap();
    let question = log.iter().find_map(|record| match &record.body {
        RecordBody::ApprovalRequested { call, request } => Some((*call, request.allow_modification)),
        _ => None,
    });
    let (call, false) = question.unwrap() else { panic!("a gate offers no edit") };
    let edit = Answer::Edit { arguments: json!({"at": 7}) };
    let refused = agent.answer(call, edit, &context).await.unwrap_err();
    assert!(matches!(refused, PlanRunError::NotChangeable { .. }), "{refused}");
    let inbox = world.journal.inbox().unwrap();
    let request = InboxRequest::Cancel { reason: "not any more".into() };
    inbox.post(&"run_1".into(), InboxEntry::new("in_1", Timestamp::default(), request)).await.unwrap();
    let outcome = agent.answer(call, Answer::Approve, &context).await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Cancelled);
    assert_eq!(world.called(), Vec::<String>::new(), "nothing began after the cancel");
}

// spec: PL-24
#[tokio::test]
async fn plan_waits_for_approval_and_applies_an_edit() {
    let mut world = World::new().tool("look", |a| ToolResult::success(a["at"].to_string()));
    world.options.settings.confirm = archon::types::Confirm::First;
    let agent = world.agent(ScriptedPlanner::new(steps()), |_| Step::text("x"));
    let context = world.context();
    assert_eq!(agent.start("Look around", &context).await.unwrap().status, OutcomeStatus::Suspended);
    let log = world.journal.read(&"run_1".into()).await.unwrap();
    let (call, mut task) = log
        .iter()
        .find_map(|record| match &record.body {
            RecordBody::ApprovalRequested { call, request } => Some((*call, request.details.clone())),
            _ => None,
        })
        .unwrap();
    let other = archon::types::CallId::new(call.command, 9);
    assert!(matches!(
        agent.answer(other, Answer::Approve, &context).await,
        Err(PlanRunError::Refused(RunRefused::NoQuestion { .. }))
    ));
    task["subtasks"] =
        json!([{"id": "only", "description": "Look once", "tool_name": "lok", "tool_args": {"at": 7}}]);
    let refused = agent.answer(call, Answer::Edit { arguments: task.clone() }, &context).await.unwrap_err();
    assert!(refused.to_string().contains("there is no tool \"lok\""), "{refused}");
    task["subtasks"][0]["tool_name"] = "look".into();
    let outcome = agent.answer(call, Answer::Edit { arguments: task }, &context).await.unwrap();
    assert_eq!((outcome.status, outcome.last_text().unwrap_or_default()), (OutcomeStatus::Finished, "7"));
    assert_eq!(world.called(), ["look"]);
}

#[tokio::test]
async fn subtasks_share_the_budget_of_their_plan() {
    let mut world = World::new();
    world.options.limits.max_total_tokens = 5_000;
    let plan: Vec<SubTask> = (0..4)
        .map(|n| {
            let step = SubTask::new(format!("s{n}"), "Think");
            if n == 0 { step } else { step.after([format!("s{}", n - 1)]) }
        })
        .collect();
    let reply = |_: &archon::types::Request| {
        Step::text("thought").with_usage(Usage { input: 2_000, output: 500, ..Usage::default() })
    };
    let agent = world.agent(ScriptedPlanner::new(plan), reply);
    let (outcome, machine, records) = world.run(&agent, "Think hard").await;
    assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Tokens { max: 5_000 }));
    assert_eq!(machine.spending().tokens, 5_000, "two subtasks, 2,500 each");
    assert_eq!(outcome.spending().tokens, 5_000);
    let leases: Vec<u64> = records
        .iter()
        .filter_map(|r| match &r.body {
            RecordBody::LeaseGranted { lease, .. } => Some(lease.tokens),
            _ => None,
        })
        .collect();
    assert_eq!(leases.len(), 2);
    assert!(leases[1] <= 2_500, "{leases:?}");
    assert!(fold(&records).unwrap().ended().is_some());
}
