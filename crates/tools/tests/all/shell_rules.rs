//! Command lines and rule sets by the hundred thousand: no line that the rules let pass runs a program, takes
//! an option or writes a file that they do not name. The judge is the shell itself, in a folder where every
//! program only writes down how it was called. `BASH` names another bash to judge by.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use archon_testkit::{Chance, cases, first_seed};
use archon_tools::{Permissions, Rule};
use archon_types::Subject;

/// Commands that rules are about, with words that make them another: an option that runs or writes, a
/// subcommand, a repository.
const COMMANDS: &[(&str, &[&str])] = &[
    ("ls", &["-la", "-R", "--color"]),
    ("cat", &["-n", "--"]),
    ("grep", &["-rn", "-e", "--include=*.rs", "-f"]),
    ("head", &["-n5", "-3"]),
    ("wc", &["-l"]),
    (
        "sort",
        &[
            "-n",
            "-rnu",
            "-k2",
            "-uo",
            "-o",
            "-t,",
            "-T",
            "--outp",
            "--output=x",
            "--compress-program=evil",
            "--reverse",
        ],
    ),
    ("uniq", &["-c", "-f", "1", "x", "--count"]),
    ("diff", &["-u", "-r", "-l", "--paginate", "-rq"]),
    ("date", &["-u", "+%s", "-s", "01010000", "--set=x", "-d", "now"]),
    (
        "find",
        &[
            ".",
            "-name",
            "-type",
            "f",
            "-exec",
            "-delete",
            "-fprint",
            "-ok",
            "+",
            "-print",
            "-maxdepth",
            "1",
            "-fls",
        ],
    ),
    ("rg", &["-n", "--pre", "--pre=evil", "-g", "-z", "--hostname-bin", "-tz", "--type=rust", "-A2"]),
    ("sed", &["-n", "1p", "'1,5p'", "-i", "-ni", "'1e evil'", "'s/a/b/e'", "'w x'", "-e", "-f"]),
    ("awk", &["'{print $1}'", "'BEGIN{system(\"evil\")}'", "-F:", "-f", "'{print > \"x\"}'", "-v"]),
    ("git status", &["-s", "--porcelain", "-C", "-u", "--short"]),
    ("git log", &["-5", "--oneline", "--output=x", "--outp", "-p", "--ext-diff", "-n", "--textconv", "-S"]),
    ("git diff", &["--stat", "-O", "--output", "--cached", "--ext-diff", "-U3"]),
    ("git add", &["-A", "-p", "."]),
    ("git commit", &["-m", "msg", "-am", "--amend", "--no-edit", "-S", "-e"]),
    ("git push", &["origin", "main", "-u", "--force", "--receive-pack=evil", "-f", "--exec=evil", "./evil"]),
    ("git -C . push", &["origin"]),
    ("git --git-dir=x status", &["-s"]),
    ("git -c core.pager=evil log", &["-p"]),
    ("git clone", &["-u", "-qu", "x"]),
    ("git stash", &["list", "pop", "clear", "-q"]),
    ("git fetch", &["origin", "ext::evil", "--all", "--upload-pack=evil"]),
    (
        "cargo test",
        &["-p", "x", "--", "--nocapture", "--config", "--logfile", "--target-dir=x", "-Z", "--release"],
    ),
    ("cargo build", &["--release", "--config=x", "--manifest-path", "--", "-vv", "--bin", "x"]),
    ("cargo clippy", &["--", "-D", "warnings", "-C", "linker=evil", "-Clinker=evil", "--fix"]),
    ("cargo run", &["--", "evil", "--release", "--bin", "x"]),
    ("cargo publish", &["--dry-run"]),
    ("cargo +nightly publish", &["--dry-run"]),
    ("npm run", &["build", "--", "--evil", "--script-shell=evil", "-s", "x", "--prefix"]),
    ("npm test", &["--", "evil", "--node-options=x", "--silent"]),
    ("npm --prefix . publish", &["-s"]),
    ("make", &["test", "-j4", "-f", "x", "CC=evil", "--eval=evil", "-C", "-sf", "all", "-k"]),
    ("make test", &["install", "-s", "--eval", "-j", "4"]),
    ("node", &["a.js", "-e", "-r", "--version", "x", "--require=evil"]),
    ("python -m pytest", &["-q", "tests", "-p", "evil", "-k", "-c", "--rootdir=x", "/x", "../x"]),
    ("rm", &["-rf", "-r", "-f", "--recursive"]),
    ("cp", &["-r", "-t", "--backup"]),
    ("mkdir", &["-p"]),
    ("tee", &["-a"]),
    ("tar", &["-cI", "cf", "-I", "--to-command=evil"]),
    ("env", &["ls", "git", "push", "evil", "A=b"]),
    ("xargs", &["ls", "git", "push", "evil"]),
    ("sh", &["-c", "evil", "'git push'", "ls"]),
    ("timeout", &["1", "evil", "ls"]),
    ("nohup", &["evil", "ls"]),
    ("nice", &["evil", "-n", "5", "ls"]),
    ("prlimit", &["evil", "ls"]),
    ("evil", &["a"]),
    ("printf", &["'%s'", "-v", "%n", "PATH", "'x[$(evil)]'", "\"$x\""]),
    ("test", &["-f", "-v", "'x[$(evil)]'", "-n", "=", "-eq"]),
    ("[", &["-f", "-v", "'x[$(evil)]'", "]", "-z"]),
    ("cd", &["..", "out", "-", "/", "src"]),
    ("echo", &["-n", "$x", "-e"]),
    ("pwd", &["-P"]),
];

