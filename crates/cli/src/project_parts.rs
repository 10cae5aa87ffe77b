//! The parts of a project that take effect only after a person agreed to them: hooks, skills, and instructions.
//!
//! A project may come from a stranger. Each part has a hash, and an agreement holds for exactly this hash. The settings
//! of a project have limits of their own: see [`crate::config::asks`].

use std::path::{Path, PathBuf};

use crate::{
    app::App,
    command_line::{in_data_dir, quoted},
    config::{AgreedTable, Agreements},
    failure::Failure,
    own_file, toolset,
};

/// Maximum size of a file of the project that is read before an agreement, in bytes.
const LARGEST: u64 = 1 << 20;

/// A part of a project that waits for an agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProjectPart {
    pub(crate) table: AgreedTable,
    /// The file or the folder.
    pub(crate) path: PathBuf,
    /// The hash that a person agrees to.
    pub(crate) hash: String,
    /// The description of the part, for people.
    pub(crate) about: String,
    /// The content to show before the agreement, one line each.
    pub(crate) lines: Vec<String>,
}

/// The agreement to a part of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// A person agreed to it as it is.
    Holds,
    /// It has changed since a person agreed to it.
    Changed,
    /// No person has agreed to it.
    Missing,
}

impl Agreement {
    /// Returns the agreement to a path with a hash. Agreements that cannot be read are none; `archon trust` reports the
    /// problem.
    pub(crate) fn to(app: &App, table: AgreedTable, path: &Path, hash: &str) -> Self {
        match Agreements::in_folder(&app.data_dir).hash(table, path) {
            Ok(Some(agreed)) if agreed == hash => Self::Holds,
            Ok(Some(_)) => Self::Changed,
            Ok(None) | Err(_) => Self::Missing,
        }
    }
}

/// Stores the agreement to these parts.
///
/// # Errors
/// [`Failure`] if the agreements cannot be read or written.
pub(crate) fn agree(app: &App, parts: &[ProjectPart]) -> Result<(), Failure> {
    let agreements = Agreements::in_folder(&app.data_dir);
    parts.iter().try_for_each(|part| agreements.add_hash(part.table, &part.path, part.hash.clone()))
}

/// Returns the folder of the project, which the tools see, without symbolic links.
pub(crate) fn folder(app: &App) -> Option<PathBuf> {
    toolset::folder(app)
}

/// Returns the home folder of the person, without symbolic links.
#[cfg(any(feature = "hooks", feature = "skills"))]
pub(crate) fn home(app: &App) -> Option<PathBuf> {
    Path::new(app.sources.env.get("HOME")?).canonicalize().ok()
}

/// Returns the command that shows the parts of the project and asks for the agreement to them.
pub(crate) fn trust_command(app: &App) -> String {
    let here = Path::new(".").canonicalize().ok();
    let command = match folder(app).filter(|folder| Some(folder) != here.as_ref()) {
        Some(folder) => format!("archon trust --workspace {}", quoted(&folder.display().to_string())),
        None => "archon trust".to_owned(),
    };
    in_data_dir(app, &command)
}

/// Reads a file of the project; `None` if it does not exist.
///
/// # Errors
/// The reason, and what to do: the file cannot be read, or is a link out of the project, which could make any file of
/// this machine a part of it.
pub(crate) fn read_inside(folder: &Path, file: &Path) -> Result<Option<String>, String> {
    let Ok(real) = file.canonicalize() else { return Ok(None) };
    if !real.starts_with(folder) {
        return Err("the file is a link out of the project: put the text itself there".to_owned());
    }
    if !real.is_file() {
        return Err("this is no file: move it away".to_owned());
    }
    if real.metadata().is_ok_and(|file| file.len() > LARGEST) {
        return Err(format!("the file has more than {} KiB: make it shorter", LARGEST >> 10));
    }
    own_file::read(&real).map_err(|e| format!("the file cannot be read: {e}"))
}
