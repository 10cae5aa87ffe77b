//! Rules about folders hold wherever a tool begins to look.

use std::{fs, path::Path, sync::Arc};

use archon_tools::{EngineOptions, Permissions, ToolEngine, Workspace, builtin::file_tools};
use archon_types::{Answer, ApprovalRequest, Approver, Context, Decision, Json, ToolCall, ToolResult};
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::{context, engine, run_call};

/// `treasure` stands in a file of each of these.
const FILES: [&str; 6] =
    ["open.txt", "docs/open.txt", "secrets/a.txt", "secrets/deep/b.txt", "docs/secrets/c.txt", "docs/.env"];

fn folder() -> (TempDir, Workspace) {
    let folder = TempDir::new().unwrap();
    for file in FILES {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "treasure\n").unwrap();
    }
    let workspace = Workspace::new(folder.path()).unwrap();
    (folder, workspace)
}

fn with_rules(workspace: &Workspace, deny: &[&str], ask: &[&str]) -> ToolEngine {
    let mut options = EngineOptions::default();
    options.permissions = Permissions::parse(deny, ask, &[]).unwrap();
    engine(file_tools(workspace)).with_options(options)
}

async fn say(engine: &ToolEngine, tool: &str, arguments: Json) -> ToolResult {
    say_in(engine, tool, arguments, &context()).await
}

async fn say_in(engine: &ToolEngine, tool: &str, arguments: Json, run: &Context) -> ToolResult {
    run_call(engine, &ToolCall::new("c", tool, arguments), run).await
}

const LEFT_OUT: &str = "(1 place was left out: a rule does not let this tool look there unasked. Go on without, or ask \
                        the person to change the rule.)";

// spec: AP-11, TE-44
#[tokio::test]
async fn denied_files_below_a_folder_are_not_listed_or_read() {
    let (_folder, workspace) = folder();
    let deny = ["search(secrets/**)", "glob(secrets/**)", "list_files(secrets/**)"];
    let engine = with_rules(&workspace, &deny, &[]);
    let found = say(&engine, "search", json!({ "pattern": "treasure" })).await;
    assert_eq!(
        found.text(),
        format!(
            "docs/open.txt:1: treasure\ndocs/secrets/c.txt:1: treasure\nopen.txt:1: treasure\n{LEFT_OUT}"
        )
    );
    assert_eq!(found.metadata["left_out"], 1);
    let found = say(&engine, "glob", json!({ "pattern": "**/*.txt" })).await;
    assert!(!found.text().contains("secrets/a") && found.text().ends_with(LEFT_OUT), "{}", found.text());
    let listed = say(&engine, "list_files", json!({})).await;
    assert_eq!(listed.text(), format!("docs/\nopen.txt\n{LEFT_OUT}"));
    let listed = say(&engine, "list_files", json!({ "recursive": true })).await;
    assert_eq!(listed.text(), format!("docs/open.txt\ndocs/secrets/c.txt\nopen.txt\n{LEFT_OUT}"));
    for tool in ["search", "glob", "list_files"] {
        for path in ["secrets", "secrets/deep", "docs/../secrets"] {
            let mut arguments = json!({ "pattern": "*", "path": path });
            if tool == "search" {
                arguments["pattern"] = "treasure".into();
            }
            let refused = say(&engine, tool, arguments).await;
            assert_eq!(
                refused.metadata["error_type"],
                "permission_denied",
                "{tool} {path}: {}",
                refused.text()
            );
        }
    }
    // A rule is about the tool that it names: nobody denied reading.
    assert_eq!(say(&engine, "read_file", json!({ "path": "secrets/a.txt" })).await.text(), "treasure\n");
}

