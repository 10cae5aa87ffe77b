//! The context of every command: settings, paths and the terminal.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use archon::{
    providers::{Catalogue, HttpOptions},
    store::{InboxKey, JsonlJournal},
    types::{ApprovalSettings, DynApprover},
};

use crate::{
    cassette::Cassette,
    config::{Config, Sources, catalogue_reason},
    credentials::{self, StoredKeys},
    failure::Failure,
    loaded_apis::LoadedApis,
    output::{Look, Output},
    own_file,
    servers::Connected,
};

/// The id of the main agent in logs: of `archon run`, of plans and of conversations.
pub(crate) const AGENT: &str = "archon";

/// The context of a command: its output, its settings and keys, and what it has opened so far.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) output: Arc<Output>,
    pub(crate) config: Config,
    pub(crate) sources: Sources,
    /// The stored keys, which are used for services without a key in the environment.
    pub(crate) stored_keys: Arc<StoredKeys>,
    /// The folder for runs and models, which may not exist yet.
    pub(crate) data_dir: PathBuf,
    /// True if the output is JSON for a program.
    pub(crate) json: bool,
    /// True if runs are suspended with their questions instead of asking on the terminal.
    pub(crate) ask_later: bool,
    /// Answers the questions of all agents; `None` if the flags and the terminal decide who answers.
    pub(crate) consent: Option<Consent>,
    /// The HTTP options; all providers share the connections.
    pub(crate) http: HttpOptions,
    /// The journal, once it was opened for runs.
    pub(crate) opened: Arc<OnceLock<Arc<JsonlJournal>>>,
    /// The catalogue of models, read at its first use.
    pub(crate) catalogue: Arc<OnceLock<Arc<Catalogue>>>,
    /// The MCP servers, once they were started.
    pub(crate) mcp: Arc<Connected>,
    /// The HTTP APIs, once their documents were read.
    pub(crate) apis: Arc<LoadedApis>,
    /// The agents from files. Those that can be used are among the agents of the settings.
    #[cfg(feature = "skills")]
    pub(crate) agent_files: Arc<archon::skills::AgentFiles>,
    /// The recording or the replay of the model calls of this command.
    pub(crate) cassette: Cassette,
    /// The background commands of each session. They end with this process.
    #[cfg(unix)]
    pub(crate) commands: archon::tools::builtin::BackgroundCommands,
}

/// A fixed way to answer the questions of agents, and the time that a question waits for its answer.
#[derive(Clone)]
pub(crate) struct Consent {
    pub(crate) approver: Arc<dyn DynApprover>,
    pub(crate) settings: ApprovalSettings,
}

impl App {
    /// Creates a context for tests, with these settings as flags and without a terminal.
    #[cfg(test)]
    pub(crate) fn of(settings: crate::config::Settings) -> Self {
        let output = Output::to(Box::new(std::io::sink()), Box::new(std::io::sink()));
        let config = Config::of(settings, &crate::config::Origin::Flag(String::new()));
        Self::new(Arc::new(output), config, Sources::default(), PathBuf::from("/nowhere/archon"))
    }

    /// Creates a context without stored keys, with output for a person.
    pub(crate) fn new(output: Arc<Output>, config: Config, sources: Sources, data_dir: PathBuf) -> Self {
        Self {
            output,
            config,
            sources,
            stored_keys: Arc::default(),
            data_dir,
            json: false,
            ask_later: false,
            consent: None,
            http: HttpOptions::default(),
            opened: Arc::default(),
            catalogue: Arc::default(),
            mcp: Arc::default(),
            apis: Arc::default(),
            #[cfg(feature = "skills")]
            agent_files: Arc::default(),
            cassette: Cassette::default(),
            #[cfg(unix)]
            commands: archon::tools::builtin::BackgroundCommands::default(),
        }
    }

    /// Returns the journal, and does not create its folder. Start and resume runs with
    /// [`open_journal`](Self::open_journal) instead.
    pub(crate) fn journal(&self) -> JsonlJournal {
        self.sealing(JsonlJournal::new(&self.data_dir))
    }

    /// Returns the journal for runs; the whole command uses the same one.
    ///
    /// # Errors
    /// [`Failure`] if the journal's folder cannot be created.
    pub(crate) fn open_journal(&self) -> Result<Arc<JsonlJournal>, Failure> {
        if let Some(journal) = self.opened.get() {
            return Ok(journal.clone());
        }
        let journal = Arc::new(self.sealing(JsonlJournal::open(&self.data_dir)?));
        Ok(self.opened.get_or_init(|| journal).clone())
    }

