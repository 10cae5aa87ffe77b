//! `cargo xtask deps`: shows the cost of each of our crates for its users, in crates and in build time. It
//! limits two of them, and requires a stated purpose for each dependency, so that none comes in unnoticed.
//! `--build` also measures the build of each crate, `--sets` only that of the smallest useful sets.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs, process};

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::metadata::Metadata;
use crate::repository;

/// The most crates behind ours, with default features, the crate itself included. For comparison: rig-core
/// 105, adk-rust 196.
pub(crate) const LIMITS: &[(&str, usize)] = &[("archon-providers", 105), ("archon-agents", 178)];

/// The page with the smallest useful sets.
const PAGE: &str = "docs/book/how-to/depend-on-less.md";

/// The sets of that page, in order: arguments of `cargo tree` and `cargo build`.
const SETS: &[&str] = &[
    "--no-default-features --features openai-compatible,tls -p archon-providers",
    "--no-default-features -p archon-react-loop -p archon-tools",
    "-p archon-memory",
    "-p archon-planner",
    "-p archon-agents",
];

/// Libraries that the design names; their own dependencies need no purpose.
const FRAME: &[&str] = &[
    "anyhow",
    "clap",
    "eventsource-stream",
    "jsonschema",
    "reqwest",
    "rmcp",
    "rusqlite",
    "schemars",
    "serde",
    "serde_json",
    "tokio",
    "tracing",
];

/// Purpose of each other library that one of our crates depends on.
const PURPOSES: &[(&str, &str)] = &[
    ("async-trait", "the traits of `rmcp` for tokens, which are written with it"),
    ("aws-credential-types", "Bedrock: keys in the form that the signer takes"),
    ("aws-sigv4", "Bedrock: signatures of requests"),
    ("aws-smithy-eventstream", "Bedrock: binary frames"),
    ("axum", "routes of the HTTP server, and its place in the router of another program"),
    ("base64", "data of images and files in messages"),
    ("bpe-openai", "exact token counts of OpenAI's models"),
    ("bytes", "the body of a response without copies"),
    ("cel", "conditions on events and on data"),
    ("chacha20poly1305", "the seal on credentials that are kept"),
    ("clap_complete", "completions for shells"),
    ("clap_mangen", "manual pages"),
    ("chrono", "the day from which mail is searched, in the form that `imap-next` takes"),
    ("cronexpr", "the fields of a cron pattern"),
    ("futures-core", "the trait of streams"),
    ("futures-util", "waiting for one of several things"),
    ("getrandom", "the codes of one-time links"),
    ("granit-parser", "the YAML of skills, where a value is what is written, and each problem has a line"),
    ("heck", "names of types in the macro's output"),
    (
        "hmac-sha256",
        "names of large values and of remembered turns, seals on messages, signatures of web hooks, and what was agreed to or trusted",
    ),
    ("html2text", "pages as text that a model can read"),
    ("http", "requests of `oauth2`, in the form that it takes"),
    ("http-body", "the frames of a response's body"),
    ("http-body-util", "the body of a refusal, and one that counts as a stream until its end"),
    ("hyper", "connections of HTTP clients"),
    ("hyper-util", "connections of HTTP clients: their runtime, and a router as their service"),
    ("ignore", "which files a search, or a snapshot of a workspace, leaves out"),
    ("imap-next", "mailboxes: the protocol without its connection"),
    ("indicatif", "a line that shows that something is under way"),
    ("jiff", "dates in headers, times for people, and time zones"),
    ("json5", "arguments that are almost JSON"),
    ("monty", "programs in Python"),
    ("monty-types", "programs in Python: values and exceptions"),
    ("lettre", "notifications by mail"),
    ("libtest-mimic", "the harness of tests that are ignored where their server is missing"),
    ("mail-parser", "the parts and headers of mail"),
    ("memchr", "the ends of lines in a stream of events"),
    ("oauth2", "sign-in of people at OAuth services"),
    ("percent-encoding", "values in the addresses of requests, byte by byte as OpenAPI wants them"),
    ("petgraph", "circles and orders of plans and of composite tools"),
    ("proc-macro2", "macros"),
    ("pulldown-cmark", "headings, lists and tables of an answer on a terminal"),
    ("quote", "macros"),
    ("redis", "the bus and the pool across processes"),
    ("regex", "search with patterns, and the tools that a hook is for"),
    ("rquickjs", "programs in JavaScript"),
    ("ruff_python_ast", "programs in Python: which expression is the last"),
    ("ruff_python_parser", "programs in Python: which expression is the last"),
    ("ruff_text_size", "programs in Python: which expression is the last"),
    ("rustls-platform-verifier", "certificates of mail servers, as the system trusts them"),
    ("rustix", "locks, process groups and the terminal without unsafe code"),
    ("serde-saphyr", "workflow templates and OpenAPI documents in YAML"),
    ("sha2", "checks of downloads, and the names of contents in snapshots"),
    ("candle-core", "numbers of the model that embeds texts"),
    ("candle-nn", "layers of the model that embeds texts"),
    ("rust-stemmers", "words that mean the same in two forms"),
    ("tokenizers", "words as the embedding model reads them"),
    ("strsim", "names that were misspelt"),
    ("syn", "macros"),
    ("thiserror", "error types"),
    ("tokio-postgres", "memories in PostgreSQL"),
    ("tokio-rustls", "connections of HTTP clients with TLS"),
    ("tokio-util", "cancellation, and the calls under way"),
    ("toml", "settings"),
    ("tower-service", "one request to a router"),
    ("toml_edit", "settings that are changed and keep their comments"),
    ("tracing-subscriber", "logs on standard error"),
    ("unicode-segmentation", "what a person sees as one character"),
    ("unicode-width", "how many columns a text takes"),
    (
        "unicode-normalization",
        "letters without their accents, for PostgreSQL's index of words, and one form of a skill's name",
    ),
    ("crc32fast", "sums of lines in the log on disk"),
    ("crossterm", "keys, pastes and the size of the terminal"),
    (
        "data-encoding",
        "pictures that tools read, texts for a clipboard, and signatures of web hooks, in base64",
    ),
    ("close_fds", "descriptors that a command must not inherit, without unsafe code"),
    ("get-size2", "programs in Python: the version that its parser builds with"),
    ("globset", "patterns of file names"),
    ("landlock", "what a command may write, held by the kernel"),
    ("libc", "numbers of system calls"),
    ("seccompiler", "which system calls a command may make"),
    ("similar", "what a change to a file would look like, line by line and word by word"),
    ("tempfile", "a place of its own for each command, and files that are put in place in one step"),
    ("libloading", "opening the engine of local models"),
    ("llama-cpp-sys-2", "the engine of local models, built from source"),
    ("flate2", "the package that the engine comes in, and the files of the dashboard in gzip"),
    ("tar", "the package that the engine comes in"),
    ("wildmatch", "patterns of events"),
    ("zip", "models that come in a package of Python's"),
];