/// Words for any command.
const WORDS: &[&str] = &[
    "a",
    "src/b",
    "$x",
    "\"$x\"",
    "*",
    "src/*",
    "--",
    "-",
    "''",
    "-x",
    "-o",
    "-n",
    "'a b'",
    "\"$(ls)\"",
    "../x",
    "evil",
    "a=b",
    "-exec",
    "--output=x",
    "--help",
    "{a,-o}",
    "\"-$x\"",
    "in",
];

/// Words of the shell itself that no rule allows to run others.
const BUILTINS: &[&str] = &[
    "true", "break", "eval", "exec", "command", "builtin", "trap", "source", "read", "export", "declare",
    "hash", "alias", "set", "mapfile", "time", ".", "let", "unset", "wait", "jobs",
];

const DENIED: &[&str] = &["git push", "rm", "rm -rf", "cargo publish", "npm publish", "evil"];

/// `@` is another line, and `%` a command.
const FORMS: &[&str] = &[
    "%",
    "%",
    "%",
    "% a 'b c'",
    "% | %",
    "evil",
    "evil a",
    "'evil'",
    "ev\"il\"",
    "e\\vil",
    "./bin/evil",
    "{evil,ls}",
    "$x",
    "ls $x",
    "cd src && @",
    "cd src | @",
    "ls; @",
    "ls && @",
    "@ || @",
    "@ | @",
    "@ & @",
    "@\n@",
    "(@)",
    "{ @; }",
    "! @",
    "time @",
    "if @; then @; fi",
    "if ls; then ls; elif @; then ls; else @; fi",
    "for i in a b; do @; done",
    "for PATH in ./bin; do @; done",
    "while @; do break; done",
    "until @; do break; done",
    "case a in a) @;; esac",
    "case $(@) in *) ls;; esac",
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
    "x=evil ls",
    "PATH=./evilbin ls",
    "ls() { @; }",
    "ls() { @; }; ls",
    "function ls { @; }; ls",
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
    "alias ls=evil\nok",
    "source /dev/stdin <<< '@'",
    ". <(echo '@')",
    "read x <<< evil; $x",
    "export x=evil; $x",
    "declare x=evil; $x",
    "hash -p ./bin/evil ls; ls",
    "printf -v 'x[$(@)]' a",
    "printf -v'x[$(@)]' a",
    "jobs -x @",
    "test -v 'x[$(@)]'",
    "[ -v 'x[$(@)]' ]",
    "let 'x[$(@)]'",
    "unset 'x[$(@)]'",
    "wait -p 'x[$(@)]'",
    "mapfile -C evil -c 1 x <<< a",
    "ls <<E\n$(@)\nE",
    "ls <<'E'\n$(@)\nE\n@",
    "ls <<-E\n\t`@`\n\tE",
    "ls #\n@",
    "ls # a",
    "ls \\\n@",
    "ls $'\\n'@",
    "ls \"a\nb\"",
    "ls 'a\n@'",
    "ls \";\" @",
    "ls \\; @",
    "ls a=b",
    "ls a=(b $(@))",
    "set -- evil; $1",
    "set -- evil\n\"$@\"",
    "cd bin; ./evil",
    "ls ~ *",
    "ls ?(a|$(@))",
    "echo @ > out",
    "echo a >| out",
    "echo a &> out",
    "ls < in",
    "ls 2>&1",
    "ls >&2",
    "ls |& @",
    "ls ;; @",
    "a[$(@)]=1 ls",
    "ls {a,$(@)}",
    "ls \u{a0}@",
    "ls\r@",
    "ls\u{0b}@",
    "select i in a; do @; done < /dev/null",
    "ls ${!x}",
    "ls ${x@P}",
];

