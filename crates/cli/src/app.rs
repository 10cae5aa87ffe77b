//! What every command is given: settings, places and the way to the terminal.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use archon::{
    Runs,
    providers::HttpOptions,
    store::{InboxKey, JsonlJournal},
};

use crate::{
    config::{Config, Sources},
    failure::Failure,
    output::Output,
    recorded::Recorded,
};

/// The surroundings of a command.
#[derive(Clone)]
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
    /// The journal, once it is opened for runs.
    pub(crate) opened: Arc<OnceLock<Arc<JsonlJournal>>>,
}

impl App {
    /// With these settings, said by flags, and no terminal, for tests.
    #[cfg(test)]
    pub(crate) fn of(settings: crate::config::Settings) -> Self {
        Self {
            output: Arc::new(Output::to(Box::new(std::io::sink()), Box::new(std::io::sink()))),
            config: Config::of(settings, &crate::config::Origin::Flag(String::new())),
            sources: Sources::default(),
            data_dir: PathBuf::from("/nowhere/archon"),
            json: false,
            ask_later: false,
            http: HttpOptions::default(),
            opened: Arc::default(),
        }
    }

    /// The journal, for reading: nothing is created.
    pub(crate) fn journal(&self) -> JsonlJournal {
        self.sealing(JsonlJournal::new(&self.data_dir))
    }

    /// The journal, for runs: one for the whole command.
    ///
    /// # Errors
    /// Its folder cannot be made.
    pub(crate) fn open_journal(&self) -> Result<Arc<JsonlJournal>, Failure> {
        if let Some(journal) = self.opened.get() {
            return Ok(journal.clone());
        }
        let journal = Arc::new(self.sealing(JsonlJournal::open(&self.data_dir)?));
        Ok(self.opened.get_or_init(|| journal).clone())
    }

    /// All runs, for looking at them: nothing is created.
    ///
    /// # Errors
    /// None that depend on the runs.
    pub(crate) fn runs(&self) -> Result<Runs, Failure> {
        Ok(Runs::over(Arc::new(self.journal()))?.with_source(Arc::new(Recorded::new(self))))
    }

    /// All runs, for starting and resuming them.
    ///
    /// # Errors
    /// The journal's folder cannot be made.
    pub(crate) fn open_runs(&self) -> Result<Runs, Failure> {
        Ok(Runs::over(self.open_journal()?)?.with_source(Arc::new(Recorded::new(self))))
    }

    /// Answers in a person's name come from this program alone: who has no key is not heard.
    fn sealing(&self, journal: JsonlJournal) -> JsonlJournal {
        journal.with_inbox_key(InboxKey::in_file(self.data_dir.join("inbox.key")))
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
