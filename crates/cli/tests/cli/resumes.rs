//! Runs of every kind are resumed by their id alone: in another folder, without a model, a team file or a flag.

use archon_testkit::{Gate, MockResponse, MockServer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::setup::{Place, answer, chunk, sealed, text};

const TEAM: &str = r#"
[lead]
instructions = "Speak like a captain."

[[member]]
id = "ada"
roles = ["researcher"]
tools = ["calculator"]
instructions = "Speak like a pirate."

[[member]]
id = "ben"
roles = ["writer"]

[[step]]
id = "find"
task = "Find the figures"
role = "researcher"

[[step]]
id = "write"
task = "Write three sentences"
role = "writer"
after = ["find"]
"#;

/// Starts a run, kills its process while its model speaks, and returns its id.
async fn killed(place: &Place, line: &str, more: &[&str]) -> String {
    let mut child = place.command(line, more).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = async || lines.next_line().await.expect("a line").expect("the run goes on");
    let first: Value = serde_json::from_str(&next().await).expect("JSON");
    while !next().await.contains("half") {}
    child.kill().await.expect("it is killed");
    first["run_id"].as_str().expect("an id").to_owned()
}

fn half() -> MockResponse {
    MockResponse::sse("").event(&text("half ")).hang()
}

fn plan() -> MockResponse {
    let a = json!({"id": "a", "description": "Find one", "dependencies": []});
    let b = json!({"id": "b", "description": "Find another", "dependencies": ["a"]});
    answer(&json!({"subtasks": [a, b]}).to_string())
}

#[tokio::test]
async fn resume_of_a_killed_team_by_its_id_alone_has_its_members_and_its_plan() {
    let server = MockServer::start([half()]).await;
    let place = Place::with_server(&server);
    let file = place.path("team.toml");
    std::fs::write(&file, TEAM).expect("it is written");
    let run = killed(&place, "team run --json", &[&file.display().to_string(), "Does the sea rise?"]).await;
    std::fs::remove_file(&file).expect("it is removed");
    for said in ["3.7 mm a year", "It rises slowly.", "It rises by 3.7 mm."] {
        server.push(answer(said));
    }
    let resumed = place.alone("resume", &[&run]).await;
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(0), "It rises by 3.7 mm.\n"), "{resumed:?}");
    let asked: Vec<String> = server.requests().iter().map(|request| request.body.to_string()).collect();
    assert_eq!(asked.len(), 4);
    assert!(asked[1].contains("Speak like a pirate.") && asked[1].contains("calculator"), "{}", asked[1]);
    assert!(asked[2].contains("Write three sentences") && !asked[2].contains("pirate"), "{}", asked[2]);
    assert!(asked[3].contains("Speak like a captain."), "{}", asked[3]);
}

#[tokio::test]
async fn resume_of_a_killed_plan_by_its_id_alone_has_its_tools_its_project_file_and_its_memory() {
    let server = MockServer::start([plan(), half()]).await;
    let place = Place::with_server(&server);
    std::fs::write(place.path("AGENTS.md"), "Answer in Latin.").expect("a file");
    let line =
        "run --plan --json --tools calculator --project-file AGENTS.md --memory user:anna --embedder hash";
    let run = killed(&place, line, &["Find two."]).await;
    for said in ["One.", "Two.", "One and two [b]."] {
        server.push(answer(said));
    }
    let resumed = place.alone("resume", &[&run]).await;
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(0), "One and two [b].\n"), "{resumed:?}");
    for (n, request) in server.requests().iter().enumerate() {
        assert!(request.body.to_string().contains("Answer in Latin."), "{n}: {}", request.body);
    }
    let later = server.requests()[3].body.to_string();
    assert!(later.contains("calculator") && !later.contains("read_file"), "{later}");
    let kept = place.archon("memory list --json --memory user:anna", &[]).await.json();
    let kept: Vec<_> = kept.iter().map(|entry| entry["content"].as_str().expect("a text")).collect();
    assert_eq!(kept, ["One and two [b].", "Find two."]);
}

