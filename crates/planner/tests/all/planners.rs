//! Tests of planners: a model whose answers need repairs, and templates.

use std::sync::Arc;

use archon_planner::{
    CheckOptions, Condition, LlmPlanner, ScriptedPlanner, TemplatePlanner, TemplateRegistry,
    WorkflowTemplate, check,
};
use archon_testkit::{FnProvider, SeededIds, VirtualClock};
use archon_types::{
    ApiErrorKind, Context, Json, Planner, PlanningContext, ProviderError, SubTask, SubTaskStatus, Task,
    ToolDefinition, ToolResult,
};
use expect_test::expect;
use serde_json::json;

use crate::support::step;

fn context() -> PlanningContext {
    let run =
        Context::new("run_1".into(), "s".into(), Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)));
    let mut context = PlanningContext::new(run);
    context.tools = ["web_search", "calculator"]
        .map(|name| ToolDefinition {
            name: name.into(),
            description: format!("{name} does it."),
            parameters: json!({"type": "object", "properties": {"query": {"type": "string"}}}),
        })
        .into();
    context
}

const GOOD: &str = r#"{"subtasks": [
    {"id": "a", "description": "Search", "tool_name": "web_search", "tool_args": {"query": "x"}, "dependencies": []},
    {"id": "b", "description": "Think", "tool_name": null, "dependencies": ["a"]}]}"#;

// spec: PL-01, PL-02
#[tokio::test]
async fn planner_request_has_goal_tools_format_and_schema() {
    let provider = FnProvider::new(|_, _| FnProvider::text(GOOD));
    let mut context = context();
    context.values.insert("city".into(), "Tokyo".into());
    context.memories.push("likes short answers".into());
    let planner = LlmPlanner::new(Arc::new(provider.clone()), "m");
    let task = planner.create_plan("Report on Tokyo", &context).await.unwrap();
    assert_eq!((task.original_query.as_str(), task.subtasks.len()), ("Report on Tokyo", 2));
    assert_eq!(task.context["city"], "Tokyo");
    let request = &provider.requests()[0];
    let system = request.system.as_ref().unwrap().as_str();
    for part in [
        "expected_output",
        "tool_args",
        "dependencies",
        "critical",
        "one meaningful tool call or one coherent unit of thought",
    ] {
        assert!(system.contains(part), "{part}");
    }
    let prompt = request.messages.last().unwrap().text();
    for part in [
        "Goal: Report on Tokyo",
        "- web_search: web_search does it.",
        "- city: \"Tokyo\"",
        "likes short answers",
    ] {
        assert!(prompt.contains(part), "{prompt}");
    }
    assert_eq!(request.options.temperature, Some(0.1));
    let schema = &request.options.response_format.as_ref().unwrap().schema;
    assert!(jsonschema::is_valid(schema, &serde_json::from_str(GOOD).unwrap()));
    assert!(!jsonschema::is_valid(schema, &json!({"subtasks": [{"id": "a"}]})));
}

