//! Limits hold also where no service counts tokens, and where calls are lost with their process.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use archon::{
    Context, OutcomeStatus, Provider,
    react_loop::{ReactAgent, ReactAgentOptions},
    store::InMemoryJournal,
    types::{
        BoxStream, CancellationToken, ExecutionLimits, LimitReached, Message, ModelEvent, Origin,
        ProviderError, Request,
    },
};
use archon_testkit::{SeededIds, VirtualClock};
use serde_json::json;

use crate::shared::stage::{Stage, call};

// spec: R-14
#[tokio::test]
async fn max_total_tokens_holds_where_the_service_reports_no_usage() {
    let stage = Stage::new(|n, _| call("c", "calculator", json!({"expression": format!("{n} + 1")})));
    let mut limits = ExecutionLimits::default();
    limits.max_total_tokens = 2_000;
    let (outcome, show) = stage.with(|builder| builder.limits(limits)).play("Add for ever.").await;
    assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Tokens { max: 2_000 }));
    assert_eq!(outcome.usage.total(), 0, "nobody counted");
    assert!((2_000..3_000).contains(&outcome.spending().tokens), "{outcome:?}");
    assert!((3..40).contains(&show.model.requests().len()), "{}", show.model.requests().len());
}

/// A model with which every process dies.
struct Deadly(Arc<AtomicU32>, CancellationToken);

impl Provider for Deadly {
    fn id(&self) -> &str {
        "deadly"
    }

    fn stream(
        &self,
        _: Request,
        _: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        self.1.cancel();
        Box::pin(futures_util::stream::pending())
    }
}

// spec
#[tokio::test]
async fn a_run_whose_process_dies_in_each_call_does_not_ask_for_ever() {
    let (journal, asked) = (Arc::new(InMemoryJournal::new()), Arc::new(AtomicU32::new(0)));
    for process in 0..20 {
        let asking = CancellationToken::new();
        let mut options = ReactAgentOptions::new("m");
        options.limits.max_turns = 6;
        let agent =
            ReactAgent::new(Arc::new(Deadly(asked.clone(), asking.clone())), journal.clone(), options);
        let (clock, ids) = (Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(3)));
        let context = Context::new("run_1".into(), "s".into(), clock, ids);
        let prompt = Message::user("Hello?", context.clock.now()).into();
        let work = async {
            match process {
                0 => agent.start(vec![prompt], Origin::Prompt, &context).await,
                _ => agent.resume(&context).await,
            }
        };
        tokio::select! {
            outcome = work => {
                let outcome = outcome.unwrap();
                assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Turns { max: 6 }));
                assert_eq!(asked.load(Ordering::Relaxed), 7);
                assert!(outcome.spending().tokens > 7 * 4_000, "what was lost counts: {outcome:?}");
                return;
            }
            () = asking.cancelled() => {}
        }
    }
    panic!("it still asks after {} calls", asked.load(Ordering::Relaxed));
}
