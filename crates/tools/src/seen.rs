//! Which version of a file a session has seen, so that nobody overwrites what they do not know.

use std::{
    collections::{HashMap, VecDeque},
    fs::Metadata,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::UNIX_EPOCH,
};

use archon_types::{Json, SessionId, ToolError, ToolResult, metadata};
use serde::{Deserialize, Serialize};

/// Sessions that are remembered; of an older one files have to be read again.
const SESSIONS: usize = 1_000;

/// What tells one version of a file from another. Clocks are not compared, only what the file itself says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Version {
    bytes: u64,
    /// Nanoseconds since 1970, where the system says.
    modified: Option<u64>,
    /// The file's number and the time when anything of it changed, where the system says.
    identity: (u64, i64, i64),
}

impl Version {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;
            (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
        };
        #[cfg(not(unix))]
        let identity = (0, 0, 0);
        let since_epoch = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let modified = since_epoch.and_then(|since| u64::try_from(since.as_nanos()).ok());
        Self { bytes: metadata.len(), modified, identity }
    }
}

/// A version of a file as a result tells it.
#[derive(Serialize, Deserialize)]
struct SeenFile {
    file: PathBuf,
    version: Version,
}

/// The versions that each session has seen, by canonical path. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Arc<Mutex<Sessions>>);

#[derive(Debug, Default)]
struct Sessions {
    files: HashMap<SessionId, HashMap<PathBuf, Version>>,
    /// The oldest first.
    order: VecDeque<SessionId>,
}

impl Seen {
    /// The session knows this version now.
    pub(crate) fn note(&self, session: &SessionId, file: &Path, version: Version) {
        let mut sessions = self.lock();
        if !sessions.files.contains_key(session) {
            sessions.order.push_back(session.clone());
            if sessions.order.len() > SESSIONS
                && let Some(oldest) = sessions.order.pop_front()
            {
                sessions.files.remove(&oldest);
            }
        }
        sessions.files.entry(session.clone()).or_default().insert(file.to_owned(), version);
    }

    /// What a call's result tells of the version that it read or wrote.
    pub(crate) fn metadata(file: &Path, version: Version) -> Json {
        serde_json::to_value(SeenFile { file: file.to_owned(), version }).unwrap_or_default()
    }

    /// The session knows what an earlier call of it has told.
    pub(crate) fn recall(&self, session: &SessionId, result: &ToolResult) {
        let told = result.metadata.get(metadata::SEEN).cloned();
        if let Some(SeenFile { file, version }) = told.and_then(|told| serde_json::from_value(told).ok()) {
            self.note(session, &file, version);
        }
    }

    /// Whether the session may change the file; `shown` is its name in messages.
    ///
    /// # Errors
    /// It has not read the file, or another version of it.
    pub(crate) fn check(
        &self,
        session: &SessionId,
        file: &Path,
        version: Version,
        shown: &str,
    ) -> Result<(), ToolError> {
        match self.lock().files.get(session).and_then(|files| files.get(file)) {
            Some(seen) if *seen == version => Ok(()),
            Some(_) => Err(ToolError::InvalidArgs(format!(
                "'{shown}' was changed since it was read. It was not touched. Read it again with read_file, then \
                 make the change."
            ))),
            None => Err(ToolError::InvalidArgs(format!(
                "'{shown}' exists but has not been read in this session. It was not touched. Use read_file first, \
                 then make the change."
            ))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