// spec: PL-03, PL-06, A-30
#[tokio::test]
async fn planner_invalid_answer_is_sent_back_then_fails() {
    let circle = r#"[{"id": "a", "description": "x", "dependencies": ["b"]}, {"id": "b", "description": "y", "dependencies": ["a"]}]"#;
    let provider = FnProvider::new(move |n, _| FnProvider::text([circle, "Let me think.", GOOD][n]));
    let planner = LlmPlanner::new(Arc::new(provider.clone()), "m");
    assert_eq!(planner.create_plan("g", &context()).await.unwrap().subtasks.len(), 2);
    let told = |n: usize| provider.requests()[n].messages.last().unwrap().text();
    expect![[r#"
        That plan cannot be followed:
        - Cycle detected in dependency graph: a → b → a (remove the dependency of a on b, or merge the steps)
        Answer with the whole corrected plan, as JSON only."#]]
    .assert_eq(&told(1));
    assert!(told(2).contains("the text is not JSON"), "{}", told(2));
    let stubborn = LlmPlanner::new(Arc::new(FnProvider::new(move |_, _| FnProvider::text(circle))), "m");
    let error = stubborn.create_plan("g", &context()).await.unwrap_err();
    assert_eq!(error.to_string(), "Cycle detected in dependency graph: a → b → a");
}

#[tokio::test]
async fn a_service_without_schemas_is_asked_for_text() {
    let provider = FnProvider::new(|_, request| match request.options.response_format {
        Some(_) => vec![Err(ProviderError::Api {
            status: 400,
            kind: ApiErrorKind::InvalidRequest,
            message: "response_format is not supported".into(),
        })],
        None => FnProvider::text(&format!("Here it is:\n```json\n{GOOD}\n```")),
    });
    let planner = LlmPlanner::new(Arc::new(provider.clone()), "m");
    planner.create_plan("g", &context()).await.unwrap();
    planner.create_plan("g", &context()).await.unwrap();
    assert_eq!(provider.requests().len(), 3, "it is refused once");
}

// spec: PL-19
#[tokio::test]
async fn planner_replan_request_has_the_reason_and_keeps_finished_subtasks() {
    let executing = |s: SubTask| s.with_status(SubTaskStatus::Executing).unwrap();
    let done = executing(step("a", &[])).with_result(ToolResult::success("14 million")).unwrap();
    let failed = executing(step("b", &[])).with_result(ToolResult::error("no rooms")).unwrap();
    let task = Task::new("t", "g").with_subtasks(vec![done, failed, step("c", &["b"]), step("d", &["a"])]);
    let answer = r#"[{"id": "b2", "description": "Other hotels", "dependencies": ["a"]},
        {"id": "c", "description": "Do c", "dependencies": ["b2"]}]"#;
    let provider = FnProvider::new(move |_, _| FnProvider::text(answer));
    let planner = LlmPlanner::new(Arc::new(provider.clone()), "m");
    let new = planner.replan(&task, "subtask b failed: no rooms", &context()).await.unwrap();
    let ids: Vec<&str> = new.subtasks.iter().map(|s| s.id.as_str()).collect();
    assert_eq!(ids, ["a", "d", "b2", "c"], "what does not wait for the failed one stays");
    assert_eq!(new.subtasks[0].status(), SubTaskStatus::Completed);
    let prompt = provider.requests()[0].messages.last().unwrap().text();
    for part in [
        "[completed] a (after: ): Do a => 14 million",
        "[failed] b",
        "What went wrong: subtask b failed: no rooms",
    ] {
        assert!(prompt.contains(part), "{prompt}");
    }
}

// spec: PL-19
#[tokio::test]
async fn a_subtask_that_another_plan_names_again_keeps_its_rules_and_above_all_its_gate() {
    let failed = step("b", &[]).with_status(SubTaskStatus::Executing).unwrap();
    let failed = failed.with_result(ToolResult::error("no rooms")).unwrap();
    let with = |id: &str| {
        let mut subtask = step(id, &["b"]).with_tool("web_search", None);
        subtask.rules.gate = Some("May it be booked?".into());
        (subtask.rules.save_as, subtask.rules.max_attempts) = (Some(format!("{id}_saved")), Some(5));
        subtask.rules.fallback_tools = vec!["calculator".into()];
        subtask.rules.when = Some("{b2} == 'yes'".into());
        subtask.critical = true;
        subtask
    };
    let task = Task::new("t", "g").with_subtasks(vec![failed, with("c"), with("d"), with("e")]);
    let answer = r#"[{"id": "b2", "description": "Other hotels", "dependencies": []},
        {"id": "c", "description": "Book", "tool_name": "web_search", "dependencies": ["b2"]},
        {"id": "d", "description": "Book", "tool_name": "calculator", "dependencies": ["b2"]},
        {"id": "e", "description": "Book", "dependencies": ["b2"], "rules": {"max_attempts": 1}}]"#;
    let provider = FnProvider::new(move |_, _| FnProvider::text(answer));
    let planner = LlmPlanner::new(Arc::new(provider.clone()), "m");
    let new = planner.replan(&task, "subtask b failed: no rooms", &context()).await.unwrap();
    let rules = |id: &str| new.get_subtask(&id.into()).unwrap().rules.clone();
    assert_eq!(rules("c"), with("c").rules);
    assert!(new.get_subtask(&"c".into()).unwrap().critical);
    let mut other_tool = with("d").rules;
    other_tool.fallback_tools.clear();
    assert_eq!(rules("d"), other_tool, "tools stand in for the one that they were chosen for");
    let own = rules("e");
    assert_eq!((own.max_attempts, own.when), (Some(1), None), "the answer says other rules");
    assert_eq!(own.gate.as_deref(), Some("May it be booked?"), "nobody but a person opens a gate");
    assert_eq!(rules("b2").gate, None);
    let prompt = provider.requests()[0].messages.last().unwrap().text();
    assert!(prompt.contains("c (after: b): Do c (only if {b2} == 'yes';"), "{prompt}");
}

