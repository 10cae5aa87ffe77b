//! The git tools: their results, and that nothing in a repository runs with more than read access.

use std::{fs, path::Path, process::Command, sync::Arc};

use archon_tools::{
    ToolEngine, Workspace,
    builtin::{GitDiff, GitLog, GitStatus},
    sandbox::{self, Isolation, SandboxOptions},
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
    let folder = changed();
    let engine = tools(folder.path(), Isolation::Required);
    (folder, engine)
}

fn changed() -> TempDir {
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
    folder
}

fn tools(root: &Path, isolation: Isolation) -> ToolEngine {
    let workspace = Workspace::new(root).unwrap();
    let mut options = SandboxOptions::default();
    options.isolation = isolation;
    let tools: [Arc<dyn Tool>; 3] = [
        Arc::new(GitStatus::new(workspace.clone(), options.clone())),
        Arc::new(GitLog::new(workspace.clone(), options.clone())),
        Arc::new(GitDiff::new(workspace, options)),
    ];
    engine(tools)
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

/// A way in which a repository has git run a program.
struct Way {
    name: &'static str,
    /// Keys of the configuration; `HARM` is a command that leaves a file and passes on its input.
    config: &'static [(&'static str, &'static str)],
    /// The preparation of the attack, which runs before the configuration is set.
    prepare: fn(&Path),
    /// Shows that a git that nobody holds back would run it.
    shown_by: &'static [&'static str],
}

fn attributes(root: &Path) {
    fs::write(root.join(".gitattributes"), "*.txt diff=x filter=x\n").unwrap();
}

/// A commit with an invalid signature.
fn signed(root: &Path) {
    let tree = output(root, &["rev-parse", "HEAD^{tree}"]);
    let who = "Ann <ann@example.com> 1700000000 +0000";
    let signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----";
    let commit = format!("tree {tree}\nauthor {who}\ncommitter {who}\n{signature}\n\nSigned\n");
    fs::write(root.join("commit"), commit).unwrap();
    let commit = output(root, &["hash-object", "-t", "commit", "-w", "commit"]);
    git(root, &["update-ref", "HEAD", &commit]);
}

/// A repository in the repository, with a program in its own configuration.
fn submodule(root: &Path) {
    let inner = root.join("inner");
    fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "-q", "-b", "main"]);
    fs::write(inner.join("b.txt"), "b\n").unwrap();
    git(&inner, &["add", "."]);
    git(&inner, &["commit", "-q", "-m", "Begin"]);
    git(root, &["-c", "advice.addEmbeddedRepo=false", "add", "inner"]);
    git(root, &["commit", "-q", "-m", "With another"]);
    // Of the same length, so that it has to be read.
    fs::write(inner.join("b.txt"), "c\n").unwrap();
    fs::write(inner.join(".git/info/attributes"), "*.txt filter=y\n").unwrap();
    git(&inner, &["config", "filter.y.clean", &harm(root)]);
}

/// A clone that lacks objects that it could fetch.
fn partial(root: &Path) {
    let blob = output(root, &["rev-parse", "HEAD:a.txt"]);
    fs::remove_file(root.join(".git/objects").join(&blob[..2]).join(&blob[2..])).unwrap();
    git(root, &["config", "core.repositoryFormatVersion", "1"]);
}

fn hook(root: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let file = root.join(".git/hooks/post-index-change");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, format!("#!/bin/sh\n{}\n", harm(root))).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    git(root, &["add", "a.txt"]);
    // The same content with other times: git would write down that it looked.
    fs::write(root.join("a.txt"), "1\n2\n").unwrap();
    let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(9);
    fs::File::options().write(true).open(root.join("a.txt")).unwrap().set_modified(earlier).unwrap();
    let _ = fs::remove_file(harmed(root));
}

