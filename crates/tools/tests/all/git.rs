//! The git tools: what they say of a repository, and that nothing in it runs with more than reading.

use std::{fs, path::Path, process::Command, sync::Arc};

use archon_tools::{
    ToolEngine, Workspace,
    builtin::{GitDiff, GitLog, GitStatus},
    sandbox::{self, SandboxOptions},
};
use archon_types::{Json, Tool, ToolCall};
use expect_test::{Expect, expect};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    fixture::{engine, run_call},
    sandbox::run,
};

fn git(folder: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(folder).env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1");
    for (name, value) in [("NAME", "Ann"), ("EMAIL", "ann@example.com"), ("DATE", "2026-01-02T03:04:05Z")] {
        git.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
    }
    let done = git.output().unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A repository with two commits and three changes.
fn repository() -> (TempDir, ToolEngine) {
    let folder = TempDir::new().unwrap();
    let root = folder.path();
    git(root, &["init", "-q", "-b", "main"]);
    fs::write(root.join("a.txt"), "one\ntwo\n").unwrap();
    git(root, &["add", "."]);
    git(root, &["commit", "-q", "-m", "Begin"]);
    fs::write(root.join("a.txt"), "one\n2\n").unwrap();
    git(root, &["commit", "-q", "-a", "-m", "Count"]);
    fs::write(root.join("a.txt"), "1\n2\n").unwrap();
    fs::write(root.join("staged.txt"), "x\n").unwrap();
    git(root, &["add", "staged.txt"]);
    fs::write(root.join("new.txt"), "").unwrap();
    let workspace = Workspace::new(root).unwrap();
    let options = SandboxOptions::default;
    let tools: [Arc<dyn Tool>; 3] = [
        Arc::new(GitStatus::new(workspace.clone(), options())),
        Arc::new(GitLog::new(workspace.clone(), options())),
        Arc::new(GitDiff::new(workspace, options())),
    ];
    (folder, engine(tools))
}

async fn say(engine: &ToolEngine, tool: &str, arguments: Json) -> String {
    run_call(engine, &ToolCall::new("c", tool, arguments), &run()).await.text()
}

/// Without the hashes, which depend on git's version no more than on ours, but say nothing.
async fn check(engine: &ToolEngine, tool: &str, arguments: Json, expected: Expect) {
    let text = say(engine, tool, arguments).await;
    let lines = text.lines().filter(|line| !line.starts_with("index "));
    expected.assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}

// spec: TE-48, TE-29
#[tokio::test]
async fn a_repository_is_looked_at() {
    if sandbox::missing().is_some() {
        return;
    }
    let (_folder, engine) = repository();
    check(
        &engine,
        "git_status",
        json!({}),
        expect![[r#"
        ## main
         M a.txt
        A  staged.txt
        ?? new.txt"#]],
    )
    .await;
    let log = say(&engine, "git_log", json!({})).await;
    let subjects: Vec<_> = log.lines().map(|line| line.split_once(' ').unwrap().1).collect();
    assert_eq!(subjects, ["2026-01-02 03:04:05 +0000 Ann: Count", "2026-01-02 03:04:05 +0000 Ann: Begin"]);
    assert_eq!(say(&engine, "git_log", json!({ "limit": 1 })).await.lines().count(), 1);
    check(
        &engine,
        "git_diff",
        json!({ "path": "a.txt" }),
        expect![[r#"
        diff --git a/a.txt b/a.txt
        --- a/a.txt
        +++ b/a.txt
        @@ -1,2 +1,2 @@
        -one
        +1
         2"#]],
    )
    .await;
    check(
        &engine,
        "git_diff",
        json!({ "staged": true }),
        expect![[r#"
        diff --git a/staged.txt b/staged.txt
        new file mode 100644
        --- /dev/null
        +++ b/staged.txt
        @@ -0,0 +1 @@
        +x"#]],
    )
    .await;
    assert_eq!(say(&engine, "git_diff", json!({ "path": "new.txt" })).await, "No differences.");
    for spec in engine.registry().specs().iter() {
        assert!(
            spec.annotations.concurrency_safe && spec.annotations.permissions.is_empty(),
            "{}",
            spec.name
        );
    }
}

// spec: TE-48
#[tokio::test]
async fn neither_an_argument_nor_the_repository_runs_anything() {
    if sandbox::missing().is_some() {
        return;
    }
    let (folder, engine) = repository();
    let root = folder.path();
    let harm = |name: &str| format!("sh -c 'echo harm > {}; cat'", root.join(name).display());
    for (key, name) in [
        ("core.fsmonitor", "fsmonitor"),
        ("core.pager", "pager"),
        ("diff.external", "external"),
        ("diff.x.textconv", "textconv"),
        ("filter.x.clean", "clean"),
    ] {
        git(root, &["config", key, &harm(name)]);
    }
    fs::write(root.join(".gitattributes"), "*.txt diff=x filter=x\n").unwrap();
    for (tool, arguments) in [
        ("git_status", json!({})),
        ("git_status", json!({ "path": "--output=option" })),
        ("git_log", json!({ "revision": "--output=option" })),
        ("git_diff", json!({})),
        ("git_diff", json!({ "revision": "--output=option" })),
        ("git_diff", json!({ "revision": "--ext-diff" })),
        ("git_diff", json!({ "path": "--output=option" })),
    ] {
        say(&engine, tool, arguments).await;
        for name in ["fsmonitor", "pager", "external", "textconv", "clean", "option"] {
            assert!(!root.join(name).exists(), "{tool}: {name}");
        }
    }
    let elsewhere = TempDir::new().unwrap();
    let status = GitStatus::new(Workspace::new(elsewhere.path()).unwrap(), SandboxOptions::default());
    let text =
        say(&crate::fixture::engine([Arc::new(status) as Arc<dyn Tool>]), "git_status", json!({})).await;
    assert!(text.starts_with("Error: git: ") && text.contains("not a git repository"), "{text}");
}
