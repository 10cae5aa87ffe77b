//! Command lines by the thousand: none that the rules let pass runs a program that they do not speak of. The judge is
//! the shell itself, in a folder where every program only says that it was called.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use archon_tools::Permissions;
use archon_types::Subject;

/// What may be run, and much that must not help: the words of programs that run others.
const ALLOWED: &[&str] = &[
    "bash(ok:*)",
    "bash(fine go:*)",
    "bash(echo:*)",
    "bash(true:*)",
    "bash(cd:*)",
    "bash(break:*)",
    "bash(env:*)",
    "bash(xargs:*)",
    "bash(sh:*)",
    "bash(find:*)",
    "bash(timeout:*)",
    "bash(nohup:*)",
    "bash(eval:*)",
    "bash(exec:*)",
    "bash(command:*)",
    "bash(builtin:*)",
    "bash(printf:*)",
    "bash(test:*)",
    "bash(trap:*)",
    "bash(source:*)",
    "bash(read:*)",
    "bash(export:*)",
    "bash(declare:*)",
    "bash(hash:*)",
    "bash(alias:*)",
    "bash(set:*)",
    "bash(nice:*)",
    "bash(mapfile:*)",
    "bash(time:*)",
    "bash([:*)",
    "bash(.:*)",
    "bash(let:*)",
    "bash(unset:*)",
    "bash(wait:*)",
    "bash(jobs:*)",
];

/// `@` is another line.
const FORMS: &[&str] = &[
    "ok",
    "ok a 'b c'",
    "fine go",
    "fine stop",
    "evil",
    "evil a",
    "'evil'",
    "ev\"il\"",
    "e\\vil",
    "./bin/evil",
    "{evil,ok}",
    "$x",
    "ok $x",
    "ok; @",
    "ok && @",
    "@ || @",
    "@ | @",
    "@ & @",
    "@\n@",
    "(@)",
    "{ @; }",
    "! @",
    "time @",
    "if @; then @; fi",
    "if ok; then ok; elif @; then ok; else @; fi",
    "for i in a b; do @; done",
    "for PATH in ./bin; do @; done",
    "while @; do break; done",
    "until @; do break; done",
    "case a in a) @;; esac",
    "case $(@) in *) ok;; esac",
    "echo $(@)",
    "echo \"$(@)\"",
    "echo `@`",
    "echo <(@)",
    "echo > >(@)",
    "echo <<< $(@)",
    "echo ${x:-$(@)}",
    "echo ${x:=evil}; $x",
    "echo $((1 + $(@)))",
    "echo $[ $(@) ]",
    "((a[$(@)]))",
    "[[ -n $(@) ]]",
    "[[ $x -eq a[$(@)] ]]",
    "x=$(@)",
    "x=evil; $x",
    "x=evil ok",
    "PATH=./evilbin ok",
    "ok() { @; }",
    "ok() { @; }; ok",
    "function ok { @; }; ok",
    "coproc @",
    "env @",
    "env x=1 @",
    "xargs @",
    "echo a | xargs @",
    "sh -c '@'",
    "sh -c \"@\"",
    "eval @",
    "eval '@'",
    "exec @",
    "command @",
    "builtin eval @",
    "timeout 1 @",
    "nohup @",
    "nice @",
    "find . -maxdepth 0 -exec @ \\;",
    "find . -maxdepth 0 $(echo -exec evil +)",
    "trap '@' EXIT",
    "alias ok=evil\nok",
    "source /dev/stdin <<< '@'",
    ". <(echo '@')",
    "read x <<< evil; $x",
    "export x=evil; $x",
    "declare x=evil; $x",
    "hash -p ./bin/evil ok; ok",
    "printf -v 'x[$(@)]' a",
    "printf -v'x[$(@)]' a",
    "jobs -x @",
    "test -v 'x[$(@)]'",
    "[ -v 'x[$(@)]' ]",
    "let 'x[$(@)]'",
    "unset 'x[$(@)]'",
    "wait -p 'x[$(@)]'",
    "mapfile -C evil -c 1 x <<< a",
    "ok <<E\n$(@)\nE",
    "ok <<'E'\n$(@)\nE\n@",
    "ok <<-E\n\t`@`\n\tE",
    "ok #\n@",
    "ok # a",
    "ok \\\n@",
    "ok $'\\n'@",
    "ok \"a\nb\"",
    "ok 'a\n@'",
    "ok \";\" @",
    "ok \\; @",
    "ok a=b",
    "ok a=(b $(@))",
    "set -- evil; $1",
    "set -- evil\n\"$@\"",
    "cd bin; ./evil",
    "ok ~ *",
    "ok ?(a|$(@))",
    "echo @ > out",
    "echo a >| out",
    "echo a &> out",
    "ok < in",
    "ok 2>&1",
    "ok >&2",
    "ok |& @",
    "ok ;; @",
    "a[$(@)]=1 ok",
    "ok {a,$(@)}",
    "ok \u{a0}@",
    "ok\r@",
    "ok\u{0b}@",
    "select i in a; do @; done < /dev/null",
    "ok ${!x}",
    "ok ${x@P}",
];

