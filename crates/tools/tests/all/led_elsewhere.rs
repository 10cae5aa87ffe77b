//! Paths that lead elsewhere when a call runs: approvals, rules and listings apply to their earlier
//! targets.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use archon_tools::{
    Ask, EngineOptions, Permissions, ToolEngine, Workspace,
    builtin::{Glob, ListFiles, file_tools},
};
use archon_types::{
    Answer, ApprovalRequest, Approver, Context, Decision, Executed, Json, Prepared, Tool, ToolCall,
    ToolResult, Toolbox,
};
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::{call_directly, call_id, context, engine};

/// A workspace with two folders, `docs` and `hooks`.
struct Fixture {
    folder: TempDir,
    engine: ToolEngine,
}

fn fixture(change: impl FnOnce(&mut EngineOptions)) -> Fixture {
    let folder = TempDir::new().unwrap();
    for name in ["docs", "hooks"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("old"), name).unwrap();
    }
    let mut options = EngineOptions::default().granting(["fs_write"]);
    options.ask = Ask::BeforeChanges;
    change(&mut options);
    let workspace = Workspace::new(folder.path()).unwrap();
    Fixture { folder, engine: engine(file_tools(&workspace)).with_options(options) }
}

impl Fixture {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn swap(&self) {
        swap(self.folder.path());
    }

    async fn prepare(&self, call: &ToolCall, run: &Context) -> Prepared {
        self.engine.prepare(call_id(), call, run).await
    }
}

/// From now on `docs` is a link to `hooks`.
fn swap(folder: &Path) {
    fs::rename(folder.join("docs"), folder.join("docs.old")).unwrap();
    symlink("hooks", folder.join("docs")).unwrap();
}

fn write() -> ToolCall {
    ToolCall::new("c", "write_file", json!({ "path": "docs/post-commit", "content": "x" }))
}

fn run_that_can_ask() -> Context {
    let mut run = context();
    run.can_ask = true;
    run
}

fn question_of(prepared: Prepared) -> ApprovalRequest {
    match prepared {
        Prepared::Ask(question) => *question,
        other => panic!("nobody is asked: {other:?}"),
    }
}

fn done(executed: Executed) -> ToolResult {
    match executed {
        Executed::Done(result) => *result,
        other => panic!("{other:?}"),
    }
}

// spec: AP-05
#[tokio::test]
async fn a_yes_holds_only_as_long_as_the_path_leads_where_it_led() {
    let fixture = fixture(|_| ());
    let mut run = run_that_can_ask();
    let question = question_of(fixture.prepare(&write(), &run).await);
    assert_eq!(question.action_summary, "Create 'docs/post-commit'");
    run.agreed = Some(question.binding.as_str().into());
    assert!(matches!(fixture.prepare(&write(), &run).await, Prepared::Ready(_)), "it leads there still");
    fixture.swap();
    let again = question_of(fixture.prepare(&write(), &run).await);
    assert_eq!(again.action_summary, "Create 'hooks/post-commit'");
    assert_ne!(again.binding, question.binding);
    assert!(!fixture.path("hooks/post-commit").exists());
    run.agreed = Some(again.binding.as_str().into());
    assert!(matches!(fixture.prepare(&write(), &run).await, Prepared::Ready(_)), "it was agreed to now");
}

// spec: AP-05
#[tokio::test]
async fn a_call_that_was_let_through_goes_nowhere_else() {
    for (tool, more, text) in [
        ("write_file", json!({ "path": "docs/old", "content": "x" }), "docs/old"),
        ("edit_file", json!({ "path": "docs/old", "old_text": "docs", "new_text": "x" }), "docs/old"),
        ("read_file", json!({ "path": "docs/old" }), "docs/old"),
        ("list_files", json!({ "path": "docs" }), "docs"),
        ("glob", json!({ "path": "docs", "pattern": "*" }), "docs"),
        ("search", json!({ "path": "docs", "pattern": "o" }), "docs"),
    ] {
        let fixture = fixture(|options| {
            options.permissions =
                Permissions::parse([], [], ["write_file", "edit_file", "read_file"]).unwrap();
        });
        let run = context();
        for path in ["docs/old", "hooks/old"] {
            let read = ToolCall::new("r", "read_file", json!({ "path": path }));
            let Prepared::Ready(ready) = fixture.prepare(&read, &run).await else { panic!("not read") };
            done(fixture.engine.execute(ready, &run).await);
        }
        let call = ToolCall::new("c", tool, more);
        let Prepared::Ready(ready) = fixture.prepare(&call, &run).await else {
            panic!("{tool} is not ready")
        };
        fixture.swap();
        let result = done(fixture.engine.execute(ready, &run).await);
        let elsewhere = text.replace("docs", "hooks");
        let expected = format!(
            "Error: '{text}' leads to '{elsewhere}' now, but led to '{text}' when the call was allowed: a link or a folder \
             on the way was changed meanwhile. Nothing was done. Look what is there, and call again if it is what you mean."
        );
        assert_eq!(result.text(), expected, "{tool}");
        assert_eq!(result.metadata["error_type"], "permission_denied");
        assert_eq!(fs::read_to_string(fixture.path("hooks/old")).unwrap(), "hooks");
    }
}

