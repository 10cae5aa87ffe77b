//! The pins of MCP servers: the definitions of their tools that may be used, so that a changed tool is held back. They
//! are in the data folder, and so outside every workspace.

use std::{collections::BTreeMap, path::PathBuf};

use archon::mcp::{FilePins, PinError, Pins, ServerPins};

use crate::{app::App, config::sha256, servers::Entry};

/// The folder of the pins in the data folder.
const FOLDER: &str = "mcp-pins";

/// The pins of the servers of a command. Two projects may have different servers with the same name, so the
/// pins of each project are in a separate folder.
pub(super) struct Folders(BTreeMap<String, FilePins>);

impl Folders {
    pub(super) fn of<'a>(app: &App, entries: impl Iterator<Item = &'a Entry>) -> Self {
        Self(entries.map(|entry| (entry.name.clone(), FilePins::new(folder(app, entry)))).collect())
    }

    fn of_server(&self, server: &str, action: &'static str) -> Result<&FilePins, PinError> {
        self.0.get(server).ok_or_else(|| PinError::new(server, action, "there is no such server"))
    }
}

impl Pins for Folders {
    fn read(&self, server: &str) -> Result<Option<ServerPins>, PinError> {
        self.of_server(server, "read")?.read(server)
    }

    fn write(&self, server: &str, pins: &ServerPins) -> Result<(), PinError> {
        self.of_server(server, "stored")?.write(server, pins)
    }
}

/// Removes the pins of a removed server, so that another server may have its name.
#[cfg(feature = "setup")]
pub(crate) fn forget(app: &App, entry: &Entry) -> std::io::Result<()> {
    match std::fs::remove_file(file(app, entry)) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Returns the file with the pins of a server.
pub(super) fn file(app: &App, entry: &Entry) -> PathBuf {
    folder(app, entry).join(format!("{}.json", entry.name))
}

fn folder(app: &App, entry: &Entry) -> PathBuf {
    let all = app.data_dir.join(FOLDER);
    match &entry.project {
        None => all,
        Some(place) => all.join(&sha256(&place.file.display().to_string())[..DIGITS]),
    }
}

/// The number of digits of a hash in a project's folder name.
const DIGITS: usize = 16;
