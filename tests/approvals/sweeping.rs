//! Questions that nobody answered in time: their runs go on when somebody sweeps.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use archon::{
    OutcomeStatus, RunId, Runs,
    react_loop::PickFirst,
    types::{
        Answer, AnswerRuns, BoxFuture, Clock, RecordBody, RunError, RunFilter, RunKind, RunStatus, StartRun,
        StartRuns, Timestamp,
    },
};
use archon_testkit::{Ended, VirtualClock};

use crate::service::run_service::{STARTED, World, request};

const HOUR: Duration = Duration::from_secs(3_600);

/// The ids of runs that were swept, all of which go on.
async fn swept(runs: &Runs) -> Vec<RunId> {
    let swept = runs.sweep().await.unwrap().all_ok().unwrap();
    swept.into_iter().map(|started| started.run).collect()
}

// spec: AP-03
#[tokio::test]
async fn sweep_resumes_runs_of_any_kind_whose_question_has_expired() {
    for (kind, agent) in STARTED {
        let clock = VirtualClock::new();
        let world = World::asking().with_clock(&clock);
        let runs = world.process();
        let started = runs.start(request(kind, agent)).await.unwrap();
        runs.reply(&started.run).await.ended();
        assert_eq!(swept(&runs).await, [], "{kind}");
        clock.advance(HOUR);
        assert_eq!(swept(&runs).await, std::slice::from_ref(&started.run), "{kind}");
        let outcome = runs.reply(&started.run).await.ended();
        assert_eq!(outcome.status, OutcomeStatus::Finished, "{kind}: {outcome:?}");
        assert_eq!(world.effects.load(Ordering::SeqCst), 0, "{kind}");
        assert_eq!(swept(&runs).await, [], "{kind}");
    }
}

/// The clock of a machine that sleeps for an hour as soon as a run has begun.
#[derive(Clone)]
struct Slept {
    wall: VirtualClock,
    behind: Duration,
}

impl Clock for Slept {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
            + self.wall.now().since(Timestamp::from_millis(0)).saturating_sub(self.behind)
    }

    fn now_for_others(&self) -> Timestamp {
        self.wall.now()
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        self.wall.sleep_until(deadline + self.behind)
    }

    fn for_run(&self) -> Option<Arc<dyn Clock>> {
        Some(Arc::new(Self { wall: self.wall.clone(), behind: HOUR }))
    }
}

// spec: AP-03
#[tokio::test]
async fn question_of_a_run_whose_machine_slept_is_open_for_its_whole_time() {
    for (kind, agent) in STARTED {
        let wall = VirtualClock::new();
        wall.advance(HOUR + HOUR);
        let world = World::asking().with_clock(&Slept { wall: wall.clone(), behind: Duration::ZERO });
        let runs = world.process();
        let started = runs.start(request(kind, agent)).await.unwrap();
        runs.reply(&started.run).await.ended();
        wall.advance(HOUR / 2 - Duration::from_secs(1));
        assert_eq!(swept(&runs).await, [], "{kind}");
        assert!(!runs.questions(None).await.unwrap().is_empty(), "{kind}");
        wall.advance(Duration::from_secs(1));
        assert_eq!(swept(&runs).await, std::slice::from_ref(&started.run), "{kind}");
    }
}

#[tokio::test]
async fn swept_run_has_the_call_refused_in_its_log() {
    let clock = VirtualClock::new();
    let world = World::asking().with_clock(&clock);
    let runs = world.process();
    let started = runs.start(StartRun::new("Take a step")).await.unwrap();
    runs.reply(&started.run).await.ended();
    clock.advance(HOUR);
    swept(&runs).await;
    runs.reply(&started.run).await.ended();
    let log = world.log(&started.run).await;
    assert!(log.iter().any(|record| matches!(record.body, RecordBody::ToolCallRefused { .. })), "{log:?}");
}

