//! The workspace: no path leads out of it.

use std::{cell::Cell, fs, os::unix::fs::symlink, path::PathBuf};

use archon_testkit::cases;
use archon_tools::{
    Workspace,
    builtin::{ListFiles, ReadFile, Search},
};
use archon_types::{ToolError, ToolResult};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::call_directly;

const SECRET: &str = "the treasure is buried under the oak";

/// `outer` holds a secret and the workspace `outer/ws`, from which links lead out.
struct Fixture {
    outer: TempDir,
    workspace: Workspace,
}

fn fixture() -> Fixture {
    let outer = TempDir::new().unwrap();
    let root = outer.path().join("ws");
    for folder in ["dir/deep", "ünï", "link_farm"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for file in ["a.txt", "dir/b.txt", "dir/deep/c.txt", "ünï/ç.txt"] {
        fs::write(root.join(file), "inside").unwrap();
    }
    fs::write(outer.path().join("secret.txt"), SECRET).unwrap();
    fs::create_dir(outer.path().join("ws-evil")).unwrap();
    fs::write(outer.path().join("ws-evil/secret.txt"), SECRET).unwrap();
    for (link, target) in [
        ("file_out", "../secret.txt"),
        ("dir_out", ".."),
        ("dir/up_out", "../.."),
        ("inside", "dir"),
        ("loop", "loop"),
        ("dangling", "nowhere"),
        ("dangling_out", "../nowhere"),
        ("link_farm/absolute", "/"),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
    let workspace = Workspace::new(&root).unwrap();
    Fixture { outer, workspace }
}

impl Fixture {
    fn outer(&self) -> PathBuf {
        self.outer.path().canonicalize().unwrap()
    }

    /// Everything that the three tools say about a path.
    fn say(&self, path: &str) -> Vec<Result<ToolResult, ToolError>> {
        let workspace = || self.workspace.clone();
        vec![
            call_directly(&ReadFile::new(workspace()), json!({ "path": path })),
            call_directly(&ListFiles::new(workspace()), json!({ "path": path })),
            call_directly(&ListFiles::new(workspace()), json!({ "path": path, "recursive": true })),
            call_directly(&Search::new(workspace()), json!({ "path": path, "pattern": "bur.ed|inside" })),
        ]
    }
}

fn any_path() -> impl Strategy<Value = String> {
    let segment = prop::sample::select(vec![
        "..",
        "..",
        "..",
        ".",
        "",
        "ws",
        "dir",
        "deep",
        "a.txt",
        "b.txt",
        "secret.txt",
        "file_out",
        "dir_out",
        "up_out",
        "inside",
        "loop",
        "dangling_out",
        "link_farm",
        "absolute",
        "etc",
        "passwd",
        "ws-evil",
        "ünï",
        "ç.txt",
        "\0",
        "~",
        "..\\..",
        "．．",
        "%2e%2e",
        " ",
        "*",
        "...",
    ]);
    let start =
        prop::sample::select(vec!["", "", "", "/", "./", "OUTER/", "OUTER/ws/", "OUTER/ws/../", "//", "\\"]);
    let separator = prop::sample::select(vec!["/", "/", "//", "/./", "\\"]);
    (start, prop::collection::vec((segment, separator), 0..9)).prop_map(|(start, parts)| {
        parts.iter().fold(start.to_owned(), |path, (part, slash)| path + part + slash)
    })
}

#[test]
fn workspace_paths_cannot_escape() {
    let fixture = fixture();
    let (outer, root) = (fixture.outer(), fixture.workspace.root().to_owned());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: u32::try_from(cases(2_000, 100_000)).unwrap(),
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let inside = Cell::new(0);
    runner
        .run(&any_path(), |path| {
            let path = path.replace("OUTER", outer.to_str().unwrap());
            let path = path.strip_suffix('/').unwrap_or(&path);
            if let Ok(real) = fixture.workspace.resolve(path) {
                prop_assert!(real.starts_with(&root), "{path:?} is {real:?}");
                inside.set(inside.get() + 1);
            }
            for said in fixture.say(path) {
                let text = match said {
                    Ok(result) => result.text(),
                    // An error repeats the path, a NUL made visible.
                    Err(error) => error.to_string().replace(&path.replace('\0', "\\u{0}"), ""),
                };
                prop_assert!(!text.contains("buried"), "{path:?}: {text}");
                prop_assert!(!text.contains("secret.txt") && !text.contains("passwd"), "{path:?}: {text}");
            }
            Ok(())
        })
        .unwrap();
    let inside = inside.get();
    assert!(inside > 100, "only {inside} paths were inside: the test looks at nothing");
}

fn check(fixture: &Fixture, path: &str, expected: Expect) {
    let path = path.replace("OUTER", fixture.outer().to_str().unwrap());
    let text = match fixture.workspace.resolve(&path) {
        Ok(real) => format!("ok: {}", real.strip_prefix(fixture.workspace.root()).unwrap().display()),
        Err(error) => format!("{}: {error}", error.code()),
    };
    expected.assert_eq(&text.replace(fixture.outer().to_str().unwrap(), "OUTER"));
}

// spec: TE-41
#[test]
fn path_outside_the_workspace_is_an_error_with_advice() {
    let fixture = fixture();
    let check = |path, expected| check(&fixture, path, expected);
    check("a.txt", expect!["ok: a.txt"]);
    check("", expect!["ok: "]);
    check("inside/b.txt", expect!["ok: dir/b.txt"]);
    check("dir/../a.txt", expect!["ok: a.txt"]);
    check("OUTER/ws/a.txt", expect!["ok: a.txt"]);
    check("dir_out/ws/a.txt", expect!["ok: a.txt"]);
    check(
        "../secret.txt",
        expect![
            "permission_denied: '../secret.txt' is outside the workspace. Use a path inside it, relative to its root; '.' is the root."
        ],
    );
    check(
        "../nothing.txt",
        expect![
            "permission_denied: '../nothing.txt' is outside the workspace. Use a path inside it, relative to its root; '.' is the root."
        ],
    );
    check(
        "file_out",
        expect![
            "permission_denied: 'file_out' is outside the workspace. Use a path inside it, relative to its root; '.' is the root."
        ],
    );
    check(
        "dir_out/secret.txt",
        expect![
            "permission_denied: 'dir_out/secret.txt' is outside the workspace. Use a path inside it, relative to its root; '.' is the root."
        ],
    );
    check(
        "dir_out/nothing.txt",
        expect![
            "permission_denied: 'dir_out/nothing.txt' is outside the workspace. Use a path inside it, relative to its root; '.' is the root."
        ],
    );
    check(
        "OUTER/ws-evil/secret.txt",
        expect![
            "permission_denied: 'OUTER/ws-evil/secret.txt' is outside the workspace. Use a path inside it, relative to its root; '.' is the root."
        ],
    );
    check("/a.txt", expect!["permission_denied: '/a.txt' is outside the workspace. Did you mean 'a.txt'?"]);
    check(
        "/etc/passwd",
        expect![
            "permission_denied: '/etc/passwd' is outside the workspace. Use a path inside it, relative to its root; '.' is the root."
        ],
    );
    check(
        "a.text",
        expect!["not_found: 'a.text' not found. Did you mean 'a.txt'? Use list_files to see what is in '.'."],
    );
    check(
        "c.txt",
        expect![
            "not_found: 'c.txt' not found. Did you mean 'a.txt' or 'dir/deep/c.txt'? Use list_files to see what is in '.'."
        ],
    );
    check("dir/zzz", expect!["not_found: 'dir/zzz' not found. Use list_files to see what is in 'dir'."]);
    check("a.txt/more", expect!["not_found: 'a.txt/more' not found: 'a.txt' is a file."]);
    check(
        "dangling",
        expect![
            "not_found: 'dangling' not found. Did you mean 'dangling_out'? Use list_files to see what is in '.'."
        ],
    );
    check(
        "loop",
        expect!["execution_error: 'loop' cannot be used: Too many levels of symbolic links (os error 40)"],
    );
    check(
        "a\0b",
        expect![[r#"execution_error: 'a\u{0}b' cannot be used: file name contained an unexpected NUL byte"#]],
    );
}

#[test]
fn a_second_folder_is_reached_by_its_absolute_path_only() {
    let fixture = fixture();
    let second = fixture.outer().join("ws-evil");
    let workspace = fixture.workspace.clone().and(&second).unwrap();
    assert!(workspace.resolve(second.join("secret.txt").to_str().unwrap()).is_ok());
    assert!(workspace.resolve("secret.txt").is_err());
    assert!(workspace.resolve("../secret.txt").is_err());
}

#[test]
fn a_workspace_is_a_folder_that_is_there() {
    let fixture = fixture();
    for path in ["nowhere", "secret.txt"] {
        let error = Workspace::new(fixture.outer().join(path)).unwrap_err().to_string();
        assert!(error.starts_with("The workspace '") && error.contains(path), "{error}");
    }
}

// spec: TE-41
#[test]
fn named_pipe_is_refused_without_blocking() {
    let fixture = fixture();
    let pipe = fixture.workspace.root().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    let error =
        call_directly(&ReadFile::new(fixture.workspace.clone()), json!({ "path": "pipe" })).unwrap_err();
    assert_eq!(error.to_string(), "'pipe' cannot be opened: it is not a regular file");
    let found =
        call_directly(&Search::new(fixture.workspace.clone()), json!({ "pattern": "inside" })).unwrap();
    assert_eq!(found.metadata["matches"], 4);
}
