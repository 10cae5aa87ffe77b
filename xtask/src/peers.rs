//! `cargo xtask peers`: runs the program of the chapter "Coming from other frameworks" in Archon and in each other
//! framework that is installed, with a scripted model on this machine. `--only NAME` runs one; `--count` prints the lines
//! of code of all. Tests compare the programs, the counts and the versions on the pages with the files.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::args::Args;
use crate::book::scripted_model::{Answer, ScriptedModel};
use crate::command_line::CommandLine;
use crate::metadata::Metadata;
use crate::repository;

/// A program, in Archon or in another framework.
struct Peer {
    name: &'static str,
    file: &'static str,
    kind: Kind,
    /// True if the model answers in text before it is asked for the typed answer.
    answers_twice: bool,
    /// The tool that stands for the typed answer, if it is not text.
    answer_tool: Option<&'static str>,
}

/// The way to build and run a program.
enum Kind {
    Archon,
    /// A program of its own workspace, whose manifest has the versions.
    Rig,
    /// A Python program, with the packages that it needs, each `NAME==VERSION`.
    Python(&'static [&'static str]),
    /// A program that cannot run with the scripted model, with its package and the reason.
    ByHand(&'static str, &'static str),
}

const fn peer(name: &'static str, file: &'static str, kind: Kind) -> Peer {
    Peer { name, file, kind, answers_twice: false, answer_tool: None }
}

const PEERS: &[Peer] = &[
    peer("archon", "crates/archon/examples/coming_from.rs", Kind::Archon),
    peer("rig", "tests/peers/rig/src/main.rs", Kind::Rig),
    Peer {
        answers_twice: true,
        ..peer(
            "langgraph",
            "tests/peers/with_langgraph.py",
            Kind::Python(&[
                "langgraph==1.2.24",
                "langgraph-checkpoint-sqlite==3.1.2",
                "langchain-openai==1.7.4",
            ]),
        )
    },
    Peer {
        answer_tool: Some("final_result"),
        ..peer(
            "pydantic-ai",
            "tests/peers/with_pydantic_ai.py",
            Kind::Python(&["pydantic-ai-slim==2.68.0", "openai==3.57.0"]),
        )
    },
    peer(
        "claude-agent-sdk",
        "tests/peers/with_claude_agent_sdk.py",
        Kind::ByHand(
            "claude-agent-sdk==0.2.143",
            "it starts Anthropic's own agent, which needs an account; install its package, then run the file",
        ),
    ),
];

/// The manifest of the program with rig.
const RIG: &str = "tests/peers/rig/Cargo.toml";

