//! Tests of rules, as tables of a rule, a call and the expected decision.

use std::path::PathBuf;

use super::*;

#[cfg(feature = "bash")]
fn command(line: &str) -> Subject {
    Subject::Command { line: line.to_owned(), root: std::env::temp_dir().canonicalize().unwrap() }
}

fn file(path: &str) -> Subject {
    Subject::Paths { root: "/w".into(), paths: vec![PathBuf::from("/w").join(path)] }
}

fn allows(rules: &[&str], tool: &str, subject: &Subject) -> bool {
    Permissions::parse(&[], &[], rules).unwrap().is_trusted(tool, subject)
}

// spec: AP-11
#[test]
fn permission_rule_parse_error_has_the_reason() {
    for (text, why) in [
        ("", "a rule begins with the name of a tool: `tool` or `tool(pattern)`"),
        ("(x)", "a rule begins with the name of a tool: `tool` or `tool(pattern)`"),
        ("ba sh", "a rule begins with the name of a tool: `tool` or `tool(pattern)`"),
        ("bash(git", "the closing bracket is missing"),
        ("bash()", "the brackets are empty; leave them out"),
        ("write_file(src/[)", "the text in the brackets is not a valid pattern of paths"),
    ] {
        let said = text.parse::<Rule>().unwrap_err().to_string();
        assert_eq!(said, format!("'{text}' is not a valid permission rule: {why}"));
    }
    assert_eq!(" bash(echo (a) b:*) ".parse::<Rule>().unwrap().to_string(), "bash(echo (a) b:*)");
}

// spec: AP-11, TE-37
#[test]
fn names_may_end_in_anything_and_files_are_matched_by_folders() {
    for (rules, tool, subject, expected) in [
        (&["read_file"][..], "read_file", Subject::Unknown, true),
        (&["read_file"], "read_files", Subject::Unknown, false),
        (&["mcp__github__*"], "mcp__github__list", Subject::Unknown, true),
        (&["mcp__github__*"], "mcp__gitlab__list", Subject::Unknown, false),
        (&["mcp__x(a)"], "mcp__x", Subject::Unknown, false),
        (&["write_file(src/**)"], "write_file", file("src/a/b.rs"), true),
        (&["write_file(./src/*.rs)"], "write_file", file("src/b.rs"), true),
        (&["write_file(src/*)"], "write_file", file("src/a/b.rs"), false),
        (&["write_file(src/**)"], "write_file", file("srcx/b.rs"), false),
        (&["write_file(/w/src/**)"], "write_file", file("src/b.rs"), true),
        (&["write_file(src/**)"], "edit_file", file("src/b.rs"), false),
        (
            &["web_fetch(https://docs.rs/*)"],
            "web_fetch",
            Subject::Urls(vec!["https://docs.rs/x".into()]),
            true,
        ),
        (
            &["web_fetch(https://docs.rs/*)"],
            "web_fetch",
            Subject::Urls(vec!["https://docs.rs.evil/".into()]),
            false,
        ),
    ] {
        assert_eq!(allows(rules, tool, &subject), expected, "{rules:?} {tool} {subject:?}");
    }
    let none = Subject::Paths { root: "/w".into(), paths: vec![] };
    assert!(!allows(&["write_file(**)"], "write_file", &none));
}

// spec: AP-11
#[test]
fn deny_goes_before_ask_and_ask_before_allow() {
    let rules = Permissions::parse(&["write_file(.env)"], &["write_file(src/**)"], &["write_file"]).unwrap();
    let ruling = |path: &str, trusted: &[&str]| {
        let trusted: Vec<String> = trusted.iter().map(|&rule| rule.to_owned()).collect();
        rules.ruling("write_file", &file(path), &trusted)
    };
    assert_eq!(ruling(".env", &[]), Ruling::Deny("write_file(.env)".into()));
    assert_eq!(ruling(".env", &["write_file"]), Ruling::Deny("write_file(.env)".into()));
    assert_eq!(ruling("src/a.rs", &[]), Ruling::Ask("write_file(src/**)".into()));
    assert_eq!(ruling("src/a.rs", &["write_file(src/a.rs)"]), Ruling::Allow);
    assert_eq!(ruling("src/b.rs", &["write_file(src/a.rs)"]), Ruling::Ask("write_file(src/**)".into()));
    assert_eq!(ruling("b", &[]), Ruling::Allow);
    assert_eq!(Permissions::new().ruling("write_file", &file("b"), &[]), Ruling::Silent);
    // What cannot be looked into is as bad as can be.
    assert!(matches!(rules.ruling("write_file", &Subject::Unknown, &[]), Ruling::Deny(_)));
}

