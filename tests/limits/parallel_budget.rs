//! What the branches of a parallel loop share: a budget, a journal that may fail, and a judge that does not give up.

use std::sync::Arc;

use archon::{
    Archon, ArchonBuilder, Journal, Outcome, OutcomeStatus, RunId, RunOptions, SessionId,
    react_loop::{Fallback, PickFirst, TokenEfficient},
    store::InMemoryJournal,
    types::{
        BoxFuture, ExecutionLimits, Inbox, JournalError, LimitReached, ModelEvent, ModelPrice,
        OnStorageFailure, OpenMode, OpenRun, ProviderError, Record, RecordBody, RunFilter, RunHead, Usage,
    },
};
use archon_testkit::{Ended, FnProvider, SeededIds, VirtualClock};
use serde_json::json;

use crate::shared::stage::{Answer, call};

const GROUP: &str = "several";

fn builder(journal: &InMemoryJournal) -> ArchonBuilder {
    let builder = Archon::builder().journal(Arc::new(journal.clone())).ids(Arc::new(SeededIds::new(1)));
    builder.clock(Arc::new(VirtualClock::jumping()))
}

fn named(run: &str) -> RunOptions {
    let mut options = RunOptions::default();
    options.run = Some(RunId::new(run));
    options
}

fn metered(mut answer: Answer, output: u64) -> Answer {
    if let Some(Ok(ModelEvent::Done(message))) = answer.last_mut() {
        message.usage = Usage { input: 100, output, ..Usage::default() };
    }
    answer
}

/// An agent that calls a tool for ever, 1,000 millionths a turn.
fn spender(journal: &InMemoryJournal) -> ArchonBuilder {
    let model = FnProvider::new(|n, _| {
        metered(call(&format!("c{n}"), "calculator", json!({ "expression": format!("{n} + 1") })), 90)
    });
    let mut options = archon::types::RequestOptions::default();
    options.max_tokens = Some(100);
    builder(journal)
        .provider(Arc::new(model), "m")
        .tool(archon::tools::builtin::Calculator::new())
        .request_options(options)
        .price(ModelPrice::new(1_000_000, 10_000_000))
}

// spec
#[tokio::test]
async fn branches_share_the_money_and_the_tokens_of_the_agent_that_begins_them() {
    let journal = InMemoryJournal::new();
    let mut limits = ExecutionLimits::default();
    (limits.max_cost_micros, limits.max_total_tokens) = (Some(30_000), 90_000);
    let boss = spender(&journal).limits(limits).build().unwrap();
    let mut tight = ExecutionLimits::default();
    tight.max_cost_micros = Some(4_000);
    let branches =
        [spender(&journal), spender(&journal), spender(&journal).limits(tight)].map(|b| b.build().unwrap());
    let parallel = boss.parallel(branches, Arc::new(PickFirst)).unwrap();
    let outcome = parallel.run_with("Go on for ever.", named(GROUP)).await.unwrap();
    let caps: Vec<_> = outcome.branches.iter().map(|b| b.status).collect();
    let cap = |max| OutcomeStatus::Limit(LimitReached::Cost { max_cost_micros: max });
    assert_eq!(caps, [cap(10_000), cap(10_000), cap(4_000)], "a third each, and no more than its own");
    let spent: u64 = outcome.branches.iter().map(|b| b.cost_micros.unwrap()).sum();
    assert!((15_000..=24_000).contains(&spent), "{spent}");
    let started = journal.read(&RunId::new("several-0")).await.unwrap();
    let RecordBody::RunStarted(started) = &started[0].body else { panic!("no start") };
    assert_eq!(started.config.limits.max_total_tokens, 30_000);
}

/// A journal in which the runs of the first branch cannot be kept.
#[derive(Clone)]
struct Leaky(InMemoryJournal);

