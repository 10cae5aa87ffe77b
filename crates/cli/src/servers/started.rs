//! The configured servers, and the started ones.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Mutex, OnceLock, atomic::AtomicBool},
    time::Instant,
};

use archon::mcp::McpServers;

use crate::{config::ServerSettings, failure::Failure};

/// A configured MCP server.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) settings: ServerSettings,
    /// The entry in a project's file; `None` for a server of the user's own settings.
    pub(crate) project: Option<Place>,
    /// The problem with the server's settings.
    pub(crate) problem: Option<String>,
}

/// The entry of a server in a project's `.mcp.json`.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) file: PathBuf,
    /// The entry as JSON. A person who agrees to the server agrees to exactly this text.
    pub(crate) text: String,
}

/// The reason for not using a server.
#[derive(Clone, Debug)]
pub(crate) enum LeftOut {
    /// The settings disable the server.
    Disabled,
    /// No person has agreed to this exact entry.
    NotAgreed,
    /// The server's settings are wrong, or a variable is missing.
    Wrong(Failure),
}

/// The servers of a command, once they are started.
#[derive(Default)]
pub(crate) struct Connected(pub(crate) OnceLock<Running>);

#[derive(Default)]
pub(crate) struct Running {
    /// The running servers; `None` after they are closed.
    pub(crate) servers: Mutex<Option<McpServers>>,
    pub(crate) entries: Vec<(Entry, Option<LeftOut>)>,
    /// The problem with the project's file.
    pub(crate) unreadable: Option<Failure>,
    /// The servers whose first tools were trusted unseen in this command.
    pub(crate) first: BTreeSet<String>,
    /// The time at which the servers were started.
    pub(crate) started: Option<Instant>,
    /// True once the tools were given to an agent, so that problems of the servers must be reported.
    pub(crate) is_used: AtomicBool,
}
