//! Agent files: fields, broken files, places, and trust in those of a project.

use std::{cell::RefCell, collections::BTreeMap, fs, os::unix::fs::symlink, path::PathBuf};

use archon_skills::{AgentFile, AgentFilePlaces, AgentFiles, SkillSet};

use crate::folders::Place;

const BODY: &str = "You review changes.";

fn parse(yaml: &str) -> (Option<AgentFile>, Vec<String>) {
    let parsed = AgentFile::parse("a/reviewer.md", format!("---\n{yaml}---\n{BODY}\n").as_bytes());
    let texts = |problems: Vec<_>| problems.iter().map(ToString::to_string).collect();
    match parsed {
        Ok((file, problems)) => (Some(file), texts(problems)),
        Err(problems) => (None, texts(problems)),
    }
}

fn agent(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n---\nYou do {name}.\n")
}

#[test]
fn parse_reads_the_fields_in_all_spellings() {
    let yaml = "name: reviewer\ndescription: Use it when: a change is there\ntools: Read, mcp__github__get, Task(a, b)\n\
                disallowedTools: [Write]\nmodel: ollama:qwen3\nskills: [style, tests]\nmaxTurns: 7\ncolor: red\n";
    let (file, warnings) = parse(yaml);
    let file = file.unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("a/reviewer.md:3: a value with a colon"), "{warnings:?}");
    assert_eq!(file.description, "Use it when: a change is there");
    assert_eq!(file.tools.as_deref().unwrap(), ["Read", "mcp__github__get"]);
    assert_eq!((file.denied_tools[0].as_str(), file.model.as_deref()), ("Write", Some("ollama:qwen3")));
    assert_eq!((file.skills.concat().as_str(), file.max_turns), ("styletests", Some(7)));
    assert_eq!((file.instructions.as_str(), file.digest.len()), (BODY, 64));
    let (file, warnings) = parse("name: b\ndescription: c\nmodel: inherit\n");
    let file = file.unwrap();
    assert_eq!((file.tools, file.model, file.max_turns, warnings.len()), (None, None, None, 0));
}

#[test]
fn parse_of_a_broken_file_is_a_problem_with_its_line() {
    let cases = [
        ("name: [a\n", 2, "the YAML is not valid"),
        ("- a\n", 2, "must be a mapping"),
        ("name: a\n", 1, "`description` has no text"),
        ("name: a\ndescription:\n", 3, "`description` has no text"),
        ("name: a b\ndescription: c\n", 2, "the name `a b` must have"),
        ("name: a__b\ndescription: c\n", 2, "the name `a__b` must have"),
        ("name: a\ndescription: c\ntools: {Read: 1}\n", 4, "`tools` must be names"),
        ("name: a\ndescription: c\ntools: Read, Bash(git:*)\n", 4, "`Bash(git:*)`"),
        ("name: a\ndescription: c\ntools: Read Grep\n", 4, "`Read Grep`"),
        ("name: a\ndescription: c\nmodel: [x]\n", 4, "`model` must be a text"),
        ("name: a\ndescription: c\n\nmax_turns: 0\n", 5, "`max_turns` must be a whole number"),
    ];
    for (yaml, line, problem) in cases {
        let (file, problems) = parse(yaml);
        let last = problems.last().unwrap();
        assert!(file.is_none(), "{yaml}");
        assert!(last.starts_with(&format!("a/reviewer.md:{line}: ")), "{yaml}: {last}");
        assert!(last.contains(problem) && last.ends_with("; the file is left out"), "{yaml}: {last}");
    }
    for content in [&b"# A\n"[..], b"---\nname: a\n", b"---\nname: a\ndescription: b\n---\n\n", b"\xff"] {
        assert!(AgentFile::parse("a.md", content).is_err(), "{content:?}");
    }
}

#[test]
fn parse_warns_of_fields_without_an_effect_and_of_empty_tools() {
    let (file, warnings) = parse("name: a\ndescription: b\npermissionMode: acceptEdits\ntools:\n");
    assert!(!file.unwrap().has_tool("read_file"));
    assert!(
        warnings[0].starts_with("a/reviewer.md:4: the field `permissionMode` has no effect"),
        "{warnings:?}"
    );
    assert!(warnings[1].starts_with("a/reviewer.md:5: the field `tools` is empty"), "{warnings:?}");
}

#[test]
fn has_tool_only_narrows_and_unknown_tools_names_the_line() {
    let known = ["bash", "edit_file", "github__get", "read_file", "start_command"];
    let kept = |yaml: &str| {
        let file = parse(&format!("name: a\ndescription: b\n{yaml}")).0.unwrap();
        let unknown = file.unknown_tools(known).map(|problem| problem.to_string());
        (known.into_iter().filter(|tool| file.has_tool(tool)).collect::<Vec<_>>(), unknown)
    };
    assert_eq!(kept(""), (known.to_vec(), None));
    assert_eq!(kept("tools: Read, read_file\n"), (vec!["read_file"], None));
    assert_eq!(kept("disallowedTools: bash, mcp__github\n"), (vec!["edit_file", "read_file"], None));
    assert_eq!(kept("tools: Read, Edit\ndisallowed_tools: edit_file\n"), (vec!["read_file"], None));
    let (kept, unknown) = kept("tools:\n  - Bash\n  - NotebookEdit\n");
    assert_eq!(kept, ["bash", "start_command"]);
    let expected = "a/reviewer.md:4: the main agent has no tool `NotebookEdit`, so the agent has none either";
    assert_eq!(unknown.as_deref(), Some(expected));
}

