//! The tools that change files: their writes, their refusals, and that no path leads out of the workspace.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use archon_tools::{
    Ask, EngineOptions, ToolEngine, Workspace,
    builtin::{EditFile, Glob, ReadFile, WriteFile, file_tools},
};
use archon_types::{Context, Effect, Json, Prepared, Tool, ToolCall, Toolbox};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::{call_directly, call_id, context, engine, run_call};

const SECRET: &str = "the treasure is buried under the oak";

struct Fixture {
    outer: TempDir,
    workspace: Workspace,
}

/// `outer/ws` with files, beside a secret, with links that lead out.
fn fixture() -> Fixture {
    let outer = TempDir::new().unwrap();
    let root = outer.path().join("ws");
    fs::create_dir_all(root.join("dir/deep")).unwrap();
    fs::create_dir(outer.path().join("ws-evil")).unwrap();
    for (path, content) in
        [("a.txt", "one\ntwo\nthree\n"), ("dir/b.txt", "inside"), ("dir/deep/Ünï.txt", "inside")]
    {
        fs::write(root.join(path), content).unwrap();
    }
    for secret in ["secret.txt", "ws-evil/secret.txt"] {
        fs::write(outer.path().join(secret), SECRET).unwrap();
    }
    for (link, target) in [
        ("file_out", "../secret.txt"),
        ("dir_out", ".."),
        ("dir/up", "../.."),
        ("inside", "dir"),
        ("loop", "loop"),
        ("dangling", "nowhere"),
        ("dangling_out", "../nowhere"),
        ("to_a", "a.txt"),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
    let workspace = Workspace::new(&root).unwrap();
    Fixture { outer, workspace }
}

impl Fixture {
    fn root(&self) -> &Path {
        self.workspace.root()
    }

    /// The tools in an engine that grants the permissions that they need.
    fn engine(&self) -> ToolEngine {
        let granted = EngineOptions::default().granting(["fs_write"]).asking(Ask::WhereRequired);
        engine(file_tools(&self.workspace)).with_options(granted)
    }
}

async fn say(engine: &ToolEngine, tool: &str, arguments: Json) -> String {
    run_call(engine, &ToolCall::new("c", tool, arguments), &context()).await.text()
}

// spec: TE-42, TE-32
#[tokio::test]
async fn a_file_is_created_with_its_folders_and_replaced_once_it_was_read() {
    let fixture = fixture();
    let engine = fixture.engine();
    let write =
        |path: &str, content: &str| say(&engine, "write_file", json!({ "path": path, "content": content }));
    assert_eq!(write("new/deep/x.txt", "hello\n").await, "Created 'new/deep/x.txt' (6 bytes, 1 lines).");
    assert_eq!(fs::read_to_string(fixture.root().join("new/deep/x.txt")).unwrap(), "hello\n");
    assert_eq!(
        write("new/deep/x.txt", "").await,
        "Replaced 'new/deep/x.txt' (0 bytes, 0 lines).",
        "it knows its own"
    );
    assert_eq!(
        write("a.txt", "lost").await,
        "Error: File exists but has not been read in this session: 'a.txt'. It was not touched. Use read_file to examine \
         its content before you make changes."
    );
    assert_eq!(write("a.txt", "one\ntwo\nthree\n").await, "'a.txt' has exactly this content already.");
    say(&engine, "read_file", json!({ "path": "a.txt", "start_line": 1, "end_line": 1 })).await;
    fs::set_permissions(fixture.root().join("a.txt"), fs::Permissions::from_mode(0o754)).unwrap();
    assert!(write("a.txt", "lost").await.contains("was changed since it was read"), "its mode was");
    say(&engine, "read_file", json!({ "path": "a.txt" })).await;
    let reader = fs::File::open(fixture.root().join("a.txt")).unwrap();
    // By another name: it is the file that was read, not the path.
    assert_eq!(write("./dir/../to_a", "new").await, "Replaced 'a.txt' (3 bytes, 1 lines).");
    assert_eq!(
        std::io::read_to_string(reader).unwrap(),
        "one\ntwo\nthree\n",
        "who reads sees old or new, whole"
    );
    let of = fs::metadata(fixture.root().join("a.txt")).unwrap();
    assert_eq!((of.permissions().mode() & 0o777, of.len()), (0o754, 3));
    fs::write(fixture.root().join("a.txt"), "by another").unwrap();
    assert_eq!(
        write("a.txt", "lost").await,
        "Error: 'a.txt' was changed since it was read. It was not touched. Read it again with read_file, then make the \
         change."
    );
    let left: Vec<_> = fs::read_dir(fixture.root()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("tmp")), "{left:?}");
}