impl Journal for Leaky {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        match run.as_str() == "several-0" {
            true => Box::pin(async move {
                let source = std::io::Error::other("the disk is full");
                Err(JournalError::Storage { action: "write", place: run.to_string(), source })
            }),
            false => self.0.open(run, mode),
        }
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.0.read(run)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.0.list(filter)
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        self.0.inbox()
    }
}

async fn leaky(first: &'static str, tokens: u64) -> (Archon, Outcome, Vec<String>, SessionId) {
    let journal = InMemoryJournal::new();
    let agent = |text: &'static str, tokens| {
        let model = FnProvider::new(move |_, _| metered(FnProvider::text(text), tokens));
        let builder = builder(&journal).journal(Arc::new(Leaky(journal.clone())));
        builder
            .provider(Arc::new(model), "m")
            .on_storage_failure(OnStorageFailure::Ephemeral)
            .build()
            .unwrap()
    };
    let boss = agent("unused", 1);
    let parallel =
        boss.parallel([agent(first, tokens), agent("kept", 50)], Arc::new(TokenEfficient)).unwrap();
    let outcome = parallel.run_with("which?", named(GROUP)).await.unwrap();
    (boss, outcome.choice.outcome, outcome.choice.warnings, outcome.session)
}

// spec: R-34, ER-14
#[tokio::test]
async fn branch_without_a_stored_log_takes_part_in_the_choice() {
    let (boss, chosen, warnings, session) = leaky("lost", 90).await;
    assert_eq!((chosen.last_text().unwrap_or_default(), warnings.len()), ("kept", 0));
    assert!(boss.run_with("and then?", RunOptions::in_session(session)).await.ended().is_finished());

    let (boss, chosen, warnings, session) = leaky("lost", 10).await;
    assert_eq!(chosen.last_text(), Some("lost"));
    assert_eq!(warnings, ["the chosen branch has no complete log, so the session continues without it"]);
    let next = boss.run_with("and then?", RunOptions::in_session(session)).await.ended();
    assert!(next.is_finished(), "the session goes on from where the loop began");
}

/// Two branches, and the choice of this judge.
async fn judged(judge: ArchonBuilder) -> archon::types::ParallelChoice {
    let journal = InMemoryJournal::new();
    let agent = |text: &'static str| {
        let model = FnProvider::new(move |_, _| FnProvider::text(text));
        builder(&journal).provider(Arc::new(model), "m").build().unwrap()
    };
    let parallel =
        agent("unused").parallel([agent("zero"), agent("one")], Arc::new(judge.build().unwrap().judge()));
    parallel.unwrap().run("which?").await.unwrap().choice
}

// spec: R-36, ER-09
#[tokio::test]
async fn a_judge_goes_on_with_its_next_key_and_its_next_model() {
    let fails = |error: ProviderError| FnProvider::new(move |_, _| vec![Err(error.clone())]);
    let (first, second) =
        (fails(ProviderError::Auth("revoked".into())), fails(ProviderError::Auth("spent".into())));
    let standby = FnProvider::new(|_, _| metered(FnProvider::text("BEST: 1"), 10));
    let keys: [Arc<dyn archon::Provider>; 1] = [Arc::new(second.clone())];
    let fallback =
        Fallback::new(Arc::new(standby.clone()), "m2").with_price(ModelPrice::new(1_000_000, 1_000_000));
    let judge = builder(&InMemoryJournal::new())
        .provider_with_keys(Arc::new(first.clone()), keys, "m1")
        .fallback_provider(fallback);
    let choice = judged(judge).await;
    assert_eq!((choice.selected, choice.warnings.len()), (Some(1), 0), "{:?}", choice.warnings);
    assert_eq!(
        (first.requests().len(), second.requests().len()),
        (1, 1),
        "a key that is refused is not tried again"
    );
    assert_eq!((standby.requests().len(), standby.requests()[0].model.as_str()), (1, "m2"));
    assert_eq!(choice.usage.output, 10);
}
