//! The acceptance scenarios of planning, with scripted models and real loops.

use std::sync::{Arc, Mutex};

use archon::{
    OutcomeStatus,
    providers::{ScriptedProvider, Step},
    tools::builtin,
    types::{
        AgentState, BoxFuture, Json, LongTerm, MemoryEntry, MemoryError, MemoryQuery,
        OutcomeStatus::Finished, PlanRecord, Recalled, RecordBody, SubTaskStatus, Timestamp, ToolResult,
    },
};
use archon_planner::{
    LlmConclusion, LlmPlanner, PlanFormat, PlanGraph, ScriptedPlanner, TemplatePlanner, TemplateRegistry,
    WorkflowTemplate, fold, invariants, render,
};
use serde_json::json;

use crate::scenarios::plan_world::{World, begun, first, last, plan};

fn llm(steps: Vec<Step>) -> LlmPlanner {
    LlmPlanner::new(Arc::new(ScriptedProvider::new(steps)), "scripted")
}

// spec: A-08, PL-09, PL-13
#[tokio::test]
async fn the_population_of_tokyo_and_ten_percent_of_it() {
    let world =
        World::new().tool("web_search", |_| ToolResult::success("Tokyo has 14,000,000 people (2024)."));
    world.registry.register(builtin::Calculator::new()).unwrap();
    let planner = llm(vec![plan(json!([
        {"id": "search", "description": "Search the population of Tokyo", "tool_name": "web_search",
         "tool_args": {"query": "population of Tokyo"}, "dependencies": []},
        {"id": "extract", "description": "Extract the number", "tool_name": null, "dependencies": ["search"]},
        {"id": "calculate", "description": "Calculate 10% of it", "tool_name": "calculator",
         "tool_args": {"expression": "{extract.population} * 0.1"}, "dependencies": ["extract"]},
    ]))]);
    let reply = |request: &archon::types::Request| {
        let asked = first(request);
        assert!(asked.starts_with("Extract the number"), "{asked}");
        assert!(asked.contains("[search] Tokyo has 14,000,000 people"), "{asked}");
        assert!(asked.contains("JSON that has: population"), "{asked}");
        Step::text("{\"population\": 14000000}")
    };
    let conclusion = Step::reply(|request| {
        let asked = last(request);
        assert!(asked.contains("[calculate] Calculate 10% of it\n1400000"), "{asked}");
        Step::text("Tokyo has 14,000,000 people [extract]; 10% of that is 1,400,000 [calculate].")
    });
    let conclude = LlmConclusion::new(Arc::new(ScriptedProvider::new(vec![conclusion])), "scripted");
    let agent = world.agent(planner, reply).with_conclusion(Arc::new(conclude));
    let (outcome, machine, records) =
        world.run(&agent, "Research the population of Tokyo and calculate 10% of it").await;
    assert_eq!((outcome.status, &outcome.error), (Finished, &None));
    assert!(
        outcome.last_text().unwrap_or_default().contains("14,000,000")
            && outcome.last_text().unwrap_or_default().contains("1,400,000")
    );
    assert_eq!(begun(&machine, &records), ["search", "extract", "calculate"]);
    assert_eq!(machine.task().context["calculate"], json!(1_400_000));
    assert_eq!(invariants(&machine.task()), [""; 0]);
    // spec: PL-20
    let citations = records.iter().find_map(|record| match &record.body {
        RecordBody::Plan(plan) => match &**plan {
            PlanRecord::AnswerFinished { citations, .. } => Some(citations.clone()),
            _ => None,
        },
        _ => None,
    });
    let citations = citations.unwrap();
    let cited: Vec<(&str, bool)> = citations.iter().map(|c| (c.subtask.as_str(), c.run.is_some())).collect();
    assert_eq!(cited, [("extract", true), ("calculate", false)]);
    let child = world.journal.read(citations[0].run.as_ref().unwrap()).await.unwrap();
    assert!(
        matches!(child.last().unwrap().body, RecordBody::RunFinished(_)),
        "each subtask is a run of its own"
    );
}

