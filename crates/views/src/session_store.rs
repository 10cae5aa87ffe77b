//! Session stores, which store sessions in a format that other programs can read.

use archon_types::{AgentId, BoxFuture, SessionId};

use crate::session::Session;

/// Stores sessions: copies in a format that other programs read too. Only the logs of the runs are the truth.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::{BoxFuture, SessionId};
/// use archon_views::{Session, SessionError, SessionStore};
///
/// /// Prints what is saved in another store. The methods with a default should be passed on too.
/// struct Printed(Arc<dyn SessionStore>);
///
/// impl SessionStore for Printed {
///     fn save<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<(), SessionError>> {
///         println!("agent {}", session.agent_id);
///         self.0.save(session)
///     }
///
///     fn load<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Session, SessionError>> {
///         self.0.load(id)
///     }
///
///     fn list_ids(&self) -> BoxFuture<'_, Result<Vec<SessionId>, SessionError>> {
///         self.0.list_ids()
///     }
/// }
/// ```
pub trait SessionStore: Send + Sync {
    /// Stores a session, which replaces an earlier version.
    fn save<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<(), SessionError>>;

    /// Returns the session with this id.
    fn load<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Session, SessionError>>;

    /// Returns the ids of all sessions, the last saved session first.
    fn list_ids(&self) -> BoxFuture<'_, Result<Vec<SessionId>, SessionError>>;

    /// Deletes a session. Default: [`SessionError::Unsupported`].
    fn delete<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), SessionError>> {
        let _ = id;
        Box::pin(std::future::ready(Err(SessionError::Unsupported { action: "delete sessions" })))
    }

    /// Returns the sessions of an agent, the last saved session first. Sessions that cannot be read, or are
    /// deleted meanwhile, are left out.
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

/// The error of a session store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// No session has this id.
    #[error("session {session} does not exist")]
    Unknown {
        /// The session that was asked for.
        session: SessionId,
    },
    /// Another process saves or deletes the session.
    #[error("session {session} is in use by another process")]
    Locked {
        /// The session that is locked.
        session: SessionId,
    },
    /// The text cannot be used as a session id, for instance because it has a path separator.
    #[error("{id:?} cannot be a session id: use letters, digits, '-', '_' and inner '.'")]
    BadId {
        /// The text.
        id: String,
    },
    /// The stored data is not a session.
    #[error("session {session} is damaged: {problem}")]
    Corrupt {
        /// The session.
        session: SessionId,
        /// The damage.
        problem: String,
    },
    /// The store does not support the action.
    #[error("this store cannot {action}")]
    Unsupported {
        /// The action.
        action: &'static str,
    },
    /// The storage failed, for instance because it is full, read-only or missing.
    #[error("cannot {action} {place}: {source}")]
    Storage {
        /// The action, for instance `write`.
        action: &'static str,
        /// The file or directory.
        place: String,
        /// The cause.
        source: std::io::Error,
    },
}

impl SessionError {
    /// Returns advice for a person on how to deal with the error, as one line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Unknown { .. } | Self::BadId { .. } => "`archon sessions list` lists the existing sessions",
            Self::Locked { .. } => "wait for the other process, or stop it",
            Self::Corrupt { .. } => {
                "delete the stored session; the logs of its runs still have the conversation"
            }
            Self::Unsupported { .. } => "use a store that supports this action",
            Self::Storage { .. } => "check that the directory exists, is writable and has free space",
        }
    }
}