pub(crate) fn run(mut args: Args) -> Result<()> {
    let (count, only) = (args.flag("--count"), args.option("--only")?);
    args.finish()?;
    if let Some(only) = only.as_deref().filter(|only| PEERS.iter().all(|peer| peer.name != *only)) {
        let names: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
        bail!("there is no program of `{only}`; there are {}", names.join(", "));
    }
    let wanted = PEERS.iter().filter(|peer| only.as_deref().is_none_or(|only| peer.name == only));
    let mut failed = Vec::new();
    for peer in wanted {
        if count {
            println!("{:18} {}", peer.name, peer.size()?);
            continue;
        }
        match peer.check() {
            Ok(report) => println!("{}: {report}", peer.name),
            Err(error) => failed.push(format!("{}: {error:#}", peer.name)),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// A command to start a program, or the reason why it is skipped.
enum Ready {
    Program(Vec<String>),
    Skipped(String),
}

impl Peer {
    /// Runs the program, and returns a line about it.
    fn check(&self) -> Result<String> {
        let folder = Metadata::load()?.target_directory.join("peers");
        let words = match self.prepare(&folder)? {
            Ready::Program(words) => words,
            Ready::Skipped(reason) => return Ok(format!("skipped: {reason}")),
        };
        let model = ScriptedModel::start()?;
        let talk = Talk { peer: self, words, folder: folder.join("work").join(self.name), model };
        talk.agreed()?;
        talk.refused()?;
        Ok(format!("run: asked, answered, and continued by a second process; {}", self.size()?))
    }

    fn prepare(&self, folder: &Path) -> Result<Ready> {
        match self.kind {
            Kind::Archon => {
                CommandLine::cargo("build --quiet -p archon-agents --example coming_from").run()?;
                let program = Metadata::load()?.binary("debug/examples", "coming_from");
                Ok(Ready::Program(vec![program.display().to_string()]))
            }
            Kind::Rig => rig(folder),
            Kind::Python(packages) => python(folder, packages, self.file),
            Kind::ByHand(package, reason) => {
                Ok(Ready::Skipped(format!("{reason} (`pip install {package}`)")))
            }
        }
    }

    /// Archon's name of a model contains its address; the others read the address from the environment.
    fn model_name(&self, url: &str) -> String {
        match self.kind {
            Kind::Archon => format!("openai-compatible@{url}:gpt-5-mini"),
            _ => "gpt-5-mini".to_owned(),
        }
    }

    fn size(&self) -> Result<Size> {
        let text = fs::read_to_string(repository::root().join(self.file))
            .with_context(|| format!("cannot read {}", self.file))?;
        Ok(Size::of(&text))
    }
}

fn rig(folder: &Path) -> Result<Ready> {
    let target = folder.join("rig");
    // `tree` needs the crates that a build needs; `fetch` would also need those of all features that are off.
    if CommandLine::cargo("tree --quiet --offline --manifest-path").args([RIG]).output().is_err() {
        return Ok(Ready::Skipped(format!(
            "its crates are not downloaded; `cargo build --manifest-path {RIG} --target-dir {}`",
            target.display()
        )));
    }
    CommandLine::cargo("build --quiet --offline --manifest-path")
        .args([RIG.to_owned(), "--target-dir".to_owned(), target.display().to_string()])
        .run()?;
    let program = target.join("debug").join(crate::command_line::with_suffix("rig-peer"));
    Ok(Ready::Program(vec![program.display().to_string()]))
}

/// Uses the Python of `target/peers/python` if it exists, and otherwise the one on the path.
fn python(folder: &Path, packages: &[&str], file: &str) -> Result<Ready> {
    let own = folder.join("python/bin/python");
    let python = if own.exists() { own.display().to_string() } else { "python3".to_owned() };
    let version = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))";
    let is_missing = |package: &&&str| {
        let (name, wanted) = name_and_version(package);
        let found = CommandLine::new(&python).args(["-c", version, name]).output();
        !found.is_ok_and(|found| found.trim() == wanted)
    };
    let missing: Vec<&str> = packages.iter().filter(is_missing).copied().collect();
    if !missing.is_empty() {
        let venv = folder.join("python");
        return Ok(Ready::Skipped(format!(
            "without {}; `python3 -m venv {venv} && {venv}/bin/pip install {}`",
            missing.join(", "),
            packages.join(" "),
            venv = venv.display()
        )));
    }
    Ok(Ready::Program(vec![python, repository::root().join(file).display().to_string()]))
}

/// Splits `NAME==VERSION`; without a version, the text after the name is empty.
fn name_and_version(package: &str) -> (&str, &str) {
    package.split_once("==").unwrap_or((package, ""))
}

/// A conversation with a program.
struct Talk<'a> {
    peer: &'a Peer,
    words: Vec<String>,
    folder: PathBuf,
    model: ScriptedModel,
}

impl Talk<'_> {
    /// The person says yes, and asks again in a second process.
    fn agreed(&self) -> Result<()> {
        self.clear()?;
        self.call_of_tool()?;
        self.answer("refunded 40 cents", "Paid back.", 40)?;
        let first = self.message("Refund 40 cents of order A-1", "y\n")?;
        ensure!(first.contains("? [y/N]"), "the program did not ask the person: {first}");
        self.expect(&first, "Paid back. (40 cents)")?;
        self.answer("Refund 40 cents of order A-1", "You got it back.", 40)?;
        self.expect(&self.message("What did I get back?", "")?, "You got it back. (40 cents)")
    }

    /// The person says no, and the model reads it.
    fn refused(&self) -> Result<()> {
        self.clear()?;
        self.call_of_tool()?;
        self.answer("The person said no.", "Nothing was paid.", 0)?;
        self.expect(&self.message("Refund 40 cents of order A-1", "n\n")?, "Nothing was paid. (0 cents)")
    }

    fn clear(&self) -> Result<()> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)
                .with_context(|| format!("cannot remove {}", self.folder.display()))?;
        }
        fs::create_dir_all(&self.folder).with_context(|| format!("cannot make {}", self.folder.display()))
    }

    fn call_of_tool(&self) -> Result<()> {
        self.model.push(Answer::parse(r#"{"calls": [["refund", {"order": "A-1", "cents": 40}]]}"#)?);
        Ok(())
    }

    /// The model's typed answer to a request that contains the words.
    fn answer(&self, when: &str, text: &str, cents: u64) -> Result<()> {
        let answer = serde_json::json!({"text": text, "cents": cents});
        let mut lines = Vec::new();
        if self.peer.answers_twice {
            lines.push(serde_json::json!({"when": when, "text": text}));
        }
        lines.push(match self.peer.answer_tool {
            Some(tool) => serde_json::json!({"when": when, "calls": [[tool, answer]]}),
            None => serde_json::json!({"when": when, "text": answer.to_string()}),
        });
        for line in lines {
            self.model.push(Answer::parse(&line.to_string())?);
        }
        Ok(())
    }

    /// Starts the program with a message, and returns its output.
    fn message(&self, message: &str, stdin: &str) -> Result<String> {
        let url = self.model.url();
        let mut child = Command::new(&self.words[0])
            .args(&self.words[1..])
            .args([&self.peer.model_name(&url), message])
            .envs([("OPENAI_BASE_URL", url.as_str()), ("OPENAI_API_KEY", "none")])
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start `{}`", self.words.join(" ")))?;
        child.stdin.take().context("no stdin")?.write_all(stdin.as_bytes())?;
        let output = child.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let last: Vec<&str> = stderr.trim().lines().rev().take(5).collect();
            let last: Vec<&str> = last.into_iter().rev().collect();
            bail!("the program failed ({}) for `{message}`: {text}\n{}", output.status, last.join("\n"));
        }
        Ok(text)
    }

    fn expect(&self, output: &str, words: &str) -> Result<()> {
        ensure!(output.contains(words), "`{words}` is not in the output: {output}");
        ensure!(self.model.unused() == 0, "{} answers of the model were not used", self.model.unused());
        Ok(())
    }
}