/// Put anywhere.
const NOISE: &[&str] = &[
    ";", "&", "|", "\n", "(", ")", "{", "}", "$", "`", "'", "\"", "\\", "<", ">", "#", "!", " ", "\t", "$(",
    "${", "<(", "=", "~", "*", "[", "]", "&&", "||", "$'", "<<", "evil", ";evil;", "$(evil)", "`evil`",
    "|evil", "\nevil\n", "\r", "@",
];

/// The rules of one set.
struct Set {
    /// All commands are allowed that are not denied.
    is_open: bool,
    words: Vec<Vec<&'static str>>,
    exact: Vec<String>,
    denied: Vec<Vec<&'static str>>,
    writes: bool,
    rules: Permissions,
}

fn pick<T: Copy>(chance: &mut Chance, all: &[T]) -> T {
    all[usize::try_from(chance.below(all.len() as u64)).unwrap()]
}

/// A command with its words, mostly of the programs that rules speak of.
fn command(chance: &mut Chance, known: &[Vec<&'static str>]) -> String {
    let (mut words, mut more) = pick(chance, COMMANDS);
    if !known.is_empty() && chance.percent(70) {
        let program = pick_from(chance, known)[0];
        let same: Vec<_> =
            COMMANDS.iter().filter(|(words, _)| words.split(' ').next() == Some(program)).collect();
        if !same.is_empty() {
            (words, more) = **pick_from(chance, &same);
        }
    }
    let mut command = words.to_owned();
    for _ in 0..chance.below(4) {
        command.push(' ');
        command.push_str(if chance.percent(70) { pick(chance, more) } else { pick(chance, WORDS) });
    }
    command
}

fn pick_from<'a, T>(chance: &mut Chance, all: &'a [T]) -> &'a T {
    &all[usize::try_from(chance.below(all.len() as u64)).unwrap()]
}

fn set(chance: &mut Chance) -> Set {
    let is_open = chance.percent(15);
    let mut words: Vec<Vec<&'static str>> = vec![vec!["ls"], vec!["echo"]];
    for _ in 0..12 {
        let all = pick(chance, COMMANDS).0;
        let known: Vec<&str> = all.split(' ').collect();
        let length = if chance.percent(30) { 1 } else { known.len() };
        words.push(known[..length].to_vec());
    }
    for _ in 0..3 {
        words.push(vec![pick(chance, BUILTINS)]);
    }
    words.retain(|words| words[0] != "evil");
    // A line such as `[` alone is no rule.
    let is_rule = |line: &String| format!("bash({line})").parse::<Rule>().is_ok();
    let exact: Vec<String> = (0..3).map(|_| command(chance, &[])).filter(is_rule).collect();
    let denied: Vec<Vec<&str>> = (0..chance.below(3) + u64::from(is_open))
        .map(|_| pick(chance, DENIED).split(' ').collect())
        .collect();
    let writes = chance.percent(50);
    let mut allow: Vec<String> = words.iter().map(|words| format!("bash({}:*)", words.join(" "))).collect();
    allow.extend(exact.iter().map(|line| format!("bash({line})")));
    allow.extend(writes.then(|| "write_file(out/**)".to_owned()));
    allow.extend(is_open.then(|| "bash".to_owned()));
    let deny: Vec<String> = denied.iter().map(|words| format!("bash({}:*)", words.join(" "))).collect();
    let rules = Permissions::parse(&deny, &[] as &[String], &allow).unwrap();
    Set { is_open, words, exact, denied, writes, rules }
}

