//! `cargo xtask semver REVISION`: compares the public items of each published crate with those of an earlier revision,
//! and fails if a change needs a new major version. Crates that the revision lacks are left out. Run before a release;
//! `cargo-semver-checks` is installed if it is missing, which takes minutes. Both sides come from the local repository;
//! with `CARGO_NET_OFFLINE=true` their dependencies do not come from the network either, if they were downloaded before.

use anyhow::{Result, ensure};

use crate::args::Args;
use crate::command_line::{CommandLine, find_on_path};
use crate::crate_downloads;
use crate::metadata::{Metadata, Package};
use crate::repository;

const INSTALL: &str = "install cargo-semver-checks --locked --version ^0.51";

/// cargo-semver-checks enables all features of a crate unless they are named. A feature of this crate builds llama.cpp,
/// which needs cmake, a C++ compiler and libclang. It has no public items of its own.
const LOCAL_MODEL: (&str, &str) = ("archon-local-model", "engine,pull");

pub(crate) fn run(mut args: Args) -> Result<()> {
    let revision = args.name()?;
    args.finish()?;
    let commit = format!("{revision}^{{commit}}");
    CommandLine::new("git").args(["rev-parse", "--verify", &commit]).output()?;
    if find_on_path("cargo-semver-checks").is_none() {
        println!("cargo-semver-checks: missing; installing (this takes minutes once)");
        crate_downloads::run(&CommandLine::cargo(INSTALL))?;
    }
    let metadata = Metadata::load()?;
    let (old, new): (Vec<_>, Vec<_>) = metadata.published().partition(|package| is_in(&revision, package));
    new.iter().for_each(|package| println!("{}: not in {revision}", package.name));
    ensure!(
        !old.is_empty(),
        "none of the crates that are published now exists in {revision}, so there is nothing to compare: give a \
         later revision"
    );

    let (local_model, features) = LOCAL_MODEL;
    let has_local_model = old.iter().any(|package| package.name == local_model);
    let names = old.iter().map(|package| &package.name[..]);
    let rest: Vec<&str> = names.filter(|name| *name != local_model).collect();
    let compare = || CommandLine::cargo("semver-checks --baseline-rev").args([&revision]);
    let mut checks = Vec::new();
    // Without a name it would compare all crates.
    if !rest.is_empty() {
        checks.push(compare().args(rest.iter().flat_map(|name| ["--package", *name])));
    }
    if has_local_model {
        let options = ["--package", local_model, "--only-explicit-features", "--features", features];
        checks.push(compare().args(options));
    }
    // Both run, so that one call shows all changes.
    let results: Vec<Result<()>> = checks.iter().map(CommandLine::run).collect();
    results.into_iter().collect()
}

/// Returns true if the revision has the package, in the folder that it has today.
fn is_in(revision: &str, package: &Package) -> bool {
    let root = repository::root();
    let folder = package.folder.strip_prefix(&root).unwrap_or(&package.folder);
    let manifest = format!("{revision}:{}/Cargo.toml", folder.display());
    let text = CommandLine::new("git").args(["show", &manifest]).output();
    text.is_ok_and(|text| text.contains(&format!("name = \"{}\"", package.name)))
}