/// Put anywhere.
const NOISE: &[&str] = &[
    ";", "&", "|", "\n", "(", ")", "{", "}", "$", "`", "'", "\"", "\\", "<", ">", "#", "!", " ", "\t", "$(",
    "${", "<(", "=", "~", "*", "[", "]", "&&", "||", "$'", "<<", "evil", ";evil;", "$(evil)", "`evil`",
    "|evil", "\nevil\n", "\r", "@",
];

/// A small generator of numbers, the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % below
    }

    fn line(&mut self, depth: usize) -> String {
        // The deeper, the plainer.
        let forms = if depth == 0 { &FORMS[..11] } else { FORMS };
        let mut line = String::new();
        for c in forms[self.roll(forms.len())].chars() {
            match c {
                '@' => line.push_str(&self.line(depth.saturating_sub(1))),
                c => line.push(c),
            }
        }
        line
    }

    fn noisy_line(&mut self) -> String {
        let depth = 1 + self.roll(3);
        let mut line = self.line(depth);
        for _ in 0..self.roll(6).saturating_sub(3) {
            let places: Vec<usize> = line.char_indices().map(|(at, _)| at).chain([line.len()]).collect();
            let at = places[self.roll(places.len())];
            match self.roll(4) {
                0 if at < line.len() => {
                    line.remove(at);
                }
                _ => line.insert_str(at, NOISE[self.roll(NOISE.len())]),
            }
        }
        line
    }
}

/// A folder with programs that say that they were called, and the programs that run others.
fn stage(dir: &Path) {
    let bin = dir.join("bin");
    fs::create_dir_all(&bin).unwrap();
    for (name, does) in [
        ("ok", "exit 0".to_owned()),
        ("fine", format!("[ \"$1\" = go ] || : > {0}/called; exit 0", dir.display())),
    ] {
        write_program(&bin.join(name), &does);
    }
    write_program(&bin.join("evil"), &format!(": > {}/called; exit 0", dir.display()));
    for program in ["env", "xargs", "sh", "find", "timeout", "nohup", "nice"] {
        let real = ["/usr/bin", "/bin"]
            .iter()
            .map(|folder| Path::new(folder).join(program))
            .find(|path| path.exists());
        if let Some(real) = real {
            std::os::unix::fs::symlink(real, bin.join(program)).unwrap();
        }
    }
    fs::write(dir.join("in"), "").unwrap();
}

fn write_program(path: &Path, does: &str) {
    fs::write(path, format!("#!/bin/bash\n{does}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What a line did that nobody allowed.
fn harm(dir: &Path, line: &str) -> Option<&'static str> {
    let mut shell = Command::new("/bin/bash");
    shell.arg("-c").arg(line).current_dir(dir).env_clear().env("PATH", dir.join("bin")).process_group(0);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut shell = shell.spawn().unwrap();
    let began = Instant::now();
    while shell.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(2) {
        std::thread::yield_now();
    }
    let group = rustix::process::Pid::from_child(&shell);
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    let _ = shell.wait();
    let called = dir.join("called").exists();
    let _ = fs::remove_file(dir.join("called"));
    let mut written = false;
    for entry in fs::read_dir(dir).unwrap().flatten() {
        if entry.file_name() != "bin" && entry.file_name() != "in" {
            written = true;
            let _ = fs::remove_file(entry.path());
        }
    }
    match (called, written) {
        (true, _) => Some("called"),
        (_, true) => Some("written"),
        _ => None,
    }
}

// spec: AP-11
#[test]
fn no_line_that_the_rules_let_pass_runs_what_they_do_not_speak_of() {
    let lines = archon_testkit::cases(1_500, 100_000);
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().canonicalize().unwrap();
    stage(&dir);
    let none: [&str; 0] = [];
    let rules = Permissions::parse(none.iter(), none.iter(), ALLOWED.iter()).unwrap();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut passed, mut harmful) = (0, 0);
    for n in 0..lines {
        let line = dice.noisy_line();
        let subject = Subject::Command { line: line.clone(), root: dir.clone() };
        if rules.is_trusted("bash", &subject) {
            passed += 1;
            assert_eq!(harm(&dir, &line), None, "line {n}: {line:?}");
        } else if n < 300 {
            harmful += usize::from(harm(&dir, &line).is_some());
        }
    }
    // The judge sees harm where there is some, and the rules let enough pass to be judged.
    assert!(harmful > 30, "{harmful}");
    assert!(passed > lines / 20, "{passed} of {lines}");
    println!("{passed} of {lines} lines passed, none did harm; {harmful} of the first others would have");
}
