//! Tests of replans: their targets, the subtasks that they keep, and their budget.

use std::sync::{Arc, Mutex};

use archon_planner::{
    LlmPlanner, Next, PlanControl, PlanRunError, PlanTask, PlanningAgent, PlanningAgentOptions, fold,
};
use archon_testkit::{FnProvider, MortalJournal, SeededIds, VirtualClock};
use archon_types::{
    Agent, Answer, BoxFuture, CallId, Confirm, Context, FailureKind, Journal, LongTerm, MemoryError,
    MemoryQuery, OnFailure, Outcome, OutcomeStatus, PlanDiff, PlanError, PlanRecord, PlanSettings, Planner,
    PlanningContext, Recalled, RecordBody, SubTask, SubTaskId, SubTaskStatus, Task, ToolResult, Usage,
};

use crate::support::{Fed, step};

fn context() -> Context {
    Context::new("run_1".into(), "s".into(), Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)))
}

fn ended(subtask: SubTask, result: ToolResult) -> SubTask {
    subtask.with_status(SubTaskStatus::Executing).unwrap().with_result(result).unwrap()
}

fn ids(task: &Task) -> Vec<&str> {
    task.subtasks.iter().map(|s| s.id.as_str()).collect()
}

/// A worker that uses tokens, fails at `bad`, and requests a replan at `turn`.
#[derive(Clone, Default)]
struct Worker {
    control: PlanControl,
    tokens: u64,
}

impl Agent for Worker {
    fn name(&self) -> &str {
        "worker"
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let line = task.lines().next().unwrap_or_default();
            if line.contains("turn") {
                self.control.replan("the weather has changed", vec!["walk".into()]);
            }
            let mut outcome = match line.contains("bad") {
                true => Outcome::failed(context.run.clone(), FailureKind::Other, "it does not work"),
                false => Outcome::new(context.run.clone(), OutcomeStatus::Finished),
            };
            outcome.usage = Usage { input: self.tokens, ..Usage::default() };
            outcome.set_answer(line.to_owned());
            outcome
        })
    }
}

/// A planner that returns the first plan, then the second, and records the targets of the replan.
struct Two {
    first: Vec<SubTask>,
    second: Vec<SubTask>,
    targets: Mutex<Vec<SubTaskId>>,
}

impl Planner for Two {
    async fn create_plan(&self, goal: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        Ok(Task::new("t", goal).with_subtasks(self.first.clone()))
    }

    async fn replan(&self, task: &Task, _: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        self.targets.lock().unwrap().clone_from(&context.targets);
        Ok(task.clone().with_subtasks(self.second.clone()))
    }
}

fn two(first: Vec<SubTask>, second: Vec<SubTask>) -> Arc<Two> {
    Arc::new(Two { first, second, targets: Mutex::default() })
}

// spec: PL-19, PL-23
#[tokio::test]
async fn plan_control_replan_request_names_reason_and_targets() {
    let first = vec![step("turn", &[]), step("walk", &["turn"]), step("dine", &["turn"])];
    let second = vec![step("turn", &[]), step("museum", &["turn"]), step("dine", &["turn"])];
    let planner = two(first, second);
    let (journal, control) = (MortalJournal::default(), PlanControl::new());
    let worker = Worker { control: control.clone(), tokens: 1 };
    let mut options = PlanningAgentOptions::default();
    options.settings.max_concurrent = 1;
    let agent = PlanningAgent::new(planner.clone(), Arc::new(worker), Arc::new(journal.clone()), options)
        .with_control(control);
    let outcome = agent.start("A day out", &context()).await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{:?}", outcome.error);
    assert_eq!(*planner.targets.lock().unwrap(), ["walk".into()]);
    let machine = fold(&journal.log("run_1")).unwrap();
    assert_eq!(ids(&machine.task()), ["turn", "dine", "museum"]);
    assert_eq!(machine.replans(), 1);
}