/// The size of a program, from its first import on: lines that are neither blank nor comments, and their characters
/// without white space. A text that the model reads is code, also as documentation.
#[derive(Debug, PartialEq)]
struct Size {
    lines: usize,
    characters: usize,
}

impl Size {
    fn of(text: &str) -> Self {
        let is_comment = |line: &&str| {
            let is_rust = line.starts_with("//") && !line.starts_with("///");
            is_rust || line.starts_with("# ")
        };
        let lines: Vec<&str> = code(text)
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .filter(|line| !is_comment(line))
            .collect();
        let characters = lines.iter().flat_map(|line| line.chars()).filter(|c| !c.is_whitespace()).count();
        Self { lines: lines.len(), characters }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} lines, {} characters", self.lines, self.characters)
    }
}

/// The lines of a program from its first import on.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let is_import = |line: &&str| ["use ", "import ", "from "].iter().any(|word| line.starts_with(word));
    text.lines().skip_while(move |line| !is_import(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> String {
        fs::read_to_string(repository::root().join(path)).unwrap()
    }

    #[test]
    fn size_of_code_leaves_out_blank_lines_comments_and_the_head() {
        let text = "//! Head.\n#![allow(x)]\n\nuse a;\n\n/// For the model.\n// Why.\nfn b() {}\n";
        assert_eq!(Size::of(text), Size { lines: 3, characters: 27 });
        assert_eq!(Size::of("# Head.\nimport a\n# Why.\n  b()\n"), Size { lines: 2, characters: 10 });
    }

    /// Returns the packages of a program, each `NAME==VERSION`.
    fn packages(kind: &Kind) -> Vec<String> {
        match kind {
            Kind::Archon => Vec::new(),
            Kind::Rig => {
                let manifest: toml::Table = read(RIG).parse().unwrap();
                let dependencies = manifest["dependencies"].as_table().unwrap().iter();
                let version = |value: &toml::Value| {
                    value.as_str().or_else(|| value.get("version")?.as_str()).map(str::to_owned).unwrap()
                };
                dependencies.map(|(name, value)| format!("{name}={}", version(value))).collect()
            }
            Kind::Python(packages) => packages.iter().map(|package| (*package).to_owned()).collect(),
            Kind::ByHand(package, _) => vec![(*package).to_owned()],
        }
    }

    #[test]
    fn packages_of_peers_have_exact_versions_and_pages_name_those_of_the_peer() {
        for peer in &PEERS[1..] {
            let page = read(&format!("docs/book/coming-from/{}.md", peer.name));
            let packages = packages(&peer.kind);
            for package in &packages {
                let (name, version) = name_and_version(package);
                let is_exact =
                    version.split('.').count() == 3 && version.starts_with(|c: char| c.is_ascii_digit());
                assert!(is_exact, "{}: the version of {package} is not exact", peer.name);
                // Serde and tokio are not named on the page of rig.
                let is_named = !matches!(peer.kind, Kind::Rig) || name == "rig";
                let words = format!("{name} {version}");
                assert!(!is_named || page.contains(&words), "the page from {} lacks `{words}`", peer.name);
            }
        }
    }

    #[test]
    fn pages_of_peers_show_the_programs_and_their_sizes() {
        let (ours, theirs) = PEERS.split_first().unwrap();
        for peer in theirs {
            let path = format!("docs/book/coming-from/{}.md", peer.name);
            let page = read(&path);
            for file in [ours.file, peer.file] {
                let program = read(file);
                let program: Vec<&str> = code(&program).collect();
                assert!(page.contains(program.join("\n").trim()), "{path} does not show {file} as it is");
            }
            let (own, other) = (ours.size().unwrap(), peer.size().unwrap());
            for row in [
                format!("| lines of code | {} | {} |", other.lines, own.lines),
                format!("| characters | {} | {} |", other.characters, own.characters),
            ] {
                assert!(page.contains(&row), "{path} lacks the row `{row}`");
            }
        }
    }
}
