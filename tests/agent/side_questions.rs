//! Questions to a model beside a run's own turns: what they may cost is in the log before they are asked.

use std::sync::Arc;

use archon::{
    Archon, ArchonBuilder, Journal, Outcome, RunId, RunOptions,
    react_loop::replay,
    store::InMemoryJournal,
    types::{
        AuxiliaryCall, Durability, ExecutionLimits, GoalCheck, ModelEvent, ModelPrice, OpenMode,
        ProviderError, Record, RecordBody, RequestOptions, Usage,
    },
};
use archon_testkit::{Ended, FnProvider, SeededIds, VirtualClock};

use crate::shared::stage::Answer;

fn builder(journal: &InMemoryJournal, model: &FnProvider) -> ArchonBuilder {
    let mut options = RequestOptions::default();
    options.max_tokens = Some(100);
    Archon::builder()
        .journal(Arc::new(journal.clone()))
        .ids(Arc::new(SeededIds::new(1)))
        .clock(Arc::new(VirtualClock::jumping()))
        .provider(Arc::new(model.clone()), "m")
        .request_options(options)
        .price(ModelPrice::new(1_000_000, 1_000_000))
}

fn metered(text: &str, output: u64) -> Answer {
    let mut answer = FnProvider::text(text);
    if let Some(Ok(ModelEvent::Done(message))) = answer.last_mut() {
        message.usage = Usage { input: 10, output, ..Usage::default() };
    }
    answer
}

fn named(run: &str) -> RunOptions {
    let mut options = RunOptions::default();
    options.run = Some(RunId::new(run));
    options
}

/// What was set aside, and for what.
fn auxiliary_call_started(log: &[Arc<Record>]) -> Vec<(AuxiliaryCall, u64)> {
    let asked = |record: &Arc<Record>| match record.body {
        RecordBody::AuxiliaryCallStarted { purpose: question, reserved_cost_micros: reserved } => {
            Some((question, reserved))
        }
        _ => None,
    };
    log.iter().filter_map(asked).collect()
}

/// A journal with the logs of `from`; the one of `run` ends with its last record that something was asked beside.
async fn killed_while_asking(from: &InMemoryJournal, runs: &[&str]) -> InMemoryJournal {
    let journal = InMemoryJournal::new();
    for (place, run) in runs.iter().enumerate() {
        let log = from.read(&RunId::new(*run)).await.unwrap();
        let is_last = |r: &Arc<Record>| matches!(r.body, RecordBody::AuxiliaryCallStarted { .. });
        let end = match place {
            0 => 1 + log.iter().rposition(is_last).unwrap(),
            _ => log.len(),
        };
        let mut open = journal.open(&RunId::new(*run), OpenMode::Create).await.unwrap();
        open.writer.append(&log[..end], Durability::Synced).await.unwrap();
    }
    journal
}

fn heavy(model: &FnProvider, journal: &InMemoryJournal) -> Archon {
    let builder = builder(journal, model).expected_output("42 kilograms").goal_check(GoalCheck::Model);
    builder.build().unwrap()
}

// spec: R-14, R-27
#[tokio::test]
async fn a_check_that_a_crash_cut_off_is_paid_for_and_asked_again() {
    let model = FnProvider::new(|n, _| match n {
        0 => metered("42", 5),
        _ => metered("MET", 1),
    });
    let journal = InMemoryJournal::new();
    let whole = heavy(&model, &journal).run_with("How heavy is it?", named("r")).await.ended();
    let log = journal.read(&whole.run).await.unwrap();
    let [(AuxiliaryCall::GoalCheck, reserved)] = auxiliary_call_started(&log)[..] else { panic!("{log:?}") };
    assert!(reserved > 100, "a question and an answer of 100 tokens: {reserved}");
    assert_eq!(whole.cost_micros, Some(15 + 11));

    let cut_off = killed_while_asking(&journal, &["r"]).await;
    let again = heavy(&FnProvider::new(|_, _| metered("MET", 1)), &cut_off).resume(RunId::new("r")).await;
    let resumed: Outcome = again.unwrap().reply().await.ended();
    assert_eq!(
        (resumed.last_text().unwrap_or_default(), resumed.cost_micros),
        ("42", Some(15 + 11 + reserved))
    );
    let log = cut_off.read(&whole.run).await.unwrap();
    assert_eq!(auxiliary_call_started(&log).len(), 2);
    assert!(replay(&cut_off, &whole.run).await.unwrap().is_identical());
}

