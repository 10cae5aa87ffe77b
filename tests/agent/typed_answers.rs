//! Answers of plans, teams and parallel loops as values: right at once, wrong and then right, never right; across
//! crashes; and asked for by the agent that they are made from.

use std::sync::{Arc, Mutex};

use archon::{
    Agent, Archon, Outcome, OutcomeStatus, OutputSchema, Planning, Reply, RunError, RunHandle, RunId,
    RunOptions, Runs, Teamwork, Typed,
    planner::{LlmConclusion, fold},
    react_loop::PickFirst,
    schemars::{self, JsonSchema},
    types::{
        FailureKind, Journal, Member, ModelEvent, ProviderError, RecordBody, Request, RunKind, StartRun,
        StartRuns, SubTask, SubTaskRules, TeamRole,
    },
};
use archon_orchestrator::TeamOptions;
use archon_planner::ScriptedPlanner;
use archon_testkit::{Ended, FnProvider, MortalJournal, SeededIds, VirtualClock};

#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
struct Trip {
    city: String,
    days: u8,
}

const PARIS: &str = r#"{"city": "Paris", "days": 3}"#;
const NO_DAYS: &str = r#"{"city": "Paris", "days": "three"}"#;
const PROBLEM: &str = r#"at /days: "three" is not of type "integer""#;
const GOAL: &str = "A trip to Paris";

fn paris() -> Trip {
    Trip { city: "Paris".into(), days: 3 }
}

fn form() -> OutputSchema {
    OutputSchema::of::<Trip>()
}

/// A plan of two steps, or a team of which the same agent is the lead and one member.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Plan,
    Team,
}

const KINDS: [Kind; 2] = [Kind::Plan, Kind::Team];

struct Stage {
    journal: MortalJournal,
    model: FnProvider,
    agent: Archon,
    kind: Kind,
}

enum Work {
    Plan(Planning),
    Team(Teamwork),
}

/// A model that says of each step the same, and these texts one after the other when the answer is put together.
fn stage(kind: Kind, answers: &'static [&'static str]) -> Stage {
    let next = Mutex::new(0);
    stage_by(kind, move |_| {
        let mut next = next.lock().unwrap();
        *next += 1;
        answers[(*next - 1).min(answers.len() - 1)]
    })
}

fn stage_by(kind: Kind, answer: impl Fn(&Request) -> &'static str + Send + Sync + 'static) -> Stage {
    let model = FnProvider::new(move |_, request| match is_conclusion(request) {
        true => FnProvider::text(answer(request)),
        false => FnProvider::text("Three days are enough."),
    });
    let journal = MortalJournal::default();
    let agent = Archon::builder()
        .provider(Arc::new(model.clone()), "scripted")
        .journal(Arc::new(journal.clone()))
        .clock(Arc::new(VirtualClock::new()))
        .ids(Arc::new(SeededIds::new(1)))
        .build()
        .unwrap();
    Stage { journal, model, agent, kind }
}

fn is_conclusion(request: &Request) -> bool {
    let asked = request.messages.iter().next().map(|message| message.text()).unwrap_or_default();
    asked.contains("Answer this from the results") || asked.contains("Put the answer together")
}

fn steps() -> Vec<SubTask> {
    let step = |id: &str| {
        let mut rules = SubTaskRules::default();
        rules.role = Some("worker".to_owned());
        SubTask::new(id, format!("Find {id}")).with_rules(rules)
    };
    vec![step("a"), step("b")]
}

impl Work {
    fn of(kind: Kind, agent: &Archon, worker: &Archon) -> Self {
        match kind {
            Kind::Plan => Self::Plan(agent.planning(ScriptedPlanner::new(steps()))),
            Kind::Team => {
                // With options of the program's own: the form is the agent's.
                let mut options = TeamOptions::default();
                options.roles = vec![TeamRole::new("worker", "")];
                let team = agent.team_with(ScriptedPlanner::new(steps()), options);
                Self::Team(team.member(Member::new("w", "worker"), Arc::new(worker.clone())))
            }
        }
    }