// spec: A-09
#[tokio::test]
async fn a_trip_to_paris_is_a_graph_whose_itinerary_comes_last() {
    let world = World::new();
    let planner = llm(vec![plan(json!([
        {"id": "flights", "description": "Research flights to Paris", "dependencies": []},
        {"id": "sights", "description": "List attractions", "dependencies": []},
        {"id": "hotels", "description": "Find hotels near attractions", "dependencies": ["sights"]},
        {"id": "itinerary", "description": "Create a daily itinerary", "dependencies": ["flights", "hotels"]},
    ]))]);
    let agent = world
        .agent(planner, |request| Step::text(format!("Done: {}", first(request).lines().next().unwrap())));
    let draft = agent.draft("Plan a 3-day trip to Paris", &world.context()).await.unwrap();
    let (task, problems) = (draft.task, draft.problems);
    assert_eq!(problems, []);
    let graph = PlanGraph::new(&task.subtasks);
    assert_eq!((graph.cycles().len(), graph.sinks()), (0, vec![&"itinerary".into()]));
    assert!(render(&task, PlanFormat::Mermaid).contains("n1 ==> n2"));
    let world = World::new();
    let agent = world.agent(ScriptedPlanner::new(task.subtasks), |request| {
        Step::text(format!("Done: {}", first(request).lines().next().unwrap()))
    });
    let (outcome, machine, records) = world.run(&agent, "Plan a 3-day trip to Paris").await;
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (Finished, "Done: Create a daily itinerary")
    );
    assert_eq!(begun(&machine, &records).last().unwrap(), "itinerary");
}

// spec: A-10, PL-19
#[tokio::test]
async fn a_hotel_without_rooms_leads_to_another_plan_that_keeps_what_is_done() {
    let world =
        World::new().tool("search_flights", |_| ToolResult::success("AF 12")).tool("book_hotel", |a| {
            match a["name"].as_str() {
                Some("Ritz") => ToolResult::error("no availability"),
                _ => ToolResult::success("booked"),
            }
        });
    let flights = json!({"id": "flights", "description": "Search flights", "tool_name": "search_flights",
        "tool_args": {}, "dependencies": []});
    let replan = Step::reply(|request| {
        let asked = last(request);
        assert!(asked.contains("[completed] flights") && asked.contains("no availability"), "{asked}");
        plan(json!([
            {"id": "other_hotel", "description": "Book an alternative hotel", "tool_name": "book_hotel",
             "tool_args": {"name": "Ibis"}, "dependencies": ["flights"]},
            {"id": "itinerary", "description": "Write the itinerary", "dependencies": ["other_hotel"]},
        ]))
    });
    let planner = llm(vec![
        plan(json!([
            flights,
            {"id": "hotel", "description": "Book hotel", "tool_name": "book_hotel", "tool_args": {"name": "Ritz"},
             "dependencies": ["flights"], "critical": true},
            {"id": "itinerary", "description": "Write the itinerary", "dependencies": ["hotel"]},
        ])),
        replan,
    ]);
    let agent = world.agent(planner, |_| Step::text("Day 1: Louvre"));
    let (outcome, machine, records) = world.run(&agent, "Plan a trip").await;
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (Finished, "Day 1: Louvre"),
        "{:?}",
        outcome.error
    );
    assert_eq!(world.called(), ["search_flights", "book_hotel", "book_hotel"], "flights are searched once");
    assert_eq!((machine.replans(), machine.task().subtasks.len()), (1, 3));
    let states: Vec<AgentState> = (1..=records.len()).map(|n| fold(&records[..n]).unwrap().state()).collect();
    assert!(states.contains(&AgentState::Replanning));
}

/// A memory that finds everything it has.
#[derive(Default)]
struct Memory(Mutex<Vec<String>>);

impl LongTerm for Memory {
    fn store<'a>(
        &'a self,
        content: &'a str,
        _: serde_json::Map<String, Json>,
    ) -> BoxFuture<'a, Result<String, MemoryError>> {
        self.0.lock().unwrap().push(content.to_owned());
        Box::pin(async { Ok("m".to_owned()) })
    }

    fn query<'a>(&'a self, _: &'a MemoryQuery) -> BoxFuture<'a, Result<Vec<Recalled>, MemoryError>> {
        let known = self.0.lock().unwrap().clone();
        let found =
            |content: String| Recalled::new(MemoryEntry::new("m", content, Timestamp::default()), 1.0);
        Box::pin(async move { Ok(known.into_iter().map(found).collect()) })
    }

    fn delete<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<bool, MemoryError>> {
        Box::pin(async { Ok(false) })
    }
}

