//! Tests of loops over the result of a step: the plan shows one loop, and gets subtasks once the list is
//! known.

use std::sync::{Arc, Mutex};

use archon_planner::{
    PlanRunError, PlanningAgent, PlanningAgentOptions, ScriptedPlanner, TemplatePlanner, TemplateRegistry,
    WorkflowTemplate, fold,
};
use archon_testkit::{MortalJournal, SeededIds, VirtualClock};
use archon_types::{
    Agent, Answer, BoxFuture, CallId, Context, Effect, Encoded, Executed, Json, Outcome, OutcomeStatus,
    PlanRecord, Prepared, ReadyCall, Record, RecordBody, RunRefused, SubTask, Task, ToolCall, ToolResult,
    ToolSpec, Toolbox,
};
use serde_json::json;

/// Tools that record their calls; the search returns this list.
#[derive(Clone)]
struct Web {
    finds: Json,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Toolbox for Web {
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        let spec = |name: &str| ToolSpec::new(name, "does it", json!({"type": "object"}));
        Arc::new(Encoded::new(["search", "fetch", "report"].map(spec).into()))
    }

    fn prepare<'a>(&'a self, id: CallId, call: &'a ToolCall, _: &'a Context) -> BoxFuture<'a, Prepared> {
        let ready = ReadyCall::new(id, call.clone(), Effect::Idempotent);
        Box::pin(async move { Prepared::Ready(ready) })
    }

    fn execute<'a>(&'a self, ready: ReadyCall, _: &'a Context) -> BoxFuture<'a, Executed> {
        Box::pin(async move {
            let (name, arguments) = (ready.call.name.clone(), ready.call.arguments.to_string());
            self.calls.lock().unwrap().push(format!("{name} {arguments}"));
            let result = match name.as_str() {
                "search" => self.finds.to_string(),
                _ if arguments.contains("broken") => return Executed::Done(ToolResult::error("404").into()),
                _ => format!("{name} of {}", ready.call.arguments["of"]),
            };
            Executed::Done(Box::new(ToolResult::success(result)))
        })
    }
}

/// An agent that is never asked.
struct Silent;

impl Agent for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        let mut outcome = Outcome::new(context.run.clone(), OutcomeStatus::Finished);
        outcome.set_answer(format!("thought: {}", task.lines().next().unwrap_or_default()));
        Box::pin(async { outcome })
    }
}

fn template(steps: Json) -> WorkflowTemplate {
    serde_json::from_value(json!({"name": "research", "steps": steps})).unwrap()
}

fn research(change: impl FnOnce(&mut Json)) -> WorkflowTemplate {
    let mut steps = json!([
        {"tool": "search", "args": {"of": "rust"}, "save_as": "found"},
        {"for_each": "{{found}}", "as": "page", "save_as": "pages", "do": [
            {"tool": "fetch", "args": {"of": "{{page.url}}"}, "on_error": "skip"},
            {"if": "{{page.kind}} == 'long'",
             "then": [{"description": "Shorten {{page.url}}", "save_as": "short"}]},
        ]},
        {"tool": "report", "args": {"of": "{{pages}}"}},
    ]);
    change(&mut steps);
    template(steps)
}

fn plan(template: &WorkflowTemplate) -> Vec<SubTask> {
    template.instantiate("t", "g", &serde_json::Map::new()).unwrap().subtasks
}

fn found() -> Json {
    json!([
        {"url": "a", "kind": "short"},
        {"url": "{found}", "kind": "long"},
        {"url": "broken", "kind": "short"},
    ])
}

struct Ran {
    outcome: Outcome,
    calls: Vec<String>,
    journal: MortalJournal,
}

fn agent(web: &Web, journal: &MortalJournal, plan: Option<Vec<SubTask>>) -> PlanningAgent {
    let mut options = PlanningAgentOptions::default();
    options.plan = plan;
    let planner = Arc::new(ScriptedPlanner::new(Vec::new()));
    PlanningAgent::new(planner, Arc::new(Silent), Arc::new(journal.clone()), options)
        .with_toolbox(Arc::new(web.clone()))
}