    /// Returns the catalogue of models: the built-in one, overlaid by the imported file and then by the
    /// settings.
    ///
    /// # Errors
    /// [`Failure`] if the imported catalogue cannot be read.
    pub(crate) fn catalogue(&self) -> Result<Arc<Catalogue>, Failure> {
        if let Some(catalogue) = self.catalogue.get() {
            return Ok(catalogue.clone());
        }
        let file = self.catalogue_file();
        let mut catalogue = match own_file::read(&file) {
            Ok(Some(text)) => Catalogue::default().with_file(&text).map_err(catalogue_reason),
            Ok(None) => Ok(Catalogue::default()),
            Err(e) => Err(e.to_string()),
        };
        if let (Ok(known), Some(models)) = (&catalogue, &self.config.settings.models) {
            catalogue = models.over(known.clone());
        }
        let catalogue = catalogue.map_err(|e| {
            Failure::failed(
                format!("cannot read {}: {e}", file.display()),
                "import it again with `archon models import FILE`, or remove it",
            )
        })?;
        Ok(self.catalogue.get_or_init(|| Arc::new(catalogue)).clone())
    }

    pub(crate) fn catalogue_file(&self) -> PathBuf {
        self.data_dir.join("models.jsonl")
    }

    /// Sets the key that seals inbox messages, so that the journal ignores answers that were not sealed with
    /// it.
    fn sealing(&self, journal: JsonlJournal) -> JsonlJournal {
        journal.with_inbox_key(InboxKey::in_file(self.data_dir.join("inbox.key")))
    }

    /// Returns the value of an environment variable that is not empty, otherwise the stored key that replaces the
    /// variable.
    pub(crate) fn env(&self, name: &str) -> Option<&str> {
        self.set(name).or_else(|| self.stored_keys.get(name))
    }

    fn set(&self, name: &str) -> Option<&str> {
        self.sources.env.get(name).map(String::as_str).filter(|v| !v.is_empty())
    }

    /// Returns the source of a key, for people: the variable, or the stored key.
    pub(crate) fn key_source(&self, variable: &str) -> String {
        match credentials::service_of(variable).filter(|_| self.set(variable).is_none()) {
            Some(service) => format!("a key of {} is stored", service.name),
            None => format!("{variable} is set"),
        }
    }

    /// Prints an item: with `--json` as a line of JSON, otherwise as `text`.
    pub(crate) fn item(&self, item: &impl serde::Serialize, text: impl FnOnce() -> String) {
        match serde_json::to_string(item) {
            Ok(line) if self.json => self.output.json(&line),
            _ => self.output.line(text()),
        }
    }

    /// Prints a list of items: with `--json` a line of JSON for each, otherwise the text that `row` returns. An empty
    /// list prints `none` as a hint for people.
    pub(crate) fn list<T: serde::Serialize>(&self, items: &[T], none: &str, row: impl Fn(&T) -> String) {
        self.hint_if(items.is_empty(), none);
        items.iter().for_each(|item| self.item(item, || row(item)));
    }

    /// Reports a change: with `--json` as a line of JSON, otherwise as a note.
    pub(crate) fn report(&self, item: &impl serde::Serialize, text: impl AsRef<str>) {
        match self.json {
            true => self.item(item, String::new),
            false => self.note(text),
        }
    }

    /// With `--json`, prints a line of JSON; otherwise prints nothing.
    pub(crate) fn report_json(&self, item: &serde_json::Value) {
        if self.json {
            self.output.json(&item.to_string());
        }
    }

    /// Writes a note for people; with `--json` nothing.
    pub(crate) fn note(&self, text: impl AsRef<str>) {
        if !self.json {
            self.output.note(Look::Plain, text);
        }
    }

    /// Writes a note, as [`note`](Self::note) does, if the condition holds.
    pub(crate) fn note_if(&self, condition: bool, text: impl AsRef<str>) {
        if condition {
            self.note(text);
        }
    }

    /// Writes a less important note for people; with `--json` nothing.
    pub(crate) fn hint(&self, text: impl AsRef<str>) {
        if !self.json {
            self.output.note(Look::Dim, text);
        }
    }

    /// Writes a hint, as [`hint`](Self::hint) does, if the condition holds.
    pub(crate) fn hint_if(&self, condition: bool, text: impl AsRef<str>) {
        if condition {
            self.hint(text);
        }
    }

    /// Returns true if a person can be asked on the terminal.
    pub(crate) fn can_ask(&self) -> bool {
        self.output.asks && !self.json
    }
}