// spec: A-11, PL-22
#[tokio::test]
async fn weather_and_bitcoin_are_looked_up_at_the_same_time_and_remembered() {
    let world = World::new()
        .tool("calendar", |_| ToolResult::success("2024-04-09"))
        .tool("web_search", |a| ToolResult::success(format!("found {}", a["query"].as_str().unwrap())));
    let planner = Step::reply(|request| {
        assert!(last(request).contains("the user lives in Tokyo"), "{}", last(request));
        plan(json!([
            {"id": "a", "description": "Weather in Tokyo last Tuesday", "dependencies": []},
            {"id": "b", "description": "Bitcoin price in JPY", "tool_name": "web_search", "dependencies": []},
        ]))
    });
    let reply = |request: &archon::types::Request| {
        let results = request
            .messages
            .iter()
            .filter(|m| m.text().starts_with("found") || m.text() == "2024-04-09")
            .count();
        match (first(request).starts_with("Weather"), results) {
            (true, 0) => Step::call("c1", "calendar", json!({"offset": -7})),
            (true, 1) => {
                Step::call("c2", "web_search", json!({"query": format!("Tokyo weather {}", last(request))}))
            }
            (false, 0) => {
                // spec: PL-15
                let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
                assert_eq!(names, ["web_search"]);
                Step::call("c1", "web_search", json!({"query": "BTC JPY"}))
            }
            _ => Step::text(last(request)),
        }
    };
    let memory = Arc::new(Memory::default());
    memory.0.lock().unwrap().push("the user lives in Tokyo".into());
    let agent = world.agent(llm(vec![planner]), reply).with_memory(memory.clone());
    let (outcome, _, records) =
        world.run(&agent, "Weather in Tokyo last Tuesday and Bitcoin price in JPY").await;
    assert_eq!(outcome.last_text(), Some("found Tokyo weather 2024-04-09\n\nfound BTC JPY"));
    let order: Vec<&str> = records
        .iter()
        .filter_map(|record| match &record.body {
            RecordBody::ToolCallStarted { .. } => Some("started"),
            RecordBody::ToolCallFinished { .. } => Some("finished"),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["started", "started", "finished", "finished"], "both are under way together");
    assert!(memory.0.lock().unwrap()[1].contains("found BTC JPY"));
}

// spec: A-12, PL-21
#[tokio::test]
async fn the_causes_of_the_crisis_in_four_steps_one_after_the_other() {
    let world = World::new().tool("web_search", |_| ToolResult::success("three sources"));
    let chain =
        [("search", "Search"), ("validate", "Validate"), ("draft", "Draft"), ("format", "Format as bullets")];
    let mut before = Vec::new();
    let mut steps = Vec::new();
    for (id, description) in chain {
        steps.push(json!({"id": id, "description": description, "dependencies": before}));
        before = vec![id];
    }
    let agent = world.agent(llm(vec![plan(json!(steps))]), |request| {
        let asked = first(request);
        match asked.lines().next().unwrap() {
            "Format as bullets" => {
                assert!(asked.contains("[draft] Draft done"), "{asked}");
                Step::text("- subprime loans [1]\n- leverage [2]\n- ratings [3]")
            }
            step => Step::text(format!("{step} done")),
        }
    });
    let (outcome, machine, records) =
        world.run(&agent, "Causes of the 2008 crisis, as bullets, at least 3 sources").await;
    assert_eq!(outcome.last_text().unwrap_or_default().lines().count(), 3);
    assert_eq!(begun(&machine, &records), ["search", "validate", "draft", "format"]);
    let mut states: Vec<AgentState> =
        (1..=records.len()).map(|n| fold(&records[..n]).unwrap().state()).collect();
    states.dedup();
    assert_eq!(states, [AgentState::Idle, AgentState::Planning, AgentState::Executing, AgentState::Finished]);
}

// spec: A-15
#[tokio::test]
async fn ai_ethics_step_after_step() {
    let world = World::new().tool("web_search", |_| ToolResult::success("papers"));
    let planner = llm(vec![plan(json!([
        {"id": "st1", "description": "Search for recent AI ethics papers", "tool_name": "web_search",
         "tool_args": {"query": "AI ethics"}, "dependencies": []},
        {"id": "st2", "description": "Extract key arguments", "dependencies": ["st1"]},
        {"id": "st3", "description": "Write a summary", "dependencies": ["st2"]},
    ]))]);
    let agent =
        world.agent(planner, |request| Step::text(format!("[{}]", first(request).lines().next().unwrap())));
    let (outcome, machine, records) = world.run(&agent, "Research AI ethics and write a summary").await;
    assert_eq!(outcome.last_text(), Some("[Write a summary]"));
    let task = machine.task();
    assert!(task.subtasks.iter().all(|s| s.status() == SubTaskStatus::Completed));
    let of_calls: Vec<String> = records
        .iter()
        .filter_map(|record| match &record.body {
            RecordBody::ToolCallStarted { call, .. } => Some(format!("+{}", machine.node(*call)?.subtask.id)),
            RecordBody::ToolCallFinished { call, .. } => {
                Some(format!("-{}", machine.node(*call)?.subtask.id))
            }
            _ => None,
        })
        .collect();
    assert_eq!(of_calls, ["+st1", "-st1", "+st2", "-st2", "+st3", "-st3"]);
}

// spec: A-30, PL-06
#[tokio::test]
async fn a_plan_that_goes_round_is_asked_for_again_and_never_followed() {
    let world = World::new().tool("web_search", |_| ToolResult::success("x"));
    let circle = || {
        plan(json!([
            {"id": "a", "description": "A", "tool_name": "web_search", "tool_args": {}, "dependencies": ["b"]},
            {"id": "b", "description": "B", "tool_name": "web_search", "tool_args": {}, "dependencies": ["a"]},
        ]))
    };
    let model = ScriptedProvider::new((0..9).map(|_| circle()));
    let planner = LlmPlanner::new(Arc::new(model.clone()), "scripted");
    let agent = world.agent(planner, |_| Step::text("never"));
    let (outcome, _, _) = world.run(&agent, "Go round").await;
    assert_eq!(model.call_count(), 2, "it is asked for again once");
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    let error = outcome.error.unwrap();
    assert!(error.contains("Cycle detected in dependency graph: a → b → a"), "{error}");
    assert!(world.called().is_empty());
    let world = World::new();
    let good = plan(json!([{"id": "a", "description": "A", "dependencies": []}]));
    let agent = world.agent(llm(vec![Step::text("no plan"), good]), |_| Step::text("done"));
    let (outcome, _, _) = world.run(&agent, "Go on").await;
    assert_eq!(outcome.last_text(), Some("done"));
}

/// The template of the use case: its steps stand under `workflow`.
fn triage() -> WorkflowTemplate {
    let text = json!({"workflow": {
        "name": "support_ticket_triage",
        "parameters": [{"name": "ticket_text", "type": "string"}],
        "steps": [
            {"tool": "classify_issue", "args": {"text": "{{ticket_text}}"}, "save_as": "issue_type"},
            {"if": "{{issue_type}} == 'billing'",
             "then": [
                {"tool": "fetch_customer_record", "args": {"extracted_from": "{{ticket_text}}"}},
                {"tool": "generate_billing_response"},
             ],
             "else": [{"tool": "escalate_to_human", "args": {"reason": "Non-billing issue requires human review"}}]},
        ],
    }});
    let mut template = WorkflowTemplate::from_json(&text.to_string()).unwrap();
    template.matches = vec!["triage".to_owned()];
    template
}

// spec: A-56, EX-07
#[tokio::test]
async fn a_ticket_about_billing_is_answered_and_any_other_goes_to_a_person() {
    for (ticket, expected) in [
        ("My invoice is wrong", vec!["classify_issue", "fetch_customer_record", "generate_billing_response"]),
        ("It crashes", vec!["classify_issue", "escalate_to_human"]),
    ] {
        let mut world = World::new()
            .tool("classify_issue", |a| {
                ToolResult::success(if a["text"].as_str().unwrap().contains("invoice") {
                    "billing"
                } else {
                    "technical"
                })
            })
            .tool("fetch_customer_record", |_| ToolResult::success("{\"customer\": 7}"))
            .tool("generate_billing_response", |_| ToolResult::success("Dear customer 7"))
            .tool("escalate_to_human", |a| {
                ToolResult::success(format!("escalated: {}", a["reason"].as_str().unwrap()))
            });
        world.options.values.insert("ticket_text".into(), ticket.into());
        let mut registry = TemplateRegistry::new();
        registry.add(triage());
        let agent = world.agent(TemplatePlanner::new(registry), |_| panic!("no model is asked"));
        let (outcome, machine, _) = world.run(&agent, "Triage this ticket").await;
        assert_eq!(outcome.status, Finished, "{:?}", outcome.error);
        assert_eq!(world.called(), expected);
        let answer =
            if ticket.contains("invoice") { "Dear customer 7" } else { "escalated: Non-billing issue" };
        assert!(outcome.last_text().unwrap_or_default().starts_with(answer), "{outcome:?}");
        assert_eq!(invariants(&machine.task()), [""; 0]);
    }
}