// spec: PL-19
#[tokio::test]
async fn replan_prompt_lists_subtasks_to_replace_and_accepts_an_answer_without_them() {
    let done = ended(step("a", &[]), ToolResult::success("rain"));
    let task = Task::new("t", "g").with_subtasks(vec![
        done,
        step("walk", &["a"]),
        step("rest", &["walk"]),
        step("dine", &["a"]),
    ]);
    let answer = r#"[{"id": "museum", "description": "See pictures", "dependencies": ["a"]}]"#;
    let provider = FnProvider::new(move |_, _| FnProvider::text(answer));
    let planner = LlmPlanner::new(Arc::new(provider.clone()), "m");
    let mut planning = PlanningContext::new(context());
    planning.targets = vec!["walk".into()];
    let new = planner.replan(&task, "it rains", &planning).await.unwrap();
    assert_eq!(ids(&new), ["a", "dine", "museum"], "nothing of the old way runs beside the new one");
    let asked = provider.requests()[0].messages.last().unwrap().text();
    assert!(asked.contains("[blocked, to be replaced] walk") && asked.contains("[blocked] dine"), "{asked}");
}

// spec: PL-19
#[tokio::test]
async fn replan_does_not_replace_skipped_subtasks() {
    let mut passed_over = step("maybe", &[]);
    passed_over.rules.on_failure = OnFailure::Skip;
    let passed_over = ended(passed_over, ToolResult::error("no news"));
    let failed = ended(step("book", &[]), ToolResult::error("no rooms"));
    let running = step("write", &["maybe"]).with_status(SubTaskStatus::Pending).unwrap();
    let running = running.with_status(SubTaskStatus::Executing).unwrap();
    let task = Task::new("t", "g").with_subtasks(vec![passed_over, failed, running]);
    let answer = r#"[{"id": "book2", "description": "Other hotels", "dependencies": []}]"#;
    let provider = FnProvider::new(move |_, _| FnProvider::text(answer));
    let planner = LlmPlanner::new(Arc::new(provider.clone()), "m");
    let new = planner.replan(&task, "no rooms", &PlanningContext::new(context())).await.unwrap();
    assert_eq!(ids(&new), ["maybe", "write", "book2"]);
    let asked = provider.requests()[0].messages.last().unwrap().text();
    assert!(asked.contains("[failed, and done without] maybe") && asked.contains("[failed] book"), "{asked}");
}

// spec: PL-19
#[tokio::test]
async fn replan_must_fit_the_remaining_budget() {
    let mut bad = step("bad", &["dear"]);
    bad.critical = true;
    let more = |n: usize| (0..n).map(|n| step(&format!("more{n}"), &["dear"]));
    for (steps, is_done) in [(3, false), (2, true)] {
        let first = vec![step("dear", &[]), bad.clone()];
        let second = [step("dear", &[])].into_iter().chain(more(steps)).collect();
        let mut options = PlanningAgentOptions::default();
        // 2,900 are left, and a subtask takes about 1,000.
        options.limits.max_total_tokens = 10_000;
        let (journal, worker) = (MortalJournal::default(), Worker { tokens: 3_550, ..Worker::default() });
        let worker = Arc::new(Frugal(worker));
        let agent = PlanningAgent::new(two(first, second), worker, Arc::new(journal.clone()), options);
        let outcome = agent.start("Go", &context()).await.unwrap();
        assert_eq!(outcome.is_finished(), is_done, "{steps}: {:?}", outcome.error);
        if !is_done {
            let error = outcome.error.unwrap();
            assert!(error.contains("will need about 3000 tokens, but only 2900 are available"), "{error}");
        }
    }
}

/// A worker that uses tokens for the first plan only.
struct Frugal(Worker);

impl Agent for Frugal {
    fn name(&self) -> &str {
        "frugal"
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let mut outcome = self.0.run(task, context).await;
            if task.contains("more") {
                outcome.usage = Usage::default();
            }
            outcome
        })
    }
}

// spec: PL-06, A-30
#[tokio::test]
async fn cyclic_plan_is_requested_once_more_then_the_run_fails() {
    let circle = r#"[{"id": "a", "description": "x", "dependencies": ["b"]}, {"id": "b", "description": "y", "dependencies": ["a"]}]"#;
    let provider = FnProvider::new(move |_, _| FnProvider::text(circle));
    let planner = LlmPlanner::new(Arc::new(provider.clone()), "m");
    let agent = PlanningAgent::new(
        Arc::new(planner),
        Arc::new(Worker::default()),
        Arc::new(MortalJournal::default()),
        PlanningAgentOptions::default(),
    );
    let error = agent.start("Go round", &context()).await.unwrap().error.unwrap();
    assert!(error.contains("Cycle detected in dependency graph: a → b → a"), "{error}");
    assert_eq!(provider.requests().len(), 2);
}