fn triage() -> WorkflowTemplate {
    serde_json::from_value(json!({
        "name": "support_ticket_triage",
        "description": "Sorts tickets",
        "matches": ["triage ticket"],
        "parameters": [
            {"name": "ticket_text", "type": "string"},
            {"name": "limit", "type": "integer", "default": 3},
            {"name": "tags", "type": "array", "default": ["a", "b"]},
        ],
        "steps": [
            {"tool": "classify", "args": {"text": "{{ticket_text}}", "n": "{{ limit }}", "raw": "{x} {{{not this}}}"}, "save_as": "kind"},
            {"if": "{{kind}} == 'billing'",
             "then": [{"tool": "fetch", "args": {"from": "{{ticket_text}}"}}, {"tool": "respond"}],
             "else": [{"tool": "escalate", "args": {"why": "{{step1.why}}"}, "approve": "Escalate?"}]},
            {"for_each": "{{tags}}", "as": "tag", "do": [{"tool": "label", "args": {"tag": "{{tag}}"}, "on_error": "skip"}]},
            {"description": "Write about {{ticket_text}}", "on_error": [{"tool": "alarm"}]},
        ],
    }))
    .unwrap()
}

fn values(json: Json) -> serde_json::Map<String, Json> {
    json.as_object().cloned().unwrap()
}

