//! A session of programming under the rules that the documentation gives: how often a person is asked.

use archon_testkit::{MockResponse, MockServer};
use serde_json::{Value, json};

use crate::setup::{Place, Ran, answer, asks_for};

/// The rules of the documentation.
const PAGE: &str = include_str!("../../../../docs/permissions.md");

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({ "command": command }))
}

fn session() -> Vec<(&'static str, Value)> {
    let edit = |old: &str, new: &str| {
        ("edit_file", json!({ "path": "src/lib.rs", "old_text": old, "new_text": new }))
    };
    vec![
        ("read_file", json!({ "path": "src/lib.rs" })),
        edit("a - b", "a + b"),
        bash("cargo build --offline 2>&1 | tail -5"),
        bash("cargo test --offline 2>&1 | grep 'test result' | head -1"),
        bash("git status --short && git diff | head -20"),
        bash("git add -A && git commit -m 'Add, not subtract'"),
        bash("git switch -c doubling"),
        edit("// more", "pub fn double(a: i64) -> i64 {\n    add(a, a)\n}"),
        bash("cargo test --offline 2>&1 | grep 'test result' | head -1"),
        bash("git commit -am 'Double'"),
        bash("git switch main && git log --oneline | wc -l"),
        ("write_file", json!({ "path": "notes.txt", "content": "note\n" })),
        bash("git stash -u && git stash pop"),
        bash("git worktree add wt doubling"),
        bash("cd wt && cargo test --offline 2>&1 | grep 'test result' | head -1"),
    ]
}

/// A project in Rust, with its first commit.
fn project(place: &Place) {
    std::fs::create_dir_all(place.path("ws/src")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(place.path(&format!("ws/{name}")), text).unwrap();
    write("Cargo.toml", "[package]\nname = \"sums\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
    write(".gitignore", "/target\n/wt\n");
    write(
        "src/lib.rs",
        "pub fn add(a: i64, b: i64) -> i64 {\n    a - b\n}\n\n// more\n\n#[test]\nfn adds() {\n    assert_eq!(add(2, 3), 5);\n}\n",
    );
    let script = "git init -q -b main && git config user.name Anna && git config user.email a@example.org && git add -A && \
                  git commit -qm First";
    let made = std::process::Command::new("sh").args(["-c", script]).current_dir(place.path("ws")).output();
    assert!(made.unwrap().status.success());
}

async fn archon(place: &Place, line: &str, more: &[&str]) -> Ran {
    let mut command = place.command(line, more);
    // The compiler of whoever runs the tests.
    for name in ["PATH", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.current_dir(place.path("ws"));
    command.output().await.unwrap().into()
}

/// Plays the session and says yes to every question; returns the questions and the results.
async fn play(settings: &str) -> (Vec<String>, Vec<String>) {
    let calls = session();
    let script = calls.iter().map(|(tool, arguments)| asks_for(tool, &arguments.to_string()));
    let script: Vec<MockResponse> = script.chain([answer("It is done.")]).collect();
    let server = MockServer::start(script).await;
    let place = Place::with_server(&server);
    project(&place);
    std::fs::create_dir_all(place.path(".config/archon")).unwrap();
    std::fs::write(place.path(".config/archon/archon.toml"), settings).unwrap();
    let mut ran = archon(&place, "run --ask-later --tools all --max-turns 40", &["Mend it."]).await;
    let mut questions = Vec::new();
    while ran.code == Some(3) {
        let listed = archon(&place, "approvals list --json", &[]).await.json();
        let [waits] = &listed[..] else { panic!("{listed:?}") };
        questions.push(waits["action_summary"].as_str().unwrap().to_owned());
        let question = waits["request_id"].as_str().unwrap();
        ran = archon(&place, "approvals approve --ask-later", &[question]).await;
    }
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It is done.\n"), "{ran:?}");
    let last = server.requests().pop().unwrap();
    let messages = last.body["messages"].as_array().unwrap().clone();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    (questions, results.map(|message| message["content"].as_str().unwrap().to_owned()).collect())
}

fn rules() -> String {
    let block = PAGE.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```"));
    block.unwrap().0.to_owned()
}

// spec: AP-11, TE-39
#[tokio::test]
async fn run_of_a_coding_session_under_the_documented_rules_asks_about_the_worktree_only() {
    if cannot_be_held() {
        return;
    }
    for (settings, most) in [(rules(), 1), (String::new(), 14)] {
        let (questions, results) = play(&settings).await;
        eprintln!(
            "{} calls, {} questions under {}:\n  {}",
            results.len(),
            questions.len(),
            if settings.is_empty() { "no rules" } else { "the documented rules" },
            questions.join("\n  ")
        );
        for (place, expected) in [
            (3, "1 passed"),
            (5, "Add, not subtract"),
            (8, "1 passed"),
            (9, "Double"),
            (10, "2"),
            (12, "Dropped"),
            (14, "1 passed"),
        ] {
            assert!(results[place].contains(expected), "{place}: {}", results[place]);
        }
        assert_eq!(questions.len(), most, "{questions:?}");
    }
}

/// Without the kernel's help no command runs.
fn cannot_be_held() -> bool {
    let missing = archon::tools::sandbox::missing();
    if let Some(missing) = &missing {
        eprintln!("SKIP: {missing}");
    }
    missing.is_some()
}
