//! Plans: made and drawn, followed, shown, taken up, refused.

use archon_testkit::{MockResponse, MockServer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::{
    setup::{Place, Ran, answer, text},
    terminal::Terminal,
};

/// A call of a tool, and a thought that needs what it came to.
fn plan() -> MockResponse {
    answer(&plan_text())
}

fn plan_text() -> String {
    let arguments = json!({"expression": "15% of 200"});
    let sum = json!({"id": "sum", "description": "Calculate", "tool_name": "calculator", "tool_args": arguments,
                     "dependencies": []});
    let say = json!({"id": "say", "description": "Say it", "dependencies": ["sum"]});
    json!({"subtasks": [sum, say]}).to_string()
}

/// Two subtasks that wait for each other, and a tool that is not there.
fn broken() -> MockResponse {
    let a = json!({"id": "a", "description": "First", "dependencies": ["b"]});
    let b = json!({"id": "b", "description": "Second", "tool_name": "telescope", "dependencies": ["c"]});
    answer(&json!({"subtasks": [a, b]}).to_string())
}

async fn only_run(place: &Place) -> String {
    let listed = place.archon("runs list --json", &[]).await.json();
    let of_people = listed.iter().find(|run| run["called_by"].is_null());
    of_people.and_then(|run| run["run_id"].as_str()).expect("a run").to_owned()
}

// spec: PL-26
#[tokio::test]
async fn a_plan_is_made_and_drawn_and_nothing_is_begun() {
    let counted = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "mock", "choices": [],
                         "usage": {"prompt_tokens": 100, "completion_tokens": 23, "total_tokens": 123}});
    let counted = MockResponse::events([text(&plan_text()), counted.to_string(), "[DONE]".into()]);
    let server = MockServer::start([counted, plan(), plan()]).await;
    let place = Place::with_server(&server);
    let ran = place.archon("plan", &["What is 15% of 200?"]).await;
    let expected =
        "What is 15% of 200?\n* pending   sum: Calculate [calculator]\n* blocked   say: Say it <- sum\n";
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), expected), "{ran:?}");
    assert_eq!(ran.err, "planned: 123 tokens\n");
    let drawn = place.archon("plan --format mermaid", &["What is 15% of 200?"]).await;
    assert!(drawn.out.starts_with("flowchart TD\n") && drawn.out.contains("n0 ==> n1"), "{drawn:?}");
    let json = place.archon("plan --json", &["What is 15% of 200?"]).await.json();
    assert_eq!((json.len(), &json[0]["critical_path"]), (1, &json!(["sum", "say"])));
    assert_eq!(place.archon("runs list", &[]).await.out, "");
}

#[tokio::test]
async fn failed_planning_prints_its_spending() {
    let counted = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "mock", "choices": [],
                         "usage": {"prompt_tokens": 100, "completion_tokens": 23, "total_tokens": 123}});
    let prose = || MockResponse::events([text("I would rather not."), counted.to_string(), "[DONE]".into()]);
    let server = MockServer::start((0..9).map(|_| prose()).collect::<Vec<_>>()).await;
    let ran = Place::with_server(&server).archon("plan", &["What is 15% of 200?"]).await;
    let tokens = 123 * server.requests().len();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.starts_with(&format!("planned: {tokens} tokens\nerror: ")), "{ran:?}");
}

