//! Session stores: where sessions are kept for other programs to read.

use futures_core::future::BoxFuture;

use crate::{AgentId, Session, SessionId};

/// Keeps sessions. A session's truth is the logs of its runs; what is kept here is a copy in a shape that
/// other programs know.
pub trait SessionStore: Send + Sync {
    /// Keeps a session, in place of what was kept under its id.
    fn save<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<(), SessionError>>;

    /// Reads a session.
    fn load<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Session, SessionError>>;

    /// The ids of all sessions, the last saved first.
    fn list_ids(&self) -> BoxFuture<'_, Result<Vec<SessionId>, SessionError>>;

    /// Removes a session. A store that cannot, which is the default, says [`SessionError::Unsupported`].
    fn delete<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), SessionError>> {
        let _ = id;
        Box::pin(std::future::ready(Err(SessionError::Unsupported { action: "delete sessions" })))
    }

    /// The sessions of an agent, the last saved first. Sessions that cannot be read are left out, and so
    /// are those that are removed meanwhile.
    fn list_for_agent<'a>(&'a self, agent: &'a AgentId) -> BoxFuture<'a, Result<Vec<Session>, SessionError>> {
        Box::pin(async move {
            let mut sessions = Vec::new();
            for id in self.list_ids().await? {
                match self.load(&id).await {
                    Ok(session) if session.agent_id == *agent => sessions.push(session),
                    Ok(_) | Err(SessionError::Unknown { .. } | SessionError::Corrupt { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(sessions)
        })
    }
}

/// Why a session store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// There is no such session.
    #[error("no session {session}")]
    Unknown {
        /// The session that was asked for.
        session: SessionId,
    },
    /// Somebody else saves or removes the session.
    #[error("session {session} is in use by another process")]
    Locked {
        /// The session that is locked.
        session: SessionId,
    },
    /// The id cannot be used, for instance because it holds a path separator.
    #[error("{id:?} cannot be a session id: use letters, digits, '-', '_' and inner '.'")]
    BadId {
        /// The id.
        id: String,
    },
    /// What is kept is not a session.
    #[error("session {session} is damaged: {problem}")]
    Corrupt {
        /// The session.
        session: SessionId,
        /// What is wrong.
        problem: String,
    },
    /// The store does not do such things.
    #[error("this store cannot {action}")]
    Unsupported {
        /// What it was asked for.
        action: &'static str,
    },
    /// The storage failed: full, read-only, gone.
    #[error("cannot {action} {place}: {source}")]
    Storage {
        /// What was tried, for instance `write`.
        action: &'static str,
        /// Where.
        place: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl SessionError {
    /// What a person can do about it, in a line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Unknown { .. } | Self::BadId { .. } => {
                "`archon sessions list` shows the sessions there are"
            }
            Self::Locked { .. } => "wait for the other process, or stop it",
            Self::Corrupt { .. } => "remove what is kept; the runs' own logs still hold the session",
            Self::Unsupported { .. } => "use a store that can",
            Self::Storage { .. } => "check that the directory exists, is writable and has free space",
        }
    }
}
