//! The tools that read files: read_file, list_files, search.

use std::{fs, sync::Arc};

#[cfg(all(unix, feature = "bash"))]
use archon_tools::builtin::{Bash, BashOptions};
use archon_tools::{
    Workspace,
    builtin::{ListFiles, ReadFile, Search, builtin_tools, default_tools, file_tools},
};
use archon_types::{Content, Effect, Json, Tool};
use expect_test::{Expect, expect};
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::{call_directly, context, engine};

struct Fixture {
    folder: TempDir,
    workspace: Workspace,
}

fn fixture(files: &[(&str, &[u8])]) -> Fixture {
    let folder = TempDir::new().unwrap();
    for (path, content) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let workspace = Workspace::new(folder.path()).unwrap();
    Fixture { folder, workspace }
}

fn project() -> Fixture {
    fixture(&[
        ("README.md", b"# Ships\nMaria wrote it.\n"),
        ("src/main.rs", b"fn main() {\n    run(); // TODO: errors\n}\n"),
        ("src/parser.rs", b"// todo: quotes\nfn parse_line(text: &str) {}\n"),
        ("src/deep/more.rs", b"const MAX: u8 = 3;\r\nfn max() {}\r\n"),
        ("docs/guide.md", b"The Database holds ships.\n"),
        (".gitignore", b"target/\n*.log\n"),
        ("target/out.rs", b"TODO in generated code\n"),
        ("app.log", b"TODO: rotate\n"),
        (".secret/key.rs", b"TODO hide\n"),
        ("logo.bin", b"TODO\0\x01"),
    ])
}

fn say(tool: &dyn Tool, arguments: Json) -> String {
    match call_directly(tool, arguments) {
        Ok(result) => result.text(),
        Err(error) => format!("{}: {error}", error.code()),
    }
}