// spec: TE-42
#[test]
fn a_file_gets_at_most_64_new_folders_and_a_path_that_the_system_takes() {
    let fixture = fixture();
    let write = |path: &str| {
        let write = WriteFile::new(fixture.workspace.clone());
        call_directly(&write, json!({ "path": path, "content": "x" })).map(|result| result.text())
    };
    let made = write(&format!("{}x", "d/".repeat(64)));
    assert!(made.is_ok_and(|text| text.starts_with("Created 'd/d/d/")));
    let refused = write(&format!("{}x", "e/".repeat(65))).unwrap_err().to_string();
    let advice =
        "needs 65 new folders in each other; a call makes at most 64. Take a path with fewer folders.";
    assert!(refused.ends_with(advice), "{refused}");
    assert!(!fixture.root().join("e").exists(), "none of them was made");
    for long in [format!("{}x", "d/".repeat(2_100)), format!("{}/x", vec!["n".repeat(200); 20].join("/"))] {
        let refused = write(&long).unwrap_err().to_string();
        let rule =
            "bytes from the root of the file system, but at most 4000 are allowed. Take a shorter path.";
        assert!(refused.contains("' is too long: ") && refused.ends_with(rule), "{refused}");
    }
}

// spec: TE-32
#[tokio::test]
async fn file_whose_reading_failed_is_not_known_and_not_replaced() {
    let fixture = fixture();
    let engine = fixture.engine();
    fs::write(fixture.root().join("blob"), b"\0\x01\x02").unwrap();
    let read = say(&engine, "read_file", json!({ "path": "blob" })).await;
    assert!(read.contains("binary file"), "{read}");
    let written = say(&engine, "write_file", json!({ "path": "blob", "content": "text" })).await;
    assert!(written.starts_with("Error: "), "{written}");
    assert_eq!(fs::read(fixture.root().join("blob")).unwrap(), b"\0\x01\x02");
}

// spec: TE-32
#[tokio::test]
async fn write_file_read_state_is_per_session() {
    let fixture = fixture();
    let engine = fixture.engine();
    say(&engine, "read_file", json!({ "path": "a.txt" })).await;
    let mut other: Context = context();
    other.session = "another".into();
    let call = ToolCall::new("c", "write_file", json!({ "path": "a.txt", "content": "x" }));
    let text = run_call(&engine, &call, &other).await.text();
    assert!(text.contains("has not been read in this session"), "{text}");
}

// spec: TE-42, TE-43, TE-37
#[tokio::test]
async fn writing_takes_a_permission() {
    let fixture = fixture();
    let engine = engine(file_tools(&fixture.workspace));
    for (tool, arguments) in [
        ("write_file", json!({ "path": "x", "content": "" })),
        ("edit_file", json!({ "path": "a.txt", "old_text": "one", "new_text": "1" })),
    ] {
        assert!(say(&engine, tool, arguments).await.contains("needs the permission fs_write"));
    }
    let effects: Vec<_> = [WriteFile::new(fixture.workspace.clone()).spec().annotations.effect]
        .into_iter()
        .chain([EditFile::new(fixture.workspace.clone()).spec().annotations.effect])
        .collect();
    assert_eq!(effects, [Effect::Idempotent, Effect::SideEffect]);
}