// spec: AP-11
#[test]
fn deny_rule_covers_a_folders_contents_and_allow_rule_only_its_pattern() {
    for (of, path, expected) in [
        ("secrets/**", "secrets", true),
        ("secrets/**", "secrets/a/b", true),
        ("secrets/**", "secretsx", false),
        ("secrets/**", "", false),
        ("**/secrets/**", "docs/secrets", true),
        ("/w/secrets/**", "secrets", true),
        ("./secrets/**", "secrets", true),
        ("secrets/*", "secrets", false),
        ("secrets/*", "secrets/a/b", true),
        ("secrets", "secrets/a/b", true),
        ("/w/secrets", "secrets/a/b", true),
        ("*.md", "docs/a.md", false),
        ("*.d", "conf.d/a/b", true),
    ] {
        let rule = format!("search({of})");
        let denies = Permissions::parse(&[rule.as_str()], &[], &[]).unwrap();
        let is_denied = matches!(denies.ruling("search", &file(path), &[]), Ruling::Deny(_));
        assert_eq!(is_denied, expected, "{of} {path}");
    }
    assert!(!allows(&["search(docs/**)"], "search", &file("docs")));
    assert!(!allows(&["search(docs)"], "search", &file("docs/a")));
    assert!(allows(&["search(docs/**)"], "search", &file("docs/a")));
}

#[cfg(unix)]
// spec: AP-11, TE-55
#[test]
fn file_rule_applies_to_the_target_of_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("src")).unwrap();
    std::fs::create_dir_all(root.join("secret")).unwrap();
    std::os::unix::fs::symlink(root.join("secret"), root.join("src/link")).unwrap();
    std::os::unix::fs::symlink(root.join("gone"), root.join("src/nowhere")).unwrap();
    let rules = Permissions::parse(&[], &[], &["write_file(src/**)"]).unwrap();
    let trusts = |path: &str| match resolved(&root, path) {
        Some(path) => {
            rules.is_trusted("write_file", &Subject::Paths { root: root.clone(), paths: vec![path] })
        }
        None => false,
    };
    assert!(trusts("src/new/a.rs"));
    assert!(!trusts("src/link/a.rs"));
    assert!(!trusts("src/../secret/a.rs"));
    assert!(!trusts("src/new/../../secret/a"));
    assert!(!trusts("src/nowhere"));
}

#[cfg(all(unix, feature = "bash"))]
// spec: AP-11
#[test]
fn every_part_of_a_command_line_needs_a_rule() {
    let rules = &[
        "bash(git status:*)",
        "bash(echo:*)",
        "bash(make test)",
        "bash(cat:*)",
        "bash(find:*)",
        "bash(cd:*)",
    ];
    for (line, expected) in [
        ("git status", true),
        ("git status -s", true),
        ("git 'status' \"-s\"", true),
        ("git statusx", false),
        ("git", false),
        ("git push", false),
        ("git status; echo done", true),
        ("git status && rm -rf x", false),
        ("git status || echo no", true),
        ("git status | cat", true),
        ("git status | sh", false),
        ("git status & rm x", false),
        ("git status\nrm x", false),
        ("echo $(git status)", true),
        ("echo $(rm x)", false),
        ("echo \"$(rm x)\"", false),
        ("echo `rm x`", false),
        ("echo `git status`", false),
        ("echo <(rm x)", false),
        ("cat <(git status)", true),
        ("(git status)", true),
        ("{ git status; }", true),
        ("if git status; then echo a; else rm x; fi", false),
        ("if git status; then echo a; else echo b; fi", true),
        ("for f in a b; do echo $f; done", true),
        ("for PATH in a; do git status; done", false),
        ("while git status; do rm x; done", false),
        ("case x in x) rm x;; esac", false),
        ("f() { rm x; }; f", false),
        ("echo() { rm x; }; echo", false),
        ("git status > out", false),
        ("git status > /dev/null 2>&1", true),
        ("git status >> out", false),
        ("git status &> out", false),
        ("echo a >| out", false),
        ("cat < in", true),
        ("PATH=. git status", false),
        ("x=1", false),
        ("x=1; git status", false),
        ("git status # rm x", false),
        ("$x", false),
        ("gi${x}t status", false),
        ("git $x", false),
        ("echo ${x:-$(rm x)}", false),
        ("echo $((a[$(rm x)]))", false),
        ("[[ a -eq $x ]]", false),
        ("echo {a,b}", true),
        ("{echo,rm} x", false),
        ("$'git' status", false),
        ("git \\\nstatus", false),
        ("env git status", false),
        ("sudo git status", false),
        ("xargs git status", false),
        ("sh -c 'git status'", false),
        ("/bin/git status", false),
        ("eval git status", false),
        ("exec git status", false),
        ("command git status", false),
        ("time git status", true),
        ("! git status", true),
        ("find . -name x", true),
        ("find . -exec rm {} +", false),
        ("find . -delete", false),
        ("find . $x", false),
        ("find . *", false),
        ("git -c core.pager=x status", false),
        ("cat <<E\n$(rm x)\nE\n", false),
        ("cat <<'E'\n$(rm x)\nE\n", true),
        ("make test", true),
        (" make test ", true),
        ("make test -j2", false),
        ("coproc rm x", false),
        ("", false),
        (";;", false),
    ] {
        assert_eq!(allows(rules, "bash", &command(line)), expected, "{line:?}");
    }
}

