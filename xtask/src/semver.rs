//! `cargo xtask semver REVISION`: compares the public items of each published crate with those of an earlier revision,
//! and fails if a change needs a new major version. Run before a release; `cargo-semver-checks` is installed if it is
//! missing, which takes minutes.

use anyhow::Result;

use crate::args::Args;
use crate::command_line::{CommandLine, find_on_path};

const INSTALL: &str = "install cargo-semver-checks --locked --version ^0.51";

const CHECK: &str =
    "semver-checks --workspace --exclude archon-tests --exclude archon-evals --exclude xtask --baseline-rev";

pub(crate) fn run(mut args: Args) -> Result<()> {
    let revision = args.name()?;
    args.finish()?;
    if find_on_path("cargo-semver-checks").is_none() {
        println!("cargo-semver-checks: missing; installing (this takes minutes once)");
        CommandLine::cargo(INSTALL).run()?;
    }
    CommandLine::cargo(CHECK).args([revision]).run()
}
