//! A thousand lines that people use, under the rules of a usual project: how many of the harmless ones are
//! asked about. In the file, `+` stands before a harmless line, and `-` before one that a person wants to see
//! first.

use std::collections::BTreeMap;

use archon_tools::Permissions;
use archon_types::Subject;

const LINES: &str = include_str!("common_lines.txt");

/// What somebody allows who works on a project in Rust and JavaScript: looking around, git without what
/// leaves the machine, and the project's own checks.
const RULES: &[&str] = &[
    "ls cat head tail wc nl grep rg find fd sort uniq cut tr awk sed diff cmp comm paste join column rev",
    "tree file stat du df basename dirname realpath readlink md5sum sha256sum xxd hexdump od base64 jq",
    "echo printf pwd cd test [ true sleep seq date which type command",
    "uname nproc uptime id whoami ps free printenv",
    "mkdir touch cp mv",
    "git cargo rustc rustup rustfmt npm pnpm yarn tsc eslint prettier jest make just",
    "pytest mypy ruff black pip",
];

/// The same for programs whose next words say what runs.
const LONGER: &[&str] = &[
    "node --version",
    "node -v",
    "node --check",
    "node --test",
    "node scripts/build.js",
    "npx tsc",
    "npx eslint",
    "npx prettier",
    "npx jest",
    "npx vitest run",
    "git fetch origin",
    "git fetch origin main",
    "python --version",
    "python3 --version",
    "python3 -V",
    "python -m pytest",
    "python3 -m pytest",
];

// spec: AP-11
#[test]
fn ruling_of_harmless_lines_under_the_rules_of_a_usual_project_seldom_asks() {
    let words = RULES.iter().flat_map(|rules| rules.split(' ')).chain(LONGER.iter().copied());
    let allow: Vec<String> = words.map(|words| format!("bash({words}:*)")).collect();
    let none: [&str; 0] = [];
    let rules = Permissions::parse(none, none, allow.iter().map(String::as_str)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for folder in ["crates/core", "packages/web", "src", "docs"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    let mut by_program: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let (mut harmless, mut asked, mut others, mut passed) = (0, Vec::new(), 0, Vec::new());
    for entry in LINES.lines() {
        let (mark, line) = entry.split_once(' ').unwrap();
        let subject = Subject::Command { line: line.to_owned(), root: root.clone() };
        let is_allowed = rules.is_trusted("bash", &subject);
        if mark == "-" {
            others += 1;
            passed.extend(is_allowed.then_some(line));
            continue;
        }
        harmless += 1;
        asked.extend((!is_allowed).then_some(line));
        let program = line.split(' ').next().unwrap();
        let row = by_program.entry(program).or_default();
        row.0 += 1;
        row.1 += usize::from(!is_allowed);
    }
    println!("| program | harmless lines | asked about |\n|---|---:|---:|");
    for (program, (all, asked)) in by_program.iter().filter(|(_, (all, asked))| *all > 9 || *asked > 0) {
        println!("| `{program}` | {all} | {asked} |");
    }
    let share = 100.0 * asked.len() as f64 / f64::from(harmless);
    println!("{} of {harmless} harmless lines are asked about: {share:.1} %", asked.len());
    println!("{} of {others} other lines pass unasked", passed.len());
    println!("with lists of what is dangerous, as it was: 110 (11.0 %) asked about, 77 passed unasked");
    println!("asked about:\n{}\n\npassed:\n{}", asked.join("\n"), passed.join("\n"));
    assert!(harmless > 900, "{harmless}");
    assert!(share <= 5.0, "{share:.1} % of the harmless lines are asked about");
    assert_eq!(passed, [""; 0], "these are not harmless");
}