/// Answers in order, and swaps the folder before the first answer.
struct Swaps {
    folder: PathBuf,
    answers: Mutex<Vec<Answer>>,
    asked: Mutex<Vec<String>>,
}

impl Approver for Swaps {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        if self.asked.lock().unwrap().is_empty() {
            swap(&self.folder);
        }
        self.asked.lock().unwrap().push(request.action_summary.clone());
        let answer = self.answers.lock().unwrap().remove(0);
        Decision::Now(answer)
    }
}

// spec: AP-05
#[tokio::test]
async fn approval_is_repeated_if_the_path_changes_while_waiting() {
    let edit = |path: &str| Answer::Edit { arguments: json!({ "path": path, "content": "y" }) };
    let no = Answer::Cancel { reason: String::new() };
    let (docs, hooks) = ("Create 'docs/post-commit'", "Create 'hooks/post-commit'");
    for (answers, expected, written) in [
        (vec![Answer::Approve, no.clone()], [docs, hooks], false),
        (vec![edit("docs/post-commit"), no.clone()], [docs, hooks], false),
        (vec![edit("hooks/other"), no], [docs, "Create 'hooks/other'"], false),
        (vec![edit("docs/post-commit"), Answer::Approve], [docs, hooks], true),
    ] {
        let mut fixture = fixture(|_| ());
        let folder = fixture.folder.path().to_owned();
        let swaps = Arc::new(Swaps { folder, answers: Mutex::new(answers), asked: Mutex::default() });
        fixture.engine = fixture.engine.with_approver(swaps.clone());
        let prepared = fixture.prepare(&write(), &context()).await;
        assert_eq!(*swaps.asked.lock().unwrap(), expected);
        match prepared {
            Prepared::Ready(ready) => drop(done(fixture.engine.execute(ready, &context()).await)),
            Prepared::Refused(_) => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(fixture.path("hooks/post-commit").exists(), written);
        assert!(!fixture.path("hooks/other").exists());
    }
}

/// Ends a loop, also when a test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Exchanges two names of a folder again and again while `work` is done.
fn while_exchanged(folder: &Path, names: [&str; 2], work: impl FnOnce()) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let (stop, [a, b]) = (AtomicBool::new(false), names.map(|name| folder.join(name)));
    std::thread::scope(|scope| {
        let _stopped = Stop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE);
            }
        });
        work();
    });
}

// spec: TE-41
#[test]
fn a_folder_that_becomes_a_link_meanwhile_shows_no_names_from_outside() {
    let outer = TempDir::new().unwrap();
    for folder in ["ws/swing/below", "outside/below"] {
        fs::create_dir_all(outer.path().join(folder)).unwrap();
    }
    for file in ["ws/swing/mine", "ws/swing/below/mine", "outside/secret", "outside/below/secret"] {
        fs::write(outer.path().join(file), "").unwrap();
    }
    symlink("../outside", outer.path().join("ws/link")).unwrap();
    let workspace = Workspace::new(outer.path().join("ws")).unwrap();
    let (list, glob) = (ListFiles::new(workspace.clone()), Glob::new(workspace));
    let calls: [(&dyn Tool, Json); 5] = [
        (&list, json!({ "path": "swing" })),
        (&list, json!({ "recursive": true })),
        (&list, json!({ "path": "swing", "pattern": "*" })),
        (&list, json!({ "path": "swing/secrets" })),
        (&glob, json!({ "pattern": "**/*" })),
    ];
    let mut listed = 0;
    while_exchanged(&outer.path().join("ws"), ["swing", "link"], || {
        for _ in 0..archon_testkit::cases(400, 10_000) {
            for (tool, arguments) in &calls {
                let said = match call_directly(*tool, arguments.clone()) {
                    Ok(result) => result.text(),
                    Err(error) => error.to_string().replace("swing/secrets", ""),
                };
                assert!(!said.contains("secret"), "{arguments}: {said}");
                listed += usize::from(said.contains("mine"));
            }
        }
    });
    assert!(listed > 0, "nothing was listed");
}
