//! The configured servers, and those that were started.

use std::{collections::BTreeSet, path::PathBuf, sync::Mutex};

use archon::mcp::McpServers;
use tokio::sync::OnceCell;

use super::Tools;
use crate::{config::ServerSettings, failure::Failure};

/// A configured server.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) settings: ServerSettings,
    /// Its place in a project's file; `None` for a server of the user's own settings.
    pub(crate) project: Option<Place>,
    /// The problem of its settings.
    pub(crate) problem: Option<String>,
}

/// An entry of a project's file.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) file: PathBuf,
    /// The entry as JSON, for which a person's agreement is.
    pub(crate) text: String,
}

/// The reason why a server is not used.
#[derive(Clone, Debug)]
pub(crate) enum LeftOut {
    /// The settings say so.
    Disabled,
    /// No person has agreed to it as it is.
    NotAgreed,
    /// Its settings are wrong, or a variable is missing.
    Wrong(Failure),
}

/// The servers of a command, once they are started.
#[derive(Default)]
pub(crate) struct Connected(pub(crate) OnceCell<Running>);

#[derive(Default)]
pub(crate) struct Running {
    /// Until they are closed.
    pub(crate) servers: Mutex<Option<McpServers>>,
    pub(crate) tools: Tools,
    pub(crate) entries: Vec<(Entry, Option<LeftOut>)>,
    /// The problem of the project's file.
    pub(crate) unreadable: Option<Failure>,
    /// Servers whose first tools were trusted unseen now.
    pub(crate) first: BTreeSet<String>,
}
