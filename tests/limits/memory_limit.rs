//! A process that is short of memory begins no new task, and goes on with those that it has.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use archon::{ProcessMemoryLimit, RunError, RunId, RunOptions};
use archon_testkit::{Ended, FnProvider};

use crate::shared::stage::Stage;

// spec: ER-14
#[tokio::test]
async fn memory_limit_refuses_new_runs_and_allows_resume() {
    let used = Arc::new(AtomicU64::new(10));
    let gauge = used.clone();
    let limit = ProcessMemoryLimit::new(100).with_gauge(move || Some(gauge.load(Ordering::SeqCst)));
    let stage = Stage::new(|n, _| match n {
        0 => vec![Err(archon::types::ProviderError::Auth("no".into()))],
        _ => FnProvider::text("done"),
    });
    let show = stage.with(|b| b.process_memory_limit(limit)).raise();
    let mut options = RunOptions::default();
    options.run = Some(RunId::new("r"));
    assert!(!show.says("Work.", options).await.is_finished());

    used.store(101, Ordering::SeqCst);
    let refused = [
        show.agent.run("More.").await.unwrap_err(),
        show.agent.start("More.", RunOptions::default()).await.unwrap_err(),
        show.agent.conversation().prompt("More.").await.unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, RunError::MemoryPressure { used: 101, max: 100 }), "{error}");
        assert!(error.advice().contains("wait"));
    }
    assert_eq!(show.model.requests().len(), 1);
    assert_eq!(
        show.agent
            .resume(RunId::new("r"))
            .await
            .unwrap()
            .reply()
            .await
            .ended()
            .last_text()
            .unwrap_or_default(),
        "done"
    );

    used.store(100, Ordering::SeqCst);
    assert_eq!(show.agent.run("More.").await.ended().last_text(), Some("done"));
}
