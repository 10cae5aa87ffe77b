//! Tests of the structured output of a plan: the answer is checked, made again if it does not fit, and
//! the run fails if no answer fits, wherever its process dies.

use std::sync::Arc;

use archon_planner::{
    Conclude, LastResults, LlmConclusion, Next, PlanRunError, PlanTask, PlanningAgent, PlanningAgentOptions,
    ScriptedPlanner, fold,
};
use archon_testkit::{Chance, FnProvider, MortalJournal, SeededIds, VirtualClock, cases, first_seed};
use archon_types::{
    Agent, BoxFuture, Context, ExecutionLimits, FailureKind, LimitReached, Message, ModelEvent, MoreLimits,
    Outcome, OutcomeStatus, OutputCheck, PlanRecord, PlanSettings, ProviderError, RecordBody, Request,
    ResponseFormat, RunRefused, SchemaProblem, ToolResult, Usage,
};
use serde_json::json;

use crate::support::{Fed, started, step};

const GOOD: &str = r#"{"city": "Paris"}"#;
const BAD: &str = r#"{"city": 75}"#;
const PROBLEM: &str = r#"at /city: 75 is not of type "string""#;

fn form() -> ResponseFormat {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    ResponseFormat { name: "City".into(), schema }
}

/// An agent that gives the same answer to every step.
#[derive(Clone, Copy)]
struct Says(&'static str);

impl Agent for Says {
    fn name(&self) -> &str {
        "says"
    }

    fn run<'a>(&'a self, _: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        let answer = Outcome::new(context.run.clone(), OutcomeStatus::Finished).with_answer(self.0);
        Box::pin(async { answer })
    }
}

struct World {
    journal: MortalJournal,
    model: FnProvider,
    context: Context,
    agent: PlanningAgent,
}

/// Returns a plan of some steps, which an agent answers with `result`; `answers` is the model of the
/// conclusion.
fn world(
    (steps, result): (usize, &'static str),
    retries: u32,
    answers: impl Fn(usize, &Request) -> Vec<Result<ModelEvent, ProviderError>> + Send + Sync + 'static,
) -> World {
    let (journal, model) = (MortalJournal::default(), FnProvider::new(answers));
    let plan = (0..steps).map(|n| step(&format!("s{n}"), &[])).collect::<Vec<_>>();
    let options = PlanningAgentOptions::default();
    let worker = Arc::new(Says(result));
    let agent = PlanningAgent::new(ScriptedPlanner::new(plan), worker, Arc::new(journal.clone()), options)
        .with_conclusion(Arc::new(LlmConclusion::new(Arc::new(model.clone()), "m")))
        .with_output_schema(form(), OutputCheck::new(retries));
    let (clock, ids) = (Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)));
    let context = Context::new("run_1".into(), "s".into(), clock, ids);
    World { journal, model, context, agent }
}

/// Returns a script of these texts that repeats the last one.
fn texts(
    all: &'static [&'static str],
) -> impl Fn(usize, &Request) -> Vec<Result<ModelEvent, ProviderError>> + Send + Sync + 'static {
    move |n, _| FnProvider::text(all[n.min(all.len() - 1)])
}

impl World {
    fn concluding(mut self, conclude: impl Conclude + 'static) -> Self {
        self.agent = self.agent.with_conclusion(Arc::new(conclude));
        self
    }

    async fn start(&self) -> Outcome {
        self.agent.start("Which city?", &self.context).await.unwrap()
    }

    /// Returns the result of each check.
    fn checks(&self) -> Vec<String> {
        let log = self.journal.log("run_1");
        let machine = fold(&log).unwrap();
        assert!(machine.ended().is_some());
        let found = log.iter().filter_map(|record| match &record.body {
            RecordBody::OutputChecked { problems } => Some(archon_types::problems_line(problems)),
            _ => None,
        });
        found.collect()
    }
}