#[test]
fn system_prompt_has_the_instructions_of_the_skills() {
    let place = Place::new();
    place.skill("style", "");
    let skills = SkillSet::load([place.path()]);
    let prompt = |names: &str| {
        let file = parse(&format!("name: a\ndescription: b\nskills: {names}\n")).0.unwrap();
        file.system_prompt(&skills).map_err(|problem| problem.to_string())
    };
    let text = prompt("style").unwrap();
    assert!(text.starts_with(BODY) && text.contains("Do style."), "{text}");
    let problem = prompt("stile").unwrap_err();
    assert_eq!(problem, "a/reviewer.md:4: there is no skill `stile`; did you mean `style`?");
}

#[test]
fn load_leaves_broken_files_and_links_out_and_loads_the_rest() {
    let (first, second) = (Place::new(), Place::new());
    first.write("a.md", agent("a"));
    first.write("b.md", "# Notes\n");
    first.write("notes.txt", "no agent");
    first.write("below/c.md", agent("c"));
    symlink(first.path().join("a.md"), first.path().join("d.md")).unwrap();
    second.write("a.md", agent("a"));
    let files = AgentFiles::load([first.path(), second.path(), &first.path().join("no such folder")]);
    assert_eq!(files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["a"]);
    let second = second.path().canonicalize().unwrap();
    assert_eq!(files.get("a").unwrap().file, second.join("a.md"));
    let first = first.path().canonicalize().unwrap();
    let problems: Vec<String> = files.warnings().iter().map(ToString::to_string).collect();
    let [broken, link, replaced] = problems.as_slice() else { panic!("{problems:?}") };
    assert!(broken.starts_with(&format!("{}:1: the file must begin with", first.join("b.md").display())));
    assert!(link.starts_with(&format!("{}:1: the file is a symbolic link", first.join("d.md").display())));
    assert!(replaced.starts_with(&format!("{}:2: the agent `a` replaces", second.join("a.md").display())));
}

#[test]
fn discover_loads_a_projects_file_only_with_the_trusted_digest() {
    let (home, project) = (Place::new(), Place::new());
    home.write(".claude/agents/a.md", agent("a"));
    home.write(".archon/agents/b.md", agent("b"));
    project.write(".claude/agents/a.md", agent("a"));
    project.write(".archon/agents/c.md", agent("c"));
    let agreed: RefCell<BTreeMap<PathBuf, String>> = RefCell::default();
    let places = AgentFilePlaces::new().with_user(home.path()).with_project(project.path());
    let discover = || {
        AgentFiles::discover(&places, &|file, digest| {
            agreed.borrow().get(file).is_some_and(|agreed| agreed == digest)
        })
    };
    let names = |files: &AgentFiles| files.iter().map(|file| file.name.clone()).collect::<Vec<_>>().concat();

    let files = discover();
    assert_eq!(names(&files), "ab");
    let untrusted: Vec<_> = files.untrusted().iter().map(|file| file.name.as_str()).collect();
    assert_eq!(untrusted, ["a", "c"]);
    let root = project.path().canonicalize().unwrap();
    assert!(!files.get("a").unwrap().file.starts_with(&root), "an untrusted file overrides nothing");

    for file in files.untrusted() {
        agreed.borrow_mut().insert(file.file.clone(), file.digest.clone());
    }
    let files = discover();
    assert_eq!((names(&files).as_str(), files.untrusted().len()), ("abc", 0));
    assert!(files.get("a").unwrap().file.starts_with(&root));

    project.write(".archon/agents/c.md", agent("c").replace("You do", "You always do"));
    let files = discover();
    assert_eq!((names(&files).as_str(), files.untrusted().len()), ("ab", 1));
}

#[test]
fn discover_does_not_follow_a_projects_folder_out_of_it() {
    let (elsewhere, project) = (Place::new(), Place::new());
    elsewhere.write("a.md", agent("a"));
    fs::create_dir(project.path().join(".archon")).unwrap();
    symlink(elsewhere.path(), project.path().join(".archon/agents")).unwrap();
    let places = AgentFilePlaces::new().with_project(project.path());
    let files = AgentFiles::discover(&places, &|_, _| true);
    assert!(files.is_empty() && files.untrusted().is_empty());
    assert!(files.warnings()[0].text.starts_with("the folder leads out of the project"));
    // A project in the home folder is the person's own.
    project.write(".claude/agents/b.md", agent("b"));
    let files = AgentFiles::discover(&places.with_user(project.path()), &|_, _| false);
    assert!(files.get("b").is_some() && files.untrusted().is_empty());
}