#[tokio::test]
async fn sweep_leaves_a_cancelled_parallel_run_cancelled_whose_branch_waited() {
    let clock = VirtualClock::new();
    let world = World::closed().with_clock(&clock);
    let own = world.agent("agent");
    let right = world.agent("right");
    world.asks.store(true, Ordering::SeqCst);
    let parallel = own.parallel([world.agent("left"), right], Arc::new(PickFirst)).unwrap();
    let runs = Runs::new(own).with_agent(parallel.run_agent());
    let started = runs.start(request(RunKind::Parallel, "left")).await.unwrap();
    world.tool_entered().await;
    let waiting = RunFilter::all().status([RunStatus::Suspended]);
    while runs.list(&waiting).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    runs.cancel(&started.run, "not now").await.unwrap();
    // The inbox is read when this time is over.
    let ended = async {
        let reply = tokio::spawn({
            let (runs, run) = (runs.clone(), started.run.clone());
            async move { runs.reply(&run).await.ended().status }
        });
        while !reply.is_finished() {
            clock.advance(Duration::from_millis(250));
            tokio::task::yield_now().await;
        }
        reply.await.unwrap()
    };
    assert_eq!(ended.await, OutcomeStatus::Cancelled);
    assert_eq!(runs.list(&waiting).await.unwrap().len(), 1);
    clock.advance(HOUR);
    assert_eq!(swept(&runs).await, []);
    assert_eq!(runs.get(&started.run).await.unwrap().status, RunStatus::Cancelled);
}

#[tokio::test]
async fn sweep_names_a_run_that_cannot_go_on_and_resumes_the_others() {
    let clock = VirtualClock::new();
    let world = World::asking().with_clock(&clock);
    let runs = world.process();
    let mut started = Vec::new();
    for (kind, agent) in [(RunKind::Team, "team"), (RunKind::Loop, "agent")] {
        let run = runs.start(request(kind, agent)).await.unwrap().run;
        runs.reply(&run).await.ended();
        started.push(run);
    }
    clock.advance(HOUR);
    let alone = Runs::new(world.agent("agent"));
    let swept = alone.sweep().await.unwrap();
    let failures: Vec<_> = swept.failures().collect();
    assert!(matches!(failures[..], [(run, RunError::NoAgent { .. })] if *run == started[0]), "{failures:?}");
    assert_eq!(alone.reply(&started[1]).await.ended().status, OutcomeStatus::Finished);
}

#[tokio::test]
async fn keep_sweeping_runs_every_period_until_dropped() {
    let clock = VirtualClock::new();
    let world = World::asking().with_clock(&clock);
    let runs = world.process();
    let minute = Duration::from_secs(60);
    let sweeping = runs.keep_sweeping(minute);
    for _ in 0..2 {
        let started = runs.start(StartRun::new("Take a step")).await.unwrap();
        assert_eq!(runs.reply(&started.run).await.ended().status, OutcomeStatus::Suspended);
        sleeps_until(&clock, Some(minute)).await;
        clock.advance(HOUR);
        sleeps_until(&clock, Some(minute)).await;
        assert_eq!(runs.reply(&started.run).await.ended().status, OutcomeStatus::Finished);
    }
    drop(sweeping);
    sleeps_until(&clock, None).await;
}

/// Waits until the only sleeper of a clock, if any, sleeps for so long from now.
async fn sleeps_until(clock: &VirtualClock, then: Option<Duration>) {
    use archon::types::Clock as _;
    let asleep = async {
        while clock.next_deadline() != then.map(|then| clock.now() + then) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asleep).await.expect("it sleeps so");
}

#[tokio::test]
async fn sweep_resumes_a_run_that_was_answered_where_its_agent_is_not_registered() {
    let world = World::asking();
    let runs = world.process();
    let started = runs.start(request(RunKind::Team, "team")).await.unwrap();
    runs.reply(&started.run).await.ended();
    let question = runs.questions(None).await.unwrap().remove(0).request.request_id;
    let alone = Runs::new(world.agent("agent"));
    let refused = alone.answer(&question, Answer::Approve).await.unwrap_err();
    assert!(matches!(refused, RunError::NoAgent { .. }), "{refused}");
    assert_eq!(runs.questions(None).await.unwrap().len(), 0);
    assert_eq!(swept(&runs).await, std::slice::from_ref(&started.run));
    assert_eq!(runs.reply(&started.run).await.ended().status, OutcomeStatus::Finished);
    assert_eq!(world.effects.load(Ordering::SeqCst), 1);
}
