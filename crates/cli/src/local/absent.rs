//! The replacement of `engine` without the feature `local`: explains that the program must be built with the
//! feature.

use std::path::PathBuf;

use super::{Known, missing};
use crate::{app::App, chosen::Chosen, exit::Exit, failure::Failure};

pub(crate) const CHOICE: &str = "In this program: build it with `--features local`, then `archon model pull`";

pub(crate) fn engine(_: &App) -> Result<String, Failure> {
    Err(missing())
}

pub(crate) fn prebuilt_engine(_: &App) -> Option<(Known, PathBuf)> {
    None
}

pub(crate) fn catalogue() -> Vec<Known> {
    Vec::new()
}

pub(crate) fn first(_: &App) -> Option<String> {
    None
}

pub(crate) async fn pull(_: &App, _: Option<&str>) -> Result<Exit, Failure> {
    Err(missing())
}

pub(crate) async fn fetch(_: &App, _: Option<&str>) -> Result<Option<PathBuf>, Failure> {
    Err(missing())
}

pub(crate) async fn load(_: &App, _: &str, _: String) -> Result<Chosen, Failure> {
    Err(missing())
}
