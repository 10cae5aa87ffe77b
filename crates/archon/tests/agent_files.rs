//! Agents from files as tools of an agent, through the facade.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use archon::{
    Archon, ArchonBuilder, FileAgents, SubAgentTool,
    providers::{ScriptedProvider, Step},
    skills::{AgentFilePlaces, AgentFiles, SkillSet},
    tool,
    types::{ExecutionLimits, Request, Usage},
};
use serde_json::json;

/// Reads a file.
#[tool(read_only)]
fn read_file(path: String) -> String {
    format!("the text of {path}")
}

/// Writes a file.
#[tool(read_only)]
fn write_file(path: String) -> String {
    format!("wrote {path}")
}

fn write(folder: &Path, name: &str, fields: &str) {
    std::fs::create_dir_all(folder).unwrap();
    let text = format!("---\nname: {name}\ndescription: Does {name}.\n{fields}---\nYou do {name}.\n");
    std::fs::write(folder.join(format!("{name}.md")), text).unwrap();
}

fn call(agent: &str) -> Step {
    Step::call("c1", agent, json!({ "task": "Look." })).with_usage(tokens(100))
}

fn tokens(input: u64) -> Usage {
    Usage { input, ..Usage::default() }
}

/// A model that answers the calls of a builder's agents in this order, and the requests that it got.
fn builder(steps: impl IntoIterator<Item = Step>) -> (ArchonBuilder, Arc<Mutex<Vec<Request>>>) {
    let seen = Arc::<Mutex<Vec<Request>>>::default();
    let steps = steps.into_iter().map(|step| {
        let seen = seen.clone();
        Step::reply(move |request| {
            seen.lock().unwrap().push(request.clone());
            step.clone()
        })
    });
    let model = ScriptedProvider::new(steps.collect::<Vec<_>>());
    (Archon::builder().provider(Arc::new(model), "scripted").system("You lead."), seen)
}

fn tool_names(request: &Request) -> Vec<&str> {
    let mut names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn file_agents_run_as_child_runs_with_fewer_tools_and_their_own_instructions() {
    let place = tempfile::tempdir().unwrap();
    write(place.path(), "reviewer", "tools: Read, NotebookEdit\nskills: style\nmax_turns: 5\n");
    let skill = place.path().join("skills/style");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), "---\nname: style\ndescription: A style.\n---\nBe brief.\n")
        .unwrap();
    let agents = FileAgents::new(&AgentFiles::load([place.path()]))
        .with_skills(Arc::new(SkillSet::load([place.path().join("skills")])));
    let answer = Step::text("All well.").with_usage(tokens(30));
    let (builder, seen) = builder([call("reviewer"), answer, Step::text("Done.")]);
    let other = SubAgentTool::new("other", builder.clone().build().unwrap());
    // The files see the tools that are added later, too.
    let agent = builder.file_agents(agents).tool(other).tool(read_file).tool(write_file).build().unwrap();
    let answer = agent.run("Let it be reviewed.").await.unwrap().into_answer().unwrap();
    assert_eq!((answer.text(), answer.outcome().child_spending.tokens), ("Done.", 30));

    let seen = seen.lock().unwrap();
    assert_eq!(tool_names(&seen[0]), ["other", "read_file", "reviewer", "write_file"]);
    let described = seen[0].tools.iter().find(|tool| tool.name == "reviewer").unwrap();
    assert_eq!(described.description, "Does reviewer.");
    assert_eq!(tool_names(&seen[1]), ["read_file"]);
    let system = seen[1].system.as_ref().unwrap().as_str();
    assert!(system.contains("You do reviewer.") && system.contains("Be brief."), "{system}");
    assert!(!system.contains("You lead."), "{system}");
    let again = agent.to_builder().build();
    assert!(again.is_ok(), "{again:?}");
}

#[tokio::test]
async fn file_agents_without_tools_have_all_but_agents_and_stay_in_the_budget_of_the_caller() {
    let place = tempfile::tempdir().unwrap();
    write(place.path(), "a", "");
    write(place.path(), "b", "model: small\n");
    let small = Arc::new(ScriptedProvider::texts(["Small.", "Small."]));
    let agents =
        FileAgents::new(&AgentFiles::load([place.path()])).with_model("small", small.clone(), "tiny");
    let (builder, seen) =
        builder([call("b"), call("a"), Step::text("x").with_usage(tokens(900)), Step::text("never")]);
    let limits = ExecutionLimits::default().with_max_total_tokens(1_000);
    let agent = builder.tool(read_file).tool(write_file).file_agents(agents).limits(limits).build().unwrap();
    let reply = agent.run("Go.").await.unwrap();
    assert!(reply.into_text().is_err(), "the child run spent what was left");
    assert_eq!(small.call_count(), 1);
    let seen = seen.lock().unwrap();
    assert_eq!(tool_names(&seen[0]), ["a", "b", "read_file", "write_file"]);
    assert_eq!(tool_names(&seen[2]), ["read_file", "write_file"]);
    assert_eq!(seen.len(), 3);
}

#[test]
fn build_refuses_an_unknown_model_and_an_unknown_skill_with_what_is_known() {
    for (fields, line, problem) in [
        ("model: gpt-9\n", 4, "there is no model `gpt-9`; write one of: `small`, `inherit`"),
        ("tools: Read\nskills: style\n", 5, "there is no skill `style`; no skills are loaded"),
    ] {
        let place = tempfile::tempdir().unwrap();
        write(place.path(), "a", fields);
        let small = Arc::new(ScriptedProvider::texts(["Small."]));
        let agents = FileAgents::new(&AgentFiles::load([place.path()])).with_model("small", small, "tiny");
        let error = builder([]).0.file_agents(agents).build().unwrap_err();
        let file = place.path().canonicalize().unwrap().join("a.md");
        let text = error.to_string();
        assert!(text.starts_with(&format!("{}:{line}: {problem}", file.display())), "{text}");
        assert!(error.advice().starts_with("correct the line"));
    }
}

#[test]
fn file_agents_of_a_project_are_no_tools_before_a_person_trusts_them() {
    let project = tempfile::tempdir().unwrap();
    write(&project.path().join(".claude/agents"), "reviewer", "");
    let places = AgentFilePlaces::new().with_project(project.path());
    let tools = |is_trusted: bool| {
        let files = AgentFiles::discover(&places, &|_, _| is_trusted);
        let agent = builder([]).0.file_agents(FileAgents::new(&files)).build().unwrap();
        agent.toolbox().specs().iter().map(|spec| spec.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(tools(false), [""; 0]);
    assert_eq!(tools(true), ["reviewer"]);
}
