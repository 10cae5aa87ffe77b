//! The pins: which definitions of a server's tools were agreed to, and by whom.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::Definition;

/// Stores the pins of servers: for each server, the definitions of its tools that may be used.
///
/// ```
/// use std::{collections::BTreeMap, sync::Mutex};
///
/// use archon_mcp::{PinError, Pins, ServerPins};
///
/// /// Pins that end with the process.
/// #[derive(Default)]
/// struct Table(Mutex<BTreeMap<String, ServerPins>>);
///
/// impl Pins for Table {
///     fn read(&self, server: &str) -> Result<Option<ServerPins>, PinError> {
///         Ok(self.0.lock().expect("no panic").get(server).cloned())
///     }
///
///     fn write(&self, server: &str, pins: &ServerPins) -> Result<(), PinError> {
///         self.0.lock().expect("no panic").insert(server.to_owned(), pins.clone());
///         Ok(())
///     }
/// }
/// ```
pub trait Pins: Send + Sync {
    /// Returns the pins of a server; `None` if the server has no pins yet.
    ///
    /// # Errors
    /// The pins cannot be read. The server's tools are then held back.
    fn read(&self, server: &str) -> Result<Option<ServerPins>, PinError>;

    /// Replaces the pins of a server.
    ///
    /// # Errors
    /// The pins cannot be stored.
    fn write(&self, server: &str, pins: &ServerPins) -> Result<(), PinError>;
}

/// The pins of one server: the definitions of its tools that may be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerPins {
    /// The identity of the server: [`McpServer::identity`](crate::McpServer::identity).
    pub identity: String,
    /// The pins of the tools, by the tool's name on the server.
    pub tools: BTreeMap<String, Pin>,
    /// True if the server offered resources at its last connection.
    #[serde(default)]
    pub resources: bool,
}

/// The definition of a tool that may be used: a person agreed to it, or it was trusted on first use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Pin {
    /// The hash of the definition: [`Definition::hash`].
    pub hash: String,
    /// The definition, for the difference that a person sees after a change.
    pub definition: Definition,
    /// True if a person agreed to the definition; false if it was trusted on first use, without a person.
    pub by_person: bool,
}

impl ServerPins {
    /// Pins the first definitions of a server, which are trusted without a person's agreement.
    pub(crate) fn first(identity: &str, definitions: &[Definition]) -> Self {
        let mut pins = Self { identity: identity.to_owned(), ..Self::default() };
        for definition in definitions {
            pins.add(definition, false);
        }
        pins
    }

    pub(crate) fn add(&mut self, definition: &Definition, by_person: bool) {
        let hash = definition.hash(&self.identity);
        let pin = Pin { hash, definition: definition.clone(), by_person };
        self.tools.insert(definition.name.clone(), pin);
    }
}

/// The pins of a server cannot be read or stored.
#[derive(Debug, thiserror::Error)]
#[error("the tool definitions (pins) of the MCP server '{server}' cannot be {action}: {why}")]
#[non_exhaustive]
pub struct PinError {
    /// The configured name of the server.
    pub server: String,
    /// The failed action, as a word of the error text: `read` or `stored`.
    pub action: &'static str,
    /// The reason of the failure.
    pub why: String,
}

impl PinError {
    /// Creates an error; `action` is `read` or `stored`.
    pub fn new(server: &str, action: &'static str, why: impl ToString) -> Self {
        Self { server: server.to_owned(), action, why: why.to_string() }
    }
}

/// Keeps the pins of each server in a file `SERVER.json` of one folder. Only the owner of a file can read it,
/// because a command line or an address may contain a key. The folder must be outside of every workspace, so
/// that no tool can change it.
#[derive(Clone, Debug)]
pub struct FilePins {
    folder: PathBuf,
}

/// The content of a file with the pins of a server.
#[derive(Serialize, Deserialize)]
struct File {
    format: u32,
    #[serde(flatten)]
    pins: ServerPins,
}

/// Version of the file format. Files of other versions cannot be read.
const FORMAT: u32 = 1;

impl FilePins {
    /// Uses `folder`, which is created when the first pins are stored.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    fn path(&self, server: &str) -> PathBuf {
        // Names of servers have no characters that mean something in a path.
        self.folder.join(format!("{server}.json"))
    }
}

impl Pins for FilePins {
    fn read(&self, server: &str) -> Result<Option<ServerPins>, PinError> {
        let path = self.path(server);
        // A person needs the path to repair or delete the file.
        let failed = |why: String| PinError::new(server, "read", format!("{}: {why}", path.display()));
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed(e.to_string())),
        };
        let file: File = serde_json::from_slice(&text).map_err(|e| failed(e.to_string()))?;
        match file.format {
            FORMAT => Ok(Some(file.pins)),
            other => Err(failed(format!("the format {other} is unknown"))),
        }
    }

    fn write(&self, server: &str, pins: &ServerPins) -> Result<(), PinError> {
        let file = File { format: FORMAT, pins: pins.clone() };
        let text = serde_json::to_vec_pretty(&file).map_err(|e| PinError::new(server, "stored", e))?;
        fs::create_dir_all(&self.folder)
            .and_then(|()| replace(&self.path(server), &text))
            .map_err(|e| PinError::new(server, "stored", e))
    }
}

/// Replaces a file as a whole, so that a crash leaves the old or the new content. Only the owner can read the
/// new file.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

/// Keeps pins in memory. They end with the process, so each process treats the tools of each server as at
/// first use.
#[derive(Debug, Default)]
pub struct InMemoryPins(Mutex<BTreeMap<String, ServerPins>>);

impl Pins for InMemoryPins {
    fn read(&self, server: &str) -> Result<Option<ServerPins>, PinError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(server).cloned())
    }

    fn write(&self, server: &str, pins: &ServerPins) -> Result<(), PinError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(server.to_owned(), pins.clone());
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::definition::tests::definition;

    #[test]
    fn file_pins_return_stored_pins_and_refuse_unreadable_files() {
        let folder = tempfile::tempdir().unwrap();
        let pins = FilePins::new(folder.path().join("mcp"));
        assert_eq!(pins.read("files").unwrap(), None);
        let first = ServerPins::first("npx files", &[definition("read"), definition("write")]);
        pins.write("files", &first).unwrap();
        assert_eq!(pins.read("files").unwrap(), Some(first));
        assert_eq!(fs::read_dir(folder.path().join("mcp")).unwrap().count(), 1, "no other file is left");
        let file = folder.path().join("mcp/files.json");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        for (text, why) in [("{\"format\":2,\"identity\":\"\",\"tools\":{}}", "format 2"), ("{", "EOF")] {
            fs::write(&file, text).unwrap();
            let refused = pins.read("files").unwrap_err().to_string();
            let begin = format!("'files' cannot be read: {}: ", file.display());
            assert!(refused.contains(why) && refused.contains(&begin), "{refused}");
        }
    }
}