const WAYS: &[Way] = &[
    Way { name: "fsmonitor", config: &[("core.fsmonitor", "HARM")], prepare: |_| (), shown_by: &["status"] },
    Way { name: "clean", config: &[("filter.x.clean", "HARM")], prepare: attributes, shown_by: &["diff"] },
    Way {
        name: "process",
        config: &[("filter.x.process", "HARM"), ("filter.x.required", "true")],
        prepare: attributes,
        shown_by: &["diff"],
    },
    Way {
        name: "odd filter",
        config: &[("filter.x y.z.clean", "HARM")],
        prepare: |root| {
            fs::write(root.join(".gitattributes"), "*.txt filter=x\n").unwrap();
            // No attribute can name it, but a name like this must not hide the next one.
            git(root, &["config", "filter.x.clean", &harm(root)]);
        },
        shown_by: &["diff"],
    },
    Way { name: "external", config: &[("diff.external", "HARM")], prepare: |_| (), shown_by: &["diff"] },
    Way { name: "driver", config: &[("diff.x.command", "HARM")], prepare: attributes, shown_by: &["diff"] },
    Way {
        name: "textconv",
        config: &[("diff.x.textconv", "HARM")],
        prepare: attributes,
        shown_by: &["diff"],
    },
    Way {
        name: "signature",
        config: &[("log.showSignature", "true"), ("gpg.program", "HARM")],
        prepare: signed,
        shown_by: &["log", "--format=%h"],
    },
    Way { name: "submodule", config: &[], prepare: submodule, shown_by: &["status"] },
    Way {
        name: "diff of a submodule",
        config: &[("diff.submodule", "diff")],
        prepare: submodule,
        shown_by: &["diff"],
    },
    Way {
        name: "lazy fetch",
        config: &[
            ("extensions.partialClone", "origin"),
            ("remote.origin.promisor", "true"),
            ("remote.origin.url", "ext::HARM"),
            ("protocol.ext.allow", "always"),
        ],
        prepare: partial,
        shown_by: &["diff", "HEAD"],
    },
    Way {
        name: "upload-pack",
        config: &[
            ("extensions.partialClone", "origin"),
            ("remote.origin.promisor", "true"),
            ("remote.origin.url", "."),
            ("remote.origin.uploadpack", "HARM;"),
        ],
        prepare: partial,
        shown_by: &["diff", "HEAD"],
    },
    Way { name: "hook", config: &[], prepare: hook, shown_by: &["status"] },
    // Nobody shows these two without a terminal.
    Way {
        name: "pager",
        config: &[("core.pager", "HARM"), ("pager.log", "true")],
        prepare: |_| (),
        shown_by: &[],
    },
    Way { name: "alias", config: &[("alias.status", "!HARM")], prepare: |_| (), shown_by: &[] },
];

fn harmed(root: &Path) -> std::path::PathBuf {
    root.join(".git/harmed")
}

/// A program that records that it ran.
fn harm(root: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let program = root.join(".git/harm");
    fs::write(&program, format!("#!/bin/sh\necho harm > {}\n", harmed(root).display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program.display().to_string()
}

fn output(folder: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git").args(arguments).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// Where the kernel cannot hold what a repository names, none of it runs.
// spec: TE-48
#[test]
fn without_a_sandbox_no_program_of_a_repository_runs() {
    for way in WAYS {
        let folder = changed();
        let root = folder.path();
        (way.prepare)(root);
        for (key, value) in way.config {
            git(root, &["config", key, &value.replace("HARM", &harm(root))]);
        }
        if !way.shown_by.is_empty() {
            let plain = changed_copy(root);
            let mut command = Command::new("git");
            command.args(way.shown_by).current_dir(plain.path()).env("HOME", plain.path());
            let said = command.output().unwrap();
            assert!(harmed(root).exists(), "{}: it shows nothing: {said:?}", way.name);
            fs::remove_file(harmed(root)).unwrap();
        }
        without_landlock(|| {
            let engine = tools(root, Isolation::WithoutKernel);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            for (tool, arguments) in [
                ("git_status", json!({})),
                ("git_log", json!({})),
                ("git_log", json!({ "path": "a.txt" })),
                ("git_diff", json!({})),
                ("git_diff", json!({ "staged": true })),
                ("git_diff", json!({ "revision": "HEAD~1" })),
            ] {
                let said = runtime.block_on(say(&engine, tool, arguments));
                assert!(!harmed(root).exists(), "{}: {tool} ran a program: {said}", way.name);
            }
        });
    }
}

// spec: TE-48
#[test]
fn git_tools_without_a_sandbox_read_safely_or_refuse() {
    let folder = changed();
    without_landlock(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ask =
            |isolation| runtime.block_on(say(&tools(folder.path(), isolation), "git_status", json!({})));
        assert_eq!(ask(Isolation::WithoutKernel), "## main\n M a.txt\nA  staged.txt\n?? new.txt\n");
        let refused = ask(Isolation::Required);
        assert!(refused.starts_with("Error: Commands cannot be restricted to the workspace"), "{refused}");
        git(folder.path(), &["config", "filter.a=b.clean", "true"]);
        let refused = ask(Isolation::WithoutKernel);
        assert!(
            refused.contains("The filter filter.a=b of the repository cannot be turned off"),
            "{refused}"
        );
    });
}

/// The same files once more, in which git may write down what it saw.
fn changed_copy(root: &Path) -> TempDir {
    let copy = TempDir::new().unwrap();
    let done = Command::new("cp").arg("-a").arg(root.join(".")).arg(copy.path()).status().unwrap();
    assert!(done.success());
    copy
}

/// As on a system whose kernel has no Landlock: a filter of this thread and what it starts hides it.
fn without_landlock(work: impl FnOnce() + Send) {
    use seccompiler::{SeccompAction, SeccompFilter};

    /// The same number on every processor.
    const LANDLOCK_CREATE_RULESET: i64 = 444;
    const ENOSYS: u32 = 38;
    let hidden = [(LANDLOCK_CREATE_RULESET, Vec::new())].into_iter().collect();
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter =
        SeccompFilter::new(hidden, SeccompAction::Allow, SeccompAction::Errno(ENOSYS), arch).unwrap();
    let filter: seccompiler::BpfProgram = filter.try_into().unwrap();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            seccompiler::apply_filter(&filter).unwrap();
            assert!(sandbox::missing().is_some());
            work();
        });
        thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why));
    });
}
