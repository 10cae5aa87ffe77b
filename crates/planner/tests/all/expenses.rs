//! Tests of the spending of a planner's own model calls: it counts in the records, the budget and the
//! outcome.

use std::sync::Arc;

use archon_planner::{
    LlmConclusion, LlmPlanner, LlmPlannerOptions, PlanRunError, PlanningAgent, PlanningAgentOptions, fold,
    plan_outline,
};
use archon_testkit::{FnProvider, MortalJournal, SeededIds, VirtualClock};
use archon_types::{
    Agent, BoxFuture, Context, FallbackModel, Journal, Json, LimitReached, LongTerm, MemoryError,
    MemoryQuery, ModelEvent, ModelPrice, Outcome, OutcomeStatus, PlanError, PlanRecord, Planner,
    PlanningContext, Provider, ProviderError, Recalled, Record, RecordBody, Spending, StopReason, Task,
    Usage,
};
use serde_json::json;

/// An agent that repeats its task for five tokens.
struct Echo;

impl Agent for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let mut outcome = Outcome::new(context.run.clone(), OutcomeStatus::Finished);
            outcome.usage = Usage { input: 5, ..Usage::default() };
            outcome.set_answer(task.lines().next().unwrap_or_default().to_owned());
            outcome
        })
    }
}

fn answer(text: &str, input: u64, output: u64) -> Vec<Result<ModelEvent, ProviderError>> {
    let mut events = FnProvider::text(text);
    for event in events.iter_mut().flatten() {
        if let ModelEvent::Done(answer) = event {
            answer.usage = Usage { input, output, ..Usage::default() };
        }
    }
    events
}

fn two() -> String {
    json!({"subtasks": [{"id": "a", "description": "First", "dependencies": []},
                        {"id": "b", "description": "Then", "dependencies": ["a"]}]})
    .to_string()
}

async fn run(
    provider: FnProvider,
    price: Option<ModelPrice>,
    change: impl FnOnce(&mut PlanningAgentOptions),
) -> (Outcome, Vec<Arc<Record>>) {
    let (journal, mut options) = (MortalJournal::default(), PlanningAgentOptions::default());
    change(&mut options);
    let provider: Arc<dyn Provider> = Arc::new(provider);
    let (mut planner, mut conclude) =
        (LlmPlanner::new(provider.clone(), "m"), LlmConclusion::new(provider, "m"));
    if let Some(price) = price {
        (planner, conclude) = (planner.with_price(price), conclude.with_price(price));
    }
    let agent = PlanningAgent::new(Arc::new(planner), Arc::new(Echo), Arc::new(journal.clone()), options)
        .with_conclusion(Arc::new(conclude));
    let clock = Arc::new(VirtualClock::new());
    let context = Context::new("run_1".into(), "s".into(), clock, Arc::new(SeededIds::new(1)));
    let outcome = agent.start("Go", &context).await.unwrap();
    (outcome, journal.read(&"run_1".into()).await.unwrap())
}

fn paid(records: &[Arc<Record>]) -> Vec<Spending> {
    let spent = |record: &Arc<Record>| match &record.body {
        RecordBody::Plan(plan) => match &**plan {
            PlanRecord::PlanningPaid { spent, .. } | PlanRecord::AnswerFinished { spent, .. } => Some(*spent),
            _ => None,
        },
        _ => None,
    };
    records.iter().filter_map(spent).collect()
}

// spec: PL-01, PL-20
#[tokio::test]
async fn every_question_of_the_planner_is_in_the_records_and_in_the_outcome() {
    let provider = FnProvider::new(|number, _| match number {
        0 => answer("no plan at all", 100, 10),
        1 => answer(&two(), 200, 20),
        _ => answer("All done [b].", 300, 30),
    });
    // A millionth for each token in, two for each out.
    let price = ModelPrice::new(1_000_000, 2_000_000);
    let (outcome, records) = run(provider, Some(price), |_| {}).await;
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Finished, "All done [b].")
    );
    assert_eq!(paid(&records), [Spending::new(330, 360), Spending::new(330, 360)]);
    assert_eq!(outcome.spending(), Spending::new(670, 720), "and five tokens for each subtask");
    assert_eq!(fold(&records).unwrap().spending(), Spending::new(670, 720));
}