pub(crate) fn run(mut args: Args) -> Result<()> {
    let build = args.flag("--build");
    let only_sets = args.flag("--sets");
    args.finish()?;
    if only_sets {
        return print_sets();
    }
    let metadata = Metadata::load()?;
    println!("{:22} {:>6} {:>6}{}", "crate", "crates", "limit", if build { "  build CPU s" } else { "" });
    let mut problems = Vec::new();
    for package in metadata.published() {
        let name = &package.name;
        let count = crates(&tree(name)?).len();
        let limit = LIMITS.iter().find(|(of, _)| of == name).map(|(_, limit)| *limit);
        print!("{name:22} {count:>6} {:>6}", limit.map(|limit| limit.to_string()).unwrap_or_default());
        if build {
            print!("  {:>11.1}", build_seconds(&format!("--package {name}"))?);
        }
        println!();
        if let Some(limit) = limit.filter(|limit| count > *limit) {
            problems.push(format!("{name} brings {count} crates, {limit} are allowed"));
        }
    }
    println!("(with default features; the crate itself counts as one)\n");
    let direct = metadata.published().flat_map(|package| package.dependencies.iter());
    let direct: BTreeSet<&str> =
        direct.filter(|d| d.kind.is_none() && !d.name.starts_with("archon")).map(|d| &*d.name).collect();
    problems.extend(explain(&direct, &crates(&tree("archon-agents")?)));
    problems.extend(wrong_sets()?);
    if !problems.is_empty() {
        bail!("{}", problems.join("; "));
    }
    Ok(())
}

