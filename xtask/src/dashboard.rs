//! `cargo xtask dashboard`: runs the unit tests of the dashboard's modules in Node.js, then its flows in a Chromium,
//! against a server whose agents follow a script.
//!
//! The flows are in `tests/dashboard`, and the server is the example `dashboard_server`. Their packages come from npm,
//! into a folder under cargo's target directory; the browser is that of this machine.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::args::Args;
use crate::command_line::{CommandLine, find_on_path};
use crate::metadata::Metadata;
use crate::repository;

const UNIT_TESTS: &str = "crates/server/dashboard/tests";
const FLOWS: &str = "tests/dashboard";
/// The variables that the server must name: without one of them, flows would be skipped.
const VARIABLES: [&str; 4] =
    ["DASHBOARD_LINK", "DASHBOARD_VIEWER_LINK", "DASHBOARD_PLAN_RUN", "DASHBOARD_LONG_RUN"];
/// Fast enough for the times that the flows measure.
const BUILD: &str = "build --profile accept -p archon-agents --features memory,orchestrator,planner,server,triggers \
                     --example dashboard_server";

pub(crate) fn run(mut args: Args) -> Result<()> {
    let without_browser = args.flag("--without-browser");
    args.finish()?;
    for (program, package) in [("npm", "npm"), ("node", "nodejs")] {
        ensure!(find_on_path(program).is_some(), "the check needs `{program}`; install {package}");
    }
    CommandLine::new("node").args(["--test", "--test-reporter=spec"]).args(unit_tests()?).run()?;
    if without_browser {
        return Ok(());
    }
    let chromium = chromium()?;
    let metadata = Metadata::load()?;
    let folder = metadata.target_directory.join("dashboard");
    install(&folder)?;
    CommandLine::cargo(BUILD).run()?;
    let server = Server::start(&metadata.binary("accept/examples", "dashboard_server"))?;
    let flows = CommandLine::new("node")
        .args(["--test", "--test-reporter=spec", "dashboard.test.js"])
        .folder(repository::root().join(FLOWS))
        .env("CHROMIUM", chromium)
        .env("DASHBOARD_PACKAGES", folder.display().to_string());
    server.variables.iter().fold(flows, |line, (name, value)| line.env(name, value)).run()
}

/// Returns the files with unit tests: each Node.js takes files, and not each takes a folder.
fn unit_tests() -> Result<Vec<String>> {
    let folder = repository::root().join(UNIT_TESTS);
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".test.js") {
            files.push(format!("{UNIT_TESTS}/{name}"));
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the path of the browser.
fn chromium() -> Result<String> {
    let named = env::var("CHROMIUM").ok().filter(|path| !path.is_empty());
    let found = || find_on_path("chromium").map(|path| path.display().to_string());
    named.or_else(found).context(
        "the browser checks of the dashboard need Chromium: `apt install chromium`, or set CHROMIUM to its path",
    )
}

/// Installs the packages of the flows in their pinned versions, unless they are there.
fn install(folder: &Path) -> Result<()> {
    let manifest = repository::root().join(FLOWS).join("package.json");
    let text =
        fs::read_to_string(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let packages = packages(&text).with_context(|| format!("{} lists no packages", manifest.display()))?;
    let (wanted, done) = (packages.join("\n"), folder.join("packages.txt"));
    if fs::read_to_string(&done).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    CommandLine::new("npm")
        .args(["install", "--prefix", &folder.display().to_string()])
        .args(["--ignore-scripts", "--no-audit", "--no-fund"])
        .args(packages)
        .run()?;
    fs::write(&done, wanted).with_context(|| format!("cannot write {}", done.display()))
}

/// Returns the packages of a manifest with their versions, as `npm install` takes them.
fn packages(manifest: &str) -> Option<Vec<String>> {
    let manifest: Value = serde_json::from_str(manifest).ok()?;
    let listed = manifest["devDependencies"].as_object()?;
    listed.iter().map(|(name, version)| Some(format!("{name}@{}", version.as_str()?))).collect()
}

/// The server with scripted agents; it ends with its input.
struct Server {
    child: Child,
    /// The variables of the flows.
    variables: Vec<(String, String)>,
}

impl Server {
    fn start(program: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg("--long").stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn().context("cannot start the test server for the browser checks")?;
        // From here on, the server ends whatever happens.
        let mut server = Self { child, variables: Vec::new() };
        let out = server.child.stdout.take();
        let out = out.context("the output of the test server for the browser checks is not piped")?;
        let mut line = String::new();
        let read = BufReader::new(out).read_line(&mut line);
        let bytes =
            read.context("cannot read the first line of output of the test server for the browser checks")?;
        ensure!(bytes > 0, "the test server for the browser checks ended before it printed its first line");
        server.variables = variables(&line).with_context(|| {
            format!("the test server for the browser checks printed {line:?} instead of a JSON object")
        })?;
        let missing = missing(&server.variables);
        ensure!(
            missing.is_empty(),
            "the test server did not print {}, so browser checks would be skipped: see {FLOWS}/README.md",
            missing.join(", ")
        );
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Reads the line that the server prints. What is null is left out.
fn variables(line: &str) -> Option<Vec<(String, String)>> {
    let line: Value = serde_json::from_str(line).ok()?;
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    Some(line.as_object()?.iter().filter_map(text).collect())
}

/// Returns the variables that the server must name and did not.
fn missing(variables: &[(String, String)]) -> Vec<&'static str> {
    let is_missing = |wanted: &&str| !variables.iter().any(|(name, _)| name == wanted);
    VARIABLES.into_iter().filter(is_missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_have_their_pinned_versions() {
        let manifest = r#"{"devDependencies": {"axe-core": "4.14.1", "playwright-core": "1.65.1"}}"#;
        assert_eq!(packages(manifest).unwrap(), ["axe-core@4.14.1", "playwright-core@1.65.1"]);
        assert_eq!(packages("{}"), None);
        let manifest = fs::read_to_string(repository::root().join(FLOWS).join("package.json")).unwrap();
        assert_eq!(packages(&manifest).unwrap().len(), 2);
    }

    #[test]
    fn variables_leave_out_what_the_server_does_not_have() {
        let read = variables("{\"DASHBOARD_LINK\": \"http://a\", \"DASHBOARD_LONG_RUN\": null}\n").unwrap();
        assert_eq!(read, [("DASHBOARD_LINK".to_owned(), "http://a".to_owned())]);
        assert_eq!(variables("listening\n"), None);
    }

    #[test]
    fn missing_names_each_variable_that_was_left_out() {
        let mut named: Vec<_> = VARIABLES.map(|name| (name.to_owned(), "a".to_owned())).into();
        assert_eq!(missing(&named), [""; 0]);
        named.remove(1);
        named.remove(2);
        assert_eq!(missing(&named), ["DASHBOARD_VIEWER_LINK", "DASHBOARD_LONG_RUN"]);
    }

    #[test]
    fn unit_tests_are_the_files_of_the_folder() {
        let files = unit_tests().unwrap();
        assert!(files.iter().any(|file| file.ends_with("/virtual.test.js")), "{files:?}");
    }
}