// spec: PL-01, PL-08
#[tokio::test]
async fn planner_is_told_the_subtask_limit_and_not_called_without_need() {
    let answer = |n: usize| {
        let step = |n| format!(r#"{{"id": "s{n}", "description": "x", "dependencies": []}}"#);
        format!("[{}]", (0..n).map(step).collect::<Vec<_>>().join(","))
    };
    for (max, asked, is_plan) in [(300, 1, true), (10, 3, false)] {
        let text = answer(250);
        let provider = FnProvider::new(move |_, _| FnProvider::text(&text));
        let mut options = PlanningAgentOptions::default();
        options.size.max = max;
        let agent = PlanningAgent::new(
            Arc::new(LlmPlanner::new(Arc::new(provider.clone()), "m")),
            Arc::new(Worker::default()),
            Arc::new(MortalJournal::default()),
            options,
        );
        let PlanRunError::Problems { problems } = agent.draft(" \n", &context()).await.unwrap_err() else {
            panic!()
        };
        assert_eq!(problems[0].to_string(), "the goal is empty");
        assert_eq!(provider.requests().len(), 0);
        assert_eq!(agent.draft("Much to do", &context()).await.is_ok(), is_plan, "{max}");
        assert_eq!(provider.requests().len(), asked, "what the agent refuses is sent back with the reason");
    }
}

/// A planner that records whether the run's log existed when it was asked.
#[derive(Clone, Default)]
struct Curious {
    journal: MortalJournal,
    had_begun: Arc<Mutex<Vec<bool>>>,
}

impl LongTerm for Curious {
    fn store<'a>(
        &'a self,
        _: &'a str,
        _: serde_json::Map<String, archon_types::Json>,
    ) -> BoxFuture<'a, Result<String, MemoryError>> {
        Box::pin(async { Ok("m1".to_owned()) })
    }

    fn delete<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<bool, MemoryError>> {
        Box::pin(async { Ok(false) })
    }

    fn query<'a>(&'a self, _: &'a MemoryQuery) -> BoxFuture<'a, Result<Vec<Recalled>, MemoryError>> {
        self.had_begun.lock().unwrap().push(!self.journal.log("run_1").is_empty());
        Box::pin(async { Ok(Vec::new()) })
    }
}

// spec: PL-22
#[tokio::test]
async fn plan_recalls_memories_before_its_log_begins() {
    let memory = Curious::default();
    let agent = PlanningAgent::new(
        two(vec![step("a", &[])], Vec::new()),
        Arc::new(Worker::default()),
        Arc::new(memory.journal.clone()),
        PlanningAgentOptions::default(),
    )
    .with_memory(Arc::new(memory.clone()));
    assert!(agent.start("Go", &context()).await.unwrap().is_finished());
    assert_eq!(*memory.had_begun.lock().unwrap(), [false]);
    let log = memory.journal.read(&"run_1".into()).await.unwrap();
    assert!(log.iter().any(|r| matches!(r.body, RecordBody::MessageAdded { .. })));
}

