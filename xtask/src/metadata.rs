//! What cargo says of the workspace: its packages and the dependencies they declare.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::command_line::CommandLine;

#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: PathBuf,
}

#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` is an ordinary dependency; otherwise `dev` or `build`.
    pub(crate) kind: Option<String>,
    pub(crate) optional: bool,
}

impl Metadata {
    /// Asks cargo; nothing is downloaded, because only the workspace's own manifests are read.
    pub(crate) fn load() -> Result<Self> {
        Self::parse(&CommandLine::cargo("metadata --format-version 1 --no-deps").output()?)
    }

    pub(crate) fn parse(json: &str) -> Result<Self> {
        serde_json::from_str(json).context("`cargo metadata` printed something unexpected")
    }

    /// A program that this workspace builds, in the folder of the given profile.
    pub(crate) fn binary(&self, profile_folder: &str, name: &str) -> PathBuf {
        self.target_directory.join(profile_folder).join(crate::command_line::with_suffix(name))
    }
}