// spec: PL-21, R-17
#[tokio::test]
async fn plan_valid_structured_output_is_the_answer_and_cites_all_results() {
    let world = world((2, "It is Paris."), 2, texts(&["Here:\n```json\n{\"city\": \"Paris\"}\n```"]));
    let outcome = world.start().await;
    assert_eq!((outcome.status, outcome.answer()), (OutcomeStatus::Finished, Some(GOOD)));
    assert_eq!(world.checks(), [""]);
    let requests = world.model.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].options.response_format, Some(form()), "the service is sent the form");
    assert!(!requests[0].messages.iter().next().unwrap().text().contains("square brackets"));
    let cited = world.journal.log("run_1").iter().find_map(|record| match &record.body {
        RecordBody::Plan(plan) => match &**plan {
            PlanRecord::AnswerFinished { citations, .. } => Some(citations.len()),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(cited, Some(2));
}

// spec: PL-21, R-17
#[tokio::test]
async fn invalid_structured_output_is_sent_back_with_its_problems() {
    let world = world((2, "It is Paris."), 2, texts(&["It is Paris.", BAD, GOOD]));
    assert_eq!(world.start().await.answer(), Some(GOOD));
    let checks = world.checks();
    assert!(checks[0].starts_with("it is not JSON: "), "{checks:?}");
    assert_eq!(checks[1..], [PROBLEM, ""]);
    let last = world.model.requests().pop().unwrap();
    let messages: Vec<&Message> = last.messages.iter().map(|message| &**message).collect();
    let [_, Message::Assistant(said), told] = messages[..] else { panic!("{messages:?}") };
    assert_eq!(said.text(), BAD);
    assert_eq!(
        told.text(),
        format!(
            "Your answer does not match the JSON schema that it must have:\n- {PROBLEM}\nAnswer again: the whole JSON, and \
             nothing else."
        )
    );
}

// spec: PL-21, R-17
#[tokio::test]
async fn structured_output_that_never_fits_fails_and_a_resume_retries_as_often() {
    let world = world((2, "It is Paris."), 1, texts(&[BAD, BAD, BAD, GOOD]));
    let outcome = world.start().await;
    assert_eq!(
        (outcome.failure_kind(), outcome.last_text()),
        (Some(FailureKind::StructuredOutput), Some(BAD))
    );
    assert_eq!(outcome.error.unwrap(), format!("the answer does not fit its schema (try 2 of 2): {PROBLEM}"));
    assert_eq!(world.model.requests().len(), 2);
    let outcome = world.agent.resume(&world.context).await.unwrap();
    assert_eq!((outcome.answer(), world.model.requests().len()), (Some(GOOD), 4));
    let again = world.agent.resume(&world.context).await;
    assert!(matches!(again, Err(PlanRunError::Refused(RunRefused::Ended { .. }))), "{again:?}");
    let once = self::world((2, "It is Paris."), 0, texts(&[BAD]));
    let error = once.start().await.error.unwrap();
    assert!(error.contains("(try 1 of 1)"), "{error}");
}

// spec: PL-21
#[tokio::test]
async fn plan_results_as_answer_must_match_the_schema_or_the_model_is_asked() {
    // The agent that did all there was to do answers in the form, or does not.
    for (result, asked) in [(GOOD, 0), ("It is Paris.", 1)] {
        let world = world((1, result), 0, texts(&[GOOD]));
        assert_eq!((world.start().await.answer(), world.model.requests().len()), (Some(GOOD), asked));
    }
    // The same where a model is asked for forms only, and with nobody to ask.
    for (result, asked) in [(GOOD, 0), ("It is Paris.", 1)] {
        let world = world((1, result), 0, texts(&[GOOD]));
        let model = LlmConclusion::new(Arc::new(world.model.clone()), "m").only_for_schemas();
        let world = world.concluding(model);
        assert_eq!((world.start().await.answer(), world.model.requests().len()), (Some(GOOD), asked));
    }
    let world = world((1, "It is Paris."), 0, texts(&[GOOD])).concluding(LastResults);
    assert_eq!(world.start().await.failure_kind(), Some(FailureKind::StructuredOutput));
}

#[tokio::test]
async fn plan_without_a_model_answer_uses_results_that_match_the_schema() {
    let refused = |_: usize, _: &Request| vec![Err(ProviderError::Auth("no key".into()))];
    let world = world((2, "It is Paris."), 2, refused);
    let outcome = world.start().await;
    assert_eq!(outcome.failure_kind(), Some(FailureKind::Auth));
    let error = outcome.error.unwrap();
    assert!(
        error.starts_with("the final answer could not be composed: ") && error.contains("no key"),
        "{error}"
    );
    assert_eq!(world.checks(), [""; 0], "nothing was there to be looked at");
    let plan = vec![step("a", &[]), step("b", &["a"])];
    let last = PlanningAgent::new(
        ScriptedPlanner::new(plan),
        Arc::new(Says(GOOD)),
        Arc::new(MortalJournal::default()),
        PlanningAgentOptions::default(),
    );
    let last = last
        .with_conclusion(Arc::new(LlmConclusion::new(Arc::new(world.model.clone()), "m")))
        .with_output_schema(form(), OutputCheck::new(0));
    let outcome = last.start("Which city?", &world.context).await.unwrap();
    assert_eq!(outcome.answer(), Some(GOOD), "the last step's result");
}

#[tokio::test]
async fn run_whose_answer_was_not_put_together_is_resumed_without_doing_its_steps_again() {
    let answers = |n: usize, _: &Request| match n {
        0 => vec![Err(ProviderError::Auth("no key".into()))],
        _ => FnProvider::text(GOOD),
    };
    let world = world((2, "It is Paris."), 2, answers);
    assert_eq!(world.start().await.failure_kind(), Some(FailureKind::Auth));
    let steps = || world.journal.log("run_1").iter().filter(|r| r.body.name() == "tool_call_started").count();
    let before = steps();
    let outcome = world.agent.resume(&world.context).await.unwrap();
    assert_eq!((outcome.answer(), steps()), (Some(GOOD), before));
}

#[tokio::test]
async fn invalid_schema_starts_no_run() {
    let world = world((1, GOOD), 2, texts(&[GOOD]));
    let odd = ResponseFormat { name: "odd".into(), schema: json!({"type": "thing"}) };
    let agent = world.agent.clone().with_output_schema(odd, OutputCheck::new(0));
    let error = agent.start("Which city?", &world.context).await.unwrap_err();
    assert!(matches!(error, PlanRunError::InvalidSchema { .. }), "{error:?}");
    assert!(world.journal.log("run_1").is_empty());
}

// spec: PL-21, PL-20
#[tokio::test]
async fn a_limit_between_two_attempts_ends_the_run_and_more_lets_it_go_on() {
    let answers = |n: usize, _: &Request| {
        let mut events = FnProvider::text(if n == 0 { BAD } else { GOOD });
        if let Some(Ok(ModelEvent::Done(answer))) = events.last_mut() {
            answer.usage = Usage { input: 3_100, ..Usage::default() };
        }
        events
    };
    let mut limits = ExecutionLimits::default();
    limits.max_total_tokens = 3_000;
    let mut world = world((2, "It is Paris."), 2, answers);
    world.agent = world.agent.with_limits(limits);
    let outcome = world.start().await;
    assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Tokens { max: 3_000 }));
    assert_eq!(outcome.error.as_deref(), Some("there is no answer yet that fits the schema"));
    assert_eq!(world.model.requests().len(), 1);
    let mut more = MoreLimits::default();
    more.max_total_tokens = Some(50_000);
    let outcome = world.agent.resume_with(&more, &world.context).await.unwrap();
    assert_eq!((outcome.answer(), world.checks()), (Some(GOOD), vec![PROBLEM.to_owned(), String::new()]));
}