// spec: PL-01, PL-20
#[tokio::test]
async fn outcome_without_a_plan_counts_the_planners_spending() {
    let price = ModelPrice::new(1_000_000, 2_000_000);
    let prose = FnProvider::new(|_, _| answer("no plan", 100, 10));
    let (outcome, _) = run(prose.clone(), Some(price), |_| {}).await;
    let asked = prose.requests().len() as u64;
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    assert_eq!(outcome.spending(), Spending::new(110 * asked, 120 * asked));
    // So has a draft that there is none of.
    let prose = FnProvider::new(|_, _| answer("no plan", 100, 10));
    let planner = LlmPlanner::new(Arc::new(prose.clone()), "m").with_price(price);
    let (journal, options) = (Arc::new(MortalJournal::default()), PlanningAgentOptions::default());
    let agent = PlanningAgent::new(Arc::new(planner), Arc::new(Echo), journal, options);
    let ids = Arc::new(SeededIds::new(1));
    let context = Context::new("run_1".into(), "s".into(), Arc::new(VirtualClock::new()), ids);
    let error = agent.draft("Go", &context).await.unwrap_err();
    let asked = prose.requests().len() as u64;
    let PlanRunError::NoDraft { spent, .. } = error else { panic!("{error:?}") };
    assert_eq!(spent, Spending::new(110 * asked, 120 * asked));
    // A model that declines is paid, too.
    let declines = FnProvider::new(|_, _| {
        let mut events = answer("I cannot help with that.", 100, 10);
        if let Some(Ok(ModelEvent::Done(answer))) = events.last_mut() {
            answer.stop_reason = StopReason::Refusal;
        }
        events
    });
    let (outcome, _) = run(declines.clone(), Some(price), |_| {}).await;
    let asked = declines.requests().len() as u64;
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    assert_eq!(outcome.spending(), Spending::new(110 * asked, 120 * asked));
}

#[tokio::test]
async fn a_planner_that_used_up_the_budget_ends_the_run_before_anything_begins() {
    let provider = FnProvider::new(|_, _| answer(&two(), 5_000, 1));
    let (outcome, records) =
        run(provider.clone(), None, |options| options.limits.max_total_tokens = 4_000).await;
    assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Tokens { max: 4_000 }));
    assert_eq!((paid(&records).len(), provider.requests().len()), (1, 1));
    assert!(!records.iter().any(|record| matches!(record.body, RecordBody::ToolCallStarted { .. })));
}

#[tokio::test]
async fn plan_without_budget_for_the_conclusion_answers_with_the_results() {
    let provider = FnProvider::new(|_, _| answer(&two(), 3_980, 10));
    let (outcome, _) = run(provider.clone(), None, |options| options.limits.max_total_tokens = 4_000).await;
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Finished, "Then"),
        "{outcome:?}"
    );
    assert_eq!((outcome.spending().tokens, provider.requests().len()), (4_000, 1));
}

#[tokio::test]
async fn with_a_limit_of_money_a_model_without_a_price_is_not_asked_nor_one_that_may_cost_more() {
    let provider = FnProvider::new(|_, _| answer(&two(), 1, 1));
    let (outcome, _) = run(provider.clone(), None, |options| options.limits.max_cost_micros = Some(10)).await;
    let error = outcome.error.unwrap();
    assert!(
        error.contains("the price of m, which plans, checks the plan or writes the final answer, is unknown"),
        "{error}"
    );
    let dear = ModelPrice::new(1_000_000, 1_000_000);
    let (outcome, _) =
        run(provider.clone(), Some(dear), |options| options.limits.max_cost_micros = Some(10)).await;
    assert!(outcome.error.unwrap().contains("the remaining budget (money)"), "it may take 4,096 tokens");
    assert_eq!(provider.requests().len(), 0);
}

#[tokio::test]
async fn planner_answer_without_usage_costs_the_reserved_amount() {
    let provider = FnProvider::new(|number, _| match number {
        0 => FnProvider::text(&two()),
        _ => FnProvider::text("Done [a]."),
    });
    let price = ModelPrice::new(0, 1_000_000);
    let (outcome, records) =
        run(provider, Some(price), |options| options.limits.max_cost_micros = Some(1_000_000)).await;
    assert_eq!(outcome.status, OutcomeStatus::Finished);
    assert_eq!(paid(&records), [Spending::new(0, 4_096), Spending::new(0, 4_096)]);
}

#[tokio::test]
async fn planner_fallback_model_is_counted_with_its_own_price() {
    let answered = |model: &'static str| {
        FnProvider::new(move |_, _| {
            let mut events = answer(&two(), 100, 10);
            for event in events.iter_mut().flatten() {
                if let ModelEvent::Done(answer) = event {
                    answer.model = model.to_owned();
                    answer.provider = "test".to_owned();
                }
            }
            events
        })
    };
    let fallback = |model: &str, price: Option<ModelPrice>| {
        let mut fallback = FallbackModel::new("test", model);
        fallback.price = price;
        fallback
    };
    let price = |millions: u64| ModelPrice::new(millions * 1_000_000, 0);
    let draft = async |model: &'static str, last: Option<ModelPrice>, max: Option<u64>| {
        let planner = LlmPlanner::new(Arc::new(answered(model)), "m").with_price(price(1));
        let planner =
            planner.with_fallbacks(vec![fallback("small", Some(price(2))), fallback("small-b", last)]);
        let mut options = PlanningAgentOptions::default();
        options.limits.max_cost_micros = max;
        let journal = Arc::new(MortalJournal::default());
        let agent = PlanningAgent::new(Arc::new(planner), Arc::new(Echo), journal, options);
        let clock = Arc::new(VirtualClock::new());
        let context = Context::new("run_1".into(), "s".into(), clock, Arc::new(SeededIds::new(1)));
        agent.draft("Go", &context).await.map(|draft| draft.spent.cost_micros)
    };
    for (model, cost) in [("m", 100), ("m-2026-11-22", 100), ("small", 200), ("small-b", 300), ("odd", 100)] {
        assert_eq!(draft(model, Some(price(3)), None).await.unwrap(), cost, "{model}");
    }
    let error = draft("m", None, Some(1_000_000)).await.unwrap_err().to_string();
    assert!(error.contains("the price of small-b, "), "{error}");
    let error = draft("m", Some(price(5_000)), Some(100_000)).await.unwrap_err().to_string();
    assert!(error.contains("the remaining budget (money)"), "the dearest may answer: {error}");
}