    fn answering(&self, form: OutputSchema) -> Self {
        match self {
            Self::Plan(planning) => Self::Plan(planning.answering(form)),
            Self::Team(team) => Self::Team(team.answering(form)),
        }
    }

    async fn run_typed(&self, run: &str) -> Result<Typed<Trip>, RunError> {
        let mut options = RunOptions::default();
        options.run = Some(RunId::new(run));
        match self {
            Self::Plan(planning) => planning.run_typed_with(GOAL, options).await,
            Self::Team(team) => team.run_typed_with(GOAL, options).await,
        }
    }

    async fn run(&self) -> Result<Reply, RunError> {
        match self {
            Self::Plan(planning) => planning.run(GOAL).await,
            Self::Team(team) => team.run(GOAL).await,
        }
    }

    async fn resume(&self, run: &str) -> RunHandle {
        match self {
            Self::Plan(planning) => planning.resume(RunId::new(run)).await.unwrap(),
            Self::Team(team) => team.resume(RunId::new(run)).await.unwrap(),
        }
    }

    async fn start(&self) -> RunHandle {
        match self {
            Self::Plan(planning) => planning.start(GOAL, RunOptions::default()).await.unwrap(),
            Self::Team(team) => team.start(GOAL, RunOptions::default()).await.unwrap(),
        }
    }
}

impl Stage {
    fn work(&self) -> Work {
        Work::of(self.kind, &self.agent, &self.agent)
    }

    /// What was asked when the answer was put together.
    fn conclusions(&self) -> Vec<Request> {
        self.model.requests().into_iter().filter(is_conclusion).collect()
    }

    /// What each check found.
    fn checks(&self, run: &str) -> Vec<String> {
        let found = self.journal.log(run).into_iter().filter_map(|record| match &record.body {
            RecordBody::OutputChecked { problems } => Some(archon::types::problems_line(problems)),
            _ => None,
        });
        found.collect()
    }
}

fn failed<T: std::fmt::Debug>(result: Result<Typed<T>, RunError>) -> Outcome {
    match result.unwrap_err() {
        RunError::Failed { outcome } => *outcome,
        other => panic!("{other:?}"),
    }
}

// spec: PL-21, R-17
#[tokio::test]
async fn typed_answer_that_fits_is_returned_as_a_value() {
    for kind in KINDS {
        let stage = stage(kind, &[PARIS]);
        let typed = stage.work().run_typed("run_1").await.unwrap();
        assert_eq!((&typed.value, typed.outcome.status), (&paris(), OutcomeStatus::Finished), "{kind:?}");
        assert_eq!(stage.checks("run_1"), [""], "{kind:?}");
        for request in stage.model.requests() {
            let name = request.options.response_format.as_ref().map(|format| format.name.as_str());
            assert_eq!(name, is_conclusion(&request).then_some("Trip"), "{kind:?}: {request:?}");
        }
        // Without a form nobody looks.
        assert!(stage.work().run().await.ended().is_finished(), "{kind:?}");
        assert_eq!(stage.checks("run_1").len(), 1, "{kind:?}");
    }
}

// spec: PL-21, R-17
#[tokio::test]
async fn invalid_structured_output_is_sent_back_with_its_problems() {
    for kind in KINDS {
        let stage = stage(kind, &[NO_DAYS, PARIS]);
        assert_eq!(stage.work().run_typed("run_1").await.unwrap().value, paris(), "{kind:?}");
        assert_eq!(stage.checks("run_1"), [PROBLEM, ""], "{kind:?}");
        let asked = stage.conclusions();
        assert_eq!(asked.len(), 2, "{kind:?}");
        let told: Vec<String> = asked[1].messages.iter().map(|message| message.text()).collect();
        assert!(told.concat().contains(PROBLEM) && told.concat().contains(NO_DAYS), "{kind:?}: {told:?}");
    }
}

