//! Agreements to projects' files, skills, hooks and MCP servers, each by path and content.
//!
//! The agreements are stored in `trusted.toml` in the data folder. An agreement holds for exactly the text
//! that a person saw: a file or a server that was changed since, or has another path, needs a new agreement.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{failure::Failure, own_file};

#[derive(Clone, Debug)]
pub(crate) struct Agreements(PathBuf);

/// The content of the store: the paths of files that a person agreed to, each with the SHA-256 of the text
/// that the file then had.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct Document {
    files: BTreeMap<String, String>,
    /// The paths of files with MCP servers. Each path has the agreed servers by name, with the SHA-256 of the
    /// agreed entries.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    servers: BTreeMap<String, BTreeMap<String, String>>,
    /// The paths of files with hooks, each with the SHA-256 of the file and of the scripts that it names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    hooks: BTreeMap<String, String>,
    /// The folders of skills, each with the SHA-256 of its files.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    skills: BTreeMap<String, String>,
}

/// The tables of agreements that have a path and a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgreedTable {
    /// Files by their texts: settings and instructions.
    Files,
    /// Files with hooks.
    Hooks,
    /// Folders of skills.
    Skills,
}

impl Document {
    fn table(&mut self, table: AgreedTable) -> &mut BTreeMap<String, String> {
        match table {
            AgreedTable::Files => &mut self.files,
            AgreedTable::Hooks => &mut self.hooks,
            AgreedTable::Skills => &mut self.skills,
        }
    }
}

impl Agreements {
    pub(crate) fn in_folder(data_dir: &Path) -> Self {
        Self(data_dir.join("trusted.toml"))
    }

    /// Returns true if a person agreed to this file with this text.
    pub(crate) fn hold(&self, file: &Path, text: &str) -> Result<bool, Failure> {
        Ok(self.hash(AgreedTable::Files, file)?.is_some_and(|agreed| agreed == sha256(text)))
    }

    pub(crate) fn add(&self, file: &Path, text: &str) -> Result<(), Failure> {
        self.add_hash(AgreedTable::Files, file, sha256(text))
    }

    /// Returns the hash with which a person agreed to this path; `None` without an agreement.
    pub(crate) fn hash(&self, table: AgreedTable, path: &Path) -> Result<Option<String>, Failure> {
        let Ok(name) = name(path) else { return Ok(None) };
        Ok(self.read()?.table(table).remove(&name))
    }

    pub(crate) fn add_hash(&self, table: AgreedTable, path: &Path, hash: String) -> Result<(), Failure> {
        let mut document = self.read()?;
        document.table(table).insert(name(path)?, hash);
        self.write(&document)
    }

    /// Removes an agreement; returns false if there was none.
    pub(crate) fn remove(&self, file: &Path) -> Result<bool, Failure> {
        let mut document = self.read()?;
        let name = name(file)?;
        let mut was_there = false;
        for table in [AgreedTable::Files, AgreedTable::Hooks, AgreedTable::Skills] {
            let agreed = document.table(table);
            // Also by the printed path, since the folder may not exist any more.
            let removed = agreed.remove(&name).or_else(|| agreed.remove(file.to_str()?));
            was_there |= removed.is_some();
        }
        if was_there {
            self.write(&document)?;
        }
        Ok(was_there)
    }

    /// Returns the agreed paths of a table, each with its agreed SHA-256.
    pub(crate) fn all(&self, table: AgreedTable) -> Result<BTreeMap<String, String>, Failure> {
        Ok(std::mem::take(self.read()?.table(table)))
    }

    /// Returns the servers that a person agreed to: for each file, the names of its servers, each with the SHA-256 of
    /// its agreed entry.
    pub(crate) fn servers(&self) -> Result<BTreeMap<String, BTreeMap<String, String>>, Failure> {
        Ok(self.read()?.servers)
    }

    fn read(&self) -> Result<Document, Failure> {
        let text = own_file::read(&self.0).map_err(|e| self.failed("read", &e))?.unwrap_or_default();
        toml::from_str(&text).map_err(|e| self.failed("read", &io::Error::other(e.message().to_owned())))
    }

    /// Replaces the store atomically.
    fn write(&self, document: &Document) -> Result<(), Failure> {
        let text = toml::to_string_pretty(document).map_err(io::Error::other);
        let written = text.and_then(|text| own_file::replace(&self.0, &format!("{ABOUT}\n\n{text}")));
        written.map_err(|e| self.failed("write", &e))
    }

    fn failed(&self, what: &str, e: &io::Error) -> Failure {
        let what = format!("cannot {what} {}: {e}", self.0.display());
        Failure::failed(
            what,
            "fix the file or its folder, or move it away and agree again with `archon trust`",
        )
    }
}

#[cfg(all(unix, feature = "mcp"))]
impl Agreements {
    /// Returns true if a person agreed to the server with this name in this file, with this entry.
    pub(crate) fn hold_server(&self, file: &Path, server: &str, entry: &str) -> Result<bool, Failure> {
        let Ok(file) = name(file) else { return Ok(false) };
        let document = self.read()?;
        let agreed = document.servers.get(&file).and_then(|servers| servers.get(server));
        Ok(agreed.is_some_and(|agreed| *agreed == sha256(entry)))
    }

    pub(crate) fn add_server(&self, file: &Path, server: &str, entry: &str) -> Result<(), Failure> {
        let mut document = self.read()?;
        document.servers.entry(name(file)?).or_default().insert(server.to_owned(), sha256(entry));
        self.write(&document)
    }

    /// Removes the agreement to a server; returns false if there was none.
    #[cfg(feature = "setup")]
    pub(crate) fn remove_server(&self, file: &Path, server: &str) -> Result<bool, Failure> {
        let (mut document, file) = (self.read()?, name(file)?);
        let Some(servers) = document.servers.get_mut(&file) else { return Ok(false) };
        let was_there = servers.remove(server).is_some();
        if servers.is_empty() {
            document.servers.remove(&file);
        }
        if was_there {
            self.write(&document)?;
        }
        Ok(was_there)
    }
}

const ABOUT: &str = "# Files, hooks and skills of projects that were agreed to with `archon trust`, servers that were agreed to with\n\
                     # `archon mcp approve`, and the SHA-256 of each.";

/// Returns the file's path, with its folder resolved without symbolic links.
fn name(file: &Path) -> Result<String, Failure> {
    let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
    let path =
        folder.zip(file.file_name()).map_or_else(|| file.to_owned(), |(folder, name)| folder.join(name));
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let what = format!("{} cannot be agreed to: its path is not UTF-8", file.display());
        Failure::usage(what, "set its settings by flags, or rename the folder")
    })
}

/// Returns the SHA-256 of a text in hexadecimal digits.
pub(crate) fn sha256(text: &str) -> String {
    hmac_sha256::Hash::hash(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
