//! `cargo xtask prepare`: fetches what the checks need and cargo does not build, so that a clean machine
//! needs only cargo.

use anyhow::Result;

use crate::args::Args;
use crate::command_line::{CommandLine, find_on_path};
use crate::crate_downloads;

/// Models that tests load, by their names in `archon model list`.
const TEST_MODELS: &[&str] = &["gemma-3-270m", "smollm2-135m-instruct", "wordllama-256"];

pub(crate) fn run(args: Args) -> Result<()> {
    args.finish()?;
    prepare_cargo_deny()?;
    prepare_models()
}

pub(crate) fn prepare_cargo_deny() -> Result<()> {
    if find_on_path("cargo-deny").is_some() || CommandLine::cargo("deny --version").output().is_ok() {
        return Ok(());
    }
    println!(
        "cargo-deny: missing, and needed to check licences and sources; installing (this takes minutes once)"
    );
    crate_downloads::run(&CommandLine::cargo("install --debug cargo-deny --locked --version ^0.20"))
}

/// Fetches the models. The command resumes and checks downloads, and skips existing ones.
fn prepare_models() -> Result<()> {
    TEST_MODELS.iter().try_for_each(|model| {
        CommandLine::cargo(&format!("run -p archon-agents-cli -- model pull {model}")).run()
    })
}