fn line(chance: &mut Chance, known: &[Vec<&'static str>], depth: u64) -> String {
    // The deeper, the plainer.
    let forms = if depth == 0 { &FORMS[..12] } else { FORMS };
    let mut text = String::new();
    for c in pick(chance, forms).chars() {
        match c {
            '@' => text.push_str(&line(chance, known, depth.saturating_sub(1))),
            '%' => text.push_str(&command(chance, known)),
            c => text.push(c),
        }
    }
    text
}

fn noisy_line(chance: &mut Chance, known: &[Vec<&'static str>]) -> String {
    if chance.percent(40) {
        return command(chance, known);
    }
    let depth = chance.below(3);
    let mut line = line(chance, known, depth);
    for _ in 0..chance.below(6).saturating_sub(3) {
        let places: Vec<usize> = line.char_indices().map(|(at, _)| at).chain([line.len()]).collect();
        let at = places[usize::try_from(chance.below(places.len() as u64)).unwrap()];
        match chance.below(4) {
            0 if at < line.len() => {
                line.remove(at);
            }
            _ => line.insert_str(at, pick(chance, NOISE)),
        }
    }
    line
}

/// A folder with programs that write down how they were called. Those that run others do so.
fn stage(dir: &Path) {
    let bin = dir.join("bin");
    fs::create_dir_all(&bin).unwrap();
    for (words, _) in COMMANDS {
        let name = words.split(' ').next().unwrap();
        let real = ["env", "xargs", "sh", "timeout", "nohup", "nice", "prlimit"].contains(&name);
        let runs = match real {
            true => format!("exec /usr/bin/{name} \"$@\""),
            false => "exit 0".to_owned(),
        };
        let calls = dir.join("calls");
        let says = format!("printf '%s\\037' '{name}' \"$@\" '\u{1e}' 2>&- >> {}", calls.display());
        let text = format!("#!/bin/sh\ntrap '' XFSZ\n{says} || kill -9 0\n{runs}\n");
        fs::write(bin.join(name), text).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// The effects of a line in a shell: the calls of programs, and the files that it wrote.
struct Done {
    calls: Vec<Vec<String>>,
    written: Vec<PathBuf>,
}

fn run(dir: &Path, line: &str) -> Done {
    let (work, calls) = (dir.join("work"), dir.join("calls"));
    let _ = fs::remove_dir_all(&work);
    let _ = fs::remove_file(&calls);
    fs::create_dir_all(work.join("out")).unwrap();
    fs::create_dir_all(work.join("src")).unwrap();
    fs::write(work.join("in"), "").unwrap();
    let shell = std::env::var("BASH").unwrap_or_else(|_| "/bin/bash".to_owned());
    let limited = ["-c", "ulimit -f 8 -t 1 2>&-; exec \"$0\" -c \"$1\"", &shell, line];
    let mut command = Command::new("/bin/bash");
    command.args(limited).current_dir(&work).env_clear().env("PATH", dir.join("bin")).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let calls = fs::read(&calls).unwrap_or_default();
    let calls = String::from_utf8_lossy(&calls);
    // A call that found no room in the file was written in part.
    let calls = calls.rsplit_once("\u{1e}\u{1f}").map_or("", |(whole, _)| whole);
    let words = |call: &str| call.split_terminator('\u{1f}').map(str::to_owned).collect();
    let calls = calls.split("\u{1e}\u{1f}").filter(|call| !call.is_empty()).map(words).collect();
    let mut written = Vec::new();
    for folder in [&work, &work.join("out"), &work.join("src")] {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        written.extend(entries.filter(|path| path.is_file() && !path.ends_with("in")));
    }
    Done { calls, written }
}

/// The options of a call, as the program takes them apart: letters of which some have a value, long ones, and
/// the rest.
fn options(call: &[String], with_values: &str) -> (String, Vec<String>, Vec<String>) {
    let (mut letters, mut long, mut rest) = (String::new(), Vec::new(), Vec::new());
    let mut words = call.iter().skip(1);
    while let Some(word) = words.next() {
        if word == "--" {
            rest.extend(words.by_ref().cloned());
        } else if let Some(option) = word.strip_prefix("--") {
            long.push(option.split('=').next().unwrap().to_owned());
        } else if let Some(bundle) = word.strip_prefix('-').filter(|bundle| !bundle.is_empty()) {
            for (at, letter) in bundle.char_indices() {
                letters.push(letter);
                if with_values.contains(letter) {
                    if at + letter.len_utf8() == bundle.len() {
                        words.next();
                    }
                    break;
                }
            }
        } else {
            rest.push(word.clone());
        }
    }
    (letters, long, rest)
}

/// Programs, the letters that take a value, those that run or write something else, and the long ones that
/// do.
const GETOPT: &[(&str, &str, &str, &[&str])] = &[
    ("sort", "ktSTo", "oT", &["output", "compress-program", "temporary-directory"]),
    ("uniq", "fsw", "", &[]),
    ("diff", "UCxWLIFD", "l", &["paginate"]),
    ("date", "dfrs", "s", &["set"]),
    ("rg", "ABCefgtTmrMdjE", "z", &["pre", "hostname-bin", "search-zip"]),
    ("sed", "efl", "eifs", &["in-place", "expression", "file"]),
    ("awk", "Fvfeil", "feil", &["file", "source", "include", "load"]),
    ("cp", "tS", "bS", &["backup", "suffix"]),
];

/// Returns whether a call runs, writes or reads settings that its first words do not name. The first
/// `named` words are in the rule. This is a list of dangers, so that it differs from the list that it
/// checks.
fn is_harmful(call: &[String], named: usize) -> bool {
    let program = &*call[0];
    let has = |words: &[&str]| {
        call.iter()
            .skip(1)
            .any(|word| words.iter().any(|bad| word == bad || word.starts_with(&format!("{bad}="))))
    };
    let begins =
        |words: &[&str]| call.iter().skip(1).any(|word| words.iter().any(|bad| word.starts_with(bad)));
    let behind: Vec<&str> = call.iter().skip(named.max(2)).map(String::as_str).collect();
    if let Some((_, with_values, bad, bad_long)) = GETOPT.iter().find(|(name, ..)| *name == program) {
        let (letters, long, rest) = options(call, with_values);
        let is_bad = |said: &String| bad_long.iter().any(|bad| !said.is_empty() && bad.starts_with(&**said));
        let script = rest.first().map_or("", String::as_str);
        return letters.contains(|c| bad.contains(c))
            || long.iter().any(is_bad)
            || program == "uniq" && rest.len() > 1
            || program == "date" && rest.iter().any(|word| !word.starts_with('+'))
            || program == "sed" && script.contains(['w', 'W', 'e', 'r', 'R', 'M'])
            || program == "awk" && script.contains(['|', '>', '(']);
    }
    let subcommand = call.get(1).map_or("", String::as_str);
    let operands = |words: &[&str]| words.iter().any(|word| !word.starts_with('-') && !word.is_empty());
    match program {
        "ls" | "cat" | "grep" | "head" | "wc" | "rm" | "mkdir" | "tee" => false,
        "find" => begins(&["-exec", "-ok", "-delete", "-fprint", "-fls"]),
        "git" => match subcommand {
            "status" | "log" | "diff" | "add" | "commit" | "stash" => {
                let paths = call.iter().position(|word| word == "--").unwrap_or(call.len());
                call[2..paths].iter().any(|word| {
                    ["--ou", "--ext", "--textc", "--exec", "-O", "-S", "-C", "-e", "-p"].iter().any(|bad| {
                        word.starts_with(bad) && !(subcommand != "commit" && ["-S", "-p", "-C"].contains(bad))
                    })
                }) || subcommand == "stash" && call.get(2).is_some_and(|word| word == "clear")
            }
            "push" | "fetch" => operands(&behind) || begins(&["--rec", "--exe", "--upl", "-f", "--force"]),
            _ => true,
        },
        "cargo" => {
            let at = call.iter().position(|word| word == "--").unwrap_or(call.len());
            let own = ["--config", "--manifest-path", "--target-dir", "-Z", "-C", "--fix"];
            let is_own = |word: &String| own.iter().any(|bad| word.starts_with(bad)) || word.starts_with('+');
            call[1..at].iter().any(is_own)
                || match subcommand {
                    "test" => call[at..].iter().any(|word| word.starts_with("--logfile")),
                    "clippy" => call[at..]
                        .iter()
                        .any(|word| word.starts_with("-C") || word.starts_with("--") && word.len() > 2),
                    "build" | "run" => call.len() > (at + 1).max(named),
                    _ => true,
                }
        }
        "npm" => {
            let free = if named > 2 || subcommand == "test" { 0 } else { 1 };
            let operands = behind.iter().filter(|word| !word.starts_with('-') && **word != "run");
            begins(&["--script", "--prefix", "--node", "-C", "--evil"])
                || !["run", "test"].contains(&subcommand)
                || operands.filter(|word| **word != subcommand).count() > free
        }
        "make" => {
            has(&["--eval", "--file", "--directory"])
                || call.iter().skip(1).any(|word| word.contains('='))
                || call.iter().skip(1).any(|word| {
                    word.starts_with('-')
                        && !word.starts_with("--")
                        && word.contains(['f', 'C', 'I', 'E', 'o', 'W'])
                })
                || named > 1 && operands(&behind)
        }
        "node" => call.len() > named && call[1..] != ["--version".to_owned()],
        "python" => {
            call[1..3.min(call.len())] != ["-m".to_owned(), "pytest".to_owned()]
                || begins(&["-p", "-c", "--rootdir"])
                // What `-k` takes is no path.
                || call.windows(2).any(|two| two[0] != "-k" && two[1].starts_with(['/', '.']))
        }
        _ => true,
    }
}

/// The harm that was done, if any, by the rules of a set.
fn harm(set: &Set, line: &str, done: &Done) -> Option<String> {
    for call in &done.calls {
        for denied in &set.denied {
            let mut words = call.iter();
            let is_denied =
                call[0] == denied[0] && denied.iter().all(|denied| words.any(|word| word == denied));
            if is_denied {
                return Some(format!("{call:?} is denied by {denied:?}"));
            }
        }
        if set.is_open || set.exact.iter().any(|exact| exact.trim() == line.trim()) {
            continue;
        }
        let begins =
            |words: &&Vec<&str>| call.len() >= words.len() && call.iter().zip(*words).all(|(a, b)| a == b);
        let is_named = set.words.iter().filter(begins).any(|words| !is_harmful(call, words.len()));
        if !is_named {
            return Some(format!("{call:?} is named by no rule"));
        }
    }
    let is_named =
        |path: &Path| set.writes && path.parent().is_some_and(|parent| parent.ends_with("work/out"));
    let is_free = set.is_open || set.exact.iter().any(|exact| exact.trim() == line.trim());
    let unnamed = done.written.iter().find(|path| !is_named(path) && !is_free);
    unnamed.map(|path| format!("{} was written", path.display()))
}

// spec: AP-11
#[test]
fn shell_rules_allowed_random_lines_run_and_write_only_what_the_rules_name() {
    let sets = cases(40, 200);
    let pairs = cases(2_000, 100_000);
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().canonicalize().unwrap();
    stage(&dir);
    let mut chance = Chance(first_seed());
    let (mut passed, mut called, mut harmful, mut looked_at) = (0, 0, 0, 0_u64);
    let mut wrong = Vec::new();
    for _ in 0..sets {
        let set = set(&mut chance);
        for n in 0..pairs / sets {
            let line = noisy_line(&mut chance, &set.words);
            let subject = Subject::Command { line: line.clone(), root: dir.join("work") };
            if set.rules.is_trusted("bash", &subject) {
                passed += 1;
                let done = run(&dir, &line);
                called += u64::from(!done.calls.is_empty());
                if let Some(harm) = harm(&set, &line, &done) {
                    let allow = set.rules.allow.iter().map(ToString::to_string).collect::<Vec<_>>();
                    wrong.push(format!("{line:?} by {allow:?}: {harm}"));
                }
            } else if n < 400 / sets {
                looked_at += 1;
                harmful += u64::from(harm(&set, &line, &run(&dir, &line)).is_some());
            }
        }
    }
    println!(
        "{passed} of {pairs} lines passed, {called} of them called programs, {} did harm; {harmful} of \
         {looked_at} others would have",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The judge sees harm where there is some, and the rules let enough pass to be judged.
    assert!(harmful > looked_at / 3, "{harmful} of {looked_at}");
    assert!(passed > pairs / 20 && called > pairs / 40, "{passed}, {called} of {pairs}");
}