fn judged(journal: &InMemoryJournal, judge: ArchonBuilder) -> archon::Parallel {
    let answers =
        ["zero", "one"].map(|text| builder(journal, &FnProvider::new(move |_, _| metered(text, 5))).build());
    let unused = builder(journal, &FnProvider::new(|_, _| metered("unused", 1))).build().unwrap();
    unused.parallel(answers.map(Result::unwrap), Arc::new(judge.build().unwrap().judge())).unwrap()
}

// spec: R-14, R-36
#[tokio::test]
async fn a_judge_that_a_crash_cut_off_is_paid_for_and_asked_again() {
    let journal = InMemoryJournal::new();
    let judge = FnProvider::new(|_, _| metered("BEST: 1", 3));
    let loops = judged(&journal, builder(&journal, &judge));
    let choice = loops.run_with("which?", named("several")).await.unwrap().choice;
    assert_eq!(choice.outcome.cost_micros, Some(2 * 15 + 13));
    let log = journal.read(&RunId::new("several")).await.unwrap();
    let [(AuxiliaryCall::BranchChoice, reserved)] = auxiliary_call_started(&log)[..] else {
        panic!("{log:?}")
    };
    assert!(reserved > 100, "{reserved}");

    let cut_off = killed_while_asking(&journal, &["several", "several-0", "several-1"]).await;
    let loops = judged(&cut_off, builder(&cut_off, &judge));
    let resumed = loops.resume(RunId::new("several"), RunOptions::default()).await.unwrap().choice;
    assert_eq!((resumed.selected, resumed.outcome.cost_micros), (Some(1), Some(2 * 15 + 13 + reserved)));
}

// spec: R-14, R-36
#[tokio::test]
async fn a_judge_is_not_asked_for_more_than_its_limit_on_money() {
    let journal = InMemoryJournal::new();
    let breaks_off = FnProvider::new(|_, _| {
        vec![Ok(ModelEvent::TextDelta("BE".into())), Err(ProviderError::Network("reset".into()))]
    });
    let limited = |most, model: &FnProvider| {
        let mut limits = ExecutionLimits::default();
        limits.max_cost_micros = Some(most);
        judged(&journal, builder(&journal, model).limits(limits))
    };
    let silent = FnProvider::new(|_, _| metered("BEST: 1", 3));
    let choice = limited(50, &silent).run_with("which?", named("small")).await.unwrap().choice;
    assert_eq!((choice.selected, silent.requests().len()), (Some(0), 0));
    assert_eq!(
        choice.warnings,
        [
            "the judge gave no verdict (the request may cost more than the judge's cost limit): the first one was taken"
        ]
    );
    assert_eq!(choice.outcome.cost_micros, Some(2 * 15));

    // What was shown of an answer that broke off was paid for.
    let choice = limited(1_000, &breaks_off).run_with("which?", named("broken")).await.unwrap().choice;
    assert!(breaks_off.requests().len() > 1);
    assert!(choice.outcome.cost_micros.unwrap() > 2 * 15 + 100, "{:?}", choice.outcome.cost_micros);

    let unpriced = Archon::builder().provider(Arc::new(silent), "m").limits({
        let mut limits = ExecutionLimits::default();
        limits.max_cost_micros = Some(50);
        limits
    });
    let judge = Arc::new(unpriced.build().unwrap().judge());
    let branches = [(); 2].map(|()| builder(&journal, &breaks_off).build().unwrap());
    let refused = branches[0].clone().parallel(branches, judge).unwrap_err().to_string();
    assert!(
        refused.contains("the cost of the judge is limited, but the price of `m` is unknown"),
        "{refused}"
    );
}
