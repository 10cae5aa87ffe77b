//! Tests of the structured output of a team: the answer is checked, the lead answers again if it does not
//! fit, and the run fails if no answer fits, wherever its process dies.

use std::sync::{Arc, Mutex};

use archon_orchestrator::{Team, TeamError};
use archon_testkit::{Chance, FnAgent, answer, cases, drive, first_seed};
use archon_types::{
    Agent, BoxFuture, Context, FailureKind, Outcome, OutcomeStatus, OutputCheck, RecordBody, ResponseFormat,
    RunRefused, TeamRecord, problems_line,
};
use serde_json::json;

use crate::support::{World, member, step};

const GOOD: &str = r#"{"result": "Paris"}"#;
const BAD: &str = r#"{"result": 75}"#;
const PROBLEM: &str = r#"at /result: 75 is not of type "string""#;

/// Returns a schema whose only field has the name of a field of a member's answer.
fn form() -> ResponseFormat {
    let schema =
        json!({"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]});
    ResponseFormat { name: "City".into(), schema }
}

/// The tasks of an agent, in order.
type Asked = Arc<Mutex<Vec<String>>>;

/// Returns an agent that answers these texts in turn and repeats the last one. An empty text is a
/// failure.
fn says(texts: &'static [&'static str]) -> (Arc<FnAgent>, Asked) {
    let asked = Asked::default();
    let seen = asked.clone();
    let agent = FnAgent::new(move |task, context| {
        let mut seen = seen.lock().unwrap();
        let text = texts[seen.len().min(texts.len() - 1)];
        seen.push(task);
        async move {
            match text {
                "" => Outcome::failed(context.run.clone(), FailureKind::Other, "not now"),
                text => answer(&context, text),
            }
        }
    });
    (agent, asked)
}

fn team(world: &World, retries: u32, reviewer: Option<&str>) -> Team {
    let plan = vec![step("a", "Find it", "worker", &[])];
    let reviewer = reviewer.map(str::to_owned);
    world
        .team(plan, &["worker", "reviewer"], |options| options.settings.reviewer = reviewer)
        .with_member(member("w", "worker"), FnAgent::saying("It is Paris."))
        .with_output_schema(form(), OutputCheck::new(retries))
}

fn checks(world: &World) -> Vec<String> {
    let found = world.journal.log("run_1").into_iter().filter_map(|record| match &record.body {
        RecordBody::OutputChecked { problems } => Some(problems_line(problems)),
        _ => None,
    });
    found.collect()
}

// spec: R-17, MA-25
#[test]
fn team_valid_structured_output_is_the_answer_for_any_field_names() {
    let world = World::new();
    let (lead, asked) = says(&["Here:\n```json\n{\"result\": \"Paris\"}\n```"]);
    let outcome = world.start(&team(&world, 2, None).with_lead("lead", lead), "Which city?");
    assert_eq!((outcome.status, outcome.answer()), (OutcomeStatus::Finished, Some(GOOD)));
    assert_eq!(checks(&world), [""]);
    let asked = asked.lock().unwrap();
    assert!(
        asked[0].contains(r#""required":["result"]"#),
        "a lead without structured output reads the schema: {}",
        asked[0]
    );
}

/// An agent whose service supports structured output.
struct Native(Arc<FnAgent>, Arc<Mutex<Vec<ResponseFormat>>>);

impl Agent for Native {
    fn name(&self) -> &str {
        "native"
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        self.0.run(task, context)
    }

    fn with_output_format(&self, form: &ResponseFormat) -> Option<Arc<dyn Agent>> {
        self.1.lock().unwrap().push(form.clone());
        Some(self.0.clone())
    }
}

// spec: R-17
#[test]
fn team_lead_with_native_structured_output_gets_the_schema_in_the_request() {
    let world = World::new();
    let (lead, asked) = says(&[GOOD]);
    let forms = Arc::new(Mutex::new(Vec::new()));
    let native = Arc::new(Native(lead, forms.clone()));
    let outcome = world.start(&team(&world, 2, None).with_lead("lead", native), "Which city?");
    assert_eq!((outcome.answer(), &*forms.lock().unwrap()), (Some(GOOD), &vec![form()]));
    assert!(!asked.lock().unwrap()[0].contains("required"));
}

// spec: R-17, MA-25
#[test]
fn team_invalid_structured_output_is_retried_with_the_problems() {
    let world = World::new();
    let (lead, asked) = says(&["It is Paris.", BAD, GOOD]);
    let outcome = world.start(&team(&world, 2, None).with_lead("lead", lead), "Which city?");
    assert_eq!(outcome.answer(), Some(GOOD));
    let checks = checks(&world);
    assert!(checks[0].starts_with("it is not JSON: "), "{checks:?}");
    assert_eq!(checks[1..], [PROBLEM, ""]);
    let asked = asked.lock().unwrap();
    let problems = format!(
        "Your last answer does not match the JSON schema that it must have:\n<misfit of=\"form\">\n- {PROBLEM}\n</misfit>\nAnswer \
         again: the whole JSON, and nothing else.\n<answer of=\"draft\">\n{BAD}\n</answer>\n"
    );
    assert!(asked[2].contains(&problems), "{}", asked[2]);
}

// spec: R-17
#[test]
fn structured_output_that_never_fits_fails_and_a_resume_retries_as_often() {
    let world = World::new();
    let (lead, asked) = says(&[BAD, BAD, BAD, GOOD]);
    let team = team(&world, 1, None).with_lead("lead", lead);
    let outcome = world.start(&team, "Which city?");
    assert_eq!(
        (outcome.failure_kind(), outcome.last_text()),
        (Some(FailureKind::StructuredOutput), Some(BAD))
    );
    let error = outcome.error.unwrap();
    assert_eq!(error, format!("the answer does not fit its schema (try 2 of 2): {PROBLEM}"));
    assert_eq!(asked.lock().unwrap().len(), 2);
    let outcome = drive(&world.clock, team.resume(&world.context)).unwrap();
    assert_eq!((outcome.answer(), asked.lock().unwrap().len()), (Some(GOOD), 4));
    world.check_log();
    let again = drive(&world.clock, team.resume(&world.context));
    assert!(matches!(again, Err(TeamError::Refused(RunRefused::Ended { .. }))), "{again:?}");
}

// spec: R-17, MA-25
#[test]
fn team_reviewer_sees_only_valid_output_and_revisions_stay_valid() {
    let world = World::new();
    let (lead, _) = says(&[BAD, GOOD, BAD, r#"{"result": "Rome"}"#]);
    let (reviewer, asked) = says(&[r#"{"result": {"approved": false, "notes": "Rome is better"}}"#]);
    let mut settings = team(&world, 1, Some("reviewer"));
    settings = settings.with_lead("lead", lead).with_member(member("r", "reviewer"), reviewer);
    let outcome = world.start(&settings, "Which city?");
    assert_eq!(outcome.answer(), Some(r#"{"result": "Rome"}"#));
    assert_eq!(checks(&world), [PROBLEM, "", PROBLEM, ""], "as often as allowed since one fitted");
    let asked = asked.lock().unwrap();
    let looked = |text: &str| asked.iter().filter(|task| task.contains(text)).count();
    assert_eq!((looked("75"), looked("Paris"), looked("Rome")), (0, 1, 1), "{asked:?}");
}

// spec: R-17
#[test]
fn without_a_lead_the_result_of_the_only_subtask_must_fit() {
    let world = World::new();
    let team = |says: &str| {
        world
            .team(vec![step("a", "Find it", "worker", &[])], &["worker"], |_| {})
            .with_member(member("w", "worker"), FnAgent::saying(says))
            .with_output_schema(form(), OutputCheck::new(2))
    };
    let envelope = json!({ "result": { "result": "Paris" }, "confidence": 0.9 }).to_string();
    assert_eq!(world.start(&team(&envelope), "Which city?").answer(), Some(r#"{"result":"Paris"}"#));
    let world = World::new();
    let team = team_of_two(&world);
    let outcome = world.start(&team, "Which city?");
    assert_eq!(outcome.failure_kind(), Some(FailureKind::StructuredOutput));
    let error = outcome.error.unwrap();
    assert!(error.ends_with("; and the team has no lead") && error.contains("it is not JSON"), "{error}");
}

/// Returns a team of two steps without a lead.
fn team_of_two(world: &World) -> Team {
    let plan = vec![step("a", "Find it", "worker", &[]), step("b", "Find it", "worker", &[])];
    world
        .team(plan, &["worker"], |_| {})
        .with_member(member("w", "worker"), FnAgent::saying(GOOD))
        .with_output_schema(form(), OutputCheck::new(2))
}

#[test]
fn team_failed_lead_without_a_valid_result_gives_no_answer() {
    let world = World::new();
    let (lead, _) = says(&[""]);
    let outcome = world.start(&team(&world, 2, None).with_lead("lead", lead), "Which city?");
    assert_eq!(outcome.failure_kind(), Some(FailureKind::Subtasks));
    let error = outcome.error.unwrap();
    assert_eq!(error, "no answer that fits the schema was made: not now");
    assert_eq!(checks(&world).len(), 1);
}

#[test]
fn invalid_schema_starts_no_run() {
    let world = World::new();
    let odd = ResponseFormat { name: "odd".into(), schema: json!({"type": "thing"}) };
    let team = team(&world, 2, None).with_output_schema(odd, OutputCheck::new(0));
    let error = drive(&world.clock, team.start("Which city?", &world.context)).unwrap_err();
    assert!(matches!(error, TeamError::InvalidSchema { .. }), "{error:?}");
    assert!(world.journal.log("run_1").is_empty());
}

/// The process dies before or after each of its appends. A resume reaches the same answer, and no more
/// answers are checked than the settings allow.
// spec: R-17, A-15
#[test]
fn structured_output_run_killed_at_any_record_ends_with_the_same_answer_and_retries() {
    let (mut deaths, mut between) = (0, 0);
    for (appends, is_written) in (1..60).flat_map(|n| [(n, false), (n, true)]) {
        let world = World::new();
        // Whoever is shown what was wrong does it right.
        let lead = FnAgent::new(|task, context| {
            let text = if task.contains("must have:") { GOOD } else { BAD };
            async move { answer(&context, text) }
        });
        let team = team(&world, 1, None).with_lead("lead", lead);
        world.journal.die_after(appends, is_written);
        let first = drive(&world.clock, team.start("Which city?", &world.context));
        world.journal.live();
        let log = world.journal.log("run_1");
        let has = |is: fn(&RecordBody) -> bool| log.iter().any(|record| is(&record.body));
        if first.is_ok() || !has(|b| matches!(b, RecordBody::MessageAdded { .. })) {
            continue;
        }
        deaths += 1;
        between += u32::from(matches!(&log.last().unwrap().body, RecordBody::OutputChecked { .. }));
        if !has(|b| matches!(b, RecordBody::RunFinished(_))) {
            let outcome = drive(&world.clock, team.resume(&world.context)).unwrap();
            assert_eq!(outcome.answer(), Some(GOOD), "append {appends}, written: {is_written}");
        }
        world.check_log();
        assert_eq!(checks(&world), [PROBLEM, ""], "append {appends}, written: {is_written}");
    }
    assert!(deaths > 15 && between > 0, "{deaths} deaths, {between} between two attempts");
}

/// For any answers of a lead and any crash, the log replays to the machine, the run ends, and no more
/// answers are checked than the settings allow.
// spec: R-17, A-15
#[test]
fn team_random_leads_and_kills_keep_the_retry_limit_and_replay_equal() {
    let (mut finished, mut misfits) = (0, 0);
    for seed in 0..cases(150, 2_000) {
        let mut chance = Chance(first_seed().wrapping_add(seed));
        let world = World::new();
        let retries = chance.below(3) as u32;
        let mood = Arc::new(Mutex::new(Chance(chance.next())));
        let lead = FnAgent::new(move |_, context| {
            let text = match mood.lock().unwrap().below(5) {
                0 => "",
                1 | 2 => BAD,
                _ => GOOD,
            };
            async move {
                match text {
                    "" => Outcome::failed(context.run.clone(), FailureKind::Other, "not now"),
                    text => answer(&context, text),
                }
            }
        });
        let reviewer = chance.percent(40).then_some("reviewer");
        let says = if chance.percent(50) { "approve" } else { "no" };
        let team = team(&world, retries, reviewer)
            .with_lead("lead", lead)
            .with_member(member("r", "reviewer"), FnAgent::saying(says));
        let mut run = drive(&world.clock, async {
            world.journal.die_after(2 + chance.below(30), chance.percent(50));
            team.start("Which city?", &world.context).await
        });
        world.journal.live();
        // A run that died behind the record of its end is resumed like one that failed: with all its attempts.
        let log = world.journal.log("run_1");
        let had_ended = log.last().is_some_and(|r| matches!(r.body, RecordBody::RunFinished(_)));
        let begun_again = u32::from(run.is_err() && had_ended);
        if run.is_err() {
            run = drive(&world.clock, team.resume(&world.context));
        }
        let Ok(outcome) = run else { continue };
        let machine = world.check_log();
        assert_eq!(machine.ended(), Some(&outcome), "seed {seed}");
        let rounds = world.team_records().into_iter().filter(
            |record| matches!(record, TeamRecord::Delegated { task, .. } if task.starts_with("a review")),
        );
        // A revision begins anew, once one fitted.
        let most = (retries + 1) * (rounds.count() as u32 + 1 + begun_again);
        let checks = checks(&world);
        assert!(checks.len() <= most as usize, "seed {seed}: {checks:?}");
        match outcome.failure_kind() {
            None => {
                assert_eq!(outcome.answer(), Some(GOOD), "seed {seed}");
                assert_eq!(checks.last().map(String::as_str), Some(""), "seed {seed}");
                finished += 1;
            }
            Some(FailureKind::StructuredOutput) => {
                let tail = checks.len() - retries as usize - 1;
                assert!(checks[tail..].iter().all(|found| !found.is_empty()), "seed {seed}: {checks:?}");
                misfits += 1;
            }
            Some(other) => assert_eq!(other, FailureKind::Subtasks, "seed {seed}: {outcome:?}"),
        }
    }
    assert!(finished > 0 && misfits > 0, "{finished} finished, {misfits} never fitted");
}