/// Returns a run whose first subtask failed, and whose replan a person must approve.
fn proposed() -> (Fed, CallId) {
    let mut settings = PlanSettings::default();
    settings.confirm = Confirm::Each;
    settings.replan.same_subtask = 1;
    let mut fed =
        Fed::following(settings, vec![step("walk", &[]), step("rest", &["walk"]), step("dine", &[])]);
    let Next::Append(body) = fed.machine.next() else { panic!("the first plan is asked about, too") };
    let RecordBody::ApprovalRequested { call, .. } = body else { panic!() };
    fed.feed(body);
    fed.feed(RecordBody::ApprovalAnswered { call, answer: Answer::Approve });
    let begun = fed.begin_all();
    let call_of = |id: &str| begun.iter().find(|(begun, _)| begun == id).unwrap().1;
    fed.finish(call_of("walk"), ToolResult::error("it rains"));
    let Next::Do(PlanTask::MakePlan { command, attempt, reason }) = fed.machine.next() else { panic!() };
    fed.plan(PlanRecord::PlanningStarted { command, attempt, reason });
    let mut diff = PlanDiff::default();
    diff.add = vec![step("museum", &[])];
    diff.remove = vec!["walk".into(), "rest".into()];
    fed.plan(PlanRecord::Replanned { command, diff: Box::new(diff), warnings: vec![] });
    let Next::Append(body) = fed.machine.next() else { panic!("{:?}", fed.machine.next()) };
    let RecordBody::ApprovalRequested { call, request } = &body else { panic!() };
    let call = *call;
    assert_eq!(
        request.action_summary,
        "Continue with another plan? It adds 1 subtasks, replaces 0 and removes 2."
    );
    assert!(request.details["why"].as_str().unwrap().contains("it rains"));
    assert_eq!(request.details["plan"]["subtasks"].as_array().unwrap().len(), 2);
    fed.feed(body);
    assert_eq!(fed.machine.next(), Next::Wait(None), "what the change does not touch goes on");
    fed.finish(call_of("dine"), ToolResult::success("ok"));
    let Next::Append(RecordBody::Suspended { waiting }) = fed.machine.next() else { panic!() };
    assert_eq!(waiting, [call]);
    fed.feed(RecordBody::Suspended { waiting });
    assert_eq!(fed.machine.next(), Next::Suspend);
    assert_eq!(ids(&fed.machine.proposal().unwrap().1), ["dine", "museum"]);
    assert_eq!(ids(&fed.machine.task()), ["walk", "rest", "dine"], "nothing has changed yet");
    // As another process finds it.
    fed.machine = fold(&fed.records).unwrap();
    fed.feed(RecordBody::Resumed);
    (fed, call)
}

// spec: AP-09, PL-24
#[test]
fn replan_with_confirm_each_waits_for_approval() {
    let (mut fed, call) = proposed();
    fed.feed(RecordBody::ApprovalAnswered { call, answer: Answer::Approve });
    assert_eq!(fed.begin_all()[0].0, "museum");
    assert_eq!((ids(&fed.machine.task()), fed.machine.proposal()), (vec!["dine", "museum"], None));

    let (mut fed, call) = proposed();
    let mut wanted = fed.machine.proposal().unwrap().1;
    wanted.subtasks.push(step("cinema", &["museum"]));
    let arguments = serde_json::to_value(&wanted).unwrap();
    fed.feed(RecordBody::ApprovalAnswered { call, answer: Answer::Edit { arguments } });
    assert_eq!(fed.begin_all()[0].0, "museum");
    assert_eq!(ids(&fed.machine.task()), ["dine", "museum", "cinema"]);
}

// spec: PL-24
#[test]
fn replan_without_changes_needs_no_second_approval() {
    let mut settings = PlanSettings::default();
    settings.confirm = Confirm::Each;
    settings.replan.same_subtask = 1;
    let mut fed = Fed::following(settings, vec![step("walk", &[]), step("rest", &["walk"])]);
    let Next::Append(body) = fed.machine.next() else { panic!() };
    let RecordBody::ApprovalRequested { call, .. } = body else { panic!() };
    fed.feed(body);
    fed.feed(RecordBody::ApprovalAnswered { call, answer: Answer::Approve });
    let walk = fed.begin_all()[0].1;
    fed.finish(walk, ToolResult::error("it rains"));
    let Next::Do(PlanTask::MakePlan { command, attempt, reason }) = fed.machine.next() else { panic!() };
    fed.plan(PlanRecord::PlanningStarted { command, attempt, reason });
    let mut diff = PlanDiff::default();
    diff.replace = vec![step("walk", &[]), step("rest", &["walk"])];
    fed.plan(PlanRecord::Replanned { command, diff: Box::new(diff), warnings: vec![] });
    assert_eq!(fed.machine.proposal(), None, "the person has seen it");
    assert_eq!(fed.begin_all()[0].0, "walk");
}

// spec: AP-09
#[test]
fn replan_denied_by_a_person_ends_the_run() {
    for (answer, why) in [
        (Answer::Cancel { reason: "too dear".into() }, "too dear"),
        (Answer::Cancel { reason: String::new() }, "no reason was given"),
        (Answer::Edit { arguments: 1.into() }, "its edit cannot be read"),
    ] {
        let (mut fed, call) = proposed();
        fed.feed(RecordBody::ApprovalAnswered { call, answer });
        let Next::Append(RecordBody::RunFinished(outcome)) = fed.machine.next() else { panic!() };
        let error = outcome.error.unwrap();
        assert!(error.starts_with(&format!("the other plan was not approved: {why}")), "{error}");
    }
}

