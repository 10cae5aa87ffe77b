//! `cargo xtask new`: makes the project of `archon new` outside of the workspace, and runs its tests as its user
//! does, without a network. Its dependencies are built in the workspace's target folder, where most of them are
//! already.

use std::env;
use std::fs;
use std::path::Path;
use std::process;

use anyhow::{Context, Result};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::metadata::Metadata;
use crate::repository;

const NAME: &str = "hello-archon";

pub(crate) fn run(args: Args) -> Result<()> {
    args.finish()?;
    CommandLine::cargo("build --quiet -p archon-agents-cli").run()?;
    let metadata = Metadata::load()?;
    let place = env::temp_dir().join(format!("archon-new-{}", process::id()));
    fs::create_dir(&place).with_context(|| format!("cannot create {}", place.display()))?;
    let tested = test_project(&place, &metadata);
    let removed = fs::remove_dir_all(&place).with_context(|| format!("cannot remove {}", place.display()));
    tested.and(removed)
}

fn test_project(place: &Path, metadata: &Metadata) -> Result<()> {
    let checkout = repository::root();
    let archon = metadata.binary("debug", "archon").display().to_string();
    let make = ["new", NAME, "--path"].map(str::to_owned).into_iter().chain([checkout.display().to_string()]);
    CommandLine::new(archon).args(make).folder(place).run()?;
    let project = place.join(NAME);
    // The versions that were fetched for the workspace; others would need the network.
    fs::copy(checkout.join("Cargo.lock"), project.join("Cargo.lock")).context("cannot copy Cargo.lock")?;
    let test = CommandLine::cargo("test --offline --quiet").folder(&project);
    let test = test.env("CARGO_TARGET_DIR", metadata.target_directory.display().to_string());
    // As in the workspace's profile, so that what was built there fits.
    let debug = env::var("CARGO_PROFILE_DEV_DEBUG").unwrap_or_else(|_| "line-tables-only".to_owned());
    test.env("CARGO_PROFILE_DEV_DEBUG", debug).run()
}
