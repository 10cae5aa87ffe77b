//! Tests of a team's replans: when they are requested, the steps that they keep, and their limits.

use std::sync::{Arc, Mutex};

use archon_orchestrator::{JobState, Team, TeamOptions};
use archon_testkit::{FnAgent, answer, drive};
use archon_types::{
    FailureKind, LimitReached, MoreLimits, OnFailure, Outcome, OutcomeStatus, PlanError, Planner,
    PlanningContext, ProviderError, RecordBody, Spending, SubTask, Task, TeamRecord, TeamRole,
};

use crate::support::{World, member, step};

type Plan = Result<Vec<SubTask>, PlanError>;

/// A planner that gives its answers in order, and records the requests.
#[derive(Clone)]
struct Scripted {
    answers: Arc<Mutex<Vec<Plan>>>,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    fn new(answers: impl IntoIterator<Item = Plan>) -> Self {
        let mut answers: Vec<Plan> = answers.into_iter().collect();
        answers.reverse();
        Self { answers: Arc::new(Mutex::new(answers)), heard: Arc::default() }
    }

    /// Returns the next answer. The last answer is repeated.
    fn answer(&self, heard: String) -> Plan {
        self.heard.lock().unwrap().push(heard);
        let mut answers = self.answers.lock().unwrap();
        if answers.len() > 1 { answers.pop().unwrap() } else { answers[0].clone() }
    }

