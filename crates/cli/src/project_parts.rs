//! The parts of a project that take effect only after a person agreed to them: hooks, skills, agents and instructions.
//!
//! A project may come from a stranger. Each part has a hash, and an agreement holds for exactly this hash. The settings
//! of a project have limits of their own: see [`crate::config::asks`].

use std::path::{Path, PathBuf};

use crate::{
    app::App,
    command_line::{in_data_dir, quoted},
    config::{AgreedTable, Agreements},
    failure::Failure,
    own_file,
    text::{visible_line, visible_path},
    toolset,
};

/// Maximum size of a file of the project that is read before an agreement, in bytes.
const LARGEST: u64 = 1 << 20;

/// The most characters of a file that are shown before an agreement.
const MOST_CHARACTERS: usize = 8_000;

/// The most lines of a file that are shown before an agreement, so that nothing is scrolled away by empty ones.
const MOST_LINES: usize = 200;

/// A part of a project that takes effect only after a person agreed to it.
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

/// The state of a person's agreement to a part of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// A person agreed to the part in its current form.
    Holds,
    /// The part has changed since a person agreed to it.
    Changed,
    /// No person has agreed to the part.
    Missing,
}

impl Agreement {
    /// Returns the state of the agreement to a path with a hash. Agreements that cannot be read count as missing;
    /// `archon trust` reports the problem.
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

/// Returns the folder of the project without symbolic links. It is the folder that tools see.
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

/// Returns the lines of a file's text to show before an agreement: all, or the beginning and a line that says how much
/// more there is. A person agrees to the whole file.
pub(crate) fn lines_to_show(text: &str, file: &Path) -> Vec<String> {
    let mut room = MOST_CHARACTERS;
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() && room > 0 && lines.len() < MOST_LINES {
        let line = rest.lines().next().unwrap_or_default();
        let end = line.char_indices().nth(room).map_or(line.len(), |(end, _)| end);
        lines.push(visible_line(&line[..end]));
        room -= line[..end].chars().count();
        rest = &rest[end..];
        if end == line.len() {
            rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest);
        }
    }
    let more = rest.chars().count();
    if more > 0 {
        lines.push(format!("{more} more characters: read {}", visible_path(file)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_to_show_has_the_whole_text_or_says_how_much_more_there_is() {
        let lines = |text: &str| lines_to_show(text, Path::new("a.md"));
        assert_eq!(lines("one\r\n\n\u{1b}[8mthree\tx"), ["one", "", "\\u{1b}[8mthree\\tx"]);
        assert!(lines("").is_empty());
        let long = lines(&"x".repeat(MOST_CHARACTERS + 5));
        assert_eq!((long[0].len(), long[1].as_str()), (MOST_CHARACTERS, "5 more characters: read a.md"));
        let many = lines(&"y\n".repeat(MOST_LINES + 3));
        assert_eq!((many.len(), many[MOST_LINES].as_str()), (MOST_LINES + 1, "6 more characters: read a.md"));
        assert_eq!(lines(&"z\n".repeat(MOST_LINES)).len(), MOST_LINES);
    }
}