// spec: PL-02, PL-06
#[tokio::test]
async fn plan_outline_schema_accepts_acyclic_graphs_only() {
    let schema = plan_outline(3, &[]);
    let plan = |dependencies: [&[&str]; 3]| {
        let subtask = |(n, after): (usize, &&[&str])| json!({"id": format!("s{}", n + 1), "description": "Do something", "dependencies": after});
        json!({"subtasks": dependencies.iter().enumerate().map(subtask).collect::<Vec<_>>()})
    };
    let takes = |plan: serde_json::Value| jsonschema::is_valid(&schema, &plan);
    assert!(takes(plan([&[], &["s1"], &["s1", "s2"]])) && takes(plan([&[], &[], &[]])));
    assert!(!takes(plan([&["s2"], &[], &[]])) && !takes(plan([&[], &["s2"], &[]])));
    let mut short = plan([&[], &[], &[]]);
    short["subtasks"].as_array_mut().unwrap().pop();
    assert!(!takes(short), "a plan of another size");
    let answer = plan([&[], &["s1"], &["s2"]]).to_string();
    let provider = FnProvider::new(move |_, _| FnProvider::text(&answer));
    let mut options = LlmPlannerOptions::default();
    options.outline = Some(3);
    let planner = LlmPlanner::new(Arc::new(provider.clone()), "m").with_options(options);
    let clock = Arc::new(VirtualClock::new());
    let run = Context::new("run_1".into(), "s".into(), clock, Arc::new(SeededIds::new(1)));
    let context = PlanningContext::new(run);
    let task = Planner::create_plan(&planner, "Go", &context).await.unwrap();
    assert_eq!(task.subtasks.len(), 3);
    let asked = provider.requests()[0].options.response_format.clone().unwrap();
    assert_eq!(asked.schema, schema);
}

/// A planner that works until it is stopped, and has used tokens by then.
struct Thinker;

impl Planner for Thinker {
    async fn create_plan(&self, _: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        context.expenses.add(Spending::new(70, 0));
        context.run.cancel.cancelled().await;
        Err(PlanError::Cancelled)
    }
}

#[tokio::test]
async fn planner_without_an_answer_is_stopped_at_the_time_limit_and_counted() {
    let (journal, mut options) = (MortalJournal::default(), PlanningAgentOptions::default());
    options.limits.max_duration_ms = 60_000;
    let agent = PlanningAgent::new(Arc::new(Thinker), Arc::new(Echo), Arc::new(journal.clone()), options);
    let clock = Arc::new(VirtualClock::jumping());
    let context = Context::new("run_1".into(), "s".into(), clock, Arc::new(SeededIds::new(1)));
    let outcome = agent.start("Go", &context).await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Duration { max_ms: 60_000 }));
    assert_eq!((outcome.spending().tokens, paid(&journal.log("run_1")).len()), (70, 1));
}

// spec: ER-13, PL-22
#[tokio::test]
async fn plan_continues_after_a_failed_recall() {
    let provider: Arc<dyn Provider> = Arc::new(FnProvider::new(|_, _| answer(&two(), 1, 1)));
    let journal: Arc<dyn Journal> = Arc::new(MortalJournal::default());
    let planner = Arc::new(LlmPlanner::new(provider, "m"));
    let agent = PlanningAgent::new(planner, Arc::new(Echo), journal, PlanningAgentOptions::default())
        .with_memory(Arc::new(Gone));
    let clock = Arc::new(VirtualClock::new());
    let context = Context::new("run_1".into(), "s".into(), clock, Arc::new(SeededIds::new(1)));
    let outcome = agent.start("Go", &context).await.unwrap();
    assert_eq!((outcome.status, outcome.last_text().unwrap_or_default()), (OutcomeStatus::Finished, "Then"));
}

/// A memory whose storage fails.
struct Gone;

fn gone<T>() -> Result<T, MemoryError> {
    Err(MemoryError::Unsupported { what: "anything" })
}

impl LongTerm for Gone {
    fn store<'a>(
        &'a self,
        _: &'a str,
        _: serde_json::Map<String, Json>,
    ) -> BoxFuture<'a, Result<String, MemoryError>> {
        Box::pin(async { gone() })
    }

    fn query<'a>(&'a self, _: &'a MemoryQuery) -> BoxFuture<'a, Result<Vec<Recalled>, MemoryError>> {
        Box::pin(async { gone() })
    }

    fn delete<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<bool, MemoryError>> {
        Box::pin(async { gone() })
    }
}