// spec: PL-21, R-17
#[tokio::test]
async fn typed_answer_that_never_fits_fails_and_a_resume_retries() {
    for kind in KINDS {
        let stage = stage(kind, &[NO_DAYS, NO_DAYS, NO_DAYS, NO_DAYS, PARIS]);
        let outcome = failed(stage.work().run_typed("run_1").await);
        assert_eq!(
            (outcome.failure_kind(), outcome.last_text()),
            (Some(FailureKind::StructuredOutput), Some(NO_DAYS))
        );
        let error = outcome.error.unwrap();
        assert_eq!(error, format!("the answer does not fit its schema (try 3 of 3): {PROBLEM}"), "{kind:?}");
        assert_eq!(stage.conclusions().len(), 3, "{kind:?}");
        // Whoever takes it up needs to know nothing of the form.
        let typed = stage.work().resume("run_1").await.typed::<Trip>().await.unwrap();
        assert_eq!((typed.value, stage.conclusions().len()), (paris(), 5), "{kind:?}");
        let once = stage_by(kind, |_| NO_DAYS);
        let reply = once.work().answering(form().with_retries(0)).run().await;
        assert_eq!(reply.unwrap_err().kind(), Some(FailureKind::StructuredOutput), "{kind:?}");
        assert_eq!(once.conclusions().len(), 1, "{kind:?}");
    }
}

/// The run dies before or after each of its appends; whoever takes it up comes to the same value without asking more often,
/// but for answers that were lost on their way.
// spec: PL-21, R-17, A-15
#[tokio::test]
async fn typed_run_killed_at_any_record_resumes_to_the_same_value() {
    for kind in KINDS {
        let (mut deaths, mut between) = (0, 0);
        for (appends, is_written) in (1..200).flat_map(|n| [(n, false), (n, true)]) {
            let stage = stage_by(kind, |request| {
                let is_told = request.messages.iter().any(|m| m.text().contains("must have:"));
                if is_told { PARIS } else { NO_DAYS }
            });
            let work = stage.work();
            stage.journal.die_after(appends, is_written);
            let first = work.run_typed("run_1").await;
            stage.journal.live();
            if let Ok(typed) = first {
                assert_eq!(typed.value, paris());
                break;
            }
            let log = stage.journal.log("run_1");
            let has = |is: fn(&RecordBody) -> bool| log.iter().any(|record| is(&record.body));
            let is_asked = has(|body| matches!(body, RecordBody::MessageAdded { .. }));
            if !is_asked || has(|body| matches!(body, RecordBody::RunFinished(_))) {
                continue;
            }
            deaths += 1;
            between += u32::from(matches!(&log.last().unwrap().body, RecordBody::OutputChecked { .. }));
            let typed = work.resume("run_1").await.typed::<Trip>().await;
            let at = format!("{kind:?}, append {appends}, written: {is_written}");
            assert_eq!(typed.unwrap_or_else(|error| panic!("{at}: {error:?}")).value, paris(), "{at}");
            assert_eq!(stage.checks("run_1"), [PROBLEM, ""], "{at}");
            assert!(stage.conclusions().len() <= 3, "{at}: one is lost at most");
        }
        assert!(deaths > 20 && between > 0, "{kind:?}: {deaths} deaths, {between} between two attempts");
    }
}

// spec: PL-21
#[tokio::test]
async fn plan_results_are_the_typed_answer_if_they_fit_else_the_model_is_asked() {
    let stage = stage(Kind::Plan, &[PARIS]);
    let one = || ScriptedPlanner::new(vec![SubTask::new("a", "Find it")]);
    let planning = stage.agent.planning(one());
    assert_eq!(planning.run_typed::<Trip>(GOAL).await.unwrap().value, paris());
    assert_eq!(stage.conclusions().len(), 1, "three days are no JSON");
    // Without a form the result is the answer, and nobody is asked.
    assert_eq!(planning.run(GOAL).await.ended().answer(), Some("Three days are enough."));
    assert_eq!(stage.conclusions().len(), 1);
    let model = FnProvider::new(|_, _| FnProvider::text(PARIS));
    let agent = Archon::builder().provider(Arc::new(model.clone()), "scripted").build().unwrap();
    assert_eq!(agent.planning(one()).run_typed::<Trip>(GOAL).await.unwrap().value, paris());
    assert_eq!(model.requests().len(), 1, "the step itself");
}

