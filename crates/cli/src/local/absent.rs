//! The stand-in without the feature `local`: explains how to build the program with it.

use std::path::PathBuf;

use super::Known;
use crate::{app::App, choose::Chosen, exit::Exit, failure::Failure};

/// The third option for a person without a model.
pub(crate) const CHOICE: &str = "In this program: build it with `--features local`, then `archon model pull`";

fn not_built() -> Failure {
    Failure::usage("a model in this program is not in this build", "build with `--features local`")
}

/// Describes the engine for `archon doctor`.
pub(crate) fn engine(_: &App) -> Result<String, Failure> {
    Err(not_built())
}

/// Returns the prebuilt engine of this machine.
pub(crate) fn prebuilt_engine(_: &App) -> Option<(Known, PathBuf)> {
    None
}

/// Returns the models that can be fetched.
pub(crate) fn catalogue() -> Vec<Known> {
    Vec::new()
}

/// Returns the model to use if none is named.
pub(crate) fn first(_: &App) -> Option<String> {
    None
}

/// Fetches a model.
pub(crate) async fn pull(_: &App, _: Option<&str>) -> Result<Exit, Failure> {
    Err(not_built())
}

/// Fetches a model and returns its path.
pub(crate) async fn fetch(_: &App, _: Option<&str>) -> Result<Option<PathBuf>, Failure> {
    Err(not_built())
}

/// Loads a model.
pub(crate) async fn load(_: &App, _: &str, _: String) -> Result<Chosen, Failure> {
    Err(not_built())
}
