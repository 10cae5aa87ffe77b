//! Tests random lines: shells call programs only as the parser found. Real shells run the lines, in a folder
//! where every program only records its call.

use std::{
    collections::HashSet,
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Command, Stdio},
};

use proptest::{
    prelude::*,
    sample::{Index, select},
    test_runner::{Config, TestCaseError, TestRunner},
};

use super::{KnownWord, Line, analyse};

const SHELLS: &[&str] = &["/bin/bash", "/bin/dash"];

/// The only programs on the `PATH` of the shells.
const PROGRAMS: &[&str] = &["ok", "no", "evil"];

const COMMANDS: &[&str] = &[
    "ok",
    "no",
    "evil",
    "ok a 'b c'",
    "'ok' \"a\"b",
    "o\\k \\; \\$x",
    "ok \"\\a\\\"\\$x\" '\\'",
    "ok a=b {a,b} *",
    "ok $x ${x}y \"$@\" ${#}",
    "ok \"a$x\" b$x \"c$@\" i* */d ?n [i]n {i,o}n b{c,d} ~/e \"$x\"*",
    "ok \"a\nb\" 'c\nd'",
    "ok > out",
    "> out ok 2>&1",
    "ok < in",
    "ok $",
    "ok if do }",
    "ok \";\" evil",
    "ok '' \"\"",
    "ok ~ a~ [ ]",
    "ok 2>out a",
    "ok a2> out",
    "ok ü",
];

/// Forms of lines; `@` stands for another line.
const FORMS: &[&str] = &[
    "@; @",
    "@ && @",
    "@ || @",
    "@ | @",
    "@ |& @",
    "@ & @",
    "@\n@",
    "(@)",
    "( @ ) > out",
    "{ @; }",
    "{ @\n} 2>&1",
    "! @",
    "if @; then @; fi",
    "if no; then @; elif @; then @; else @; fi",
    "for i in a b; do @; done",
    "for i in $(@) *; do ok $i; done",
    "while no; do @; done",
    "until ok; do @; done",
    "ok $(@)",
    "ok \"a$(@)b\"",
    "ok \"$(ok \"$(@)\")\"",
    "ok <(@)",
    "ok < <(@)",
    "ok > >(@)",
    "ok <<< $(@)",
    "ok <<'E'\n@\nE\n@",
    "ok <<E; @\n@\nE",
    "ok <<-E\n\t@\n\tE\n@",
    "(ok <<E\n@\nE\n)",
    "ok <<E <<\\F\n@\nE\n@\nF",
    "ok '@'",
    "ok \"@\"",
    "ok \\; @",
    "ok a; @",
    "ok &> out; @",
    "ok &> out @",
    "ok >& '$(@)'",
    "ok &> '$(@)'",
    "ok > '$(@)'",
    "ok <& '$(@)'",
    "for x in '$(@)'; do ok $x > $x; done",
    "for x in '$(@)'; do ok >& $x; done",
    "ok & > out @",
    "ok ${x:-$(@)}",
    "ok ${ @; }",
    "ok \"${| @; }\"",
    "ok `@`",
    "ok $((1 + $(@)))",
    "ok $[ $(@) ]",
    "ok $'a' @",
    "ok $\"a\" @",
    "[[ $(@) ]]",
    "((a[$(@)]))",
    "x=$(@)",
    "x=evil; $x",
    "PATH=. ok",
    "ok() { @; }; ok",
    "function ok { @; }; ok",
    "coproc @",
    "case a in a) @;; esac",
    "ok a # @\n@",
    "ok \\\n@",
    "select x in a; do @; done",
    "time @",
    "ok {fd}> out @",
    "ok 12> out @",
    "a[$(@)]=1 ok",
    "ok a=(@)",
];

/// Texts that are inserted at random places of a line.
const NOISE: &[&str] = &[
    ";", "&", "|", "\n", "(", ")", "{", "}", "$", "`", "'", "\"", "\\", "<", ">", "#", "!", " ", "\t", "=",
    "~", "*", "[", "]", "&&", "||", ";;", ";&", "&>", ">&", "<<", "<<-", "<<<", "$(", "$((", "${", "${ ",
    "${|", "$'", "$\"", "<(", ">(", "((", "[[", " evil ", ";evil;", "$(evil)", "\nevil\n", "\nE\n", "1", "2",
    " do ", " in ", " time ", " ! ", " if ", " then ", " fi", " }", "{ ", " E", "\r", "\u{a0}", "$$", "$?",
    "$x", "ok", "case ", "esac",
];

fn line() -> impl Strategy<Value = String> {
    let deeper = |inner: BoxedStrategy<String>| {
        (select(FORMS), prop::collection::vec(inner, 4)).prop_map(|(form, inner)| {
            let mut inner = inner.into_iter();
            form.chars().fold(String::new(), |line, c| match c {
                '@' => line + &inner.next().unwrap_or_default(),
                c => line + c.encode_utf8(&mut [0; 4]),
            })
        })
    };
    let lines = select(COMMANDS).prop_map(str::to_owned).prop_recursive(3, 24, 4, deeper);
    let noise = prop::collection::vec((any::<Index>(), any::<Index>(), 0..3_usize), 0..3);
    (lines, noise).prop_map(|(line, noise)| noise.into_iter().fold(line, noisy))
}

