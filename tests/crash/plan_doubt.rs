//! A step of a plan that was cut off and may have done its work: a person is asked, and the plan is never lost by it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use archon::{
    OutcomeStatus,
    tools::FnTool,
    types::{
        Answer, CallId, CancellationToken, Effect, QuestionKind, RecordBody, SubTask, ToolAnnotations,
        ToolResult, ToolSpec, pending_approvals,
    },
};
use archon_planner::{PlanRunError, ScriptedPlanner};
use serde_json::{Value, json};

use crate::scenarios::plan_world::World;

/// A world with `pay`, which works for ever the first time, and then as often as it is called.
fn world() -> (World, Arc<AtomicUsize>, CancellationToken) {
    let world = World::new().tool("look", |_| ToolResult::success("looked"));
    let (paid, is_paying) = (Arc::new(AtomicUsize::new(0)), CancellationToken::new());
    let mut annotations = ToolAnnotations::default();
    annotations.effect = Effect::SideEffect;
    let spec = ToolSpec::new("pay", "Pays.", json!({"type": "object"})).with_annotations(annotations);
    let (count, paying) = (paid.clone(), is_paying.clone());
    let tool = FnTool::new(spec, move |_: Value, _| {
        let (count, paying) = (count.clone(), paying.clone());
        async move {
            if count.fetch_add(1, Ordering::Relaxed) == 0 {
                paying.cancel();
                std::future::pending::<()>().await;
            }
            Ok(ToolResult::success("paid"))
        }
    });
    world.registry.register(tool).unwrap();
    (world, paid, is_paying)
}

fn steps() -> Vec<SubTask> {
    vec![
        SubTask::new("pay", "Pay Ann").with_tool("pay", Some(json!({"to": "Ann", "euros": 7}))),
        SubTask::new("look", "Look").with_tool("look", Some(json!({}))).after(["pay"]),
    ]
}

/// What ended the first process.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Killed,
    Cancelled,
}

/// The world after a first process that ended while the payment was under way.
async fn cut_off(end: End) -> (World, Arc<AtomicUsize>) {
    let (world, paid, is_paying) = world();
    let agent = world.agent(ScriptedPlanner::new(steps()), |_| panic!("no model is asked"));
    let context = world.context();
    let run = agent.start("Pay", &context);
    match end {
        End::Killed => tokio::select! {
            outcome = run => panic!("{outcome:?}"),
            () = is_paying.cancelled() => {}
        },
        End::Cancelled => {
            let cancel = async {
                is_paying.cancelled().await;
                context.cancel.cancel();
            };
            let (outcome, ()) = tokio::join!(run, cancel);
            assert_eq!(outcome.unwrap().status, OutcomeStatus::Cancelled);
        }
    }
    (world, paid)
}

async fn only_question(world: &World) -> (CallId, archon::types::ApprovalRequest) {
    let open = pending_approvals(&world.journal.read(&"run_1".into()).await.unwrap());
    assert_eq!(open.len(), 1, "{open:?}");
    (open[0].call, open[0].request.clone())
}

// spec: PL-23, PL-25, AP-04
#[tokio::test]
async fn a_plan_that_is_cut_off_in_a_side_effect_asks_and_goes_on_by_the_answer() {
    for end in [End::Killed, End::Cancelled] {
        for (answer, payments, said) in [
            (Answer::Approve, 2, "paid"),
            (Answer::Reply { text: "the bank has it".into() }, 1, "the bank has it"),
        ] {
            let (world, paid) = cut_off(end).await;
            let agent = world.agent(ScriptedPlanner::new(steps()), |_| panic!("no model is asked"));
            let outcome = agent.resume(&world.context()).await.unwrap();
            assert_eq!(outcome.status, OutcomeStatus::Suspended, "{end:?}: {outcome:?}");
            assert_eq!(paid.load(Ordering::Relaxed), 1, "{end:?}: nothing is repeated without a yes");
            let (call, request) = only_question(&world).await;
            assert_eq!((request.kind, request.expires_at), (QuestionKind::InDoubt, None), "{end:?}");
            for part in ["pay", "Ann", "7", "check first whether it happened"] {
                assert!(request.action_summary.contains(part), "{end:?}: {}", request.action_summary);
            }
            // Another process that knows nothing of it finds the same question.
            let outcome = agent.resume(&world.context()).await.unwrap();
            assert_eq!(outcome.status, OutcomeStatus::Suspended);
            assert_eq!(only_question(&world).await.1.request_id, request.request_id);
            let edit = Answer::Edit { arguments: json!({"to": "Bob"}) };
            let refused = agent.answer(call, edit, &world.context()).await.unwrap_err();
            assert!(matches!(refused, PlanRunError::NotChangeable { .. }), "{refused}");

            let outcome = agent.answer(call, answer, &world.context()).await.unwrap();
            assert_eq!(
                (outcome.status, outcome.last_text().unwrap_or_default()),
                (OutcomeStatus::Finished, "looked")
            );
            assert_eq!(paid.load(Ordering::Relaxed), payments, "{end:?}");
            let log = world.journal.read(&"run_1".into()).await.unwrap();
            let machine = archon_planner::fold(&log).unwrap();
            let result =
                machine.nodes().find(|node| node.subtask.id.as_str() == "pay").unwrap().result.clone();
            assert_eq!(result.unwrap().text(), said, "{end:?}");
        }
    }
}

