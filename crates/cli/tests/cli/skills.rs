//! `archon skills`, and the skills of runs: those of the person, and those of a project after an agreement.

use std::path::PathBuf;

use archon_testkit::MockServer;
use serde_json::Value;

use crate::setup::{Place, Ran, answer, asks_for};

/// Writes a skill into a folder of skills.
fn write(place: &Place, folder: &str, name: &str, more: &str) -> PathBuf {
    let folder = place.path(folder).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!("---\nname: {name}\ndescription: About {name}.\n{more}---\nThe steps of {name}.\n");
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
    folder.canonicalize().unwrap()
}

/// Runs a command in the project `shop`, whose person has another home folder.
async fn in_shop(place: &Place, line: &str, more: &[&str]) -> Ran {
    std::fs::create_dir_all(place.path("shop")).unwrap();
    place.command(line, more).current_dir(place.path("shop")).output().await.unwrap().into()
}

/// The system text of a request, and the names of its tools.
fn system_and_tools(server: &MockServer, request: usize) -> (String, Vec<String>) {
    let body = server.requests()[request].body.clone();
    let messages = body["messages"].as_array().unwrap();
    let system = messages.iter().find(|message| message["role"] == "system");
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap_or_default().to_owned();
    (
        system.map(|message| message["content"].to_string()).unwrap_or_default(),
        tools.iter().map(name).collect(),
    )
}

fn last_message(server: &MockServer, request: usize) -> String {
    let body = server.requests()[request].body.clone();
    body["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
}

#[tokio::test]
async fn validate_of_valid_and_invalid_folders_prints_each_verdict_and_has_its_exit_code() {
    let place = Place::new();
    let good = write(&place, "skills", "notes", "");
    let bad = write(&place, "skills", "Big_Name", "color: red\n");
    let ran = place.archon("skills validate", &["skills/notes", "skills/notes/SKILL.md"]).await;
    let expected = "skills/notes: a valid skill\nskills/notes/SKILL.md: a valid skill\n";
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), expected), "{ran:?}");
    let ran = place.archon("skills validate", &[good.to_str().unwrap(), bad.to_str().unwrap()]).await;
    let file = bad.join("SKILL.md").display().to_string();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for problem in [
        format!("{file}:2: the name `Big_Name` must be in lower case\n"),
        format!("{file}:4: the specification has no field `color`"),
        format!("{}: a valid skill\n", good.display()),
    ] {
        assert!(ran.out.contains(&problem), "{problem}: {ran:?}");
    }
    let ran = place.archon("skills validate --json", &["nowhere"]).await;
    let found = &ran.json()[0];
    assert_eq!(
        (ran.code, &found["valid"], &found["problems"][0]["line"]),
        (Some(1), &false.into(), &1.into())
    );
    assert_eq!(found["problems"][0]["problem"], "the path does not exist");
}

#[tokio::test]
async fn list_has_own_skills_at_once_and_those_of_a_project_after_an_agreement_to_their_files() {
    let place = Place::new();
    write(&place, ".agents/skills", "notes", "");
    let folder = write(&place, "shop/.claude/skills", "deploy", "");
    let list = async || in_shop(&place, "skills list --json", &[]).await;
    let agreed = |ran: &Ran| -> Vec<(String, bool)> {
        let item = |item: &Value| (item["name"].as_str().unwrap().to_owned(), item["agreed"] == true);
        ran.json().iter().map(item).collect()
    };
    let ran = list().await;
    assert_eq!(agreed(&ran), [("notes".to_owned(), true), ("deploy".to_owned(), false)], "{ran:?}");
    let file = folder.join("SKILL.md").display().to_string();
    assert!(
        ran.err.contains(&format!("{file}:1: the skill deploy is left out, because no person")),
        "{ran:?}"
    );

    let refused = in_shop(&place, "skills trust", &[]).await;
    refused.check_refused(2, "deploy is not agreed to", "archon skills trust --yes");
    let ran = in_shop(&place, "skills trust --yes", &[]).await;
    let text = "---\n  name: deploy\n  description: About deploy.\n  ---\n  The steps of deploy.\n";
    let bytes = std::fs::read(folder.join("SKILL.md")).unwrap().len();
    let folder_name = folder.display();
    let shown = format!(
        "the skill deploy in {folder_name}:\n  {text}  the files in {folder_name}:\n    SKILL.md ({bytes} bytes)\n"
    );
    assert!(ran.code == Some(0) && ran.err.contains(&shown), "{ran:?}");
    let ran = list().await;
    assert_eq!(agreed(&ran), [("deploy".to_owned(), true), ("notes".to_owned(), true)], "{ran:?}");
    assert_eq!(ran.err, "", "{ran:?}");

    std::fs::write(folder.join("run.sh"), "rm -rf ~\n").unwrap();
    let ran = list().await;
    assert!(ran.err.contains("the skill deploy has changed since you agreed to it"), "{ran:?}");
    assert_eq!(agreed(&ran)[1], ("deploy".to_owned(), false), "{ran:?}");
    let doctor = in_shop(&place, "doctor", &[]).await;
    assert!(doctor.out.contains("ok  skills     notes\n"), "{doctor:?}");
    assert!(doctor.out.contains("--  skills     ") && doctor.out.contains("has changed since"), "{doctor:?}");
    // One command trusts all that is shown.
    let ran = in_shop(&place, "trust --yes", &[]).await;
    assert!(ran.code == Some(0) && ran.err.contains("the skill deploy in "), "{ran:?}");
    assert_eq!(list().await.err, "");
}