#[cfg(all(unix, feature = "bash"))]
// spec: AP-11
#[test]
fn allow_rule_for_a_launcher_matches_the_exact_command_only() {
    for (rule, line, expected) in [
        ("bash(sudo:*)", "sudo rm x", false),
        ("bash(rm:*)", "sudo rm x", false),
        ("bash(sudo rm:*)", "sudo rm x", false),
        ("bash(sudo rm x)", "sudo rm x", true),
        ("bash(xargs:*)", "xargs rm", false),
        ("bash(env:*)", "env A=1 rm", false),
        ("bash(sh:*)", "sh -c rm", false),
        ("bash(/bin/sh:*)", "/bin/sh -c rm", false),
        ("bash(eval:*)", "eval rm", false),
        ("bash(printf:*)", "printf -v'x[$('rm')]' a", false),
        ("bash(printf:*)", "printf %s a", true),
        ("bash(jobs:*)", "jobs -x rm", false),
        ("bash(git:*)", "git -c alias.x=!rm x", false),
        ("bash(git:*)", "git log", true),
        ("bash(git:*)", "git clone --config core.sshCommand=rm x", false),
        ("bash(git:*)", "git diff --output=src/x", false),
        ("bash(git diff:*)", "git diff --outp src/x", false),
        ("bash(git:*)", "git log --oneline", true),
        ("bash(tar:*)", "tar xf a.tar --to-comm=rm", false),
        ("bash(tar:*)", "tar xf a.tar --new-volume-script rm", false),
        ("bash(tar:*)", "tar xf a.tar", false),
        ("bash(tar xf a.tar)", "tar xf a.tar", true),
        ("bash(sort:*)", "sort --compress-prog=sh a", false),
        ("bash(sort:*)", "sort -o src/x a", false),
        ("bash(sort:*)", "sort -n a", true),
        ("bash(split:*)", "split --filter=rm a", false),
        ("bash(install:*)", "install -s --strip-program=rm a b", false),
        ("bash(python3.11:*)", "python3.11 -c x", false),
        ("bash(nodejs:*)", "nodejs -e x", false),
        ("bash(lua5.4:*)", "lua5.4 x", false),
        ("bash", "sudo rm x", true),
    ] {
        assert_eq!(allows(&[rule], "bash", &command(line)), expected, "{rule} {line:?}");
    }
}

#[cfg(all(unix, feature = "bash"))]
// spec: AP-11
#[test]
fn a_command_is_denied_for_any_part_of_it() {
    let rules =
        Permissions::parse(&["bash(rm:*)", "write_file(.env)"], &["bash(git push:*)"], &["bash"]).unwrap();
    let ruling = |line: &str| match rules.ruling("bash", &command(line), &[]) {
        Ruling::Deny(_) => "deny",
        Ruling::Ask(_) => "ask",
        Ruling::Allow => "allow",
        Ruling::Silent => "silent",
    };
    for (line, expected) in [
        ("ls", "allow"),
        ("rm x", "deny"),
        ("/bin/rm x", "deny"),
        ("ls; rm x", "deny"),
        ("echo $(rm x)", "deny"),
        ("sudo rm x", "deny"),
        ("find . -exec rm {} +", "deny"),
        ("sh -c 'ls; rm x'", "deny"),
        ("echo a > .env", "deny"),
        ("echo a > b", "allow"),
        ("git push", "ask"),
        ("ls && git push origin", "ask"),
        // It cannot be told, so it is as bad as can be.
        ("x=rm; $x y", "deny"),
    ] {
        assert_eq!(ruling(line), expected, "{line:?}");
    }
}