// spec: TE-43
#[tokio::test]
async fn a_text_is_replaced_where_it_stands_exactly_once() {
    let fixture = fixture();
    let engine = fixture.engine();
    let file = fixture.root().join("code.rs");
    fs::write(&file, "fn a() {\n\tlet x = 1;\n}\nfn b() {\n\tlet x = 1;\n}\n").unwrap();
    say(&engine, "read_file", json!({ "path": "code.rs" })).await;
    let edit = |old: &str, new: &str, all: bool| {
        let arguments = json!({ "path": "code.rs", "old_text": old, "new_text": new, "replace_all": all });
        say(&engine, "edit_file", arguments)
    };
    let check = |text: String, expected: Expect| expected.assert_eq(&text);
    check(
        edit("let x = 1;", "", false).await,
        expect![
            "Error: old_text stands 2 times in 'code.rs' (lines 2, 5); it must stand there exactly once. Take more of the text around it, or set replace_all to replace all of them."
        ],
    );
    check(
        edit("let y", "", true).await,
        expect![
            "Error: old_text stands 0 times in 'code.rs'; it must stand there exactly once. Read the file again and copy the text exactly, without line numbers."
        ],
    );
    check(
        edit("fn b() {\n    let x = 1;\n}", "", false).await,
        expect![
            "Error: old_text stands 0 times in 'code.rs'; it must stand there exactly once. Line 4 differs from it only in white space: copy it from there, spaces and tabs included."
        ],
    );
    check(
        edit("", "x", false).await,
        expect![
            "Error: old_text is empty. Say which text is to be replaced; to write a whole file use write_file."
        ],
    );
    check(edit("x", "x", false).await, expect!["Error: old_text and new_text are the same: nothing to do."]);
    check(
        edit("fn a() {\n\tlet x = 1;", "fn a() {\n\tlet x = 2;", false).await,
        expect!["Edited 'code.rs'."],
    );
    check(edit("x = ", "y = ", true).await, expect!["Edited 'code.rs' in 2 places."]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "fn a() {\n\tlet y = 2;\n}\nfn b() {\n\tlet y = 1;\n}\n");
    fs::write(&file, "by another").unwrap();
    assert!(edit("by", "for", false).await.contains("was changed since it was read"));
    let unread =
        say(&engine, "edit_file", json!({ "path": "a.txt", "old_text": "one", "new_text": "1" })).await;
    assert!(unread.contains("has not been read"), "{unread}");
    check(
        say(&engine, "edit_file", json!({ "path": "b.text", "old_text": "one", "new_text": "1" })).await,
        expect!["Error: 'b.text' not found. Did you mean 'a.txt'? Use list_files to see what is in '.'."],
    );
    fs::write(&file, b"caf\xe9").unwrap();
    say(&engine, "read_file", json!({ "path": "code.rs" })).await;
    check(edit("caf", "x", false).await, expect!["Error: 'code.rs' is not a text file in UTF-8."]);
}

