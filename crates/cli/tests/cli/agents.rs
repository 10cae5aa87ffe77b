//! Agents from files: listed, run alone, called by the main agent, and refused before a person has agreed.

use std::{fs, path::Path};

use archon_testkit::MockServer;

use crate::setup::{Place, Ran, answer, asks_for};

fn write(folder: &Path, name: &str, fields: &str) -> String {
    let text = format!("---\nname: {name}\ndescription: Does {name}.\n{fields}---\nYou do {name}.\n");
    fs::create_dir_all(folder).expect("a folder");
    fs::write(folder.join(format!("{name}.md")), &text).expect("it is written");
    text
}

/// Runs a command in a project below the home folder.
async fn in_project(place: &Place, line: &str, more: &[&str]) -> Ran {
    let mut command = place.command(line, more);
    command.current_dir(place.path("shop")).output().await.expect("the program runs").into()
}

/// Agrees to a file with this text, as `archon trust` does.
fn agree(place: &Place, file: &Path, text: &str) {
    let digest: String =
        hmac_sha256::Hash::hash(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let file = file.canonicalize().expect("the file is there");
    fs::create_dir_all(place.data()).expect("a folder");
    let agreements = format!("[files]\n{:?} = {digest:?}\n", file.display().to_string());
    fs::write(place.data().join("trusted.toml"), agreements).expect("it is written");
}

#[tokio::test]
async fn agents_list_shows_the_files_with_narrowed_tools_and_doctor_repeats_the_broken_ones() {
    let place = Place::new();
    write(&place.path(".claude/agents"), "reviewer", "tools: Read, Grep, Write\nmax_turns: 4\n");
    // Calls of agents are allowed by name.
    write(&place.path(".archon/agents"), "write_file", "");
    fs::write(place.path(".archon/agents/notes.md"), "# Notes\n").expect("it is written");
    let listed = place.archon("agents list --json", &[]).await;
    let items = listed.json();
    let [item] = items.as_slice() else { panic!("{listed:?}") };
    assert_eq!((item["name"].as_str(), item["agreed"].as_bool()), (Some("reviewer"), Some(true)));
    assert_eq!(item["tools"], serde_json::json!(["read_file", "search"]));
    assert_eq!(item["max_turns"], 4);
    let broken = "notes.md:1: the file must begin with a line `---` and YAML; the file is left out";
    let of_tool = "write_file.md:2: the name `write_file`: a tool has this name";
    assert!(listed.err.contains(broken) && listed.err.contains(of_tool), "{listed:?}");
    let doctor = place.archon("doctor", &[]).await;
    assert!(doctor.out.contains(broken) && doctor.out.contains(of_tool), "{doctor:?}");
    let shown = place.archon("agents list", &[]).await;
    assert!(shown.out.starts_with("reviewer          Does reviewer."), "{shown:?}");
    assert!(shown.err.contains("reviewer.md:4: the main agent has no tool `Write`"), "{shown:?}");
}

#[tokio::test]
async fn agents_of_a_projects_files_hold_after_an_agreement_to_their_content_only() {
    let server = MockServer::start([answer("All well.")]).await;
    let place = Place::new();
    let text = write(&place.path("shop/.claude/agents"), "reviewer", "");
    let file = place.path("shop/.claude/agents/reviewer.md");
    let url = format!("{}/v1", server.url());
    let run = ["--base-url", &url, "--model", "mock", "reviewer", "Look."];

    let listed = in_project(&place, "agents list --json", &[]).await;
    assert_eq!(listed.json()[0]["agreed"], false, "{listed:?}");
    assert!(listed.err.contains("no person has agreed to these files with agents"), "{listed:?}");
    let refused = in_project(&place, "agents run", &run).await;
    assert!(
        refused.code == Some(2) && refused.err.contains("error: no person has agreed to "),
        "{refused:?}"
    );
    assert!(server.requests().is_empty());

    agree(&place, &file, &text);
    let ran = in_project(&place, "agents run", &run).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "All well.\n"), "{ran:?}");
    assert!(!ran.err.contains("warning"), "{ran:?}");
    let asked = server.requests()[0].body.to_string();
    assert!(asked.contains("You do reviewer.") && asked.contains("Look."), "{asked}");

    fs::write(&file, text.replace("You do", "You always do")).expect("it is written");
    let refused = in_project(&place, "agents run", &run).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn run_calls_an_agent_of_a_file_and_leaves_one_with_an_unknown_model_out() {
    let server = MockServer::start([
        asks_for("reviewer", r#"{"task": "Look."}"#),
        answer("All well."),
        answer("Done."),
    ])
    .await;
    let place = Place::with_server(&server);
    write(&place.path(".archon/agents"), "reviewer", "tools: Read\n");
    write(&place.path(".archon/agents"), "scribe", "model: sonnet\n");
    let ran = place.archon("run", &["Let it be reviewed."]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"), "{ran:?}");
    let warning = "scribe.md:4: there is no model `sonnet`; write inherit, or PROVIDER:MODEL";
    assert!(ran.err.contains(warning) && ran.err.contains("; the agent is left out"), "{ran:?}");
    let asked: Vec<_> = server.requests().iter().map(|request| request.body.to_string()).collect();
    assert!(asked[0].contains("Does reviewer.") && !asked[0].contains("Does scribe."), "{}", asked[0]);
    assert!(asked[1].contains("You do reviewer.") && asked[1].contains("\"read_file\""), "{}", asked[1]);
    assert!(!asked[1].contains("\"search\"") && !asked[1].contains("Does reviewer."), "{}", asked[1]);
}

#[tokio::test]
async fn agent_of_a_file_has_a_skill_of_its_project_after_an_agreement() {
    let server = MockServer::start([answer("All well.")]).await;
    let place = Place::new();
    write(&place.path("shop/.archon/agents"), "reviewer", "skills: style\n");
    let skill = place.path("shop/.archon/skills/style");
    fs::create_dir_all(&skill).expect("a folder");
    fs::write(skill.join("SKILL.md"), "---\nname: style\ndescription: A style.\n---\nBe brief.\n")
        .expect("it is written");
    let file = place.path("shop/.archon/agents/reviewer.md").canonicalize().expect("it is there");
    let agreed = in_project(&place, "trust --yes", &[]).await;
    // All of both files is shown.
    for line in ["the agent reviewer in ", "  skills: style\n", "  You do reviewer.\n", "  Be brief.\n"] {
        assert!(agreed.err.contains(line), "{line}: {agreed:?}");
    }
    let url = format!("{}/v1", server.url());
    let run = ["--base-url", &url, "--model", "mock", "reviewer", "Look."];
    let ran = in_project(&place, "agents run", &run).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "All well.\n"), "{ran:?}");
    assert!(server.requests()[0].body.to_string().contains("Be brief."), "{ran:?}");

    fs::write(skill.join("more.md"), "x").expect("it is written");
    let refused = in_project(&place, "agents run", &run).await;
    let problem = format!("{}:4: there is no skill `style`", file.display());
    assert!(refused.code == Some(2) && refused.err.contains(&problem), "{refused:?}");
    assert!(refused.err.contains("agree to it: archon trust"), "{refused:?}");
}