/// The process dies before or after each of its appends. A resume reaches the same answer, and no more
/// answers are checked than the settings allow.
// spec: PL-21, A-15
#[tokio::test]
async fn structured_output_run_killed_at_any_record_ends_with_the_same_answer_and_retries() {
    let (mut deaths, mut between) = (0, 0);
    for (appends, is_written) in (1..60).flat_map(|n| [(n, false), (n, true)]) {
        // Whoever is shown what was wrong does it right.
        let world = world((2, "It is Paris."), 1, |_, request| {
            let is_told = request.messages.iter().any(|message| message.text().contains("must have"));
            FnProvider::text(if is_told { GOOD } else { BAD })
        });
        world.journal.die_after(appends, is_written);
        let first = world.agent.start("Which city?", &world.context).await;
        world.journal.live();
        let log = world.journal.log("run_1");
        let has = |is: fn(&RecordBody) -> bool| log.iter().any(|record| is(&record.body));
        if first.is_ok() || !has(|b| matches!(b, RecordBody::MessageAdded { .. })) {
            continue;
        }
        deaths += 1;
        between += u32::from(matches!(&log.last().unwrap().body, RecordBody::OutputChecked { .. }));
        if !has(|b| matches!(b, RecordBody::RunFinished(_))) {
            let outcome = world.agent.resume(&world.context).await.unwrap();
            assert_eq!(outcome.answer(), Some(GOOD), "append {appends}, written: {is_written}");
        }
        assert_eq!(world.checks(), [PROBLEM, ""], "append {appends}, written: {is_written}");
    }
    assert!(deaths > 20 && between > 0, "{deaths} deaths, {between} between two attempts");
}