// spec: EX-06, EX-07
#[test]
fn a_template_becomes_a_plan_with_conditions_loops_and_gates() {
    let task = triage().instantiate("t", "g", &values(json!({"ticket_text": "I paid twice"}))).unwrap();
    let lines: Vec<String> = task
        .subtasks
        .iter()
        .map(|s| {
            let after: Vec<&str> = s.dependencies().iter().map(|d| d.as_str()).collect();
            let args = s.tool_args().map(Json::to_string).unwrap_or_default();
            let (rules, tool) = (&s.rules, s.tool_name().unwrap_or("-"));
            format!(
                "{} {tool} {args} <- {} | {:?} {:?} {:?}",
                s.id,
                after.join(","),
                rules.when,
                rules.gate,
                rules.on_failure
            )
        })
        .collect();
    expect![[r#"
        step1 classify {"text":"I paid twice","n":3,"raw":"{{x}} {{{not this}}}"} <-  | None None Replan
        step2_then1 fetch {"from":"I paid twice"} <- step1 | Some("{kind} == 'billing'") None Replan
        step2_then2 respond {} <- step2_then1,step1 | Some("{kind} == 'billing'") None Replan
        step2_else1 escalate {"why":"{step1.why}"} <- step1 | Some("not ({kind} == 'billing')") Some("Escalate?") Replan
        step3_1_1 label {"tag":"a"} <- step2_else1,step2_then2 | None None Skip
        step3_2_1 label {"tag":"b"} <- step2_else1,step2_then2 | None None Skip
        step4 -  <- step3_1_1,step3_2_1 | None None Skip
        step4_error1 alarm {} <- step4 | Some("{step4} failed") None Replan"#]]
    .assert_eq(&lines.join("\n"));
    let mut options = CheckOptions::default();
    options.tools = ["classify", "fetch", "respond", "escalate", "label", "alarm"]
        .map(|name| ToolDefinition { name: name.into(), description: String::new(), parameters: json!({}) })
        .into();
    assert_eq!(check(&task, &options), []);
}

// spec: EX-06
#[test]
fn template_problems_and_wrong_values_are_listed() {
    let problems = |template: &WorkflowTemplate, given: Json| -> Vec<String> {
        template.instantiate("t", "g", &values(given)).unwrap_err().iter().map(ToString::to_string).collect()
    };
    expect![[r#"
        the template support_ticket_triage has no parameter "ticket_txt" (is "ticket_text" meant?)
        the template support_ticket_triage needs a value for "ticket_text"
        the value of "limit" of the template support_ticket_triage must be of type integer"#]]
    .assert_eq(&problems(&triage(), json!({"ticket_txt": "x", "limit": "many"})).join("\n"));
    let broken: WorkflowTemplate = serde_json::from_value(json!({
        "name": "broken",
        "steps": [
            {"tool": "a", "args": {"x": "{{nobody}} {{step2}}"}},
            {},
            {"if": "true", "tool": "b"},
            {"for_each": "{{step1}}", "do": []},
            {"tool": "c", "after": ["stepp1"]},
        ],
    }))
    .unwrap();
    expect![[r#"
        step step1 refers to "nobody", which is not a parameter, the item of a loop or an earlier step
        step step1 refers to "step2", which is not a parameter, the item of a loop or an earlier step
        step step2 has no `tool`, `description`, `if` or `for_each`
        step step3 has more than one of `if`, `for_each`, and `tool` or `description`
        step step4 is a loop: `for_each` must be a list or name a list, and `do` must have steps
        step step5 refers to "stepp1", which is not a parameter, the item of a loop or an earlier step (is "step1" meant?)"#]]
    .assert_eq(&problems(&broken, json!({})).join("\n"));
    let mut step = json!({"tool": "a"});
    for _ in 0..50 {
        step = json!({"if": "true", "then": [step]});
    }
    let deep: WorkflowTemplate = serde_json::from_value(json!({"name": "deep", "steps": [step]})).unwrap();
    assert_eq!(problems(&deep, json!({})), ["steps are nested more than 20 levels deep"]);
    let unknown = json!({"name": "x", "steps": [], "stepz": []});
    assert!(serde_json::from_value::<WorkflowTemplate>(unknown).is_err());
}

// spec: EX-06
#[cfg(feature = "yaml")]
#[test]
fn a_template_is_the_same_in_json_and_in_yaml() {
    let json = serde_json::to_string(&triage()).unwrap();
    let yaml = "
# What comes in is sorted first.
name: support_ticket_triage
description: Sorts tickets
matches: [triage ticket]
parameters:
  - {name: ticket_text, type: string}
  - {name: limit, type: integer, default: 3}
  - name: tags
    type: array
    default: [a, b]
steps:
  - tool: classify
    args: {text: '{{ticket_text}}', n: '{{ limit }}', raw: '{x} {{{not this}}}'}
    save_as: kind
  - if: \"{{kind}} == 'billing'\"
    then:
      - {tool: fetch, args: {from: '{{ticket_text}}'}}
      - tool: respond
    else:
      - {tool: escalate, args: {why: '{{step1.why}}'}, approve: Escalate?}
  - for_each: '{{tags}}'
    as: tag
    do:
      - {tool: label, args: {tag: '{{tag}}'}, on_error: skip}
  - description: Write about {{ticket_text}}
    on_error:
      - tool: alarm
";
    let read = WorkflowTemplate::from_yaml(yaml).unwrap();
    assert_eq!(read, triage());
    assert_eq!(read, WorkflowTemplate::from_json(&json).unwrap());
    let typed =
        "{name: t, version: 1.10, steps: [{tool: a, args: {no: no, zip: 0123, n: 3, f: 0.5, z: null}}]}";
    let read = WorkflowTemplate::from_yaml(typed).unwrap();
    let args = json!({"no": "no", "zip": "0123", "n": 3, "f": 0.5, "z": null});
    assert_eq!((read.version.as_str(), &read.steps[0].args), ("1.10", &Some(args)));
}

// spec: EX-06
#[test]
fn template_parse_error_names_line_and_column() {
    let json = |text: &str| WorkflowTemplate::from_json(text).unwrap_err().to_string();
    assert!(json("{\n  \"name\": \"x\",\n  \"stepz\": []}").starts_with("3:9: unknown field `stepz`"));
    assert_eq!(json("{\"name\": \"x\", \"steps\": []} and more"), "1:28: trailing characters");
    #[cfg(feature = "yaml")]
    {
        let yaml = |text: &str| WorkflowTemplate::from_yaml(text).unwrap_err().to_string();
        let bomb: String = (1..30).fold("a0: &a0 [x, x]\n".to_owned(), |text, n| {
            format!("{text}a{n}: &a{n} [*a{0}, *a{0}, *a{0}, *a{0}]\n", n - 1)
        });
        for (text, begins) in [
            ("name: x\nsteps:\n  - toool: a\n", "3:5: unknown field"),
            ("name: x\nsteps: 3\n", "2:8: "),
            ("name: x\nsteps:\n  - tool: [a\n", "3:11: "),
            ("name: x\nname: y\nsteps: []\n", "2:1: "),
            ("name: x\nsteps: []\n---\nname: y\nsteps: []\n", "4:1: multiple"),
            ("", "1:1: "),
            (bomb.as_str(), "1:1: unknown field"),
        ] {
            let problem = yaml(text);
            assert!(problem.starts_with(begins) && !problem.contains('\n'), "{text} {problem}");
        }
    }
}

// spec: EX-06, EX-07
#[test]
fn template_value_is_never_read_as_a_reference_or_condition() {
    let template: WorkflowTemplate = serde_json::from_value(json!({
        "name": "t",
        "parameters": [{"name": "text"}, {"name": "list", "type": "array"}],
        "steps": [
            {"tool": "echo", "args": {"whole": "{{text}}", "part": "<{{text}}> {{{{a}}}}", "first": "{{list[0]}}"},
             "description": "About {{text}} {b}"},
            {"if": "{{text}} == 'x' or \"{{text}}\" == 'y'", "then": [{"tool": "echo"}]},
            {"for_each": "{{list}}", "do": [{"if": "{{item}} == 'x'", "then": [{"tool": "echo", "args": {"i": "{{item}}"}}]}]},
        ],
    }))
    .unwrap();
    let mut options = CheckOptions::default();
    options.tools =
        vec![ToolDefinition { name: "echo".into(), description: String::new(), parameters: json!({}) }];
    for text in
        ["{step1}", "{{step1.x}}", "a ' or 1 == 1 or ' b", "\" or 'x' == 'x' or \"", "'\"{{{x}}}'{", "it's"]
    {
        let given = values(json!({"text": text, "list": [text]}));
        let task = template.instantiate("t", "g", &given).unwrap();
        assert_eq!(check(&task, &options), [], "{text}");
        assert_eq!(task.context, given);
        let known = |name: &str| task.context.get(name).cloned();
        let args = archon_planner::resolve(task.subtasks[0].tool_args().unwrap(), &known).unwrap();
        assert_eq!(args["whole"], text);
        assert_eq!(args["first"], text);
        assert!(args["part"].as_str().unwrap().starts_with(&format!("<{text}> ")), "{args}");
        assert_eq!(task.subtasks[0].description, format!("About {text} {{b}}"));
        for subtask in &task.subtasks[1..] {
            let condition = Condition::parse(subtask.rules.when.as_deref().unwrap()).unwrap();
            assert!(!condition.holds(&known).unwrap(), "{text}: {:?}", subtask.rules.when);
        }
        let args = archon_planner::resolve(task.subtasks[2].tool_args().unwrap(), &known).unwrap();
        assert_eq!(args["i"], text);
    }
    let given = values(json!({"text": "{step1}", "list": "{step1}"}));
    assert!(template.instantiate("t", "g", &given).is_err(), "a text is no list, whatever it says");
}

// spec: PL-01
#[tokio::test]
async fn a_scripted_planner_gives_its_plans_in_order_and_the_last_one_again() {
    let planner = ScriptedPlanner::with_answers([Ok(vec![step("a", &[])]), Ok(vec![step("b", &["a"])])]);
    let mut context = context();
    context.values.insert("city".into(), "Tokyo".into());
    for expected in ["a", "b", "b"] {
        let task = planner.create_plan("Report", &context).await.unwrap();
        assert_eq!((task.goal.as_str(), &task.context["city"]), ("Report", &json!("Tokyo")));
        assert_eq!(task.subtasks.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(), [expected]);
    }
}

// spec: EX-08
#[tokio::test]
async fn a_goal_that_matches_is_planned_with_the_template_and_a_subtask_is_replaced_by_its_steps() {
    let mut registry = TemplateRegistry::new();
    let mut old = triage();
    old.version = "0.9.0".into();
    old.steps.clear();
    registry.add(triage());
    registry.add(old);
    let mut newer = triage();
    newer.version = "1.10.0".into();
    registry.add(newer);
    assert_eq!(registry.newest("support_ticket_triage").unwrap().version, "1.10.0");
    assert!(registry.version("support_ticket_triage", "0.9.0").is_some());
    let subtasks = vec![
        step("read", &[]),
        step("sort", &["read"])
            .with_tool("support_ticket_triage", Some(json!({"ticket_text": "{read.text}"}))),
        step("report", &["sort"]).with_tool("mail", Some(json!({"body": "{sort}"}))),
    ];
    let planner = TemplatePlanner::new(registry).or(Arc::new(ScriptedPlanner::new(subtasks)));
    let mut context = context();
    context.values.insert("ticket_text".into(), "I paid twice".into());
    let task = planner.create_plan("Please triage this ticket!", &context).await.unwrap();
    assert_eq!(task.subtasks[0].tool_args().unwrap()["text"], "I paid twice");
    let names = |subtask: &'_ SubTask| subtask.rules.save_as.clone();
    let task = planner.create_plan("Something else", &context).await.unwrap();
    let ids: Vec<&str> = task.subtasks.iter().map(|s| s.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "read",
            "sort_step1",
            "sort_step2_then1",
            "sort_step2_then2",
            "sort_step2_else1",
            "sort_step3_1_1",
            "sort_step3_2_1",
            "sort_step4",
            "sort_step4_error1",
            "report"
        ]
    );
    // What the last step has for a result, or what stands in for it where it failed.
    assert_eq!(task.subtasks[9].dependencies()[0].as_str(), "sort_step4_error1");
    assert_eq!([7, 8].map(|n| names(&task.subtasks[n])), [Some("sort".to_owned()), Some("sort".to_owned())]);
    assert_eq!(task.subtasks[1].tool_args().unwrap()["text"], "{read.text}");
    assert_eq!(task.subtasks[1].dependencies()[0].as_str(), "read");
    assert_eq!(task.subtasks[8].rules.when.as_deref(), Some("{sort_step4} failed"));
}

// spec: EX-08
#[test]
fn two_subtasks_may_use_one_template_and_a_condition_holds_for_all_its_steps() {
    let mut registry = TemplateRegistry::new();
    registry.add(triage());
    let mut options = CheckOptions::default();
    options.tools = ["classify", "fetch", "respond", "escalate", "label", "alarm"]
        .map(|name| ToolDefinition { name: name.into(), description: String::new(), parameters: json!({}) })
        .into();
    let sort = |id: &str| {
        let arguments = json!({"ticket_text": "{read}"});
        step(id, &["read"]).with_tool("support_ticket_triage", Some(arguments))
    };
    let mut second = sort("two");
    second.rules.when = Some("{read} != 'done'".into());
    let plan = vec![step("read", &[]), sort("one"), second];
    let task = TemplatePlanner::new(registry).expand(Task::new("t", "g").with_subtasks(plan)).unwrap();
    assert_eq!(check(&task, &options), []);
    let when = |id: &str| task.get_subtask(&id.into()).unwrap().rules.when.clone();
    assert_eq!(when("one_step2_then1").as_deref(), Some("{one_kind} == 'billing'"));
    assert_eq!(when("two_step2_then1").as_deref(), Some("({read} != 'done') and ({two_kind} == 'billing')"));
    assert_eq!((when("one_step1"), when("two_step1").as_deref()), (None, Some("{read} != 'done'")));
}