// spec: CL-14
#[tokio::test]
async fn a_plan_is_followed_with_a_line_for_each_subtask_and_can_be_shown_afterwards() {
    let server = MockServer::start([plan(), answer("It is 30."), answer("It is 30 [say].")]).await;
    let place = Place::with_server(&server);
    let ran = place.archon("run --plan", &["What is 15% of 200?"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It is 30 [say].\n"), "{ran:?}");
    for line in [
        "-> sum: Calculate [calculator]",
        "<- sum: 30 (",
        "1 of 2 done)",
        "-> say: Say it",
        "the answer is based on [say]",
        "2 of 2 subtasks",
    ] {
        assert!(ran.err.contains(line), "{line}: {ran:?}");
    }
    assert!(!ran.err.contains('\u{1b}') && !ran.err.contains('\r'), "colour without a terminal: {ran:?}");

    let run = only_run(&place).await;
    let shown = place.archon("plan show", &[&run]).await;
    assert!(shown.out.contains("* completed say: Say it <- sum"), "{shown:?}");
    let dot = place.archon("plan show --format dot", &[&run]).await;
    let svg = place.archon("plan show --format svg", &[&run]).await;
    assert!(svg.out.starts_with("<svg ") && svg.out.contains("class=\"completed critical\""), "{svg:?}");
    assert!(dot.out.starts_with("digraph plan {") && dot.out.contains("penwidth=3"), "{dot:?}");
    let again = place.archon("runs show", &[&run]).await;
    assert!(again.out.contains("It is 30 [say].") && again.err.contains("<- say: It is 30."), "{again:?}");
    place.archon("replay", &[&run]).await.check_refused(2, "has the kind plan", "archon runs events");
    let events = place.archon("runs events", &[&run]).await;
    assert!(events.out.contains("made, 2 subtasks: sum, say"), "{events:?}");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_plan_that_is_executed_is_drawn_beside_its_answer() {
    let server = MockServer::start([plan(), answer("It is 30."), answer("It is 30 [say].")]).await;
    let place = Place::with_server(&server);
    let ran = place.archon("plan --execute --format mermaid", &["What is 15% of 200?"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It is 30 [say].\n"), "{ran:?}");
    assert!(ran.err.contains("n1[\"say: Say it\"]:::completed"), "{ran:?}");
}

#[tokio::test]
async fn invalid_plan_lists_every_problem_with_a_remedy() {
    let server = MockServer::start([broken(), broken(), broken()]).await;
    let place = Place::with_server(&server);
    let ran = place.archon("plan", &["Look at the stars"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.err.starts_with("error: the plan cannot be followed\n"), "{ran:?}");
    let mut problems: Vec<_> = ran.err.lines().skip(1).collect();
    assert_eq!(problems.len(), 3, "{ran:?}");
    assert_eq!(
        problems.pop(),
        Some("  a larger model makes better plans: --model PROVIDER:MODEL"),
        "{ran:?}"
    );
    assert!(problems.iter().all(|problem| problem.starts_with("  ") && problem.ends_with(')')), "{ran:?}");
    assert!(ran.err.contains("telescope"), "{ran:?}");
}

#[tokio::test]
async fn an_empty_goal_an_unknown_run_and_a_run_without_a_plan_are_refused() {
    let server = MockServer::start([answer("Hello")]).await;
    let place = Place::with_server(&server);
    place.archon("plan", &[" "]).await.check_refused(2, "empty", "describe the task");
    place.archon("run --plan", &[""]).await.check_refused(2, "empty", "describe the task");
    place.archon("plan show", &["run_x"]).await.check_refused(2, "run_x", "runs list");
    assert_eq!(place.archon("run", &["Hi"]).await.code, Some(0));
    let run = only_run(&place).await;
    place.archon("plan show", &[&run]).await.check_refused(2, "has no plan", "archon runs show");
}

#[tokio::test]
async fn interrupted_plan_is_resumed_without_repeating_work() {
    let server = MockServer::start([plan(), MockResponse::sse("").event(&text("half ")).hang()]).await;
    let place = Place::with_server(&server);
    let mut child = place.command("run --plan --json", &["What is 15% of 200?"]).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    while !lines.next_line().await.expect("a line").expect("it goes on").contains("half") {}
    let pid = i32::try_from(child.id().expect("it runs")).expect("a pid");
    kill_process(Pid::from_raw(pid).expect("a process id"), Signal::INT).expect("the signal is sent");
    let ran = Ran::from(child.wait_with_output().await.expect("it ends"));
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let run = only_run(&place).await;
    assert!(ran.err.contains(&format!("archon resume {run}")), "{ran:?}");

    server.push(answer("It is 30."));
    server.push(answer("It is 30 [say]."));
    let resumed = place.archon("resume --json", &[&run]).await;
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let of_plan: Vec<Value> =
        resumed.json().into_iter().filter(|line| line["run_id"] == run.as_str()).collect();
    assert_eq!(of_plan.last().map(|line| &line["answer"]), Some(&"It is 30 [say].".into()), "{resumed:?}");
    assert_eq!(server.requests().len(), 4, "the plan is not made again");
}

#[tokio::test]
async fn plan_in_a_session_gets_the_history_and_adds_its_answer() {
    let script =
        [answer("Noted: 200 chairs."), plan(), answer("It is 30."), answer("It is 30 [say]."), answer("60.")];
    let server = MockServer::start(script).await;
    let place = Place::with_server(&server);
    place.archon("run --session shop", &["We have 200 chairs."]).await;
    let ran = place.archon("plan --execute --session shop", &["What are 15% of them?"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It is 30 [say].\n"), "{ran:?}");
    for (n, who) in [(1, "the planner"), (2, "the subtask"), (3, "the conclusion")] {
        let asked = server.requests()[n].body.to_string();
        assert!(
            asked.contains("user: We have 200 chairs.") && asked.contains("Noted: 200 chairs."),
            "{who}: {asked}"
        );
    }
    let ran = place.archon("run --continue", &["Twice that?"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "60.\n"), "{ran:?}");
    let said = server.requests()[4].body["messages"].clone();
    let said: Vec<_> = said.as_array().expect("messages").iter().filter(|m| m["role"] != "system").collect();
    let texts: Vec<_> = said.iter().map(|message| message["content"].to_string()).collect();
    assert_eq!(texts.len(), 5, "{texts:?}");
    assert!(texts[2].contains("What are 15% of them?") && texts[3].contains("It is 30 [say]."), "{texts:?}");
    let shown = place.archon("sessions show", &["shop"]).await;
    assert!(
        shown.out.contains("> What are 15% of them?") && shown.out.contains("It is 30 [say]."),
        "{shown:?}"
    );
}

// spec: PL-24
#[tokio::test]
async fn plan_without_approval_starts_nothing_and_can_be_approved_later() {
    let server = MockServer::start([plan()]).await;
    let place = Place::with_server(&server);
    let ran = place.archon("run --plan --confirm", &["What is 15% of 200?"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(3), ""), "{ran:?}");
    let run = only_run(&place).await;
    for said in
        ["* blocked   say: Say it <- sum", "no person can be asked here", "Follow this plan of 2 subtasks?"]
    {
        assert!(ran.err.contains(said), "{said}: {ran:?}");
    }
    assert!(ran.err.contains(&format!("archon plan approve {run}")), "{ran:?}");
    let again = place.archon("resume", &[&run]).await;
    assert!(again.code == Some(3) && again.err.contains("no person can be asked here"), "{again:?}");
    assert_eq!(server.requests().len(), 1);

    server.push(answer("It is 30."));
    server.push(answer("It is 30 [say]."));
    let approved = place.archon("plan approve", &[&run]).await;
    assert_eq!((approved.code, approved.out.as_str()), (Some(0), "It is 30 [say].\n"), "{approved:?}");
    place.archon("plan approve", &[&run]).await.check_refused(2, "has no open question", "archon plan show");
    place.archon("plan approve", &["run_x"]).await.check_refused(2, "run_x", "runs list");
}

// spec: PL-24, AP-06
#[tokio::test]
async fn a_plan_that_waits_is_listed_and_answered_with_all_other_questions() {
    let server = MockServer::start([plan()]).await;
    let place = Place::with_server(&server);
    assert_eq!(place.archon("run --plan --confirm", &["What is 15% of 200?"]).await.code, Some(3));
    let run = only_run(&place).await;
    let listed = place.archon("approvals list --json", &[]).await.json();
    assert_eq!((listed.len(), listed[0]["run"].as_str()), (1, Some(run.as_str())), "{listed:?}");
    let question = listed[0]["request_id"].as_str().expect("an id");
    server.push(answer("It is 30."));
    server.push(answer("It is 30 [say]."));
    let ran = place.archon("approvals approve", &[question]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It is 30 [say].\n"), "{ran:?}");
    assert!(place.archon("approvals list --json", &[]).await.json().is_empty());
}

// spec: PL-24
#[tokio::test]
async fn plan_edit_is_applied_before_the_start_and_an_invalid_edit_is_refused() {
    let server = MockServer::start([plan()]).await;
    let place = Place::with_server(&server);
    assert_eq!(place.archon("plan --execute --confirm", &["What is 15% of 200?"]).await.code, Some(3));
    let run = only_run(&place).await;
    let shown = place.archon("plan show --format json", &[&run]).await.out;
    let file = place.path("plan.json");
    let edit = |text: String| std::fs::write(&file, text).expect("it is written");
    edit(shown.replace("\"calculator\"", "\"telescope\""));
    let file_name = file.display().to_string();
    let refused = place.archon("plan approve", &["--edit", &file_name, &run]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.err.contains("the plan cannot be followed") && refused.err.contains("telescope"),
        "{refused:?}"
    );
    edit(shown.replace("15% of 200", "20% of 200"));
    server.push(answer("It is 40."));
    server.push(answer("It is 40 [say]."));
    let approved = place.archon("plan approve", &["--edit", &file_name, &run]).await;
    assert_eq!((approved.code, approved.out.as_str()), (Some(0), "It is 40 [say].\n"), "{approved:?}");
    assert!(approved.err.contains("<- sum: 40 ("), "{approved:?}");
}

/// A subtask that fails, and one that waits for it.
fn failing(expression: &str) -> MockResponse {
    let arguments = json!({"expression": expression});
    let sum = json!({"id": "sum", "description": "Calculate", "tool_name": "calculator", "tool_args": arguments,
                     "dependencies": [], "critical": true});
    let say = json!({"id": "say", "description": "Say it", "dependencies": ["sum"]});
    answer(&json!({"subtasks": [sum, say]}).to_string())
}

// spec: PL-24
#[tokio::test]
async fn another_plan_is_asked_about_too_and_one_that_is_the_same_is_not() {
    let server = MockServer::start([failing("1/0")]).await;
    let place = Place::with_server(&server);
    assert_eq!(place.archon("run --plan --confirm", &["What is 15% of 200?"]).await.code, Some(3));
    let run = only_run(&place).await;
    // The same once more, which the person has seen, and then another one.
    server.push(failing("1/0"));
    server.push(failing("15% of 200"));
    let approved = place.archon("plan approve", &[&run]).await;
    assert_eq!((approved.code, approved.out.as_str()), (Some(3), ""), "{approved:?}");
    assert!(approved.err.contains("Continue with another plan?"), "{approved:?}");
    assert_eq!(server.requests().len(), 3, "{approved:?}");
    server.push(answer("It is 30."));
    server.push(answer("It is 30 [say]."));
    let approved = place.archon("plan approve", &[&run]).await;
    assert_eq!((approved.code, approved.out.as_str()), (Some(0), "It is 30 [say].\n"), "{approved:?}");
}

// spec: PL-24
#[tokio::test]
async fn a_plan_that_is_rejected_is_never_begun() {
    let server = MockServer::start([plan()]).await;
    let place = Place::with_server(&server);
    assert_eq!(place.archon("run --plan --confirm --json", &["What is 15% of 200?"]).await.code, Some(3));
    let run = only_run(&place).await;
    let ran = place.archon("plan reject", &["--reason", "too dear", &run]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
    let events = place.archon("runs events", &[&run]).await;
    assert!(events.out.contains("the plan was not approved: too dear"), "{events:?}");
    assert!(!events.out.contains("tool_call_started"), "{events:?}");
    place.archon("plan approve", &[&run]).await.check_refused(2, "has no open question", "archon plan show");
}

// spec: CL-14
#[tokio::test]
async fn on_a_terminal_a_plan_is_asked_about_and_its_subtasks_are_a_tree_that_moves() {
    let server = MockServer::start([plan(), answer("It is 30."), answer("It is 30 [say].")]).await;
    let place = Place::with_server(&server);
    let mut terminal = Terminal::open();
    let mut command = place.command("run --plan --confirm", &["What is 15% of 200?"]);
    command.env("TERM", "xterm").stdin(terminal.end()).stdout(terminal.end()).stderr(terminal.end());
    let mut child = command.spawn().expect("it starts");
    drop(command);
    terminal.read_until("Enter: decide later").await;
    terminal.say("what?\n");
    terminal.read_until("Enter: decide later").await;
    terminal.say("y\n");
    let status = child.wait().await.expect("it ends");
    let shown = terminal.rest().await;
    assert_eq!(status.code(), Some(0), "{shown}");
    assert!(shown.contains("\u{2713} sum: Calculate [calculator]"), "{shown}");
    assert!(shown.contains("  \u{2713} say: Say it"), "{shown}");
    assert!(shown.contains("2 of 2 done") && shown.contains("It is 30 [say]."), "{shown}");
}

// spec: AP-11, AP-13
#[tokio::test]
async fn on_a_terminal_a_rule_that_is_typed_for_a_call_of_a_plan_holds_although_it_was_not_offered() {
    let write = |id: &str, path: &str| {
        json!({"id": id, "description": "Write", "tool_name": "write_file", "dependencies": [],
               "tool_args": {"path": path, "content": "x"}})
    };
    let mut second = write("b", "b.txt");
    second["dependencies"] = json!(["a"]);
    let plan = json!({"subtasks": [write("a", "a.txt"), second]}).to_string();
    let server = MockServer::start([answer(&plan), answer("Both are written.")]).await;
    let place = Place::with_server(&server);
    let mut terminal = Terminal::open();
    let mut command = place.command("run --plan --tools write_file", &["Write both."]);
    command.env("TERM", "xterm").stdin(terminal.end()).stdout(terminal.end()).stderr(terminal.end());
    let mut child = command.spawn().expect("it starts");
    drop(command);
    terminal.read_until("[?]").await;
    // The question offers `write_file(a.txt)`.
    terminal.say("s write_file\n");
    let status = child.wait().await.expect("it ends");
    let shown = terminal.rest().await;
    assert_eq!(status.code(), Some(0), "{shown}");
    assert!(place.path("a.txt").exists() && place.path("b.txt").exists(), "{shown}");
}

#[cfg(feature = "yaml")]
const TEMPLATE: &str = "\
name: percent
description: Work out a part
parameters:
  - {name: share, type: integer}
  - {name: whole, description: of what}
steps:
  - {id: sum, description: Calculate, tool: calculator, args: {expression: '{{share}}% of {{whole}}'}}
  - {id: say, description: 'Say what {{share}}% of {{whole}} is'}
";

#[cfg(feature = "yaml")]
fn written(place: &Place, name: &str, text: &str) -> String {
    std::fs::write(place.path(name), text).expect("it is written");
    place.path(name).display().to_string()
}

// spec: AP-09
#[cfg(feature = "yaml")]
#[tokio::test]
async fn plan_whose_step_failed_asks_a_person_and_goes_on_with_the_reply() {
    let server = MockServer::start([answer("It is 30."), answer("It is 30 [say].")]).await;
    let place = Place::with_server(&server);
    let template = TEMPLATE
        .replace("tool: calculator,", "tool: calculator, attempts: 1, on_error: ask,")
        .replace("{{share}}% of {{whole}}'}}", "1 / 0'}}");
    let file = written(&place, "percent.yaml", &template);
    let used = ["--template", &file, "--set", "share=15", "--set", "whole=200"];
    let ran = place.archon("plan --execute", &used).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let listed = place.archon("approvals list --json", &[]).await.json();
    assert_eq!(listed[0]["kind"], "failed_step", "{listed:?}");
    assert!(
        listed[0]["action_summary"].as_str().expect("a text").starts_with("Step 'sum' failed: "),
        "{listed:?}"
    );
    let question = listed[0]["request_id"].as_str().expect("an id");
    let ran = place.archon("approvals reply", &[question, "30"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It is 30 [say].\n"), "{ran:?}");
}

// spec: EX-06
#[cfg(feature = "yaml")]
#[tokio::test]
async fn a_template_is_drawn_and_followed_without_asking_a_model_for_a_plan() {
    let server = MockServer::start([answer("It is 30."), answer("It is 30 [say].")]).await;
    let place = Place::with_server(&server);
    let file = written(&place, "percent.yaml", TEMPLATE);
    let used = ["--template", &file, "--set", "share=15", "--set", "whole=200"];
    let drawn = place.archon("plan", &used).await;
    let expected = "Work out a part\n* pending   sum: Calculate [calculator]\n\
                    * blocked   say: Say what 15% of 200 is <- sum\n";
    assert_eq!((drawn.code, drawn.out.as_str(), drawn.err.as_str()), (Some(0), expected, ""), "{drawn:?}");
    let ran = place.archon("plan --execute", &used).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It is 30 [say].\n"), "{ran:?}");
    assert!(ran.err.contains("<- sum: 30 ("), "{ran:?}");
    assert_eq!(server.requests().len(), 2);
}

#[cfg(feature = "yaml")]
#[tokio::test]
async fn plan_template_of_the_guide_is_followed() {
    let guide = include_str!("../../../../docs/templates.md");
    let (_, rest) = guide.split_once("```yaml\n").expect("a template");
    let (template, _) = rest.split_once("```").expect("its end");
    let server = MockServer::start([answer("It is 30."), answer("It is 30 [say].")]).await;
    let place = Place::with_server(&server);
    let file = written(&place, "percent.yaml", template);
    let ran = place.archon("plan --execute", &["--template", &file, "--set", "share=15"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It is 30 [say].\n"), "{ran:?}");
    assert!(ran.err.contains("<- sum: 30 ("), "{ran:?}");
    let asked = server.requests()[0].body.to_string();
    assert!(asked.contains("Say in one sentence what 15 percent of 200 are"), "{asked}");
}

// spec: EX-06
#[cfg(feature = "yaml")]
#[tokio::test]
async fn template_problems_name_the_line_and_start_nothing() {
    let server = MockServer::start([]).await;
    let place = Place::with_server(&server);
    let broken = written(&place, "broken.yaml", "name: x\nsteps:\n  - toool: calculator\n");
    let ran = place.archon("plan", &["--template", &broken]).await;
    ran.check_refused(2, "broken.yaml:3:", "read as YAML");
    let no_list = written(&place, "no-list.yaml", "name: x\nsteps: calculator\n");
    let ran = place.archon("plan", &["--template", &no_list]).await;
    ran.check_refused(2, "no-list.yaml:2:", "docs/templates.md");
    let file = written(&place, "percent.yaml", TEMPLATE);
    let ran = place.archon("plan", &["--template", &file, "--set", "shar=15", "--set", "whole=200"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
    for line in ["no parameter \"shar\" (is \"share\" meant?)", "needs a value for \"share\"", "share, whole"]
    {
        assert!(ran.err.contains(line), "{line}: {ran:?}");
    }
    assert_eq!(server.requests().len(), 0);
}
