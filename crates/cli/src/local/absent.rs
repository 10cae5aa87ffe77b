//! The stand-in without the feature `local`: explains how to build the program with it.

use std::path::PathBuf;

use super::{Known, missing};
use crate::{app::App, chosen::Chosen, exit::Exit, failure::Failure};

/// The third option for a person without a model.
pub(crate) const CHOICE: &str = "In this program: build it with `--features local`, then `archon model pull`";

/// Describes the engine for `archon doctor`.
pub(crate) fn engine(_: &App) -> Result<String, Failure> {
    Err(missing())
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
    Err(missing())
}

/// Fetches a model and returns its path.
pub(crate) async fn fetch(_: &App, _: Option<&str>) -> Result<Option<PathBuf>, Failure> {
    Err(missing())
}

/// Loads a model.
pub(crate) async fn load(_: &App, _: &str, _: String) -> Result<Chosen, Failure> {
    Err(missing())
}
