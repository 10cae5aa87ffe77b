//! What every command is given: settings, places and the way to the terminal.

use std::{path::PathBuf, sync::Arc};

use archon::{providers::HttpOptions, store::JsonlJournal};

use crate::{
    config::{Config, Sources},
    output::Output,
};

/// The surroundings of a command.
pub(crate) struct App {
    /// The way to the terminal.
    pub(crate) output: Arc<Output>,
    /// All settings.
    pub(crate) config: Config,
    /// Where they were looked for.
    pub(crate) sources: Sources,
    /// Where runs and models are kept; may not exist yet.
    pub(crate) data_dir: PathBuf,
    /// Whether a program reads the output.
    pub(crate) json: bool,
    /// Whether runs wait for answers instead of asking here.
    pub(crate) ask_later: bool,
    /// How services are reached; all providers share its connections.
    pub(crate) http: HttpOptions,
}

impl App {
    /// The journal, for reading: nothing is created.
    pub(crate) fn journal(&self) -> JsonlJournal {
        JsonlJournal::new(&self.data_dir)
    }

    /// An environment variable that is set and not empty.
    pub(crate) fn env(&self, name: &str) -> Option<&str> {
        self.sources.env.get(name).map(String::as_str).filter(|v| !v.is_empty())
    }

    /// Prints an item: as a line of JSON for programs, as `text` for people.
    pub(crate) fn item(&self, item: &impl serde::Serialize, text: impl FnOnce() -> String) {
        match serde_json::to_string(item) {
            Ok(line) if self.json => self.output.json(&line),
            _ => self.output.line(text()),
        }
    }
}
