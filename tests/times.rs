//! The time of a run: a clock that was set back or forward between two processes neither ends a run nor keeps it waiting,
//! and a run that met its limit goes on with more.

use std::{sync::Arc, time::Duration};

use archon::{
    Archon, OutcomeStatus, RunId, RunOptions,
    store::MemoryJournal,
    types::{Clock, ExecutionLimits, Journal, LimitReached, ProviderError, Record, RecordBody, Timestamp},
};
use archon_testkit::{FnProvider, SeededIds, VirtualClock};

const HOUR: Duration = Duration::from_secs(3_600);

/// What the reads of a virtual clock begin at.
fn noon() -> Timestamp {
    VirtualClock::new().now()
}

fn agent(journal: &MemoryJournal, clock: &VirtualClock, model: FnProvider) -> Archon {
    Archon::builder()
        .provider(Arc::new(model), "scripted")
        .journal(Arc::new(journal.clone()))
        .clock(Arc::new(clock.clone()))
        .ids(Arc::new(SeededIds::new(7)))
        .build()
        .unwrap()
}

async fn failed_at(time: Timestamp) -> (MemoryJournal, RunId) {
    let journal = MemoryJournal::new();
    let model = FnProvider::new(|_, _| vec![Err(ProviderError::Auth("no such key".into()))]);
    let archon = agent(&journal, &VirtualClock::starting_at(time), model);
    let outcome = archon.run("Say hello.").await.unwrap();
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
    let outcome = agent(&journal, &clock, model).resume(run.clone()).await.unwrap().outcome().await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{outcome:?}");
    let waited = clock.now().since(noon());
    assert!(waited > Duration::ZERO && waited < Duration::from_secs(60), "{waited:?}");
    assert!(are_in_order(&journal.read(&run).await.unwrap()));
}