#[tokio::test]
async fn resume_of_a_killed_loop_by_its_id_alone_has_its_project_file_and_its_memory() {
    let server = MockServer::start([half()]).await;
    let place = Place::with_server(&server);
    std::fs::write(place.path("AGENTS.md"), "Answer in Latin.").expect("a file");
    let line = "run --json --tools none --project-file AGENTS.md --memory user:anna";
    let run = killed(&place, line, &["I am vegetarian."]).await;
    server.push(answer("Noted."));
    let resumed = place.alone("resume", &[&run]).await;
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(0), "Noted.\n"), "{resumed:?}");
    assert!(server.requests()[1].body.to_string().contains("Answer in Latin."));
    let kept = place.archon("memory list --json --memory user:anna", &[]).await.json();
    assert_eq!(kept.iter().filter(|entry| entry["kind"] == "turn").count(), 2, "{kept:?}");
}

#[tokio::test]
async fn resume_all_resumes_interrupted_runs_and_prints_each_outcome() {
    let server = MockServer::start([half(), plan(), half()]).await;
    let place = Place::with_server(&server);
    let one = killed(&place, "run --json", &["speak"]).await;
    let other = killed(&place, "run --plan --json", &["Find two."]).await;
    for said in ["said", "said", "said [b]", "said"] {
        server.push(answer(said));
    }
    let resumed = place.alone("resume --all --json", &[]).await;
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let mut seen: Vec<_> = resumed.json().iter().map(|line| line["run_id"].to_string()).collect();
    let mut expected = vec![json!(one).to_string(), json!(other).to_string()];
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
    assert!(resumed.json().iter().all(|line| line["status"] == "finished"), "{resumed:?}");
}

#[tokio::test]
async fn every_command_that_takes_a_run_answers_an_unknown_id_with_the_nearest() {
    let server = MockServer::start([answer("Hi")]).await;
    let place = Place::with_server(&server);
    place.archon("run", &["Hi"]).await;
    let run =
        place.archon("runs list --json", &[]).await.json()[0]["run_id"].as_str().expect("an id").to_owned();
    let typo = format!("{}x", &run[..run.len() - 1]);
    for line in [
        "resume",
        "replay",
        "runs show",
        "runs events",
        "runs fork",
        "runs watch",
        "runs cancel",
        "runs delete",
        "plan show",
        "plan approve",
        "plan reject",
    ] {
        let refused = place.archon(line, &[&typo]).await;
        refused.check_refused(
            2,
            &format!("run {typo} does not exist; the most similar ids are {run}"),
            "runs list",
        );
    }
    let refused = place.archon("runs steer", &[&typo, "faster"]).await;
    refused.check_refused(2, &format!("the most similar ids are {run}"), "runs list");
}

/// The same log of another kind, with the checksum that its first line then has.
fn of_kind(text: &str, kind: &str) -> String {
    let (first, rest) = text.split_once('\n').expect("a line");
    let first = first.replacen("\"kind\":\"loop\"", &format!("\"kind\":\"{kind}\""), 1);
    format!("{}{rest}", sealed(&first))
}

#[tokio::test]
async fn resume_of_a_run_of_a_kind_that_this_version_does_not_know_names_the_kind() {
    let server = MockServer::start([answer("Hi")]).await;
    let place = Place::with_server(&server);
    place.archon("run", &["Hi"]).await;
    let run =
        place.archon("runs list --json", &[]).await.json()[0]["run_id"].as_str().expect("an id").to_owned();
    let log = place.data().join("runs").join(format!("{run}.jsonl"));
    let text = std::fs::read_to_string(&log).expect("a log");
    std::fs::write(&log, of_kind(&text, "swarm")).expect("it is written");
    let refused = place.archon("resume", &[&run]).await;
    assert!(refused.code == Some(1) && refused.err.contains("swarm"), "{refused:?}");
    std::fs::write(&log, of_kind(&text, "parallel")).expect("it is written");
    let refused = place.archon("resume", &[&run]).await;
    refused.check_refused(2, "is of kind parallel", "the program that started it");
}