// spec: TE-41
#[test]
fn read_file_returns_the_whole_file_or_a_range() {
    let fixture = fixture(&[
        ("notes.txt", b"one\ntwo\nthree\nfour"),
        ("empty.txt", b""),
        ("bom.txt", b"\xef\xbb\xbfhello"),
        ("latin1.txt", b"caf\xe9"),
        ("blob.bin", b"\x00\x01\x02"),
        ("dir/x.txt", b"x"),
    ]);
    let tool = ReadFile::new(fixture.workspace.clone());
    let check = |arguments: Json, expected: Expect| expected.assert_eq(&say(&tool, arguments));
    check(
        json!({ "path": "notes.txt" }),
        expect![[r#"
        one
        two
        three
        four"#]],
    );
    check(
        json!({ "path": "notes.txt", "start_line": 2, "end_line": 3 }),
        expect![[r#"
        two
        three
    "#]],
    );
    check(json!({ "path": "notes.txt", "start_line": 4 }), expect!["four"]);
    check(
        json!({ "path": "notes.txt", "end_line": 1 }),
        expect![[r#"
        one
    "#]],
    );
    check(
        json!({ "path": "notes.txt", "start_line": 3, "end_line": 99 }),
        expect![[r#"
        three
        four"#]],
    );
    check(
        json!({ "path": "notes.txt", "start_line": 5 }),
        expect![
            "invalid_parameters: 'notes.txt' has 4 lines; line 5 is not among them. Ask for lines from 1 to 4."
        ],
    );
    check(
        json!({ "path": "notes.txt", "start_line": 3, "end_line": 2 }),
        expect!["invalid_parameters: end_line (2) is before start_line (3). Lines are counted from 1."],
    );
    check(json!({ "path": "empty.txt" }), expect!["(The file is empty.)"]);
    check(json!({ "path": "bom.txt" }), expect!["hello"]);
    check(
        json!({ "path": "latin1.txt" }),
        expect![[r#"
        caf�
        (The file is not valid UTF-8: bytes that cannot be read are shown as �.)"#]],
    );
    check(
        json!({ "path": "blob.bin" }),
        expect![
            "invalid_parameters: 'blob.bin' is a binary file of 3 bytes. Only text, pictures and PDF files can be read. Go on without it, or use another tool for it."
        ],
    );
    check(
        json!({ "path": "dir" }),
        expect!["invalid_parameters: 'dir' is a directory. Use list_files to see what is in it."],
    );
    check(
        json!({ "path": "note.txt" }),
        expect![
            "not_found: 'note.txt' not found. Did you mean 'notes.txt'? Use list_files to see what is in '.'."
        ],
    );
    check(
        json!({ "path": "x.txt" }),
        expect![
            "not_found: 'x.txt' not found. Did you mean 'dir/x.txt'? Use list_files to see what is in '.'."
        ],
    );
}

// spec: TE-41
#[test]
fn text_has_a_limit_and_lines_get_around_it() {
    let mut long = "line of text\n".repeat(100_000).into_bytes();
    long.extend(vec![b'x'; 1_500_000]);
    let fixture = fixture(&[
        ("limit.txt", &vec![b'a'; 1_000_000]),
        ("over.txt", &vec![b'a'; 1_000_001]),
        ("long.txt", &long),
    ]);
    let tool = ReadFile::new(fixture.workspace.clone());
    assert_eq!(say(&tool, json!({ "path": "limit.txt" })).len(), 1_000_000);
    expect!["resource_error: 'over.txt' has 1000001 bytes; at most 1000000 are read at once. Read a part of it with start_line and end_line."].assert_eq(&say(&tool, json!({ "path": "over.txt" })));
    assert_eq!(
        say(&tool, json!({ "path": "long.txt", "start_line": 99_999, "end_line": 99_999 })),
        "line of text\n"
    );
    let cut = say(&tool, json!({ "path": "long.txt", "start_line": 100_001 }));
    let (text, note) = cut.split_once('\n').unwrap();
    assert_eq!(text.len(), 1_000_000);
    expect!["(Cut after 1000000 bytes, in line 100001. Go on with start_line=100002.)"].assert_eq(note);
    let cut = say(&tool, json!({ "path": "long.txt", "start_line": 10 }));
    expect!["(Cut after 1000000 bytes, in line 76933. Go on with start_line=76933.)"]
        .assert_eq(&cut[cut.find('(').unwrap()..]);
}

// spec: TE-41, EX-16
#[test]
fn read_file_detects_images_and_pdf_files_by_content() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    let mut huge = png.to_vec();
    huge.resize(20 * 1024 * 1024 + 1, 0);
    let fixture = fixture(&[
        ("a.png", png),
        ("b.txt", b"\xff\xd8\xff\xe0\0\x10JFIF"),
        ("c", b"GIF89a\0\0"),
        ("d.webp", b"RIFF\0\0\0\0WEBPVP8 "),
        ("e.txt", b"%PDF-1.7\0"),
        ("huge.png", &huge),
        ("text.png", b"not a picture"),
    ]);
    let tool = ReadFile::new(fixture.workspace.clone());
    for (path, expected) in [
        ("a.png", "image/png"),
        ("b.txt", "image/jpeg"),
        ("c", "image/gif"),
        ("d.webp", "image/webp"),
        ("e.txt", "application/pdf"),
    ] {
        let result = call_directly(&tool, json!({ "path": path })).unwrap();
        let [Content::Media(media)] = result.content.as_slice() else { panic!("{result:?}") };
        assert_eq!((media.mime_type(), media.name()), (expected, path.rsplit('/').next()));
        assert_eq!(media.data(), fs::read(fixture.folder.path().join(path)).ok());
    }
    assert_eq!(say(&tool, json!({ "path": "text.png" })), "not a picture");
    expect!["resource_error: 'huge.png' is a picture or a PDF file of 20971521 bytes; at most 20971520 can be read."]
        .assert_eq(&say(&tool, json!({ "path": "huge.png" })));
}

// spec: TE-44
#[test]
fn list_files_shows_all_and_search_skips_ignored_files() {
    let fixture = project();
    let tool = ListFiles::new(fixture.workspace.clone());
    let check = |arguments: Json, expected: Expect| expected.assert_eq(&say(&tool, arguments));
    check(
        json!({}),
        expect![[r#"
        .gitignore
        .secret/
        README.md
        app.log
        docs/
        logo.bin
        src/
        target/"#]],
    );
    check(
        json!({ "path": "src" }),
        expect![[r#"
        src/deep/
        src/main.rs
        src/parser.rs"#]],
    );
    check(
        json!({ "recursive": true }),
        expect![[r#"
        README.md
        docs/guide.md
        logo.bin
        src/deep/more.rs
        src/main.rs
        src/parser.rs"#]],
    );
    check(
        json!({ "pattern": "*.rs" }),
        expect![[r#"
        src/deep/more.rs
        src/main.rs
        src/parser.rs"#]],
    );
    check(
        json!({ "pattern": "src/*.rs" }),
        expect![[r#"
        src/main.rs
        src/parser.rs"#]],
    );
    check(
        json!({ "pattern": "./src/**/*.rs", "limit": 2 }),
        expect![[r#"
        src/deep/more.rs
        src/main.rs
        (More than 2. Narrow the path or the pattern.)"#]],
    );
    check(json!({ "path": "src", "pattern": "deep/*" }), expect!["src/deep/more.rs"]);
    check(json!({ "path": "docs", "pattern": "*.rs" }), expect!["No files in 'docs'."]);
    check(
        json!({ "path": "README.md" }),
        expect!["invalid_parameters: 'README.md' is a file. Use read_file to see what is in it."],
    );
    check(
        json!({ "path": "doc" }),
        expect!["not_found: 'doc' not found. Did you mean 'docs'? Use list_files to see what is in '.'."],
    );
    check(
        json!({ "pattern": "[" }),
        expect![
            "invalid_parameters: The file name pattern '[' cannot be used: unclosed character class; missing ']'. Example: *.rs"
        ],
    );
}

// spec: TE-44
#[test]
fn lines_are_found_where_a_person_would_look() {
    let fixture = project();
    let tool = Search::new(fixture.workspace.clone());
    let check = |arguments: Json, expected: Expect| expected.assert_eq(&say(&tool, arguments));
    check(
        json!({ "pattern": "TODO" }),
        expect![[r#"
        src/main.rs:2: run(); // TODO: errors
        src/parser.rs:1: // todo: quotes"#]],
    );
    check(
        json!({ "pattern": "TODO", "case_sensitive": true }),
        expect!["src/main.rs:2: run(); // TODO: errors"],
    );
    check(json!({ "pattern": "database" }), expect!["docs/guide.md:1: The Database holds ships."]);
    check(json!({ "pattern": "^fn \\w+\\(\\) \\{\\}$" }), expect!["src/deep/more.rs:2: fn max() {}"]);
    check(
        json!({ "pattern": "parse_line(" }),
        expect![[r#"
        src/parser.rs:2: fn parse_line(text: &str) {}
        (The pattern is not a regular expression and was searched for as plain text.)"#]],
    );
    check(
        json!({ "pattern": "fn", "glob": "*.rs", "limit": 2 }),
        expect![[r#"
        src/deep/more.rs:2: fn max() {}
        src/main.rs:1: fn main() {
        (More than 2 lines match. Narrow the pattern, the path or the glob.)"#]],
    );
    check(json!({ "pattern": "fn", "path": "src/deep" }), expect!["src/deep/more.rs:2: fn max() {}"]);
    check(json!({ "pattern": "fn", "path": "src/main.rs" }), expect!["src/main.rs:1: fn main() {"]);
    check(json!({ "pattern": "todo", "path": "target" }), expect!["target/out.rs:1: TODO in generated code"]);
    check(json!({ "pattern": "unicorn" }), expect!["No matches for 'unicorn' in 6 files."]);
    check(
        json!({ "pattern": "" }),
        expect![[r#"invalid_parameters: The pattern is empty. Example: search(pattern="TODO")"#]],
    );
    check(
        json!({ "pattern": "x", "path": "scr" }),
        expect!["not_found: 'scr' not found. Did you mean 'src'? Use list_files to see what is in '.'."],
    );
    check(
        json!({ "pattern": "$(rm -rf /); `id`" }),
        expect!["No matches for '$(rm -rf /); `id`' in 6 files."],
    );
    check(
        json!({ "pattern": "(a{1000}){1000}" }),
        expect![
            "invalid_parameters: The pattern cannot be used: Compiled regex exceeds size limit of 10485760 bytes.. Use a shorter or simpler one."
        ],
    );
}

// spec: TE-44
#[test]
fn long_lines_and_large_files_do_not_flood_the_model() {
    let line = format!("{}needle{}", "a".repeat(5_000), "b".repeat(5_000));
    let fixture = fixture(&[("min.js", line.as_bytes()), ("huge.txt", &vec![b'n'; 10_000_001])]);
    let tool = Search::new(fixture.workspace.clone());
    let said = say(&tool, json!({ "pattern": "needle" }));
    assert!(said.starts_with("min.js:1: …aaa") && said.contains("needle"), "{said}");
    assert!(said.len() < 400, "{}", said.len());
    assert!(said.ends_with("(1 files of more than 10000000 bytes were left out.)"), "{said}");
}

// spec: TE-38
#[test]
fn default_tools_have_their_names_and_only_readers_need_no_consent() {
    let fixture = project();
    let set = file_tools(&fixture.workspace);
    #[cfg(all(unix, feature = "bash"))]
    let mut set = set;
    #[cfg(all(unix, feature = "bash"))]
    set.push(Arc::new(Bash::new(fixture.workspace.clone(), BashOptions::default())));
    let in_set = |name: &str| set.iter().find(|tool| tool.spec().name == name);
    let shell = cfg!(all(unix, feature = "bash")).then_some("bash");
    for name in ["read_file", "write_file", "edit_file", "list_files", "search"].into_iter().chain(shell) {
        let Some(tool) = in_set(name) else { panic!("there is no {name}") };
        let given: Vec<_> = default_tools(&fixture.workspace);
        let is_given = given.iter().any(|given| given.spec().name == name);
        assert_eq!(is_given, tool.spec().annotations.effect == Effect::ReadOnly, "{name}");
        let harmless = tool.spec().annotations.permissions.is_empty();
        assert_eq!(is_given, harmless, "{name}: what may do harm needs a permission, too");
    }
}

// spec: TE-41, TE-44
#[test]
fn the_tools_that_come_with_the_crate_only_read() {
    let fixture = project();
    let names =
        |tools: Vec<Arc<dyn Tool>>| tools.iter().map(|tool| tool.spec().name.clone()).collect::<Vec<_>>();
    assert_eq!(names(builtin_tools(&fixture.workspace)), ["calculator", "list_files", "read_file", "search"]);
    assert_eq!(names(default_tools(&fixture.workspace)), names(builtin_tools(&fixture.workspace)));
    for tool in builtin_tools(&fixture.workspace) {
        assert_eq!(tool.spec().annotations.effect, Effect::ReadOnly);
        assert_eq!(archon_tools::lint(tool.spec()), [""; 0]);
    }
}

// spec: TE-41, TE-44
#[test]
fn builtin_tools_schemas_snapshot() {
    let fixture = project();
    let schemas: Vec<String> = builtin_tools(&fixture.workspace)[1..]
        .iter()
        .map(|tool| tool.spec().parameters.to_string())
        .collect();
    expect![[r#"
        {"type":"object","additionalProperties":false,"properties":{"path":{"type":["string","null"],"description":"Directory to list; the current one if left out"},"pattern":{"type":["string","null"],"description":"Only files with this name pattern, in all subdirectories, for example *.rs"},"recursive":{"type":["boolean","null"],"description":"List all subdirectories too"},"limit":{"type":["integer","null"],"description":"Maximum number of entries","minimum":1}}}
        {"type":"object","additionalProperties":false,"properties":{"path":{"type":"string","description":"File path"},"start_line":{"type":["integer","null"],"description":"First line to read, counted from 1","minimum":1},"end_line":{"type":["integer","null"],"description":"Last line to read","minimum":1}},"required":["path"]}
        {"type":"object","additionalProperties":false,"properties":{"pattern":{"type":"string","description":"Search pattern (regex)"},"path":{"type":["string","null"],"description":"File or directory to search; the root of the workspace if left out"},"glob":{"type":["string","null"],"description":"Only files with this name pattern, for example *.rs"},"case_sensitive":{"type":["boolean","null"],"description":"Upper and lower case differ"},"limit":{"type":["integer","null"],"description":"Maximum number of lines","minimum":1}},"required":["pattern"]}"#]].assert_eq(&schemas.join("\n"));
}

// spec: TE-41, TE-44
#[tokio::test]
async fn builtin_tools_run_through_the_engine() {
    let fixture = project();
    let engine = engine(builtin_tools(&fixture.workspace));
    for (tool, arguments, text) in [
        ("read_file", json!({ "path": "docs/guide.md" }), "The Database holds ships.\n"),
        ("list_files", json!({ "path": "docs" }), "docs/guide.md"),
        ("search", json!({ "pattern": "maria" }), "README.md:2: Maria wrote it."),
    ] {
        let result = engine.execute_tool_call(tool, arguments, &context()).await;
        assert_eq!(result.text(), text);
        assert_eq!(result.metadata["attempts"], 1);
    }
}

// spec: TE-29
#[test]
fn tools_that_only_read_run_beside_others_and_those_that_write_do_not() {
    let Fixture { folder: _folder, workspace } = project();
    let (mut tools, mut reads, mut writes) = (Vec::new(), Vec::new(), Vec::new());
    tools.extend(file_tools(&workspace));
    reads.extend(["glob", "list_files", "read_file", "search"]);
    writes.extend(["edit_file", "write_file"]);
    #[cfg(feature = "web")]
    {
        tools.push(Arc::new(archon_tools::builtin::WebFetch::new(Default::default())));
        reads.push("web_fetch");
    }
    #[cfg(all(unix, feature = "bash"))]
    {
        tools.push(Arc::new(Bash::new(workspace.clone(), BashOptions::default())));
        tools.push(Arc::new(Bash::read_only(workspace, BashOptions::default())));
        writes.push("bash");
        // Only where the kernel holds it to that.
        let is_held = archon_tools::sandbox::missing().is_none();
        if is_held { &mut reads } else { &mut writes }.push("bash_readonly");
    }
    for (names, expected) in [(reads, true), (writes, false)] {
        for name in names {
            let tool = tools.iter().find(|tool| tool.spec().name == name).unwrap();
            assert_eq!(tool.spec().annotations.concurrency_safe, expected, "{name}");
        }
    }
}
