//! The time of a run: a clock that was set back or forward between two processes neither ends a run nor keeps it waiting,
//! and a run that met its limit goes on with more.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use archon::{
    Archon, OutcomeStatus, RunError, RunId,
    react_loop::replay,
    store::InMemoryJournal,
    tools::builtin,
    types::{
        Clock, ExecutionLimits, Journal, LimitReached, Message, MoreLimits, ProviderError, Record,
        RunRefused, SubTask, Timestamp,
    },
};
use archon_planner::ScriptedPlanner;
use archon_testkit::{Ended, FnProvider, SeededIds, VirtualClock};
use serde_json::json;

use crate::shared::stage::{call, reads};

const HOUR: Duration = Duration::from_secs(3_600);

/// What the reads of a virtual clock begin at.
fn noon() -> Timestamp {
    VirtualClock::new().now()
}

fn agent(journal: &InMemoryJournal, clock: &VirtualClock, model: FnProvider) -> Archon {
    Archon::builder()
        .provider(Arc::new(model), "scripted")
        .journal(Arc::new(journal.clone()))
        .clock(Arc::new(clock.clone()))
        .ids(Arc::new(SeededIds::new(7)))
        .build()
        .unwrap()
}

async fn failed_at(time: Timestamp) -> (InMemoryJournal, RunId) {
    let journal = InMemoryJournal::new();
    let model = FnProvider::new(|_, _| vec![Err(ProviderError::Auth("no such key".into()))]);
    let archon = agent(&journal, &VirtualClock::starting_at(time), model);
    let outcome = archon.run("Say hello.").await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    (journal, outcome.run)
}

fn are_in_order(log: &[Arc<Record>]) -> bool {
    log.windows(2).all(|pair| pair[0].at <= pair[1].at)
}

// spec
#[tokio::test]
async fn resume_of_a_run_at_an_earlier_date_waits_for_a_retry_no_longer_than_ever() {
    let (journal, run) = failed_at(noon() + HOUR).await;
    let clock = VirtualClock::jumping();
    let model = FnProvider::new(|n, _| match n {
        0 => vec![Err(ProviderError::Network("gone".into()))],
        _ => FnProvider::text("Hello."),
    });
    let outcome = agent(&journal, &clock, model).resume(run.clone()).await.unwrap().reply().await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{outcome:?}");
    let waited = clock.now().since(noon());
    assert!(waited > Duration::ZERO && waited < Duration::from_secs(60), "{waited:?}");
    assert!(are_in_order(&journal.read(&run).await.unwrap()));
}

/// An agent whose model works for ten turns and then answers.
fn busy(journal: &InMemoryJournal, clock: &VirtualClock, limits: ExecutionLimits) -> Archon {
    let takes = clock.clone();
    let model = FnProvider::new(move |_, request| {
        takes.advance(Duration::from_secs(10));
        let turns = request.messages.iter().filter(|m| matches!(&***m, Message::Assistant(_))).count();
        match turns {
            0..10 => call("c", "calculator", json!({"expression": format!("{turns} + 1")})),
            _ => FnProvider::text("Ten sums."),
        }
    });
    Archon::builder()
        .provider(Arc::new(model), "scripted")
        .tool(builtin::Calculator::new())
        .limits(limits)
        .journal(Arc::new(journal.clone()))
        .clock(Arc::new(clock.clone()))
        .ids(Arc::new(SeededIds::new(7)))
        .build()
        .unwrap()
}

// spec
#[tokio::test]
async fn resume_with_more_of_a_limit_that_was_met_goes_on_to_the_end() {
    let turns = |n| {
        let mut limits = ExecutionLimits::default();
        limits.max_turns = n;
        let mut more = MoreLimits::default();
        more.max_turns = Some(20);
        (limits, more, LimitReached::Turns { max: n })
    };
    let time = |seconds: u64| {
        let mut limits = ExecutionLimits::default();
        limits.max_duration_ms = seconds * 1_000;
        let mut more = MoreLimits::default();
        more.max_duration_ms = Some(3_600_000);
        (limits, more, LimitReached::Duration { max_ms: seconds * 1_000 })
    };
    for (limits, more, met) in [turns(3), time(35)] {
        let (journal, clock) = (InMemoryJournal::new(), VirtualClock::new());
        let archon = busy(&journal, &clock, limits);
        let outcome = archon.run("Add.").await.ended();
        assert_eq!(outcome.status, OutcomeStatus::Limit(met));
        let run = outcome.run;
        clock.advance(HOUR);
        let refused = archon.resume(run.clone()).await.unwrap().reply().await.unwrap_err();
        let text = refused.to_string();
        assert!(text.contains(&met.to_string()), "it says which limit: {text}");

        let outcome = archon.resume_with(run.clone(), more).await.unwrap().reply().await.ended();
        assert_eq!(
            (outcome.status, outcome.last_text().unwrap_or_default()),
            (OutcomeStatus::Finished, "Ten sums."),
            "{met}"
        );
        assert_eq!(outcome.turns, 11, "what was done before counts");
        assert!(replay(&journal, &run).await.unwrap().is_identical());
        let ended = archon.resume_with(run, more).await.unwrap().reply().await;
        assert!(matches!(ended, Err(RunError::Refused(RunRefused::Ended { .. }))), "{ended:?}");
    }
}

// spec: R-14, PL-23
#[tokio::test]
async fn resume_of_a_plan_with_more_time_goes_on_where_it_was_stopped() {
    let (journal, clock) = (InMemoryJournal::new(), VirtualClock::new());
    let mut limits = ExecutionLimits::default();
    limits.max_duration_ms = 25_000;
    let takes = clock.clone();
    let (slow, count) = reads("slow", move |_, _| {
        takes.advance(Duration::from_secs(10));
        Ok(archon::ToolResult::success("seen"))
    });
    let step = |n: usize| {
        let step = SubTask::new(format!("s{n}"), "Look").with_tool("slow", Some(json!({})));
        if n == 0 { step } else { step.after([format!("s{}", n - 1)]) }
    };
    let archon = Archon::builder()
        .provider(Arc::new(FnProvider::new(|_, _| FnProvider::text("x"))), "scripted")
        .tool(slow)
        .limits(limits)
        .journal(Arc::new(journal.clone()))
        .clock(Arc::new(clock.clone()))
        .ids(Arc::new(SeededIds::new(7)))
        .build()
        .unwrap();
    let planning = archon.planning(Arc::new(ScriptedPlanner::new((0..5).map(step).collect())));
    let outcome = planning.run("Look five times").await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Duration { max_ms: 25_000 }));
    let refused = planning.resume(outcome.run.clone()).await.unwrap().reply().await.unwrap_err();
    assert!(refused.to_string().contains("Max duration reached (25 s)"), "{refused}");
    let mut more = MoreLimits::default();
    more.max_duration_ms = Some(600_000);
    let outcome = planning.resume_with(outcome.run, more).await.unwrap().reply().await.ended();
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Finished, "seen"),
        "{outcome:?}"
    );
    assert_eq!(count.load(Ordering::SeqCst), 5, "none is done twice");
}