// spec: AP-09, PL-19
#[test]
fn subtasks_that_a_proposed_replan_removes_do_not_start() {
    let mut settings = PlanSettings::default();
    settings.confirm = Confirm::Each;
    let mut fed =
        Fed::following(settings, vec![step("walk", &[]), step("rest", &["walk"]), step("dine", &["walk"])]);
    let Next::Append(body) = fed.machine.next() else { panic!() };
    let RecordBody::ApprovalRequested { call, .. } = body else { panic!() };
    fed.feed(body);
    fed.feed(RecordBody::ApprovalAnswered { call, answer: Answer::Approve });
    let walk = fed.begin_all()[0].1;
    // The walk is under way already, and what follows it is to change.
    fed.plan(PlanRecord::ReplanRequested { reason: "it rains".into(), targets: vec!["walk".into()] });
    let Next::Do(PlanTask::MakePlan { command, attempt, reason }) = fed.machine.next() else { panic!() };
    fed.plan(PlanRecord::PlanningStarted { command, attempt, reason });
    let mut diff = PlanDiff::default();
    diff.remove = vec!["rest".into()];
    fed.plan(PlanRecord::Replanned { command, diff: Box::new(diff), warnings: vec![] });
    fed.finish(walk, ToolResult::success("ok"));
    let Next::Append(body) = fed.machine.next() else { panic!("{:?}", fed.machine.next()) };
    let RecordBody::ApprovalRequested { call, .. } = body else { panic!() };
    fed.feed(body);
    let begun: Vec<String> = fed.begin_all().into_iter().map(|(id, _)| id).collect();
    assert_eq!(begun, ["dine"], "the rest waits for the answer");
    fed.feed(RecordBody::ApprovalAnswered { call, answer: Answer::Approve });
    assert_eq!(ids(&fed.machine.task()), ["walk", "dine"]);
}

// spec: AP-05, PL-24
#[tokio::test]
async fn edited_replan_is_applied_as_a_whole_or_refused() {
    let mut options = PlanningAgentOptions::default();
    options.settings.confirm = Confirm::Each;
    options.settings.replan.same_subtask = 1;
    let first = vec![step("bad", &[]), step("rest", &["bad"]), step("dine", &[])];
    let second = vec![step("museum", &[]), step("dine", &[])];
    let journal = MortalJournal::default();
    let agent = PlanningAgent::new(
        two(first, second),
        Arc::new(Worker::default()),
        Arc::new(journal.clone()),
        options,
    );
    let question = |journal: &MortalJournal| {
        let log = journal.log("run_1");
        let asked = archon_planner::open_questions(&log)
            .last()
            .map(|(call, request)| (*call, request.details.clone()));
        asked.unwrap()
    };
    assert_eq!(agent.start("A day out", &context()).await.unwrap().status, OutcomeStatus::Suspended);
    let outcome = agent.answer(question(&journal).0, Answer::Approve, &context()).await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Suspended);
    let (call, details) = question(&journal);
    let shown: Task = serde_json::from_value(details["plan"].clone()).unwrap();
    assert_eq!(ids(&shown), ["dine", "museum"]);
    let edit = |subtasks: Vec<SubTask>| {
        let task = shown.clone().with_subtasks(subtasks);
        Answer::Edit { arguments: serde_json::to_value(&task).unwrap() }
    };
    let mut dined = shown.subtasks[0].clone();
    dined.description = "Dine twice".to_owned();
    for (what, subtasks) in
        [("changed", vec![dined, step("museum", &[])]), ("left out", vec![step("museum", &[])])]
    {
        let error = agent.answer(call, edit(subtasks), &context()).await.unwrap_err();
        assert!(matches!(&error, PlanRunError::Problems { .. }), "{what}: {error}");
        assert!(error.to_string().contains("dine"), "{what}: {error}");
    }
    let museum = step("museum", &["dine"]);
    let outcome =
        agent.answer(call, edit(vec![shown.subtasks[0].clone(), museum]), &context()).await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{:?}", outcome.error);
    let task = fold(&journal.log("run_1")).unwrap().task();
    assert_eq!(ids(&task), ["dine", "museum"]);
    assert_eq!(task.subtasks[1].dependencies(), ["dine".into()]);
}
