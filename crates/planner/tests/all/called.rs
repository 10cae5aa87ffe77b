//! Tests of a plan that works for a call of another run: it is started once, found again after a crash,
//! and never confused with the run of another call. Also answers to questions of its own child runs.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use archon_planner::{PlanningAgent, PlanningAgentOptions, ScriptedPlanner};
use archon_testkit::{FnAgent, InboxJournal, MortalJournal, SeededIds, VirtualClock};
use archon_types::{
    Agent, Answer, BoxFuture, CallId, CancellationToken, CommandId, Context, InboxRequest, Lease, Origin,
    Outcome, OutcomeStatus, RecordBody,
};

use crate::support::step;

/// An agent that counts its runs.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicU32>);

impl Agent for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn run<'a>(&'a self, _: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        let mut outcome = Outcome::new(context.run.clone(), OutcomeStatus::Finished);
        outcome.set_answer(format!("done {}", self.0.fetch_add(1, Ordering::Relaxed)));
        Box::pin(async { outcome })
    }
}

fn context(journal: &MortalJournal, call: u32) -> Context {
    let caller =
        Context::new("boss".into(), "s".into(), Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)));
    let call = CallId::new(CommandId(7), call);
    let lease = Lease::new(1_000, 60_000);
    caller.of_call(call, lease, 3, Arc::new(journal.clone()), CancellationToken::new())
}

// spec: MA-28, PL-09
#[tokio::test]
async fn child_plan_is_started_once_and_found_after_a_kill_at_any_record() {
    let mut deaths = 0;
    for (appends, is_written) in (1..30).flat_map(|n| [(n, false), (n, true)]) {
        let (journal, elsewhere, worker) =
            (MortalJournal::default(), MortalJournal::default(), Counting::default());
        let agent = PlanningAgent::new(
            Arc::new(ScriptedPlanner::new(vec![step("a", &[])])),
            Arc::new(worker.clone()),
            Arc::new(elsewhere.clone()),
            PlanningAgentOptions::default(),
        );
        let context = context(&journal, 0);
        journal.die_after(appends, is_written);
        let first = agent.run("Do it", &context).await;
        journal.live();
        deaths += u32::from(first.status == OutcomeStatus::Failed);
        let at = format!("append {appends}, written: {is_written}");
        let second = agent.run("Do it", &context).await;
        assert_eq!(second.status, OutcomeStatus::Finished, "{at}: {second:?}");
        let worked = worker.0.load(Ordering::Relaxed);
        let third = agent.run("Do it", &context).await;
        assert_eq!((&third, worker.0.load(Ordering::Relaxed)), (&second, worked), "{at}: done again");
        let log = journal.log("boss.7-0");
        let RecordBody::RunStarted(started) = &log[0].body else { panic!("{at}") };
        assert_eq!(
            started.origin,
            Origin::CalledBy { run: "boss".into(), call: CallId::new(CommandId(7), 0) }
        );
        assert_eq!(started.config.limits.max_total_tokens, 1_000, "no more than was lent");
        assert_eq!(log.iter().filter(|r| matches!(r.body, RecordBody::RunStarted(_))).count(), 1, "{at}");
        assert!(elsewhere.log("boss.7-0").is_empty(), "{at}: it is kept beside its caller");
    }
    assert!(deaths > 10, "{deaths}");
}

// spec: MA-28
#[tokio::test]
async fn child_plan_with_the_id_but_another_caller_is_not_resumed() {
    let (journal, worker) = (MortalJournal::default(), Counting::default());
    let agent = PlanningAgent::new(
        Arc::new(ScriptedPlanner::new(vec![step("a", &[])])),
        Arc::new(worker.clone()),
        Arc::new(journal.clone()),
        PlanningAgentOptions::default(),
    );
    let called = context(&journal, 0);
    let mut own = called.clone();
    (own.delegation, own.depth) = (None, 0);
    assert!(agent.run("Do it", &own).await.is_finished());
    let refused = agent.run("Do it", &called).await;
    let says = refused.error.unwrap_or_default();
    assert!(
        says.contains("run boss.7-0 already exists and does not belong to this call of run boss"),
        "{says}"
    );
    assert_eq!(worker.0.load(Ordering::Relaxed), 1);
    // As deep as a run may be, it begins no others.
    let mut deep = context(&journal, 1);
    deep.depth = 3;
    let says = agent.run("Do it", &deep).await.error.unwrap_or_default();
    assert!(says.contains("a run at depth 3 cannot start child runs"), "{says}");
}

// spec: AP-05
#[tokio::test]
async fn plan_waits_when_the_answer_below_belongs_to_an_earlier_form_of_the_question() {
    let journal = InboxJournal::default();
    let inbox = journal.clone();
    let worker = FnAgent::new(move |_, context| {
        let outcome = Outcome::new(context.run.clone(), OutcomeStatus::Suspended);
        let call = context.delegation.as_ref().map(|by| by.call).expect("a call of the plan");
        let mut earlier = outcome.to_question(call, "fn");
        earlier.binding = "earlier".to_owned();
        inbox.post(context.run.as_str(), "in-1", earlier.answered(Answer::Approve));
        std::future::ready(outcome)
    });
    let agent = PlanningAgent::new(
        Arc::new(ScriptedPlanner::new(vec![step("a", &[])])),
        worker,
        Arc::new(journal.clone()),
        PlanningAgentOptions::default(),
    );
    let (clock, ids) = (Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)));
    let context = Context::new("run_1".into(), "s".into(), clock, ids);
    let outcome = agent.start("Do it", &context).await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Suspended, "{outcome:?}");
    let log = journal.logs().log("run_1");
    let asked = archon_planner::open_questions(&log);
    let question = asked[0].1;
    let posted = journal.posted(question.asker().unwrap().run.as_str());
    let InboxRequest::Answer { request_id, binding, .. } = &posted[0].request else { panic!("{posted:?}") };
    assert_eq!((request_id, binding.as_str()), (&question.request_id, "earlier"));
    assert!(!log.iter().any(|record| matches!(record.body, RecordBody::ApprovalAnswered { .. })));
}