// spec: PL-21, R-17
#[tokio::test]
async fn structured_output_of_an_agent_applies_to_its_plans_teams_and_branches() {
    for kind in KINDS {
        let stage = stage(kind, &[NO_DAYS, PARIS]);
        let work = Work::of(kind, &stage.agent.answering(form()), &stage.agent);
        let handle = work.start().await;
        assert_eq!(handle.typed::<Trip>().await.unwrap().value, paris(), "{kind:?}");
        for request in stage.model.requests() {
            let is_in_form = request.options.response_format.is_some();
            assert_eq!(is_in_form, is_conclusion(&request), "{kind:?}: a step may come to anything");
        }
    }
    let texts = |text: &'static str| {
        let model = FnProvider::new(move |_, _| FnProvider::text(text));
        Archon::builder().provider(Arc::new(model), "scripted").build().unwrap()
    };
    let lead = texts(PARIS).answering(form());
    let parallel = lead.parallel([texts(PARIS), texts(PARIS)], Arc::new(PickFirst)).unwrap();
    assert_eq!(parallel.run(GOAL).await.unwrap().typed::<Trip>().unwrap().value, paris());
    let parallel = lead.parallel([texts(NO_DAYS), texts(NO_DAYS)], Arc::new(PickFirst)).unwrap();
    assert_eq!(parallel.run(GOAL).await.unwrap_err().kind(), Some(FailureKind::StructuredOutput));
}

// spec: PL-21, R-17
#[tokio::test]
async fn structured_output_applies_to_service_runs_and_child_runs() {
    for kind in KINDS {
        let stage = stage(kind, &[NO_DAYS, PARIS]);
        let (agent, run_kind) = match stage.work().answering(form()) {
            Work::Plan(planning) => (planning.run_agent(), RunKind::Plan),
            Work::Team(team) => (team.run_agent(), RunKind::Team),
        };
        let id = agent.id();
        let runs = Runs::new(stage.agent.clone()).with_agent(agent);
        let started = runs.start(StartRun::new(GOAL).kind(run_kind).agent(id)).await.unwrap();
        let reply = runs.reply(&started.run).await.unwrap();
        assert_eq!(Typed::<Trip>::of(reply).unwrap().value, paris(), "{kind:?}");

        let stage = self::stage(kind, &[NO_DAYS, PARIS]);
        let context = stage.agent.context("called".into(), "s".into(), RunOptions::default());
        let outcome = match stage.work().answering(form()) {
            Work::Plan(planning) => planning.agent().run(GOAL, &context).await,
            Work::Team(team) => team.team().run(GOAL, &context).await,
        };
        assert_eq!(outcome.answer(), Some(PARIS), "{kind:?}");
    }
}

// spec: PL-21
#[tokio::test]
async fn plan_machine_with_structured_output_equals_the_fold_of_its_log() {
    let stage = stage(Kind::Plan, &[NO_DAYS, PARIS]);
    stage.work().run_typed("run_1").await.unwrap();
    let log = stage.journal.read(&RunId::new("run_1")).await.unwrap();
    let machine = fold(&log).unwrap();
    assert_eq!(machine.output_format().map(|form| form.name.as_str()), Some("Trip"));
    assert_eq!(machine.ended().and_then(Outcome::answer), Some(PARIS));
}

// spec: PL-21
#[tokio::test]
async fn typed_answer_error_of_an_unreachable_model_names_the_cause() {
    let down = FnProvider::new(|_, _| -> Vec<Result<ModelEvent, ProviderError>> {
        vec![Err(ProviderError::Auth("no key".into()))]
    });
    let stage = stage(Kind::Plan, &[PARIS]);
    let conclusion = Arc::new(LlmConclusion::new(Arc::new(down), "m"));
    let planning = stage.agent.planning(ScriptedPlanner::new(steps()));
    let planning = planning.with(|agent| agent.with_conclusion(conclusion));
    let outcome = failed(planning.run_typed::<Trip>(GOAL).await);
    assert_eq!(outcome.failure_kind(), Some(FailureKind::Auth), "{outcome:?}");
}