/// Removes a character from a line, or inserts a text of [`NOISE`].
fn noisy(mut line: String, (at, piece, what): (Index, Index, usize)) -> String {
    let places: Vec<usize> = line.char_indices().map(|(at, _)| at).collect();
    if places.is_empty() {
        return line;
    }
    let at = places[at.index(places.len())];
    match what {
        0 => drop(line.remove(at)),
        _ => line.insert_str(at, NOISE[piece.index(NOISE.len())]),
    }
    line
}

/// Creates the programs in a folder. Each program writes its name and arguments, in one write, into the file `calls`
/// beside the working folder. A line that calls programs for ever is killed when this file is full.
fn stage(dir: &Path) {
    for (name, code) in PROGRAMS.iter().zip([0, 1, 0]) {
        let path = dir.join(name);
        let says = format!("printf '%s\\037' {name} \"$@\" '\u{1e}' 2>&- >> ../calls");
        fs::write(&path, format!("#!/bin/sh\ntrap '' XFSZ\n{says} || kill -9 0\nexit {code}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Runs a line in a shell. Returns the calls of programs, and the names of the files that the line wrote. Each line
/// has a folder of its own, because background processes of earlier lines may still run.
fn run(programs: &Path, shell: &str, line: &str) -> (Vec<Vec<String>>, HashSet<String>) {
    let dir = tempfile::tempdir().unwrap();
    let (work, calls) = (dir.path().join("work"), dir.path().join("calls"));
    fs::create_dir(&work).unwrap();
    fs::write(work.join("in"), "").unwrap();
    // Background processes usually keep the output open, so this waits for them too.
    let limited = ["-c", "ulimit -f 4; exec \"$0\" -c \"$1\"", shell, line];
    let mut command = Command::new("/bin/sh");
    command.args(limited).current_dir(&work).env_clear().env("PATH", programs).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let calls = fs::read_to_string(calls).unwrap_or_default();
    // The last call may be incomplete if the file reached its size limit.
    let calls = calls.rsplit_once("\u{1e}\u{1f}").map_or("", |(whole, _)| whole);
    let words = |call: &str| call.split_terminator('\u{1f}').map(str::to_owned).collect();
    let calls = calls.split("\u{1e}\u{1f}").filter(|call| !call.is_empty()).map(words).collect();
    let names = fs::read_dir(&work).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    (calls, names.filter(|name| name != "in").collect())
}

/// Returns whether a parsed command may be this call. An unknown word may become any number of words, each
/// of which matches its form.
fn may_be(words: &[KnownWord], call: &[String]) -> bool {
    let [word, rest @ ..] = words else { return call.is_empty() };
    if word.is_one() {
        return call.first().is_some_and(|first| word.may_be(first)) && may_be(rest, &call[1..]);
    }
    let fit = call.iter().take_while(|said| word.may_be(said) && said.starts_with(&word.beginning())).count();
    (0..=fit).any(|from| may_be(rest, &call[from..]))
}

/// Returns true if each command of the line is one of [`PROGRAMS`]. Other lines, such as those with built-in commands
/// of the shell, are not run.
fn calls_programs_only(line: &Line) -> bool {
    let is_program = |word: &KnownWord| word.known().is_some_and(|word| PROGRAMS.contains(&&*word));
    line.parts.iter().all(|part| is_program(&part.words[0]))
}

/// Runs a line in every shell. Returns true if any of the shells called a program.
fn judge(programs: &Path, line: &str, read: &Line) -> Result<bool, TestCaseError> {
    let mut called = false;
    // `BASH` names another bash.
    let other = std::env::var("BASH").ok();
    for shell in SHELLS.iter().copied().chain(other.as_deref()).filter(|shell| Path::new(shell).exists()) {
        let (calls, files) = run(programs, shell, line);
        for call in &calls {
            let is_read = read.parts.iter().any(|part| may_be(&part.words, call));
            prop_assert!(is_read, "{shell} called {call:?} for {line:?}, read as {read:?}");
        }
        for file in files {
            let is_read = read.writes.iter().any(|path| path.may_be(&file));
            prop_assert!(is_read, "{shell} wrote {file:?} for {line:?}, read as {read:?}");
        }
        called |= !calls.is_empty();
    }
    Ok(called)
}

// spec: AP-11
#[test]
fn analyse_of_any_line_finds_every_program_that_a_shell_calls_for_it() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().canonicalize().unwrap();
    stage(&dir);
    // The judge sees what was not read.
    for (line, read) in [("ok; evil", "ok"), ("ok 'a b'", "ok a b"), ("ok > out", "ok")] {
        assert!(judge(&dir, line, &analyse(read).unwrap()).is_err(), "{line:?}");
    }
    let cases = u32::try_from(archon_testkit::cases(300, 10_000)).unwrap();
    let config =
        Config { cases, failure_persistence: None, max_global_rejects: 100 * cases, ..Config::default() };
    let called = std::cell::Cell::new(0);
    let outcome = TestRunner::new(config).run(&line(), |line| {
        let read = analyse(&line).filter(|read| !read.parts.is_empty() && calls_programs_only(read));
        let Some(read) = read else { return Err(TestCaseError::reject("not told, or not ours")) };
        called.set(called.get() + u32::from(judge(&dir, &line, &read)?));
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(called.get() > cases / 2, "{} of {cases} lines called a program", called.get());
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    // spec: AP-11
    #[test]
    fn analyse_of_any_text_does_not_panic(text in r"[a\x{a0}ü()${}'\x22\\;&|<>\n \t=!E0-9*~`]{0,60}", any in any::<String>()) {
        let _ = (analyse(&text), analyse(&any));
    }
}