#[tokio::test]
async fn doctor_names_an_unknown_model_and_an_unknown_skill_of_a_file() {
    let place = Place::new();
    write(&place.path(".archon/agents"), "scribe", "model: sonnet\nskills: stile\n");
    let doctor = place.archon("doctor", &[]).await;
    for problem in ["scribe.md:4: there is no model `sonnet`", "scribe.md:5: there is no skill `stile`"] {
        let is_shown = |line: &str| line.starts_with("--  agents ") && line.contains(problem);
        assert!(doctor.out.lines().any(is_shown), "{problem}: {doctor:?}");
    }
}

#[tokio::test]
async fn agents_of_files_are_those_of_the_workspace_from_another_folder_and_after_a_resume() {
    let write_notes = r#"{"path": "notes.txt", "content": "x\n"}"#;
    let server = MockServer::start([
        asks_for("write_file", write_notes),
        asks_for("reviewer", r#"{"task": "Look."}"#),
        answer("All well."),
        answer("Done."),
    ])
    .await;
    let place = Place::with_server(&server);
    write(&place.path("shop/.archon/agents"), "reviewer", "tools: Read\n");
    let shop = place.path("shop").display().to_string();
    let agreed = place.archon("trust --yes --workspace", &[&shop]).await;
    assert_eq!(agreed.code, Some(0), "{agreed:?}");
    let run = ["--workspace", &shop, "--tools", "read_file,write_file,reviewer", "Write notes."];
    let ran = place.archon("run --ask-later", &run).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let waits = place.archon("approvals list --json", &[]).await.json().remove(0);
    let ran = place.archon("approvals approve", &[waits["request_id"].as_str().expect("an id")]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"), "{ran:?}");
    assert!(server.requests()[2].body.to_string().contains("You do reviewer."), "{ran:?}");
}