// spec: AP-11, TE-44
#[tokio::test]
async fn search_does_not_show_denied_files() {
    let (_folder, workspace) = folder();
    let engine = with_rules(&workspace, &["read_file(**/secrets/**)"], &[]);
    let found = say(&engine, "search", json!({ "pattern": "treasure" })).await;
    assert!(
        found.text().starts_with("docs/open.txt:1: treasure\nopen.txt:1: treasure\n(2 places were"),
        "{}",
        found.text()
    );
    for path in ["secrets", "secrets/a.txt"] {
        let found = say(&engine, "search", json!({ "pattern": "treasure", "path": path })).await;
        assert_eq!(found.text(), format!("No matches for 'treasure' in 0 files.\n{LEFT_OUT}"));
    }
    // What is there may still be listed: the rule is about reading.
    let listed = say(&engine, "list_files", json!({ "path": "secrets" })).await;
    assert_eq!(listed.text(), "secrets/a.txt\nsecrets/deep/");
}

/// Approves every call, or does not answer.
struct Says(bool);

impl Approver for Says {
    async fn decide(&self, _: &ApprovalRequest) -> Decision {
        let no = Answer::Cancel { reason: String::new() };
        Decision::Now(if self.0 { Answer::Approve } else { no })
    }
}

// spec: AP-11, AP-15
#[tokio::test]
async fn files_under_ask_rules_are_listed_only_in_approved_calls() {
    let (_folder, workspace) = folder();
    let engine = with_rules(&workspace, &[], &["search(secrets/**)"]).with_approver(Arc::new(Says(true)));
    let above = say(&engine, "search", json!({ "pattern": "treasure" })).await;
    assert!(!above.text().contains("\nsecrets/") && above.text().ends_with(LEFT_OUT), "{}", above.text());
    let there = say(&engine, "search", json!({ "pattern": "treasure", "path": "secrets" })).await;
    assert_eq!(there.text(), "secrets/a.txt:1: treasure\nsecrets/deep/b.txt:1: treasure");
    let engine = engine.with_approver(Arc::new(Says(false)));
    assert!(say(&engine, "search", json!({ "pattern": "treasure", "path": "secrets" })).await.is_error());
    let mut run = context();
    run.trusted = Arc::new(["search".to_owned()]);
    let trusted = say_in(&engine, "search", json!({ "pattern": "treasure" }), &run).await;
    assert!(trusted.text().contains("secrets/deep/b.txt:1: treasure"), "{}", trusted.text());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: u32::try_from(archon_testkit::cases(100, 2_000)).unwrap(), failure_persistence: None, ..ProptestConfig::default() })]

    // spec: AP-11. Whatever a rule denies at its place, no call that begins above or beside shows.
    #[test]
    fn no_file_tool_shows_denied_files(
        tool in prop::sample::select(vec!["search", "glob", "list_files"]),
        of in prop::sample::select(vec!["secrets/**", "**/secrets/**", "docs/*", "docs/**", "*", "**", "secrets", "**/*.txt", "secrets/deep", "./docs/secrets"]),
        begin in prop::sample::select(vec![".", "docs", "secrets", "secrets/deep", "docs/secrets", "secrets/a.txt"]),
        recursive in any::<bool>(),
    ) {
        let (_folder, workspace) = folder();
        let rule = format!("{tool}({of})");
        let engine = with_rules(&workspace, &[&rule], &[]);
        let run = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let arguments = |path: &str| match tool {
            "list_files" => json!({ "path": path, "recursive": recursive }),
            "glob" => json!({ "path": path, "pattern": "**" }),
            _ => json!({ "path": path, "pattern": "treasure" }),
        };
        let shown = run.block_on(say(&engine, tool, arguments(begin)));
        let shown = shown.text();
        for file in FILES {
            // A call that begins at the file itself, or at a folder on the way from where the search began.
            // Where a rule denies to begin, at the file or at any folder above it, nothing below is shown.
            let is_denied = Path::new(file).ancestors().filter_map(Path::to_str).any(|place| {
                let place = if place.is_empty() { "." } else { place };
                let there = run.block_on(say(&engine, tool, arguments(place)));
                there.text().contains("denies it")
            });
            let name = if tool == "search" { format!("{file}:") } else { file.to_owned() };
            prop_assert!(!is_denied || !shown.lines().any(|line| line.starts_with(&name)), "{rule} from {begin}: {shown}");
        }
    }
}
