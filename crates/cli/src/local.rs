//! Models that run in this process: files below the data directory, or anywhere by path.
//!
//! Without the feature `local` the program knows of them, and says how to build it with them.

use std::path::PathBuf;

use crate::{app::App, choose::Chosen, exit::Exit, failure::Failure};

/// What stands in front of the name of a model that runs in this process.
const PREFIX: &str = "local:";

/// Whether a model's name means a file, or a model that was fetched.
pub(crate) fn is_meant(app: &App, name: &str) -> bool {
    name.starts_with(PREFIX)
        || name.to_lowercase().ends_with(".gguf")
        || files(app).iter().any(|(n, _)| n == name)
}

/// The models that were fetched: names, and where they are, in a stable order.
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

/// Where fetched models are kept.
pub(crate) fn directory(app: &App) -> PathBuf {
    app.data_dir.join("models")
}

#[cfg(not(feature = "local"))]
mod without {
    use super::{App, Chosen, Exit, Failure};

    /// The third of the choices that somebody without a model has.
    pub(crate) const CHOICE: &str = "In this program: build it with `cargo build --release -p archon-cli --features local`, then `archon model pull`";

    fn not_built() -> Failure {
        Failure::usage(
            "this program was built without local models",
            "build it with them: cargo build --release -p archon-cli --features local",
        )
    }

    /// The model that would be used where none was named.
    pub(crate) fn first(_: &App) -> Option<String> {
        None
    }

    /// Fetches a model.
    pub(crate) async fn pull(_: &App, _: Option<&str>) -> Result<Exit, Failure> {
        Err(not_built())
    }

    /// Loads a model.
    pub(crate) async fn load(_: &App, _: &str, _: String) -> Result<Chosen, Failure> {
        Err(not_built())
    }
}

#[cfg(not(feature = "local"))]
pub(crate) use without::{CHOICE, first, load, pull};