    fn questions(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

impl Planner for Scripted {
    async fn create_plan(&self, goal: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        let tokens = context.budget.map(|lease| lease.tokens);
        context.expenses.add(Spending::new(5, 0));
        Ok(Task::new("task_1", goal).with_subtasks(self.answer(format!("{goal}, {tokens:?} left"))?))
    }

    async fn replan(&self, task: &Task, reason: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        let shown = |s: &SubTask| {
            let result = s.result().map(|result| format!("={}", result.text())).unwrap_or_default();
            format!("{} {}{result}", s.id, s.status())
        };
        let steps: Vec<String> = task.subtasks.iter().map(shown).collect();
        let targets: Vec<&str> = context.targets.iter().map(|id| id.as_str()).collect();
        context.expenses.add(Spending::new(5, 0));
        let heard = format!("[{}] {}: {reason}", steps.join(", "), targets.join(" "));
        Ok(task.clone().with_subtasks(self.answer(heard)?))
    }
}

fn cannot() -> Arc<FnAgent> {
    FnAgent::new(|_, context| async move {
        let mut outcome = Outcome::failed(context.run.clone(), FailureKind::Other, "no rooms");
        outcome.usage.input = 10;
        outcome
    })
}

fn team(world: &World, planner: &Scripted, change: impl FnOnce(&mut TeamOptions)) -> Team {
    let mut options = TeamOptions::default();
    options.roles = ["good", "bad"].map(|role| TeamRole::new(role, "")).to_vec();
    options.settings.max_attempts = 2;
    change(&mut options);
    Team::new(planner.clone(), Arc::new(world.journal.clone()), options)
        .with_member(
            member("ann", "good"),
            FnAgent::new(|task, context| async move {
                let line = task.lines().find(|line| line.starts_with("Your task: ")).unwrap_or_default();
                answer(&context, line.trim_start_matches("Your task: "))
            }),
        )
        .with_member(member("bob", "bad"), cannot())
}

/// Returns a search that succeeds, a booking that fails, a letter that depends on the booking, and a song
/// without dependencies.
fn first() -> Vec<SubTask> {
    vec![
        step("find", "Find", "good", &[]),
        step("book", "Book", "bad", &["find"]),
        step("write", "Write", "good", &["book"]),
        step("sing", "Sing", "good", &[]),
    ]
}

/// Returns a plan that replaces the booking.
fn second() -> Vec<SubTask> {
    vec![step("camp", "Camp", "good", &["find"]), step("write", "Write", "good", &["camp"])]
}

const ALL: &str = "[find] Find\n\n[sing] Sing\n\n[write] Write\n\n[camp] Camp";

// spec: ER-13
#[test]
fn team_failed_step_causes_a_replan_that_keeps_finished_results() {
    let world = World::new();
    let planner = Scripted::new([Ok(first()), Ok(second())]);
    let outcome = world.start(&team(&world, &planner, |_| {}), "A trip");
    assert_eq!((outcome.status, outcome.last_text()), (OutcomeStatus::Finished, Some(ALL)), "{outcome:?}");
    assert_eq!(
        planner.questions()[1..],
        [
            "[find completed=Find, book failed=Error: no rooms, write blocked, sing completed=Sing] book: subtask book (Book) \
          failed 2 times: no rooms. Break it down into smaller steps, or go another way."
        ]
    );
    assert_eq!(
        world.delegations(),
        [
            "ann: find: Find",
            "ann: sing: Sing",
            "bob: book: Book",
            "bob: book: Book",
            "ann: camp: Camp",
            "ann: write: Write"
        ]
    );
    let machine = world.check_log();
    let ids: Vec<&str> = machine.task().subtasks.iter().map(|s| s.id.as_str()).collect();
    assert_eq!(ids, ["find", "sing", "write", "camp"]);
    assert_eq!(outcome.child_spending.tokens, 60 + 2 * 5, "the planner is paid for both plans");
    let replaced = machine.jobs().iter().filter(|job| job.state == JobState::Replaced);
    assert_eq!(replaced.count(), 2);
}

// spec: ER-13, MA-23
#[test]
fn team_killed_around_a_replan_resumes_with_the_new_plan() {
    let records = {
        let world = World::new();
        world.start(&team(&world, &Scripted::new([Ok(first()), Ok(second())]), |_| {}), "A trip");
        world.journal.log("run_1").len() as u64
    };
    let mut resumed = 0;
    for (appends, is_written) in (1..=records).flat_map(|appends| [(appends, false), (appends, true)]) {
        let world = World::new();
        let planner = Scripted::new([Ok(first()), Ok(second())]);
        let team = team(&world, &planner, |_| {});
        world.journal.die_after(appends, is_written);
        let started = drive(&world.clock, team.start("A trip", &world.context));
        world.journal.live();
        let is_planned = |body: &RecordBody| matches!(body, RecordBody::Team(said) if matches!(**said, TeamRecord::Planned { .. }));
        // The script is for one first plan only.
        if started.is_ok() || !world.journal.log("run_1").iter().any(|record| is_planned(&record.body)) {
            continue;
        }
        resumed += 1;
        let machine = world.check_log();
        let outcome = match machine.ended() {
            Some(outcome) => outcome.clone(),
            None => drive(&world.clock, team.resume(&world.context)).unwrap(),
        };
        world.check_log();
        assert_eq!((outcome.status, outcome.last_text()), (OutcomeStatus::Finished, Some(ALL)), "{appends}");
        assert_eq!(world.delegations().len(), 6, "{appends} {is_written}: nothing was done twice");
        assert!(planner.questions().len() <= 3, "{appends} {is_written}: {:?}", planner.questions());
    }
    assert!(resumed > 20, "{resumed}");
}

// spec: ER-13, PL-18
#[test]
fn team_replans_up_to_its_limit_then_fails_with_the_abandoned_plans() {
    for (max, plans) in [(None, 4), (Some(1), 2), (Some(0), 1)] {
        let world = World::new();
        let planner = Scripted::new([Ok(vec![step("book", "Book", "bad", &[])])]);
        let team = team(&world, &planner, |options| {
            options.settings.max_replans = max.unwrap_or(options.settings.max_replans);
        });
        let outcome = world.start(&team, "A trip");
        assert_eq!(outcome.failure_kind(), Some(FailureKind::Subtasks));
        assert_eq!(planner.questions().len(), plans, "{max:?}");
        assert_eq!(world.delegations().len(), 2 * plans, "{max:?}");
        let error = outcome.error.unwrap();
        assert!(error.starts_with("1 of 1 subtasks failed: book (no rooms)"), "{error}");
        assert_eq!(error.matches("subtask book (Book) failed 2 times").count(), plans - 1, "{error}");
        assert_eq!(error.ends_with(". A simpler goal may work: a part of this one."), plans > 1, "{error}");
    }
}

// spec: ER-13
#[test]
fn team_without_a_new_plan_finishes_the_rest_and_names_the_reason() {
    let nothing = |task: Plan| Scripted::new([Ok(first()), task]);
    let circle = vec![step("camp", "Camp", "good", &["camp"])];
    for (planner, why) in [
        (nothing(Err(PlanError::Fixed)), "the plan is fixed"),
        (nothing(Ok(circle)), "Cycle detected in dependency graph: camp → camp"),
    ] {
        let world = World::new();
        let outcome = world.start(&team(&world, &planner, |_| {}), "A trip");
        assert_eq!(outcome.failure_kind(), Some(FailureKind::Subtasks));
        let error = outcome.error.unwrap();
        assert!(error.contains(&format!("No other plan was found: {why}")), "{error}");
        assert!(world.delegations().contains(&"ann: sing: Sing".to_owned()));
    }
}

// spec: ER-13
#[test]
fn team_optional_and_stopping_steps_cause_no_replan() {
    for (on_failure, status) in
        [(OnFailure::Skip, OutcomeStatus::Finished), (OnFailure::Stop, OutcomeStatus::Failed)]
    {
        let world = World::new();
        let mut book = step("book", "Book", "bad", &[]);
        book.rules.on_failure = on_failure;
        let planner = Scripted::new([Ok(vec![book, step("sing", "Sing", "good", &["book"])])]);
        assert_eq!(world.start(&team(&world, &planner, |_| {}), "A trip").status, status, "{on_failure:?}");
        assert_eq!(planner.questions().len(), 1, "{on_failure:?}");
    }
}

// spec: ER-13
#[test]
fn a_team_whose_planner_was_not_reached_for_another_plan_is_resumed_and_asks_it_again() {
    let world = World::new();
    let away = Err(PlanError::Model(ProviderError::Auth("no key".into())));
    let planner = Scripted::new([Ok(first()), away, Ok(second())]);
    let team = team(&world, &planner, |_| {});
    let outcome = world.start(&team, "A trip");
    assert_eq!(outcome.failure_kind(), Some(FailureKind::Auth));
    assert!(outcome.error.unwrap().starts_with("there is no other plan: "));
    let outcome = drive(&world.clock, team.resume(&world.context)).unwrap();
    world.check_log();
    assert_eq!((outcome.status, outcome.last_text()), (OutcomeStatus::Finished, Some(ALL)), "{outcome:?}");
    assert_eq!(planner.questions()[1], planner.questions()[2]);
    assert_eq!(world.delegations().len(), 6);
}

// spec: ER-13
#[test]
fn team_replan_request_contains_only_open_work() {
    let away = || Err(PlanError::Model(ProviderError::Auth("no key".into())));
    let world = World::new();
    let planner = Scripted::new([away(), Ok(first()), Ok(second())]);
    let team = team(&world, &planner, |options| options.limits.max_total_tokens = 10);
    assert_eq!(world.start(&team, "A trip").failure_kind(), Some(FailureKind::Auth));
    drive(&world.clock, team.resume(&world.context)).unwrap();
    let heard = planner.questions();
    assert_eq!(heard[..2], ["A trip, Some(10) left", "A trip, Some(5) left"]);

    // A failed plan has used up all there was.
    let world = World::new();
    let planner = Scripted::new([away()]);
    let limited = |options: &mut TeamOptions| options.limits.max_total_tokens = 5;
    let team = self::team(&world, &planner, limited);
    assert_eq!(world.start(&team, "A trip").failure_kind(), Some(FailureKind::Auth));
    let outcome = drive(&world.clock, team.resume(&world.context)).unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Tokens { max: 5 }));
    assert_eq!(planner.questions().len(), 1, "nobody pays for a question past the limit");
    let mut more = MoreLimits::default();
    more.max_total_tokens = Some(20);
    drive(&world.clock, team.resume_with(&more, &world.context)).unwrap();
    assert_eq!(planner.questions().len(), 2);

    // So it is before another plan.
    let world = World::new();
    let planner = Scripted::new([Ok(vec![step("book", "Book", "bad", &[])])]);
    let team = self::team(&world, &planner, |options| options.limits.max_total_tokens = 25);
    let outcome = world.start(&team, "A trip");
    assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Tokens { max: 25 }), "{outcome:?}");
    assert_eq!(planner.questions().len(), 1);
}