/// Prints every library that one of our crates depends on, its purpose, and whether it is in the default tree
/// of `archon`; returns those without a purpose.
fn explain(direct: &BTreeSet<&str>, in_default: &BTreeSet<String>) -> Vec<String> {
    let names: BTreeSet<&str> = in_default.iter().filter_map(|line| line.split(' ').next()).collect();
    let mut problems = Vec::new();
    for name in direct {
        let purpose = match PURPOSES.iter().find(|(known, _)| known == name) {
            Some((_, purpose)) => *purpose,
            None if FRAME.contains(name) => "one of the design's libraries",
            None => {
                problems.push(format!("{name}: say in xtask/src/deps.rs what it is for"));
                continue;
            }
        };
        let place = if names.contains(name) { "" } else { " (not in archon's default tree)" };
        println!("{name:22} {purpose}{place}");
    }
    problems
}

/// Prints the number of crates of each set, and returns those that the page has another number for.
fn wrong_sets() -> Result<Vec<String>> {
    let page =
        fs::read_to_string(repository::root().join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let on_page = counts(&page);
    let mut problems = Vec::new();
    println!();
    for (number, set) in SETS.iter().enumerate() {
        let count = crates(&tree_of(set)?).len();
        println!("{count:>6} {set}");
        if on_page.get(number) != Some(&count) {
            problems.push(format!("{PAGE}: row {} should say {count}", number + 1));
        }
    }
    Ok(problems)
}

/// Returns the column "crates" of the page's table.
fn counts(page: &str) -> Vec<usize> {
    page.lines().filter_map(|line| line.split('|').nth(3)?.trim().parse().ok()).collect()
}

/// Prints the last two columns of the page for each set: crates, and processor time of a build.
fn print_sets() -> Result<()> {
    println!("| crates | build |");
    for set in SETS {
        println!("| {} | {:.0} s | cargo build {set}", crates(&tree_of(set)?).len(), build_seconds(set)?);
    }
    Ok(())
}

fn tree(package: &str) -> Result<String> {
    tree_of(&format!("--package {package}"))
}

fn tree_of(args: &str) -> Result<String> {
    CommandLine::cargo(&format!("tree --edges normal --prefix none {args}")).output()
}

/// Returns the distinct crates in the output of `cargo tree --prefix none`, each `name version`; marks after
/// the version are dropped, so that repeated lines fold.
fn crates(tree: &str) -> BTreeSet<String> {
    let name = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    tree.lines().filter(|line| !line.trim().is_empty()).map(name).collect()
}

/// Measures the CPU time of a clean build, since wall time depends on the machine's load. The shell's `times`
/// measures it; the standard library cannot.
fn build_seconds(args: &str) -> Result<f64> {
    let target = env::temp_dir().join(format!("archon-deps-{}", process::id()));
    let measured = measure(args, &target);
    if target.exists() {
        fs::remove_dir_all(&target).with_context(|| format!("cannot remove {}", target.display()))?;
    }
    measured
}

fn measure(args: &str, target: &Path) -> Result<f64> {
    let build = format!("cargo build --quiet {args} || exit; times");
    let line =
        CommandLine::new("sh").args(["-c", &build]).env("CARGO_TARGET_DIR", target.display().to_string());
    let times = line.output()?;
    children_seconds(&times)
        .with_context(|| format!("the shell's `times` printed something unexpected: {times:?}"))
}

/// Parses the second line of `times`: user and system time of the children, as `1m2.50s 0m4.00s`.
fn children_seconds(times: &str) -> Option<f64> {
    times.lines().nth(1)?.split_whitespace().map(seconds).sum()
}

fn seconds(text: &str) -> Option<f64> {
    let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_crate_counts_once() {
        let tree = "archon v0.1.0 (a)\nserde v1.0.0\nserde_derive v1.0.0 (proc-macro)\nserde v1.0.0 (*)\n\
                    serde_derive v1.0.0 (proc-macro) (*)\n";
        assert_eq!(crates(tree).len(), 3);
    }

    #[test]
    fn page_with_sets_has_a_count_for_each_and_the_command_that_builds_it() {
        let page = fs::read_to_string(repository::root().join(PAGE)).unwrap();
        assert_eq!(counts(&page).len(), SETS.len());
        let commands: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("cargo build ")).collect();
        assert_eq!(commands, SETS);
    }

    #[test]
    fn a_library_without_a_purpose_is_named() {
        let direct = ["serde", "left-pad"].into_iter().collect();
        assert_eq!(explain(&direct, &BTreeSet::new()), ["left-pad: say in xtask/src/deps.rs what it is for"]);
    }

    #[test]
    fn the_shell_measures_the_children() {
        assert_eq!(children_seconds("0m0.00s 0m0.01s\n1m2.50s 0m4.00s\n"), Some(66.5));
        assert_eq!(children_seconds("nonsense"), None);
    }
}
