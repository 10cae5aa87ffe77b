//! `cargo xtask openapi`: makes the tools of a large real document, that of GitHub's API, and checks their number, names and
//! schemas, the time and the memory. Then makes 1,000 random valid calls, which arrive at a server of this machine as the
//! document declares them.
//!
//! The document comes from npm, into a folder under cargo's target directory. The example `check_document` of the crate does
//! the work and checks each tool; a test of the crate makes the calls.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use crate::args::Args;
use crate::command_line::{CommandLine, find_on_path};
use crate::metadata::Metadata;

/// Pinned, so that the number of operations is known; raised by hand.
const PACKAGE: &str = "@octokit/openapi@23.0.2";
const DOCUMENT: &str = "node_modules/@octokit/openapi/generated/api.github.com.json";
/// The operations of the document.
const OPERATIONS: u64 = 1_223;
/// Maximum time in milliseconds, from the file to the tools.
const LONGEST: u64 = 1_000;
/// Maximum memory of the process in megabytes, at its peak until then.
const MOST: u64 = 300;
/// The test that makes the calls, and its maximum time.
const CALLS: &str = "test --quiet --profile measure -p archon-openapi --test all";
const CALLS_TIME: Duration = Duration::from_secs(60);

pub(crate) fn run(args: Args) -> Result<()> {
    args.finish()?;
    let metadata = Metadata::load()?;
    let folder = metadata.target_directory.join("third-party/openapi");
    install(&folder)?;
    CommandLine::cargo("build --quiet --profile measure -p archon-openapi --example check_document").run()?;
    let program = metadata.binary("measure/examples", "check_document").display().to_string();
    let output = CommandLine::new(program).args([folder.join(DOCUMENT).display().to_string()]).output()?;
    print!("{output}");
    check(&output)?;
    CommandLine::cargo(&format!("{CALLS} --no-run")).run()?;
    let begun = Instant::now();
    CommandLine::cargo(&format!("{CALLS} -- --ignored --nocapture large_document::"))
        .env("ARCHON_OPENAPI_DOCUMENT", folder.join(DOCUMENT).display().to_string())
        .run()?;
    let took = begun.elapsed();
    ensure!(
        took <= CALLS_TIME,
        "the test of 1,000 calls took {} s, and the limit is {} s",
        took.as_secs(),
        CALLS_TIME.as_secs()
    );
    Ok(())
}

/// Checks the last line of the program's output.
fn check(output: &str) -> Result<()> {
    let line = output.lines().last().unwrap_or_default();
    let number = |unit: &str| {
        let part = line.split(", ").find_map(|part| part.strip_suffix(unit));
        part.and_then(|number| number.parse::<u64>().ok())
            .with_context(|| format!("check_document printed no number of{unit}: {line:?}"))
    };
    let (tools, took) = (number(" tools")?, number(" ms")?);
    ensure!(tools == OPERATIONS, "{tools} tools were made of {OPERATIONS} operations");
    ensure!(took <= LONGEST, "making the tools took {took} ms, and the limit is {LONGEST} ms");
    if cfg!(target_os = "linux") {
        let memory = number(" MB")?;
        ensure!(memory <= MOST, "making the tools took {memory} MB of memory, and the limit is {MOST} MB");
    }
    Ok(())
}

/// Installs the document, unless it is there.
fn install(folder: &Path) -> Result<()> {
    let done = folder.join("packages.txt");
    if fs::read_to_string(&done).is_ok_and(|there| there == PACKAGE) {
        return Ok(());
    }
    ensure!(find_on_path("npm").is_some(), "the OpenAPI document comes in an npm package; install npm");
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let prefix = folder.display().to_string();
    CommandLine::new("npm")
        .args(["install", "--prefix", &prefix, "--ignore-scripts", "--no-audit", "--no-fund", PACKAGE])
        .run()?;
    fs::write(&done, PACKAGE).with_context(|| format!("cannot write {}", done.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_fails_for_missing_operations_and_for_too_much_time_or_memory() {
        let result = |line: &str| check(&format!("a warning\n{line}\n")).map_err(|e| e.to_string());
        assert_eq!(result("1223 tools, 0 warnings, 1000 ms, 300 MB"), Ok(()));
        let refused = |line: &str| result(line).unwrap_err();
        assert_eq!(refused("1222 tools, 1 warnings, 9 ms, 9 MB"), "1222 tools were made of 1223 operations");
        let slow = refused("1223 tools, 0 warnings, 1001 ms, 9 MB");
        assert_eq!(slow, "making the tools took 1001 ms, and the limit is 1000 ms");
        assert!(refused("killed").starts_with("check_document printed no number of tools"));
        if cfg!(target_os = "linux") {
            let large = refused("1223 tools, 0 warnings, 9 ms, 301 MB");
            assert_eq!(large, "making the tools took 301 MB of memory, and the limit is 300 MB");
        }
    }
}