#[tokio::test]
async fn run_without_skills_has_neither_the_list_nor_the_tool() {
    let server = MockServer::start([answer("Hello."), answer("Hello.")]).await;
    let place = Place::with_server(&server);
    in_shop(&place, "run", &["Hi."]).await;
    // Nobody agreed to this one.
    write(&place, "shop/.agents/skills", "deploy", "");
    let ran = in_shop(&place, "run", &["Hi."]).await;
    assert!(ran.code == Some(0) && ran.err.contains("the skill deploy is left out"), "{ran:?}");
    for request in 0..2 {
        let (system, tools) = system_and_tools(&server, request);
        assert!(!system.contains("available_skills"), "{system}");
        assert!(!tools.contains(&"activate_skill".to_owned()), "{tools:?}");
    }
}

// spec: SK-03, SK-09
#[tokio::test]
async fn run_with_a_skill_lists_and_loads_it_and_calls_only_the_tools_that_it_allows() {
    let server = MockServer::start([
        asks_for("activate_skill", r#"{"name": "notes"}"#),
        asks_for("calculator", r#"{"expression": "1 + 2"}"#),
        answer("Done."),
    ])
    .await;
    let place = Place::with_server(&server);
    write(&place, ".agents/skills", "notes", "allowed-tools: Read\n");
    let ran = in_shop(&place, "run", &["Write notes."]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"), "{ran:?}");
    let (system, tools) = system_and_tools(&server, 0);
    assert!(
        system.contains("<name>notes</name>") && tools.contains(&"activate_skill".to_owned()),
        "{system}"
    );
    assert!(last_message(&server, 1).contains("The steps of notes."), "{}", last_message(&server, 1));
    let refused = last_message(&server, 2);
    assert!(refused.contains("allowed-tools of the active skill `notes` denies it"), "{refused}");
}

// spec: SK-09
#[tokio::test]
async fn active_skill_limits_the_calls_of_an_agent_that_the_agent_calls() {
    let server = MockServer::start([
        asks_for("activate_skill", r#"{"name": "notes"}"#),
        asks_for("helper", r#"{"task": "Write notes."}"#),
        asks_for("write_file", r#"{"path": "notes.txt", "content": "x\n"}"#),
        answer("I may not."),
        answer("Done."),
    ])
    .await;
    let place = Place::with_server(&server);
    write(&place, ".agents/skills", "notes", "allowed-tools: Read helper\n");
    let settings = place.path(".config/archon/archon.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let helper = "[agents.helper]\ndescription = 'Helps.'\ntools = ['read_file', 'write_file']\n";
    std::fs::write(&settings, format!("{helper}[permissions]\nallow = ['write_file']\n")).unwrap();
    let ran = in_shop(&place, "run --tools read_file,helper", &["Write notes."]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"), "{ran:?}");
    assert!(system_and_tools(&server, 2).1.contains(&"write_file".to_owned()));
    let refused = last_message(&server, 3);
    assert!(refused.contains("allowed-tools of the active skill `notes` denies it"), "{refused}");
    assert!(!place.path("shop/notes.txt").exists());
}

// spec: SK-09, SK-11
#[tokio::test]
async fn resumed_run_keeps_the_limits_of_a_skill_that_is_gone() {
    let server = MockServer::start([
        asks_for("activate_skill", r#"{"name": "notes"}"#),
        asks_for("write_file", r#"{"path": "notes.txt", "content": "x\n"}"#),
        asks_for("calculator", r#"{"expression": "1 + 2"}"#),
        answer("Done."),
    ])
    .await;
    let place = Place::with_server(&server);
    let folder = write(&place, ".agents/skills", "notes", "allowed-tools: Write\n");
    let ran = in_shop(&place, "run --ask-later --tools write_file,calculator", &["Write notes."]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    std::fs::remove_dir_all(folder).unwrap();
    let waits = in_shop(&place, "approvals list --json", &[]).await.json().remove(0);
    let ran = in_shop(&place, "approvals approve", &[waits["request_id"].as_str().unwrap()]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"), "{ran:?}");
    assert!(place.path("shop/notes.txt").exists(), "the skill allows this tool");
    let refused = last_message(&server, 3);
    assert!(refused.contains("allowed-tools of the active skill `notes` denies it"), "{refused}");
}

#[tokio::test]
async fn skill_that_is_too_large_is_left_out_with_a_warning_that_names_it() {
    let place = Place::new();
    let folder = write(&place, "shop/.agents/skills", "deploy", "");
    std::fs::write(folder.join("model.bin"), vec![0; (16 << 20) + 1]).unwrap();
    let ran = in_shop(&place, "skills list", &[]).await;
    let file = folder.join("SKILL.md").display().to_string();
    let warning = format!("{file}:1: nobody can trust the skill, because its folder cannot be hashed");
    assert!(ran.err.contains(&warning) && ran.err.contains("more than 16 MiB"), "{ran:?}");
    let ran = in_shop(&place, "skills trust --yes", &[]).await;
    assert!(ran.err.contains("no skill of this project needs an agreement"), "{ran:?}");
}

#[tokio::test]
async fn broken_skill_is_named_with_its_line_by_a_run_and_by_doctor_and_the_others_work() {
    let server = MockServer::start([answer("Hello.")]).await;
    let place = Place::with_server(&server);
    write(&place, ".agents/skills", "notes", "");
    let broken = place.path(".agents/skills/broken");
    std::fs::create_dir(&broken).unwrap();
    std::fs::write(broken.join("SKILL.md"), "---\nname: broken\nmore: [\n---\nx\n").unwrap();
    let file = broken.canonicalize().unwrap().join("SKILL.md").display().to_string();
    let ran = in_shop(&place, "run", &["Hi."]).await;
    let warning = ran.err.lines().find(|line| line.starts_with(&format!("warning: {file}:")));
    let warning = warning.unwrap_or_else(|| panic!("{ran:?}")).trim_start_matches("warning: ");
    assert!(warning.contains("the skill is left out"), "{warning}");
    assert!(system_and_tools(&server, 0).0.contains("<name>notes</name>"));
    let doctor = in_shop(&place, "doctor", &[]).await;
    assert!(doctor.out.contains(warning), "{doctor:?}");
}

#[tokio::test]
async fn resumed_run_has_the_tool_of_its_skills_without_a_warning() {
    let write_notes = r#"{"path": "notes.txt", "content": "x\n"}"#;
    let server = MockServer::start([
        asks_for("write_file", write_notes),
        asks_for("activate_skill", r#"{"name": "notes"}"#),
        answer("Done."),
    ])
    .await;
    let place = Place::with_server(&server);
    write(&place, ".agents/skills", "notes", "");
    let ran = in_shop(&place, "run --ask-later --tools write_file", &["Write notes."]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let waits = in_shop(&place, "approvals list --json", &[]).await.json().remove(0);
    let question = waits["request_id"].as_str().unwrap();
    let ran = in_shop(&place, "approvals approve", &[question]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"), "{ran:?}");
    assert!(!ran.err.contains("warning"), "{ran:?}");
    assert!(last_message(&server, 2).contains("The steps of notes."));
    assert_eq!(system_and_tools(&server, 2), system_and_tools(&server, 0));
}