/// For any results of the checks and any resume, the log folds to the machine, and no more answers are
/// requested than the settings allow, except for lost ones.
// spec: PL-21, A-15
#[test]
fn plan_random_checks_and_resumes_keep_the_retry_limit_and_replay_equal() {
    for seed in 0..cases(100, 2_000) {
        let mut chance = Chance(first_seed().wrapping_add(seed));
        let retries = chance.below(4) as u32;
        let mut started = started();
        let config = &mut started.config;
        Arc::make_mut(&mut config.options).response_format = Some(form());
        config.output_check = Some(OutputCheck::new(retries));
        let mut fed = Fed::of(&started, PlanSettings::default()).follow(vec![step("a", &[])]);
        let (_, call) = fed.begin_all().pop().unwrap();
        fed.finish(call, ToolResult::success("Paris"));
        let mut checks = 0;
        let outcome = loop {
            if chance.percent(20) {
                fed.feed(RecordBody::Resumed);
            }
            let folded = fold(&fed.records).unwrap();
            let state = |machine: &archon_planner::PlanMachine| serde_json::to_value(machine).unwrap();
            assert_eq!(state(&folded), state(&fed.machine), "seed {seed}");
            assert_eq!(folded.next(), fed.machine.next(), "seed {seed}");
            match fed.machine.next() {
                Next::Do(PlanTask::Conclude { command }) => {
                    assert_eq!(fed.machine.last_problems().is_some(), checks > 0, "seed {seed}");
                    fed.plan(PlanRecord::AnswerStarted { command });
                    if chance.percent(30) {
                        // It is lost on its way.
                        fed.feed(RecordBody::Resumed);
                        continue;
                    }
                    let (answer, citations) = (format!("{checks}"), vec![]);
                    let spent = Default::default();
                    fed.plan(PlanRecord::AnswerFinished { command, answer, citations, spent });
                }
                Next::Do(PlanTask::CheckOutput { answer }) => {
                    assert_eq!(answer, format!("{checks}"), "seed {seed}");
                    checks += 1;
                    let problems = match chance.percent(40) {
                        true => vec![],
                        false => vec![SchemaProblem::new("", "no")],
                    };
                    fed.feed(RecordBody::OutputChecked { problems });
                }
                Next::Append(RecordBody::RunFinished(outcome)) => break *outcome,
                other => panic!("seed {seed}: {other:?}"),
            }
        };
        assert!(checks <= retries + 1, "seed {seed}: {checks} answers");
        if outcome.failure_kind() == Some(FailureKind::StructuredOutput) {
            assert_eq!(checks, retries + 1, "seed {seed}");
        }
    }
}
