//! A session store that keeps each session in its own file: `{dir}/{session}.json`, indented JSON, without
//! an index.
//!
//! A file is written under another name and then renamed, so a reader sees either the old file or the new
//! one. The lock is on another file, since a lock on a replaced file has no effect.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use archon_types::{BoxFuture, JournalError, RunId, SessionId};
use archon_views::{Session, SessionError, SessionStore};

use crate::{
    blocking::blocking,
    files,
    lock::{PATIENCE, RunLock, patience},
    rules::check_id,
};

/// A store that keeps each session in a file in one directory. Clones share the directory.
///
/// ```
/// let store = archon_store::FileSystemSessionStore::new("data/sessions");
/// ```
#[derive(Clone, Debug)]
pub struct FileSystemSessionStore {
    dir: PathBuf,
}

impl FileSystemSessionStore {
    /// Uses `dir`, which is created with the first session.
    pub fn new(dir: impl AsRef<Path>) -> Self {
        Self { dir: dir.as_ref().to_owned() }
    }

    /// Returns the path of a session's file, even if it does not exist.
    ///
    /// # Errors
    /// [`SessionError::BadId`] if the id cannot be a file name.
    pub fn path(&self, id: &SessionId) -> Result<PathBuf, SessionError> {
        check_id(&as_run(id)).map_err(|error| session_error(error, id))?;
        Ok(self.dir.join(format!("{id}.json")))
    }

    fn save_now(&self, session: &Session) -> Result<(), JournalError> {
        let path = self.dir.join(format!("{}.json", session.session_id));
        let _lock = RunLock::take(&self.dir, &as_run(&session.session_id), &mut patience(PATIENCE))?;
        let text = serde_json::to_string_pretty(session)
            .map_err(|error| files::storage("write", &path)(error.into()))?;
        replace(&path, &text)
    }

    fn load_now(&self, id: &SessionId) -> Result<Session, SessionError> {
        let path = self.path(id)?;
        let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => SessionError::Unknown { session: id.clone() },
            _ => session_error(files::storage("read", &path)(error), id),
        })?;
        serde_json::from_str(&text)
            .map_err(|error| SessionError::Corrupt { session: id.clone(), problem: error.to_string() })
    }

    fn list_now(&self) -> Result<Vec<SessionId>, JournalError> {
        let mut found = Vec::new();
        for entry in files::entries(&self.dir)? {
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".json")).map(SessionId::from);
            // A file that disappears meanwhile was removed, so it is skipped.
            if let (Some(id), Ok(about)) = (id, entry.metadata())
                && check_id(&as_run(&id)).is_ok()
            {
                found.push((about.modified().ok(), id));
            }
        }
        found.sort_by(|a, b| b.cmp(a));
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }

    fn delete_now(&self, id: &SessionId) -> Result<(), SessionError> {
        let path = self.path(id)?;
        let unknown = || SessionError::Unknown { session: id.clone() };
        if !path.exists() {
            return Err(unknown());
        }
        let _lock = RunLock::take(&self.dir, &as_run(id), &mut patience(PATIENCE))
            .map_err(|error| session_error(error, id))?;
        fs::remove_file(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => unknown(),
            _ => session_error(files::storage("remove", &path)(error), id),
        })
    }

    /// Runs file operations on a thread that may block.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, JournalError> {
        let store = self.clone();
        blocking(move || Ok(work(&store))).await
    }
}

impl SessionStore for FileSystemSessionStore {
    /// Saves a session. Fails with [`SessionError::Locked`] while another process saves or removes it.
    fn save<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<(), SessionError>> {
        Box::pin(async move {
            let id = &session.session_id;
            self.path(id)?;
            let session = session.clone();
            let saved = self.work(move |store| store.save_now(&session)).await;
            saved.and_then(|saved| saved).map_err(|error| session_error(error, id))
        })
    }

    fn load<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Session, SessionError>> {
        Box::pin(async move {
            let wanted = id.clone();
            let loaded = self.work(move |store| store.load_now(&wanted)).await;
            loaded.map_err(|error| session_error(error, id))?
        })
    }

    /// Returns the ids of all sessions, last written first.
    fn list_ids(&self) -> BoxFuture<'_, Result<Vec<SessionId>, SessionError>> {
        Box::pin(async move {
            let listed = self.work(Self::list_now).await;
            listed.and_then(|listed| listed).map_err(|error| session_error(error, &SessionId::new("")))
        })
    }

    fn delete<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), SessionError>> {
        Box::pin(async move {
            let wanted = id.clone();
            let deleted = self.work(move |store| store.delete_now(&wanted)).await;
            deleted.map_err(|error| session_error(error, id))?
        })
    }
}

/// Replaces the content of a file by a text, entirely or not at all.
fn replace(path: &Path, text: &str) -> Result<(), JournalError> {
    let new = path.with_extension("json.tmp");
    let write = || {
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    if let Err(error) = write() {
        let _ = fs::remove_file(&new);
        return Err(files::storage("write", path)(error));
    }
    path.parent().map_or(Ok(()), files::sync_directory)
}

/// Returns the id of a session as the id of a run, since the same rules and locks for file names apply to
/// both.
fn as_run(id: &SessionId) -> RunId {
    RunId::new(id.as_str())
}

/// Turns an error about a file into one about a session.
fn session_error(error: JournalError, id: &SessionId) -> SessionError {
    match error {
        JournalError::Locked { .. } => SessionError::Locked { session: id.clone() },
        JournalError::BadId { id } => SessionError::BadId { id },
        JournalError::Storage { action, place, source } => SessionError::Storage { action, place, source },
        other => SessionError::Corrupt { session: id.clone(), problem: other.to_string() },
    }
}
