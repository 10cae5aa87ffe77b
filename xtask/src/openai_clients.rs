//! `cargo xtask conformance openai`: runs the official OpenAI clients for Python and Node.js against agents that are
//! offered as models, over the loopback interface.
//!
//! The clients come from PyPI and npm, into a folder under cargo's target directory. What they do is in
//! `tests/conformance/openai_clients.py` and `openai_clients.mjs`; the server is the example
//! `openai_conformance_server`, whose model follows a script.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::command_line::{CommandLine, find_on_path};
use crate::metadata::Metadata;
use crate::python::environment;

/// Pinned, so that a new release cannot break the check; raised by hand.
const NODE_CLIENT: &str = "openai@7.59.0";
const PYTHON_CLIENT: &str = "openai==3.54.0";

pub(crate) fn run() -> Result<()> {
    for (program, package) in [("npm", "npm"), ("node", "nodejs")] {
        ensure!(find_on_path(program).is_some(), "the check needs `{program}`; install {package}");
    }
    let metadata = Metadata::load()?;
    let folder = metadata.target_directory.join("openai-clients");
    install(&folder)?;
    let python = environment(&folder.join("python"), &[PYTHON_CLIENT])?;
    CommandLine::cargo(
        "build --quiet -p archon-agents --features openai-serve,server --example openai_conformance_server",
    )
    .run()?;
    let server = metadata.binary("debug/examples", "openai_conformance_server").display().to_string();
    let serving = |words: &[&str]| CommandLine::new(&server).args(words.iter().copied()).run();
    serving(&[&python, "tests/conformance/openai_clients.py", "{url}"])?;
    serving(&["node", "tests/conformance/openai_clients.mjs", &folder.display().to_string(), "{url}"])
}

/// Installs the client for Node.js, unless it is there.
fn install(folder: &Path) -> Result<()> {
    let done = folder.join("packages.txt");
    if fs::read_to_string(&done).is_ok_and(|there| there == NODE_CLIENT) {
        return Ok(());
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let prefix = folder.display().to_string();
    CommandLine::new("npm")
        .args(["install", "--prefix", &prefix, "--ignore-scripts", "--no-audit", "--no-fund", NODE_CLIENT])
        .run()?;
    fs::write(&done, NODE_CLIENT).with_context(|| format!("cannot write {}", done.display()))
}