fn context() -> Context {
    Context::new("run_1".into(), "s".into(), Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)))
}

async fn followed(finds: Json, plan: Vec<SubTask>) -> Ran {
    let (web, journal) = (Web { finds, calls: Arc::default() }, MortalJournal::default());
    let outcome = agent(&web, &journal, Some(plan)).start("Do it", &context()).await.unwrap();
    let calls = web.calls.lock().unwrap().clone();
    Ran { outcome, calls, journal }
}

fn unfolded(journal: &MortalJournal) -> Vec<String> {
    let ids = |body: &RecordBody| match body {
        RecordBody::Plan(plan) => match &**plan {
            PlanRecord::LoopExpanded { subtasks, .. } => {
                Some(subtasks.iter().map(|subtask| subtask.id.to_string()).collect::<Vec<_>>())
            }
            _ => None,
        },
        _ => None,
    };
    journal.log("run_1").iter().filter_map(|record| ids(&record.body)).flatten().collect()
}

// spec: EX-07
#[tokio::test]
async fn a_loop_over_a_result_is_shown_beforehand_and_done_for_each_item() {
    let plan = plan(&research(|_| {}));
    let shown: Vec<_> = plan.iter().map(|s| (s.id.as_str(), s.description.as_str())).collect();
    assert_eq!(shown[1], ("step2", "For each page of found: Run fetch [fetch]; Shorten {page.url}"));
    assert_eq!(shown.len(), 3);
    let ran = followed(found(), plan).await;
    assert_eq!(ran.outcome.status, OutcomeStatus::Finished, "{:?}", ran.outcome.error);
    let mut fetched = ran.calls[1..4].to_vec();
    fetched.sort();
    fetched.dedup();
    // What the list holds is data: braces in it refer to nothing.
    assert_eq!(fetched, [r#"fetch {"of":"a"}"#, r#"fetch {"of":"broken"}"#, r#"fetch {"of":"{found}"}"#]);
    // The result of an item is that of its last step: there is none where the condition does not hold.
    let report = ran.calls.last().unwrap();
    assert_eq!(report, r#"report {"of":[null,"thought: Shorten {found}",null]}"#);
    assert_eq!(
        unfolded(&ran.journal),
        [
            "step2_do1_1",
            "step2_do2_then1_1",
            "step2_do1_2",
            "step2_do2_then1_2",
            "step2_do1_3",
            "step2_do2_then1_3",
        ]
    );
}

// spec: EX-07, PL-19
#[tokio::test]
async fn for_each_over_a_result_killed_at_any_record_expands_once() {
    let mut deaths = 0;
    for (appends, is_written) in (1..90).flat_map(|n| [(n, false), (n, true)]) {
        let (web, journal) = (Web { finds: found(), calls: Arc::default() }, MortalJournal::default());
        journal.die_after(appends, is_written);
        let begun = agent(&web, &journal, Some(plan(&research(|_| {})))).start("Do it", &context()).await;
        journal.live();
        let is_asked = journal.log("run_1").iter().any(|r| matches!(r.body, RecordBody::MessageAdded { .. }));
        let outcome = match (begun, is_asked) {
            (Ok(outcome), _) => outcome,
            (Err(_), false) => continue,
            (Err(_), true) => {
                deaths += 1;
                match agent(&web, &journal, None).resume(&context()).await {
                    Err(PlanRunError::Refused(RunRefused::Ended { .. })) => {
                        fold(&journal.log("run_1")).unwrap().ended().unwrap().clone()
                    }
                    outcome => outcome.unwrap(),
                }
            }
        };
        assert_eq!(outcome.status, OutcomeStatus::Finished, "append {appends}, written: {is_written}");
        assert!(web.calls.lock().unwrap().last().unwrap().starts_with("report"));
        assert_eq!(unfolded(&journal).len(), 6, "append {appends}, written: {is_written}");
    }
    assert!(deaths > 30, "{deaths}");
}

// spec: EX-07
#[tokio::test]
async fn for_each_over_no_list_or_too_long_a_list_fails_with_the_reason() {
    let long: Vec<Json> = (0..4).map(|n| json!({"url": n, "kind": "short"})).collect();
    let three = |steps: &mut Json| steps[1]["max_items"] = json!(3);
    for (finds, change, says) in [
        (json!("no list"), &(|_: &mut Json| {}) as &dyn Fn(&mut Json), "its list is text, not a list"),
        (json!({"pages": []}), &|_: &mut Json| {}, "its list is an object with pages, not a list"),
        (Json::Array(long), &three, "its list has 4 items; at most 3 are allowed"),
        (
            (0..200).map(|n| json!({"url": n, "kind": "short"})).collect(),
            &|steps: &mut Json| steps[1]["max_items"] = json!(1_000),
            "subtasks; at most 200 are allowed",
        ),
    ] {
        let ran = followed(finds, plan(&research(change))).await;
        assert_eq!(ran.outcome.status, OutcomeStatus::Failed);
        let error = ran.outcome.error.unwrap();
        assert!(error.contains(says), "{error}");
        assert_eq!((ran.calls.len(), unfolded(&ran.journal).len()), (1, 0), "nothing of it began");
    }
    let ran = followed(json!([]), plan(&research(|_| {}))).await;
    assert_eq!(ran.outcome.status, OutcomeStatus::Finished, "{:?}", ran.outcome.error);
    assert_eq!(ran.calls.last().unwrap(), r#"report {"of":[]}"#);
}

// spec: EX-07
#[tokio::test]
async fn nested_for_each_runs_for_each_inner_item() {
    let steps = json!([
        {"tool": "search", "args": {"of": "x"}},
        {"for_each": "{{step1}}", "as": "group", "do": [
            {"for_each": "{{group.of}}", "do": [
                {"tool": "fetch", "id": "get", "args": {"of": "{{group.name}}-{{item}}"}},
            ]},
        ]},
        {"tool": "report", "args": {"of": "{{step2}}"}},
    ]);
    let finds = json!([{"name": "a", "of": [1, 2]}, {"name": "b", "of": [3]}]);
    let ran = followed(finds, plan(&template(steps))).await;
    assert_eq!(ran.outcome.status, OutcomeStatus::Finished, "{:?}", ran.outcome.error);
    let of = r#"[["fetch of \"a-1\"","fetch of \"a-2\""],["fetch of \"b-3\""]]"#;
    assert_eq!(ran.calls.last().unwrap(), &format!(r#"report {{"of":{of}}}"#));
}

// spec: EX-07
#[tokio::test]
async fn for_each_problems_inside_the_loop_are_reported_before_the_start() {
    for (step, says) in [
        (json!({"tool": "fetsh", "args": {"of": "{{page}}"}}), "fetsh"),
        (json!({"tool": "fetch", "args": {"of": "{step3}"}}), "step3"),
    ] {
        let mut broken = plan(&research(|_| {}));
        let tool = step["tool"].as_str().unwrap();
        let inner = &mut broken[1].rules.each.as_mut().unwrap().steps[0];
        *inner = inner.clone().with_tool(tool, Some(step["args"].clone()));
        let ran = followed(found(), broken).await;
        assert_eq!((ran.outcome.status, ran.calls.len()), (OutcomeStatus::Failed, 0));
        assert!(ran.outcome.error.as_ref().unwrap().contains(says), "{:?}", ran.outcome.error);
    }
    let same = template(json!([
        {"tool": "search", "id": "a"},
        {"for_each": "{{a}}", "do": [{"tool": "fetch", "id": "a"}]},
    ]));
    let problems = same.instantiate("t", "g", &serde_json::Map::new()).unwrap_err();
    assert_eq!(
        problems[0].to_string(),
        "step a in a loop has an id or save_as that another step or the loop's item already uses"
    );
}

// spec: EX-07, EX-08
#[tokio::test]
async fn a_loop_over_a_result_works_in_the_place_of_a_subtask_and_twice() {
    let mut registry = TemplateRegistry::new();
    registry.add(
        serde_json::from_value(json!({
            "name": "all_of", "parameters": [{"name": "list", "type": "array"}],
            "steps": [{"for_each": "{{list}}", "do": [{"tool": "fetch", "args": {"of": "{{item}}"}}]}],
        }))
        .unwrap(),
    );
    let each = |id: &str| {
        SubTask::new(id, "Fetch all").with_tool("all_of", Some(json!({"list": "{s}"}))).after(["s"])
    };
    let subtasks = vec![
        SubTask::new("s", "Search").with_tool("search", Some(json!({"of": "x"}))),
        each("one"),
        each("two"),
        SubTask::new("r", "Report")
            .with_tool("report", Some(json!({"of": ["{one}", "{two}"]})))
            .after(["one", "two"]),
    ];
    let task = TemplatePlanner::new(registry).expand(Task::new("t", "g").with_subtasks(subtasks)).unwrap();
    let ran = followed(json!(["a", "b"]), task.subtasks).await;
    assert_eq!(ran.outcome.status, OutcomeStatus::Finished, "{:?}", ran.outcome.error);
    let of = r#"["fetch of \"a\"","fetch of \"b\""]"#;
    assert_eq!(ran.calls.last().unwrap(), &format!(r#"report {{"of":[{of},{of}]}}"#));
    assert_eq!(ran.calls.len(), 6);
}

/// Returns the sorted questions to a person who approves all of them.
async fn questions_of(finds: Json, plan: Vec<SubTask>) -> Vec<String> {
    let (web, journal) = (Web { finds, calls: Arc::default() }, MortalJournal::default());
    let agent = agent(&web, &journal, Some(plan));
    let mut outcome = agent.start("Do it", &context()).await.unwrap();
    let mut asked = Vec::new();
    while outcome.status == OutcomeStatus::Suspended {
        let log = journal.log("run_1");
        let RecordBody::Suspended { waiting } = &log.last().unwrap().body else { panic!("{:?}", log.last()) };
        let summary = |record: &Arc<Record>| match &record.body {
            RecordBody::ApprovalRequested { call, request } if *call == waiting[0] => {
                Some(request.action_summary.clone())
            }
            _ => None,
        };
        asked.extend(log.iter().find_map(summary));
        outcome = agent.answer(waiting[0], Answer::Approve, &context()).await.unwrap();
    }
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{:?}", outcome.error);
    asked.sort();
    asked
}

// spec: EX-06
#[tokio::test]
async fn the_question_before_a_step_has_the_values_of_parameters_and_of_items() {
    let template: WorkflowTemplate = serde_json::from_value(json!({
        "name": "send",
        "parameters": [{"name": "who"}, {"name": "days", "type": "array"}],
        "steps": [
            {"tool": "search", "id": "found", "approve": "Look for {{who}} in {{days}} {x}?"},
            {"for_each": "{{days}}", "as": "day", "do": [{"tool": "fetch", "approve": "{{who}} on {{ day }}?"}]},
            {"for_each": "{{found}}", "as": "page", "approve": "All pages for {{who}}?", "do": [
                {"tool": "fetch", "args": {"of": "{{page.url}}"}, "approve": "Send {{page.url}} to {{who}}?"},
                {"for_each": "{{page.of}}", "approve": "All of {{page.url}}?", "do": [
                    {"tool": "report", "approve": "{{item}} of {{page.url}} for {{who}}?"},
                ]},
            ]},
        ],
    }))
    .unwrap();
    let given = json!({"who": "Ann {found}", "days": ["Mo", "Tu"]});
    let plan = template.instantiate("t", "g", given.as_object().unwrap()).unwrap().subtasks;
    let finds = json!([{"url": "a", "of": [1]}, {"url": "{found}", "of": [2]}]);
    assert_eq!(
        questions_of(finds, plan).await,
        [
            "1 of a for Ann {found}?",
            "2 of {found} for Ann {found}?",
            "All of a?",
            "All of {found}?",
            "All pages for Ann {found}?",
            "Ann {found} on Mo?",
            "Ann {found} on Tu?",
            r#"Look for Ann {found} in ["Mo","Tu"] {x}?"#,
            "Send a to Ann {found}?",
            "Send {found} to Ann {found}?",
        ]
    );
}

// spec: EX-06
#[test]
fn a_mistyped_name_in_the_question_before_a_step_is_a_problem() {
    let problems = |steps: Json| {
        let problems = template(steps).instantiate("t", "g", &serde_json::Map::new()).unwrap_err();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let says = |step: &str| {
        format!(
            "step {step} refers to \"fuond\", which is not a parameter, the item of a loop or an earlier step (is \"found\" meant?)"
        )
    };
    for (steps, step) in [
        (json!([{"tool": "fetch", "approve": "Send {{fuond}}?"}]), "step2"),
        (json!([{"for_each": "{{found}}", "approve": "{{fuond}}?", "do": [{"tool": "fetch"}]}]), "step2"),
        (json!([{"for_each": "{{found}}", "do": [{"tool": "fetch", "approve": "{{fuond}}?"}]}]), "step2_do1"),
    ] {
        let mut all = vec![json!({"tool": "search", "save_as": "found"})];
        all.extend(steps.as_array().unwrap().clone());
        assert_eq!(problems(Json::Array(all)), [says(step)]);
    }
}

// spec: EX-06, EX-08
#[test]
fn the_question_before_a_step_names_a_result_around_its_template_as_the_plan_does() {
    let mut registry = TemplateRegistry::new();
    let flow = json!({"name": "flow", "parameters": [{"name": "who"}],
        "steps": [{"tool": "fetch", "approve": "Send it to {{who}}?"}]});
    registry.add(serde_json::from_value(flow).unwrap());
    let plan = vec![
        SubTask::new("read", "Read").with_tool("search", None),
        SubTask::new("send", "Send").with_tool("flow", Some(json!({"who": "{read.name}"}))).after(["read"]),
    ];
    let task = TemplatePlanner::new(registry).expand(Task::new("t", "g").with_subtasks(plan)).unwrap();
    assert_eq!(task.subtasks[1].rules.gate.as_deref(), Some("Send it to {read.name}?"));
}

// spec: EX-06, EX-07
#[tokio::test]
async fn template_parameter_value_is_not_read_as_a_loop_item_reference() {
    let template: WorkflowTemplate = serde_json::from_value(json!({
        "name": "say",
        "parameters": [{"name": "what"}],
        "steps": [
            {"tool": "search", "id": "found"},
            {"for_each": "{{found}}", "id": "all", "as": "page", "do": [
                {
                    "description": "Say {{what}} of {{page.url}} {page}",
                    "approve": "{{what}} of {{page.url}}?",
                },
                {"for_each": "{{page.of}}", "do": [
                    {"description": "Say {{what}} of {{item}}", "approve": "{{what}} of {{item}}?"},
                ]},
            ]},
        ],
    }))
    .unwrap();
    let given = json!({"what": "{page} and {item}"});
    let plan = template.instantiate("t", "g", given.as_object().unwrap()).unwrap().subtasks;
    let shown = "For each page of found: Say {page} and {item} of {page.url} {page}; \
                 For each item of page: Say {page} and {item} of {item}";
    assert_eq!(plan[1].description, shown);
    let finds = json!([{"url": "{item}", "of": ["{page}"]}]);
    let questions = questions_of(finds.clone(), plan.clone()).await;
    assert_eq!(questions, ["{page} and {item} of {item}?", "{page} and {item} of {page}?"]);
    let approved = |mut step: SubTask| {
        fn no_gates(step: &mut SubTask) {
            step.rules.gate = None;
            step.rules.each.iter_mut().flat_map(|each| &mut each.steps).for_each(no_gates);
        }
        no_gates(&mut step);
        step
    };
    let ran = followed(finds, plan.into_iter().map(approved).collect()).await;
    let machine = fold(&ran.journal.log("run_1")).unwrap();
    let said: Vec<&str> = machine.nodes().map(|node| node.subtask.description.as_str()).collect();
    assert!(said.contains(&"Say {page} and {item} of {item} {page}"), "{said:#?}");
    assert!(said.contains(&"Say {page} and {item} of {page}"), "{said:#?}");
}

// spec: EX-06, EX-07
#[test]
fn instantiate_with_keys_that_a_choice_or_a_loop_cannot_have_is_refused_by_name() {
    let fetch = || json!([{"tool": "fetch"}]);
    let all = ["on_error", "attempts", "save_as", "approve"];
    for (step, kind, keys) in [
        (json!({"if": "1 == 1", "then": fetch()}), "a choice", &all[..]),
        (json!({"for_each": [1], "do": fetch()}), "a loop over a list that is known at the start", &all),
        (json!({"for_each": "{{found}}", "do": fetch()}), "a loop over a result", &all[..2]),
    ] {
        let mut step = step;
        let given = json!({"on_error": "skip", "attempts": 2, "save_as": "name", "approve": "Sure?"});
        step.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
        let steps = json!([{"tool": "search", "save_as": "found"}, step]);
        let problems = template(steps).instantiate("t", "g", &serde_json::Map::new()).unwrap_err();
        let says = |key: &&str| {
            format!("step step2 cannot have `{key}`, because it is {kind}: set `{key}` on the steps inside")
        };
        let expected: Vec<String> = keys.iter().map(says).collect();
        assert_eq!(problems.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }
}

// spec: EX-06, EX-07
#[test]
fn instantiate_with_after_of_a_choice_or_a_loop_makes_its_steps_follow_those_alone() {
    let fetch = || json!([{"tool": "fetch"}]);
    for (step, id) in [
        (json!({"if": "1 == 1", "then": fetch(), "after": ["step1"]}), "step3_then1"),
        (json!({"if": "1 == 2", "else": fetch(), "after": ["step1"]}), "step3_else1"),
        (json!({"for_each": [1], "do": fetch(), "after": ["step1"]}), "step3_1_1"),
        (json!({"for_each": "{{step1}}", "do": fetch(), "after": ["step1"]}), "step3"),
    ] {
        let steps = json!([{"tool": "search"}, {"tool": "search"}, step]);
        let task = template(steps).instantiate("t", "g", &serde_json::Map::new()).unwrap();
        let step = task.subtasks.iter().find(|step| step.id.as_str() == id).unwrap();
        assert_eq!(step.dependencies(), [archon_types::SubTaskId::from("step1")], "{id}");
    }
    let unknown = json!([{"tool": "search"}, {"if": "1 == 1", "after": ["step9"], "then": fetch()}]);
    let problems = template(unknown).instantiate("t", "g", &serde_json::Map::new()).unwrap_err();
    assert!(problems[0].to_string().starts_with("step step2 refers to \"step9\""), "{problems:?}");
}

// spec: EX-06, EX-08
#[test]
fn a_description_names_a_result_around_its_template_as_the_plan_does() {
    let mut registry = TemplateRegistry::new();
    let each = json!([{"description": "Tell {{who}} of {{item}}", "approve": "Tell {{who}}?"}]);
    let flow = json!({
        "name": "flow",
        "parameters": [{"name": "who"}, {"name": "list", "type": "array"}],
        "steps": [
            {"description": "Write to {{who}} {outer__who}"},
            {"for_each": "{{list}}", "do": each},
        ],
    });
    registry.add(serde_json::from_value(flow).unwrap());
    let given = json!({"who": "{read.name}", "list": "{read}"});
    let plan = vec![
        SubTask::new("read", "Read").with_tool("search", None),
        SubTask::new("send", "Send").with_tool("flow", Some(given)).after(["read"]),
    ];
    let task = TemplatePlanner::new(registry).expand(Task::new("t", "g").with_subtasks(plan)).unwrap();
    let shown: Vec<&str> = task.subtasks.iter().map(|step| step.description.as_str()).collect();
    assert_eq!(
        shown[1..],
        ["Write to {read.name} {outer__who}", "For each item of read: Tell {read.name} of {item}"]
    );
    let step = &task.subtasks[2].rules.each.as_ref().unwrap().steps[0];
    assert_eq!(step.rules.gate.as_deref(), Some("Tell {read.name}?"));
    assert_eq!(step.description, "Tell {read.name} of {item}");
}
