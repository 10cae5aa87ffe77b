//! The settings of a run: each is a field of what the run begins with, or of the engine that its tools run in, and so is
//! every part that it works with.

use std::{sync::Arc, time::Duration};

use archon::{
    Archon, Journal,
    store::InMemoryJournal,
    tools::EngineOptions,
    types::{
        ApprovalSettings, AskLater, Clock, ContextConfig, ExecutionLimits, Json, RecordBody, RetryConfig,
        RunConfig, Timestamp,
    },
};
use archon_testkit::{Ended, FnProvider, SeededIds, VirtualClock};
use serde_json::json;

/// What the run of an agent begins with that was built so.
async fn config_of(build: impl FnOnce(archon::ArchonBuilder) -> archon::ArchonBuilder) -> RunConfig {
    let journal = InMemoryJournal::new();
    let model = FnProvider::new(|_, _| FnProvider::text("done"));
    let builder = Archon::builder().provider(Arc::new(model), "m").approver(AskLater);
    let agent = build(builder).journal(Arc::new(journal.clone())).build().unwrap();
    let outcome = agent.run("Work.").await.ended();
    let log = journal.read(&outcome.run).await.unwrap();
    match &log[0].body {
        RecordBody::RunStarted(started) => started.config.clone(),
        other => panic!("{other:?}"),
    }
}

/// Checks these fields of what a run begins with.
fn check(config: &RunConfig, fields: &[(&str, Json)]) {
    let config = serde_json::to_value(config).unwrap();
    for (field, value) in fields {
        assert_eq!(config.pointer(field), Some(value), "{field} of {config}");
    }
}

// spec: R-16
#[tokio::test]
async fn loop_settings_defaults() {
    check(
        &config_of(|builder| builder).await,
        &[
            ("/limits/max_turns", json!(50)),
            ("/context/max_context_tokens", json!(100_000)),
            ("/context/trigger", json!(0.8)),
            ("/context/max_history_messages", json!(40)),
            ("/context/max_overflow_recoveries", json!(3)),
            ("/context/max_tool_result_share", json!(0.3)),
            ("/context/max_tool_result_chars", json!(400_000)),
            ("/retry/max_retries", json!(3)),
            ("/retry/initial_delay_ms", json!(1_000)),
            ("/approvals/timeout_ms", json!(1_800_000)),
        ],
    );
    assert_eq!(ExecutionLimits::subtask().max_turns, 10);
    let limits =
        [EngineOptions::default(), EngineOptions::for_agent_tools()].map(|options| options.timeout.as_secs());
    assert_eq!(limits, [30, 120], "seconds of a call");
}

// spec: R-16
#[tokio::test]
async fn every_loop_setting_is_in_the_run_config() {
    let set = config_of(|builder| {
        let mut context = ContextConfig::new(64_000);
        (context.trigger, context.max_history_messages, context.max_overflow_recoveries) = (0.5, 7, 2);
        (context.max_tool_result_share, context.max_tool_result_chars) = (0.1, 9_000);
        let mut retry = RetryConfig::default();
        (retry.max_retries, retry.initial_delay_ms) = (5, 250);
        let approvals = ApprovalSettings::default().with_timeout(Duration::from_secs(60));
        let limits = ExecutionLimits::default().with_max_turns(4);
        builder.context(context).retry(retry).approval_settings(approvals).limits(limits)
    });
    let fields = [
        ("/limits/max_turns", json!(4)),
        ("/context/max_context_tokens", json!(64_000)),
        ("/context/trigger", json!(0.5)),
        ("/context/max_history_messages", json!(7)),
        ("/context/max_overflow_recoveries", json!(2)),
        ("/context/max_tool_result_share", json!(0.1)),
        ("/context/max_tool_result_chars", json!(9_000)),
        ("/retry/max_retries", json!(5)),
        ("/retry/initial_delay_ms", json!(250)),
        ("/approvals/timeout_ms", json!(60_000)),
    ];
    check(&set.await, &fields);
    // The time limit of a call belongs to the engine, which serves callers without a loop too.
    assert_eq!(EngineOptions::default().with_timeout(Duration::from_secs(7)).timeout.as_secs(), 7);
}

// spec: Q-09
#[tokio::test]
async fn a_run_works_with_the_parts_that_its_builder_was_given_and_with_no_others() {
    let at = Timestamp::from_millis(86_400_000);
    let mut logs = Vec::new();
    for _ in 0..2 {
        let (journal, clock) = (InMemoryJournal::new(), VirtualClock::starting_at(at));
        let model = FnProvider::new(|_, _| FnProvider::text("done"));
        let agent = Archon::builder()
            .provider(Arc::new(model.clone()), "m")
            .journal(Arc::new(journal.clone()))
            .clock(Arc::new(clock.clone()))
            .ids(Arc::new(SeededIds::new(7)))
            .build()
            .unwrap();
        let outcome = agent.run("Work.").await.ended();
        assert_eq!(model.requests().len(), 1);
        let log = journal.read(&outcome.run).await.unwrap();
        assert!(log.iter().all(|record| record.at == at), "the time is the clock's: {log:?}");
        assert_eq!(clock.now(), at);
        logs.push(serde_json::to_value(log.iter().map(|record| &**record).collect::<Vec<_>>()).unwrap());
    }
    // With the same parts it is the same run, ids and all.
    let [first, second]: [Json; 2] = logs.try_into().unwrap();
    assert_eq!(first, second);
}
