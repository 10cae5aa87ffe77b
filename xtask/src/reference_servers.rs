//! `cargo xtask conformance servers`: connects our MCP client to the reference servers of the protocol, calls each
//! of their tools, and checks that no process is left.
//!
//! The servers come from npm and PyPI, into a folder under cargo's target directory. The calls are in
//! `tests/conformance/servers`, one file for each server; a tool without a call fails the check.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::command_line::{CommandLine, find_on_path};
use crate::metadata::Metadata;
use crate::python::environment;
use crate::repository;

/// The servers with their versions, raised by hand. What they depend on is not pinned.
const NPM: &[&str] = &[
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
];
const PYPI: &[&str] = &["mcp-server-git==2026.10.19"];

/// The file with the knowledge graph of the server `memory`, which reads this variable.
const MEMORY_FILE: &str = "MEMORY_FILE_PATH";

pub(crate) fn run() -> Result<()> {
    for (program, package) in [("npm", "npm"), ("node", "nodejs"), ("git", "git")] {
        ensure!(find_on_path(program).is_some(), "the check needs `{program}`; install {package}");
    }
    let metadata = Metadata::load()?;
    let folder = metadata.target_directory.join("reference-servers");
    install(&folder)?;
    let python = environment(&folder.join("python"), PYPI)?;
    CommandLine::cargo("build --quiet -p archon-mcp --example reference_client").run()?;
    let client = metadata.binary("debug/examples", "reference_client").display().to_string();
    let work = new_work(&folder)?;
    let script = |name: &str| {
        let package = folder.join("node_modules/@modelcontextprotocol").join(format!("server-{name}"));
        package.join("dist/index.js").display().to_string()
    };
    let (files, repository) =
        (work.join("files").display().to_string(), work.join("repository").display().to_string());
    let memory = format!("{MEMORY_FILE}={}", work.join("memory.jsonl").display());
    let git = ["-m", "mcp_server_git", "--repository", &repository];
    check(&client, &work, "everything", &["node", &script("everything"), "stdio"])?;
    check(&client, &work, "filesystem", &["node", &script("filesystem"), &files])?;
    check(&client, &work, "memory", &["env", &memory, "node", &script("memory")])?;
    check(&client, &work, "git", &[&[&*python], &git[..]].concat())
}

/// Calls the tools of a server.
fn check(client: &str, work: &Path, name: &str, command: &[&str]) -> Result<()> {
    let calls = repository::root().join("tests/conformance/servers").join(format!("{name}.json"));
    let text = fs::read_to_string(&calls).with_context(|| format!("cannot read {}", calls.display()))?;
    let filled = work.join(format!("{name}.json"));
    fs::write(&filled, text.replace("{folder}", &work.display().to_string()))
        .with_context(|| format!("cannot write {}", filled.display()))?;
    CommandLine::new(client).args([name, &filled.display().to_string()]).args(command.iter().copied()).run()
}

/// Makes an empty folder for the servers, with a git repository that has a new file.
fn new_work(folder: &Path) -> Result<std::path::PathBuf> {
    let work = folder.join("work");
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))?;
    }
    let repository = work.join("repository");
    for made in [&work.join("files"), &repository] {
        fs::create_dir_all(made).with_context(|| format!("cannot create {}", made.display()))?;
    }
    // No settings of the user, such as hooks or signatures.
    let git = |line: &str| {
        let command = CommandLine::new("git").args(line.split_whitespace()).folder(&repository);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").run()
    };
    git("init --quiet")?;
    git("config user.name Archon")?;
    git("config user.email archon@localhost")?;
    git("commit --quiet --allow-empty --message Begin")?;
    let file = repository.join("a.txt");
    fs::write(&file, "Paris\n").with_context(|| format!("cannot write {}", file.display()))?;
    Ok(work)
}

/// Installs the servers of npm, unless they are there.
fn install(folder: &Path) -> Result<()> {
    let (wanted, done) = (NPM.join("\n"), folder.join("packages.txt"));
    if fs::read_to_string(&done).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    CommandLine::new("npm")
        .args([
            "install",
            "--prefix",
            &folder.display().to_string(),
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
        ])
        .args(NPM.iter().copied())
        .run()?;
    fs::write(&done, wanted).with_context(|| format!("cannot write {}", done.display()))
}