// spec: CL-09, TE-06, TE-55
#[tokio::test]
async fn write_file_approval_contains_the_diff() {
    let fixture = fixture();
    let second = fixture.outer.path().join("ws-evil");
    let workspace = fixture.workspace.clone().and(&second).unwrap();
    let mut options = EngineOptions::default().granting(["fs_write"]);
    options.ask = Ask::BeforeChanges;
    let engine = engine(file_tools(&workspace)).with_options(options).with_approver(Arc::new(Later));
    say(&engine, "read_file", json!({ "path": "a.txt" })).await;
    let ask = async |tool: &str, arguments: Json| {
        let call = ToolCall::new("c", tool, arguments);
        match engine.prepare(call_id(), &call, &context()).await {
            Prepared::Ask(question) => {
                format!(
                    "{}\n{}",
                    question.action_summary,
                    question.details["preview"]["changes"][0]["diff"].as_str().unwrap_or_default()
                ) + if question.details["preview"]["outside_cwd"] == true { "outside" } else { "" }
            }
            Prepared::Refused(result) => result.text(),
            other => format!("{other:?}"),
        }
    };
    expect![[r#"
        Edit 'a.txt'
        --- a/a.txt
        +++ b/a.txt
        @@ -1,3 +1,3 @@
         one
        -two
        +2
         three
    "#]]
    .assert_eq(&ask("edit_file", json!({ "path": "a.txt", "old_text": "two", "new_text": "2" })).await);
    expect![[r#"
        Create 'n.txt'
        --- /dev/null
        +++ b/n.txt
        @@ -0,0 +1 @@
        +x
    "#]]
    .assert_eq(&ask("write_file", json!({ "path": "n.txt", "content": "x\n" })).await);
    let elsewhere = second.canonicalize().unwrap().join("n.txt");
    assert!(ask("write_file", json!({ "path": elsewhere, "content": "x\n" })).await.ends_with("outside"));
    let unread = ask("write_file", json!({ "path": "dir/b.txt", "content": "x" })).await;
    assert!(unread.contains("has not been read"), "nobody is asked: {unread}");
    assert!(!fixture.root().join("n.txt").exists() && !elsewhere.exists(), "a preview changes nothing");
}

/// Answers another time.
struct Later;

impl archon_types::Approver for Later {
    async fn decide(&self, _: &archon_types::ApprovalRequest) -> archon_types::Decision {
        archon_types::Decision::Later
    }
}

// spec: TE-48, TE-44
#[test]
fn files_are_found_by_pattern_the_newest_first() {
    let fixture = fixture();
    let tool = Glob::new(fixture.workspace.clone());
    let say = |arguments: Json| call_directly(&tool, arguments).map_or_else(|e| e.to_string(), |r| r.text());
    for (seconds, path) in [(1, "a.txt"), (3, "dir/b.txt"), (2, "dir/deep/Ünï.txt")] {
        let file = fs::File::options().write(true).open(fixture.root().join(path)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
    }
    assert_eq!(say(json!({ "pattern": "**/*.txt" })), "dir/b.txt\ndir/deep/Ünï.txt\na.txt");
    assert_eq!(say(json!({ "pattern": "dir/*.txt" })), "dir/b.txt");
    assert_eq!(
        say(json!({ "pattern": "*.txt", "path": "dir", "limit": 1 })),
        "dir/b.txt\n(1 more. Narrow the pattern or the path.)"
    );
    assert_eq!(say(json!({ "pattern": "*.rs" })), "No files found for '*.rs'.");
    assert!(say(json!({ "pattern": "*", "path": ".." })).contains("outside the workspace"));
}

fn cases() -> u32 {
    u32::try_from(archon_testkit::cases(1_000, 100_000)).unwrap()
}

/// Paths made of pieces that lead in, out and round about.
fn paths() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec!["..", ".", "", "dir", "deep", "a.txt", "new", "x.txt"]),
        3 => prop::sample::select(vec!["file_out", "dir_out", "up", "inside", "loop", "dangling", "dangling_out", "to_a"]),
        2 => prop::sample::select(vec!["secret.txt", "ws-evil", "ws", "WS", "DIR", "A.TXT", "Ünï.txt", "U\u{308}ni\u{308}.txt", "\u{202e}", "a\0b", "\\..\\", "%2e%2e", "~", "…", "ﬀ"]),
    ];
    (
        prop::sample::select(vec!["", "/", "OUTER/", "OUTER/ws/", "./", "ROOT/"]),
        prop::collection::vec(piece, 1..7),
    )
        .prop_map(|(start, pieces)| format!("{start}{}", pieces.join("/")))
}

// spec: TE-42, TE-43, TE-41
#[test]
fn write_paths_cannot_escape_the_workspace() {
    let fixture = fixture();
    let outer = fixture.outer.path().canonicalize().unwrap();
    let tools = || {
        let workspace = fixture.workspace.clone();
        (ReadFile::new(workspace.clone()), WriteFile::new(workspace.clone()), EditFile::new(workspace))
    };
    let (read, write, edit) = tools();
    let count = std::cell::Cell::new(0_u32);
    let written = std::cell::Cell::new(0_u32);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(cases()));
    runner
        .run(&paths(), |path| {
            let path = path
                .replace("OUTER", outer.to_str().unwrap())
                .replace("ROOT", fixture.root().to_str().unwrap());
            let number = count.get();
            count.set(number + 1);
            if let Ok(read) = call_directly(&read, json!({ "path": path })) {
                prop_assert!(!read.text().contains("treasure"), "read {path:?}");
            }
            let done =
                call_directly(&write, json!({ "path": path, "content": format!("new {number}") })).is_ok();
            written.set(written.get() + u32::from(done));
            let _ = call_directly(&edit, json!({ "path": path, "old_text": "new", "new_text": "newer" }));
            for secret in ["secret.txt", "ws-evil/secret.txt"] {
                prop_assert_eq!(fs::read_to_string(outer.join(secret)).unwrap(), SECRET, "{:?}", path);
            }
            let mut names: Vec<_> = fs::read_dir(&outer).unwrap().flatten().map(|e| e.file_name()).collect();
            names.sort();
            prop_assert_eq!(names, ["secret.txt", "ws", "ws-evil"], "{:?}", path);
            prop_assert_eq!(fs::read_dir(outer.join("ws-evil")).unwrap().count(), 1);
            Ok(())
        })
        .unwrap();
    assert!(written.get() > cases() / 20, "most paths were refused: {} written", written.get());
}

// spec: TE-42, TE-41
#[test]
fn write_through_a_folder_replaced_by_a_link_is_refused() {
    let fixture = fixture();
    let outer = fixture.outer.path().canonicalize().unwrap();
    let root = fixture.root().to_owned();
    fs::create_dir(root.join("swing")).unwrap();
    fs::write(root.join("swing/secret.txt"), "harmless").unwrap();
    let stop = AtomicBool::new(false);
    let rounds = cases() / 2;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            symlink("../ws-evil", root.join("link")).unwrap();
            while !stop.load(Ordering::Relaxed) {
                let _ = fs::rename(root.join("swing"), root.join("aside"));
                let _ = fs::rename(root.join("link"), root.join("swing"));
                let _ = fs::rename(root.join("swing"), root.join("link"));
                if fs::rename(root.join("aside"), root.join("swing")).is_err() {
                    // The writer made the folder anew while it was away.
                    let _ = fs::remove_dir_all(root.join("swing"));
                    let _ = fs::rename(root.join("aside"), root.join("swing"));
                    let _ = symlink("../ws-evil", root.join("link"));
                }
            }
        });
        let (read, write) =
            (ReadFile::new(fixture.workspace.clone()), WriteFile::new(fixture.workspace.clone()));
        let mut successes = 0;
        for number in 0..rounds {
            if let Ok(read) = call_directly(&read, json!({ "path": "swing/secret.txt" })) {
                assert_eq!(read.text(), "harmless");
                successes += 1;
            }
            let _ = call_directly(
                &write,
                json!({ "path": format!("swing/n{}.txt", number % 7), "content": "x" }),
            );
        }
        stop.store(true, Ordering::Relaxed);
        assert!(successes > 0, "nothing was read: the test looks at nothing");
    });
    assert_eq!(fs::read_to_string(outer.join("ws-evil/secret.txt")).unwrap(), SECRET);
    assert_eq!(fs::read_dir(outer.join("ws-evil")).unwrap().count(), 1);
}