#[cfg(all(unix, feature = "bash"))]
// spec: AP-11
#[test]
fn files_that_a_command_redirects_to_need_a_rule_of_their_own() {
    let rules = &["bash(echo:*)", "bash(cd:*)", "write_file(out/**)"];
    for (line, expected) in [
        ("echo a > out/b", true),
        ("echo a > outer", false),
        ("echo a > out/../b", false),
        ("echo a > $x", false),
        ("echo a > out/*", false),
        ("cd /; echo a > out/b", false),
    ] {
        assert_eq!(allows(rules, "bash", &command(line)), expected, "{line:?}");
    }
}

#[cfg(all(unix, feature = "bash"))]
// spec: AP-11
#[test]
fn suggested_rule_allows_the_call_and_nothing_wider() {
    let said = |tool: &str, subject: &Subject| suggestions(tool, subject).join(", ");
    assert_eq!(said("bash", &command("git status -s")), "bash(git status -s), bash(git status:*)");
    assert_eq!(said("bash", &command("ls -la src")), "bash(ls -la src), bash(ls:*)");
    for line in [
        "sudo ls",
        "prlimit ls",
        "docker run x",
        "git -C x status",
        "make test --eval=x",
        "sort -o x",
        "tar xf a",
    ] {
        assert_eq!(said("bash", &command(line)), format!("bash({line})"));
    }
    assert_eq!(said("bash", &command("make -s test")), "bash(make -s test), bash(make:*)");
    assert_eq!(said("bash", &command("make test -s")), "bash(make test -s), bash(make test:*)");
    assert_eq!(said("bash", &command("npm run build")), "bash(npm run build), bash(npm run build:*)");
    assert_eq!(said("bash", &command("node a.js x")), "bash(node a.js x), bash(node a.js x:*)");
    assert_eq!(said("bash", &command("cd src; git status")), "bash(cd src; git status)");
    assert_eq!(said("bash", &command("a; b")), "bash(a; b)");
    assert_eq!(said("write_file", &file("src/a b.rs")), "write_file(src/a b.rs), write_file(src/**)");
    assert_eq!(said("write_file", &file("notes.txt")), "write_file(notes.txt)");
    assert_eq!(
        said("web_fetch", &Subject::Urls(vec!["https://docs.rs/x?y".into()])),
        "web_fetch(https://docs.rs/*)"
    );
    for (tool, subject) in [("bash", command("cargo test -p x")), ("write_file", file("a[1]/{b}.rs"))] {
        for rule in suggestions(tool, &subject) {
            assert!(allows(&[&rule], tool, &subject), "{rule}");
        }
    }
}

#[cfg(all(unix, feature = "bash"))]
// spec: AP-11
#[test]
fn rules_about_bash_apply_to_commands_in_the_background() {
    let rules = Permissions::parse(&["bash(rm:*)"], &["bash(git push:*)"], &["bash(git:*)"]).unwrap();
    for (tool, line, expected) in [
        ("start_command", "rm x", Ruling::Deny("bash(rm:*)".to_owned())),
        ("send_input", "rm x", Ruling::Deny("bash(rm:*)".to_owned())),
        ("start_command", "git push", Ruling::Ask("bash(git push:*)".to_owned())),
        ("send_input", "git push", Ruling::Ask("bash(git push:*)".to_owned())),
        ("start_command", "git status", Ruling::Allow),
        ("send_input", "git status", Ruling::Silent),
        ("other", "rm x", Ruling::Silent),
    ] {
        assert_eq!(rules.ruling(tool, &command(line), &[]), expected, "{tool} {line}");
    }
    let whole = Permissions::parse(&["bash"], &[], &["start_command"]).unwrap();
    assert_eq!(whole.ruling("start_command", &command("ls"), &[]), Ruling::Deny("bash".to_owned()));
    assert_eq!(whole.ruling("send_input", &command("ls"), &[]), Ruling::Deny("bash".to_owned()));
    let own = Permissions::parse(&["start_command"], &[], &["bash"]).unwrap();
    assert_eq!(own.ruling("bash", &command("ls"), &[]), Ruling::Allow);
}
