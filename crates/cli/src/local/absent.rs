//! The replacement without the feature `local`: explains that the program must be built with the feature.

use std::path::PathBuf;

use super::{Known, missing};
use crate::{app::App, chosen::Chosen, exit::Exit, failure::Failure};

/// The third option for a person without a model.
pub(crate) const CHOICE: &str = "In this program: build it with `--features local`, then `archon model pull`";

/// Describes the engine for `archon doctor`.
pub(crate) fn engine(_: &App) -> Result<String, Failure> {
    Err(missing())
}

/// Returns the prebuilt engine for this machine.
pub(crate) fn prebuilt_engine(_: &App) -> Option<(Known, PathBuf)> {
    None
}

/// Returns the models that can be downloaded.
pub(crate) fn catalogue() -> Vec<Known> {
    Vec::new()
}

/// Returns the default model.
pub(crate) fn first(_: &App) -> Option<String> {
    None
}

/// Downloads a model.
pub(crate) async fn pull(_: &App, _: Option<&str>) -> Result<Exit, Failure> {
    Err(missing())
}

/// Downloads a model and returns its path.
pub(crate) async fn fetch(_: &App, _: Option<&str>) -> Result<Option<PathBuf>, Failure> {
    Err(missing())
}

/// Loads a model.
pub(crate) async fn load(_: &App, _: &str, _: String) -> Result<Chosen, Failure> {
    Err(missing())
}
