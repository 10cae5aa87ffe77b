//! Models that run in this process: GGUF files in the data folder, or anywhere by path.
//!
//! Without the feature `local` the program only explains how to build it with them.

use std::path::PathBuf;

use crate::{app::App, chosen::PREFIX, failure::Failure};

/// Returns whether a model's name means a file or a fetched model.
pub(crate) fn is_meant(app: &App, name: &str) -> bool {
    names_one(name) || files(app).iter().any(|(n, _)| n == name)
}

fn names_one(name: &str) -> bool {
    name.starts_with(PREFIX) || name.to_lowercase().ends_with(".gguf")
}

/// Returns the error for a model in this process, if this build cannot run any.
pub(crate) fn not_built(name: &str) -> Option<Failure> {
    (!cfg!(feature = "local") && names_one(name)).then(missing)
}

fn missing() -> Failure {
    Failure::usage("a model in this program is not in this build", "build with `--features local`")
}

/// Returns names and paths of the fetched models, in a stable order.
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

/// Returns the folder of fetched models.
pub(crate) fn directory(app: &App) -> PathBuf {
    app.data_dir.join("models")
}

/// Returns the folder of fetched engines.
#[cfg(feature = "local")]
fn engines(app: &App) -> PathBuf {
    app.data_dir.join("engines")
}

/// Creates a directory that only its owner can read, like everything in the data folder.
#[cfg(feature = "local")]
fn create_directory(path: &std::path::Path) -> Result<(), Failure> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|e| {
        Failure::failed(
            format!("cannot create {}: {e}", path.display()),
            "say where models go with --data-dir DIR",
        )
    })
}

/// A model that can be fetched.
#[derive(Debug)]
pub(crate) struct Known {
    /// Its name for `archon model pull`.
    pub(crate) name: String,
    /// Description, one line.
    pub(crate) about: &'static str,
    /// Licence, one line.
    pub(crate) licence: &'static str,
    /// Size of its file.
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
