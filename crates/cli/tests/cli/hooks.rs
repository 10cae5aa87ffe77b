//! Hooks of a person and of a project: the first run at once, the others after an agreement.

use std::path::PathBuf;

use archon_testkit::MockServer;
use serde_json::json;

use crate::setup::{Place, Ran, answer, asks_for};

const SUM: &str = r#"{"expression": "1 + 2"}"#;

/// Writes the hooks of the person.
fn set_own(place: &Place, text: &str) -> PathBuf {
    write(place, ".config/archon/hooks.json", text)
}

fn write(place: &Place, name: &str, text: &str) -> PathBuf {
    let file = place.path(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, text).unwrap();
    file.canonicalize().unwrap()
}

/// A file with one command before each call.
fn before_calls(command: &str) -> String {
    let hook = json!({"type": "command", "command": command});
    json!({"hooks": {"PreToolUse": [{"matcher": "calculator", "hooks": [hook]}]}}).to_string()
}

/// A model that asks for a sum, as often as a run is started.
async fn asks_for_sums(runs: usize) -> MockServer {
    let replies = (0..runs).flat_map(|_| [asks_for("calculator", SUM), answer("Three.")]);
    MockServer::start(replies).await
}

/// Runs a command in the project `shop`, whose person has another home folder.
async fn in_shop(place: &Place, line: &str, more: &[&str]) -> Ran {
    place.command(line, more).current_dir(place.path("shop")).output().await.unwrap().into()
}

/// The result of the call, as the model reads it.
fn result(server: &MockServer, request: usize) -> String {
    let body = server.requests()[request].body.clone();
    let last = body["messages"].as_array().unwrap().last().unwrap().clone();
    last["content"].to_string()
}

