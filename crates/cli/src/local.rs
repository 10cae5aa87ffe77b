//! Models that run in this process: GGUF files in the data folder, or by path.
//!
//! Without the feature `local` the program only explains that it must be built with the feature.

use std::path::PathBuf;

use crate::{app::App, chosen::PREFIX, failure::Failure};

/// Returns true if a name means a model in this process: it begins with `local:`, ends with `.gguf`, or is
/// the name of a downloaded model.
pub(crate) fn is_meant(app: &App, name: &str) -> bool {
    names_one(name) || files(app).iter().any(|(n, _)| n == name)
}

fn names_one(name: &str) -> bool {
    name.starts_with(PREFIX) || name.to_lowercase().ends_with(".gguf")
}

/// Returns the error for a model in this process, if this build cannot run such models.
pub(crate) fn not_built(name: &str) -> Option<Failure> {
    (!cfg!(feature = "local") && names_one(name)).then(missing)
}

fn missing() -> Failure {
    Failure::usage("the engine for local models is not in this build", "build with `--features local`")
}

/// Returns the names and paths of the downloaded models, in a stable order.
pub(crate) fn files(app: &App) -> Vec<(String, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(directory(app)) else { return Vec::new() };
    let mut files: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?.strip_suffix(".gguf")?.to_owned();
            Some((name, path))
        })
        .collect();
    files.sort();
    files
}

pub(crate) fn directory(app: &App) -> PathBuf {
    app.data_dir.join("models")
}

#[cfg(feature = "local")]
fn engines(app: &App) -> PathBuf {
    app.data_dir.join("engines")
}

#[cfg(feature = "local")]
fn create_directory(path: &std::path::Path) -> Result<(), Failure> {
    crate::own_file::create_folder(path).map_err(|e| {
        Failure::failed(
            format!("cannot create {}: {e}", path.display()),
            "set another folder with --data-dir DIR",
        )
    })
}

/// A model that can be downloaded.
#[derive(Debug)]
pub(crate) struct Known {
    /// The model's name for `archon model pull`.
    pub(crate) name: String,
    /// The description, one line.
    pub(crate) about: &'static str,
    /// The licence, one line.
    pub(crate) licence: &'static str,
    pub(crate) bytes: u64,
}

#[cfg(feature = "local")]
mod engine;
#[cfg(feature = "local")]
pub(crate) use engine::{CHOICE, catalogue, engine, fetch, first, load, prebuilt_engine, pull};

#[cfg(not(feature = "local"))]
mod absent;
#[cfg(not(feature = "local"))]
pub(crate) use absent::{CHOICE, catalogue, engine, fetch, first, load, prebuilt_engine, pull};