// spec: PL-25
#[tokio::test]
async fn denied_repeat_of_a_step_in_doubt_is_passed_to_the_replan() {
    let (world, paid) = cut_off(End::Killed).await;
    let again = vec![SubTask::new("look", "Look at the account").with_tool("look", Some(json!({})))];
    let agent = world.agent(ScriptedPlanner::new(again), |_| panic!("no model is asked"));
    assert_eq!(agent.resume(&world.context()).await.unwrap().status, OutcomeStatus::Suspended);
    let (call, _) = only_question(&world).await;
    let no = Answer::Cancel { reason: "Ann called".into() };
    let outcome = agent.answer(call, no, &world.context()).await.unwrap();
    assert_eq!((outcome.status, paid.load(Ordering::Relaxed)), (OutcomeStatus::Finished, 1), "{outcome:?}");
    let log = world.journal.read(&"run_1".into()).await.unwrap();
    let why = log.iter().find_map(|record| match &record.body {
        RecordBody::Plan(plan) => match &**plan {
            archon::types::PlanRecord::PlanningStarted { reason: Some(reason), .. } => Some(reason.clone()),
            _ => None,
        },
        _ => None,
    });
    let why = why.unwrap();
    assert!(why.contains("nobody knows whether it did its work") && why.contains("Ann called"), "{why}");
}

#[tokio::test]
async fn a_plan_that_repeats_a_step_in_doubt_after_a_no_is_not_followed() {
    let (world, paid) = cut_off(End::Killed).await;
    let again = SubTask::new("pay-2", "Pay her").with_tool("pay", Some(json!({"to": "Ann", "euros": 7})));
    let agent = world.agent(ScriptedPlanner::new(vec![again]), |_| panic!("no model is asked"));
    assert_eq!(agent.resume(&world.context()).await.unwrap().status, OutcomeStatus::Suspended);
    let (call, _) = only_question(&world).await;
    let no = Answer::Cancel { reason: "she has it".into() };
    let outcome = agent.answer(call, no, &world.context()).await.unwrap();
    assert_eq!((outcome.status, paid.load(Ordering::Relaxed)), (OutcomeStatus::Failed, 1), "{outcome:?}");
    let log = serde_json::to_string(&world.journal.read(&"run_1".into()).await.unwrap()).unwrap();
    assert!(log.contains("a person refused to repeat"), "{log}");
}

// spec: PL-23
#[tokio::test]
async fn a_question_about_a_step_in_doubt_is_put_again_after_a_cancel() {
    let (world, paid) = cut_off(End::Killed).await;
    let agent = world.agent(ScriptedPlanner::new(steps()), |_| panic!("no model is asked"));
    assert_eq!(agent.resume(&world.context()).await.unwrap().status, OutcomeStatus::Suspended);
    let context = world.context();
    context.cancel.cancel();
    assert_eq!(agent.resume(&context).await.unwrap().status, OutcomeStatus::Cancelled);
    assert_eq!(agent.resume(&world.context()).await.unwrap().status, OutcomeStatus::Suspended);
    assert_eq!(only_question(&world).await.1.kind, QuestionKind::InDoubt);
    assert_eq!(paid.load(Ordering::Relaxed), 1);
}