#[tokio::test]
async fn watch_steer_and_prune_reach_a_run_of_another_process() {
    let gate = Gate::new();
    let done = chunk(&json!({}), Some("stop"));
    let slowly = MockResponse::sse("").event(&text("half ")).wait(&gate).event(&done).event("[DONE]");
    let server = MockServer::start([slowly, answer("faster it is")]).await;
    let place = Place::with_server(&server);
    let mut child = place.command("run --json", &["speak"]).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = async || lines.next_line().await.expect("a line").expect("the run goes on");
    let first: Value = serde_json::from_str(&next().await).expect("JSON");
    let run = first["run_id"].as_str().expect("an id").to_owned();
    while !next().await.contains("half") {}
    let watcher = place.command("runs watch", &[&run]).spawn().expect("it starts");
    let said = place.archon("runs steer", &[&run, "faster"]).await;
    assert_eq!((said.code, said.out.as_str()), (Some(0), format!("sent to {run}\n").as_str()), "{said:?}");
    gate.open();
    let ended = child.wait_with_output().await.expect("it ends");
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let watched = watcher.wait_with_output().await.expect("it ends");
    let watched = crate::setup::Ran::from(watched);
    assert!(watched.out.contains("faster it is") && watched.err.contains("> faster"), "{watched:?}");
    let young = place.archon("runs prune --older-than 1h", &[]).await;
    assert_eq!((young.code, young.out.as_str()), (Some(0), ""), "{young:?}");
    let pruned = place.archon("runs prune --older-than 0s", &[]).await;
    assert_eq!(pruned.out, format!("deleted {run}\n"), "{pruned:?}");
}

// spec: EX-12
#[tokio::test]
async fn runs_prune_leaves_a_line_of_a_run_and_keeps_a_run_that_failed() {
    let broken = MockResponse::json(401, &json!({ "error": { "message": "bad key" } }));
    let server = MockServer::start([answer("It is done."), broken]).await;
    let place = Place::with_server(&server);
    let none = place.archon("runs list --pruned", &[]).await;
    assert!(none.code == Some(0) && none.err.contains("no runs were pruned"), "{none:?}");
    assert_eq!(place.archon("run", &["Mend it."]).await.code, Some(0));
    assert_eq!(place.archon("run", &["Break it."]).await.code, Some(1));
    let listed = place.archon("runs list --json", &[]).await.json();
    let (failed, done) = (&listed[0]["run_id"], &listed[1]["run_id"]);

    let pruned = place.archon("runs prune --older-than 0s", &[]).await;
    assert_eq!(pruned.out, format!("deleted {}\n", done.as_str().unwrap()), "{pruned:?}");
    assert!(pruned.err.contains("summaries.jsonl"), "{pruned:?}");
    let left = place.archon("runs list --json", &[]).await.json();
    assert_eq!((left.len(), &left[0]["run_id"]), (1, failed));
    let summaries = place.archon("runs list --pruned --json", &[]).await.json();
    assert_eq!((summaries.len(), &summaries[0]["run"]["run_id"]), (1, done), "{summaries:?}");
    assert_eq!((&summaries[0]["agent"], &summaries[0]["turns"]), (&json!("archon"), &json!(1)));
    let shown = place.archon("runs list --pruned", &[]).await;
    assert!(shown.out.contains("Mend it.") && shown.out.contains("1 turns"), "{shown:?}");
    let again = place.archon("runs prune --older-than 0s", &[]).await;
    assert!(again.out.is_empty() && again.err.contains("runs that failed"), "{again:?}");
}
