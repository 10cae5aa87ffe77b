//! Records the versions of files that each session has read, so that no unread version is overwritten.

use std::{
    collections::{HashMap, VecDeque},
    fs::Metadata,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::UNIX_EPOCH,
};

use archon_types::{Json, SessionId, ToolError, ToolResult, metadata};
use serde::{Deserialize, Serialize};

/// Maximum number of sessions that are remembered. The oldest session is forgotten first; it must read its
/// files again before it can change them.
const SESSIONS: usize = 1_000;

/// Identifies a version of a file by data of the file alone; its times are not compared with a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Version {
    bytes: u64,
    /// Time of the last change in nanoseconds since 1970, if the system has it.
    modified: Option<u64>,
    /// Inode number and time of the last status change, if the system has them.
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

/// A version of a file as stored in a result's metadata.
#[derive(Serialize, Deserialize)]
struct SeenFile {
    file: PathBuf,
    version: Version,
}

/// The versions of files that each session has read or written, by canonical path. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Arc<Mutex<Sessions>>);

#[derive(Debug, Default)]
struct Sessions {
    files: HashMap<SessionId, HashMap<PathBuf, Version>>,
    /// Sessions by age, the oldest first.
    order: VecDeque<SessionId>,
}

impl Seen {
    /// Records that the session knows this version of the file.
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

    /// Returns the metadata that record, in a result, the version of a file that was read or written.
    pub(crate) fn metadata(file: &Path, version: Version) -> Json {
        serde_json::to_value(SeenFile { file: file.to_owned(), version }).unwrap_or_default()
    }

    /// Records that the session knows the version of a file that is in the metadata of an earlier call's
    /// result.
    pub(crate) fn recall(&self, session: &SessionId, result: &ToolResult) {
        let seen = result.metadata.get(metadata::SEEN).and_then(|seen| SeenFile::deserialize(seen).ok());
        if let Some(SeenFile { file, version }) = seen {
            self.note(session, &file, version);
        }
    }

    /// Checks that the session has read this version of the file; `shown` is the file's name in messages.
    ///
    /// # Errors
    /// The session has not read the file, or has read another version.
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
                "File exists but has not been read in this session: '{shown}'. It was not touched. Use read_file to \
                 examine its content before you make changes."
            ))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
