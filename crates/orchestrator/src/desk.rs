//! A member's handle to its team: reads and writes shared entries, asks other members, and gives
//! signs of life.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{CallId, CallsUnderWay, Json, MessageType, Role, RunId, SharedItem};
use tokio::sync::{mpsc, oneshot};

use crate::{board::Stale, heartbeat::HeartbeatState};

/// Registry of the seats of members at work, by run. Clones share one registry.
///
/// Give a clone to the agents (or their tools) before they join the team.
#[derive(Clone, Default)]
pub struct TeamDesk(Arc<Mutex<HashMap<RunId, TeamHandle>>>);

impl TeamDesk {
    /// Creates a desk without seats.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the seat of a run that works for a team; `None` for any other run.
    pub fn seat(&self, run: &RunId) -> Option<TeamHandle> {
        self.lock().get(run).cloned()
    }

    pub(crate) fn put(&self, run: RunId, seat: TeamHandle) {
        self.lock().insert(run, seat);
    }

    pub(crate) fn clear(&self, run: &RunId) {
        self.lock().remove(run);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, TeamHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handle of one delegation to its team.
#[derive(Clone)]
pub struct TeamHandle {
    pub(crate) call: CallId,
    pub(crate) role: Option<Role>,
    pub(crate) team: mpsc::Sender<DeskRequest>,
    pub(crate) heartbeat: HeartbeatState,
}

/// The reason why the team did not do what a member asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TeamHandleError {
    /// Another member wrote the entry in between.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The team refused it, or the member that was asked failed.
    #[error("{reason}")]
    Refused {
        /// The reason.
        reason: String,
    },
    /// The member's role may not send this kind of message.
    #[error("the role {role} may not send {message_type}")]
    NotAllowed {
        /// The role.
        role: String,
        /// The kind of message.
        message_type: MessageType,
    },
    /// The member's role may only ask certain others, and not this one.
    #[error("the role {role} may not give work to {to}")]
    NoPeer {
        /// The role.
        role: String,
        /// The role or member that was asked.
        to: String,
    },
    /// The run has ended, or the delegation was taken back.
    #[error("the team does not wait for this any more")]
    Over,
}

/// A request of a member to its team.
pub(crate) struct DeskRequest {
    pub(crate) call: CallId,
    pub(crate) what: What,
}

pub(crate) enum What {
    Read {
        key: String,
        reply: oneshot::Sender<Option<SharedItem>>,
    },
    Write {
        key: String,
        value: Json,
        expected: Option<u64>,
        reply: oneshot::Sender<Result<u64, TeamHandleError>>,
    },
    Wait {
        key: String,
        newer_than: u64,
        reply: oneshot::Sender<SharedItem>,
    },
    Ask {
        to: String,
        task: String,
        /// The calls of the asker's run that are under way. `None`: the run must not be dropped.
        under_way: Option<CallsUnderWay>,
        reply: oneshot::Sender<Result<String, TeamHandleError>>,
    },
}

impl TeamHandle {
    /// Returns the entry that the team shares under `key`.
    ///
    /// # Errors
    /// [`TeamHandleError::Over`], or the member's role does not allow it.
    pub async fn read(&self, key: &str) -> Result<Option<SharedItem>, TeamHandleError> {
        self.may(MessageType::ContextRequest)?;
        self.request(|reply| What::Read { key: key.to_owned(), reply }).await
    }

    /// Writes a shared entry and returns its new version. With `expected` it writes only if the
    /// entry still has that version; 0 means that there is no entry yet.
    ///
    /// # Errors
    /// [`TeamHandleError::Stale`], [`TeamHandleError::Over`], or the member's role does not allow it.
    pub async fn write(&self, key: &str, value: Json, expected: Option<u64>) -> Result<u64, TeamHandleError> {
        self.may(MessageType::InformationShare)?;
        self.request(|reply| What::Write { key: key.to_owned(), value, expected, reply }).await?
    }

    /// Waits until the entry has a version above `newer_than`; with 0 any version does.
    ///
    /// # Errors
    /// [`TeamHandleError::Over`], or the member's role does not allow it.
    pub async fn wait(&self, key: &str, newer_than: u64) -> Result<SharedItem, TeamHandleError> {
        self.may(MessageType::ContextRequest)?;
        self.request(|reply| What::Wait { key: key.to_owned(), newer_than, reply }).await
    }

    /// Asks a role, or a member by its id, to do a task, and waits for the answer. The same
    /// question of the same delegation is asked once.
    ///
    /// While the others wait for a person, this run may be dropped here, as may a run that waits
    /// for an entry while the whole team is suspended. It is resumed from its log after the answer;
    /// an agent without a log begins anew and finds its request again. Therefore do nothing else
    /// concurrently with this wait.
    ///
    /// # Errors
    /// [`TeamHandleError::Refused`] with the chain of delegations or the failure; [`TeamHandleError::Over`]; or
    /// the member's role does not allow it.
    pub async fn ask(&self, to: &str, task: &str) -> Result<String, TeamHandleError> {
        self.ask_during_calls(to, task, Some(CallsUnderWay::new(1))).await
    }

    /// As [`ask`](Self::ask). The run may be dropped only if every call under way waits for the team, and
    /// never without `under_way`.
    pub(crate) async fn ask_during_calls(
        &self,
        to: &str,
        task: &str,
        under_way: Option<CallsUnderWay>,
    ) -> Result<String, TeamHandleError> {
        self.may(MessageType::HelpRequest)?;
        if let Some(role) =
            self.role.as_ref().filter(|r| !r.peers.is_empty() && !r.peers.iter().any(|p| p == to))
        {
            return Err(TeamHandleError::NoPeer { role: role.name.clone(), to: to.to_owned() });
        }
        self.request(|reply| What::Ask { to: to.to_owned(), task: task.to_owned(), under_way, reply }).await?
    }

    /// Gives a sign of life. Every event that the member's run emits gives one, too.
    pub fn beat(&self) {
        self.heartbeat.beat();
    }

    fn may(&self, message_type: MessageType) -> Result<(), TeamHandleError> {
        self.beat();
        match &self.role {
            Some(role) if !role.messages.is_empty() && !role.messages.contains(&message_type) => {
                tracing::warn!(role = role.name, %message_type, "a member may not send this");
                Err(TeamHandleError::NotAllowed { role: role.name.clone(), message_type })
            }
            _ => Ok(()),
        }
    }

    async fn request<T>(&self, what: impl FnOnce(oneshot::Sender<T>) -> What) -> Result<T, TeamHandleError> {
        let (reply, answer) = oneshot::channel();
        let said = DeskRequest { call: self.call, what: what(reply) };
        self.team.send(said).await.map_err(|_| TeamHandleError::Over)?;
        answer.await.map_err(|_| TeamHandleError::Over)
    }
}