#[tokio::test]
async fn hook_of_the_person_refuses_a_call_and_the_model_reads_why() {
    let server = asks_for_sums(1).await;
    let place = Place::with_server(&server);
    set_own(&place, &before_calls("echo 'No sums today.' >&2; exit 2"));
    let ran = place.archon("run --tools calculator", &["1 + 2?"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Three.\n"), "{ran:?}");
    let read = result(&server, 1);
    assert!(read.contains("A hook refused this call of 'calculator': No sums today."), "{read}");
}

#[tokio::test]
async fn run_goes_on_by_the_rule_when_hooks_hang_crash_print_garbage_or_answer_late() {
    let late = r#"sleep 30; echo '{"decision":"approve"}'"#;
    let faults = [("sleep 1000", 0.2), ("kill -SEGV $$", 60.0), ("echo garbage", 60.0), (late, 0.2)];
    let server = asks_for_sums(2 * faults.len()).await;
    let place = Place::with_server(&server);
    let ask = || place.archon("run --tools calculator", &["1 + 2?"]);
    for (number, (command, timeout)) in faults.into_iter().enumerate() {
        let hook = json!([{"hooks": [{"type": "command", "command": command, "timeout": timeout}]}]);
        // Hooks that were to decide count as a no.
        set_own(&place, &json!({"hooks": {"PreToolUse": hook}}).to_string());
        let ran = ask().await;
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Three.\n"), "{command}: {ran:?}");
        let read = result(&server, 4 * number + 1);
        assert!(read.contains("A hook refused this call of 'calculator'"), "{command}: {read}");
        // The others change nothing.
        set_own(&place, &json!({"hooks": {"PostToolUse": hook, "Stop": hook}}).to_string());
        let ran = ask().await;
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Three.\n"), "{command}: {ran:?}");
        assert_eq!(result(&server, 4 * number + 3), "\"3\"", "{command}");
    }
}

#[tokio::test]
async fn hooks_of_messages_and_of_the_end_of_a_run_get_no_secrets() {
    let key = "sk-a-key-of-the-person";
    let server = MockServer::start([answer(&format!("Your key is {key}."))]).await;
    let place = Place::with_server(&server);
    let hook = json!([{"hooks": [{"type": "command", "command": "cat >> events.txt"}]}]);
    set_own(&place, &json!({"hooks": {"UserPromptSubmit": hook, "Stop": hook}}).to_string());
    let message = format!("My key is {key}");
    let ran = place.command("run", &[&message]).env("OPENAI_COMPATIBLE_API_KEY", key).output().await.unwrap();
    let (ran, events) = (Ran::from(ran), std::fs::read_to_string(place.path("events.txt")).unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(events.contains("My key is ****") && events.contains("Your key is ****."), "{events}");
    assert!(!events.contains(key), "{events}");
}

#[tokio::test]
async fn hook_of_a_project_runs_only_while_its_file_and_its_script_are_those_of_the_agreement() {
    let server = asks_for_sums(4).await;
    let place = Place::with_server(&server);
    let file = write(&place, "shop/.archon/hooks.json", &before_calls("sh check.sh"));
    let script = write(&place, "shop/check.sh", "echo ran >> ran.txt\n");
    let runs = || std::fs::read_to_string(place.path("shop/ran.txt")).unwrap_or_default().lines().count();
    let ask = || in_shop(&place, "run --tools calculator", &["1 + 2?"]);

    let ran = ask().await;
    let warning = format!(
        "warning: {}:1: its hooks do not run, because no person has agreed to the file. \
         Show it and agree: archon trust --data-dir {}\n",
        file.display(),
        place.data().display()
    );
    assert_eq!((ran.code, runs()), (Some(0), 0), "{ran:?}");
    assert!(ran.err.contains(&warning), "{ran:?}");
    let doctor = in_shop(&place, "doctor", &[]).await;
    assert!(doctor.out.contains("its hooks do not run"), "{doctor:?}");

    in_shop(&place, "trust", &[]).await.check_refused(2, "hooks.json is not agreed to", "archon trust --yes");
    let agreed = in_shop(&place, "trust", &["--yes"]).await;
    let shown =
        "  PreToolUse calculator: sh check.sh\n    the agreement covers check.sh, and no other program";
    assert!(agreed.code == Some(0) && agreed.err.contains(shown), "{agreed:?}");
    let listed = in_shop(&place, "trust list", &[]).await;
    assert_eq!(listed.out, format!("{}: hooks\n", file.display()));
    let ran = ask().await;
    assert_eq!((ran.code, runs()), (Some(0), 1), "{ran:?}");
    assert!(!ran.err.contains("warning"), "{ran:?}");

    std::fs::write(&script, "echo other >> ran.txt\n").unwrap();
    let ran = ask().await;
    assert_eq!(runs(), 1, "{ran:?}");
    assert!(ran.err.contains("or a script that it names, has changed since you agreed to it"), "{ran:?}");

    in_shop(&place, "trust", &["--yes"]).await;
    in_shop(&place, "trust remove", &[&file.display().to_string()]).await;
    ask().await;
    assert_eq!(runs(), 1);
}

#[tokio::test]
async fn trust_shows_each_command_of_events_that_a_file_has_twice() {
    let place = Place::new();
    let hook = |command: &str| format!(r#"[{{"hooks": [{{"type": "command", "command": "{command}"}}]}}]"#);
    let text =
        format!(r#"{{"hooks": {{"Stop": {}, "Stop": {}}}}}"#, hook("first.sh"), hook("second.sh\\u001b[8m"));
    write(&place, "shop/.archon/hooks.json", &text);
    let agreed = in_shop(&place, "trust", &["--yes"]).await;
    assert!(
        agreed.err.contains("Stop *: first.sh") && agreed.err.contains("Stop *: second.sh"),
        "{agreed:?}"
    );
    assert!(!agreed.err.contains('\u{1b}'), "{agreed:?}");
    // There are no such scripts in the project.
    let uncovered = "    this command runs programs that the agreement does not cover\n";
    assert_eq!(agreed.err.matches(uncovered).count(), 2, "{agreed:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn command_that_names_a_link_out_of_the_project_is_refused() {
    let server = asks_for_sums(1).await;
    let place = Place::with_server(&server);
    let file = write(&place, "shop/.archon/hooks.json", &before_calls("sh check.sh"));
    let script = write(&place, "check.sh", "echo ran > ran.txt\n");
    std::os::unix::fs::symlink(&script, place.path("shop/check.sh")).unwrap();
    let agreed = in_shop(&place, "trust", &["--yes"]).await;
    assert!(agreed.err.contains("no settings that need an agreement"), "{agreed:?}");
    let ran = in_shop(&place, "run --tools calculator", &["1 + 2?"]).await;
    let problem = format!(
        "warning: {}:1: no hook of this file runs: the command names `check.sh`, a link that leads out of the project: \
         name {} instead",
        file.display(),
        script.display()
    );
    assert!(ran.err.contains(&problem) && !place.path("shop/ran.txt").exists(), "{ran:?}");
}

#[tokio::test]
async fn broken_hook_is_named_with_its_line_and_the_others_work() {
    let server = asks_for_sums(1).await;
    let place = Place::with_server(&server);
    let text = "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [\n{\"type\": \"comand\"},\n\
                {\"type\": \"command\", \"command\": \"echo ran > ran.txt\"}]}]}}";
    let file = set_own(&place, text);
    let problem = format!("{}:2: the type `comand` is not supported", file.display());
    let ran = place.archon("run --tools calculator", &["1 + 2?"]).await;
    assert!(ran.code == Some(0) && ran.err.contains(&format!("warning: {problem}")), "{ran:?}");
    assert!(place.path("ran.txt").exists());
    let doctor = place.archon("doctor", &[]).await;
    assert!(doctor.out.contains(&problem) && doctor.out.contains("hooks      1 of "), "{doctor:?}");
}

#[tokio::test]
async fn hooks_in_the_settings_of_another_program_run_after_an_agreement() {
    let server = asks_for_sums(1).await;
    let place = Place::with_server(&server);
    let text =
        before_calls("echo ran > ran.txt").replacen('{', r#"{"permissions": {"allow": ["Bash"]}, "#, 1);
    write(&place, "shop/.claude/settings.json", &text);
    assert_eq!(in_shop(&place, "trust", &["--yes"]).await.code, Some(0));
    let ran = in_shop(&place, "run --tools calculator", &["1 + 2?"]).await;
    assert!(ran.code == Some(0) && place.path("shop/ran.txt").exists(), "{ran:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn link_out_of_the_project_is_no_file_with_hooks() {
    let place = Place::new();
    let secret = write(&place, "secret.json", &before_calls("true"));
    std::fs::create_dir_all(place.path("shop/.archon")).unwrap();
    std::os::unix::fs::symlink(secret, place.path("shop/.archon/hooks.json")).unwrap();
    let doctor = in_shop(&place, "doctor", &[]).await;
    assert!(doctor.out.contains("hooks.json:1: the file is a link out of the project"), "{doctor:?}");
    let agreed = in_shop(&place, "trust", &["--yes"]).await;
    assert!(agreed.err.contains("no settings that need an agreement"), "{agreed:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn hook_of_a_project_in_the_sandbox_changes_nothing_and_that_of_the_person_does() {
    let server = asks_for_sums(1).await;
    let place = Place::with_server(&server);
    let doctor = place.archon("doctor", &[]).await;
    if !doctor.out.contains("commands are sandboxed") {
        return;
    }
    write(&place, ".config/archon/archon.toml", "sandbox_hooks = true\n");
    set_own(&place, &before_calls("echo ran > own.txt"));
    write(&place, "shop/.archon/hooks.json", &before_calls("cat .archon/hooks.json && echo ran > its.txt"));
    in_shop(&place, "trust", &["--yes"]).await;
    let ran = in_shop(&place, "run --tools calculator", &["1 + 2?"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(place.path("shop/own.txt").exists() && !place.path("shop/its.txt").exists(), "{ran:?}");
}
