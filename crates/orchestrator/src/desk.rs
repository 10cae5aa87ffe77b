//! A member's handle to its team: reads and writes shared entries, asks other members, sends heartbeats.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{CallId, CallsUnderWay, Json, MessageType, RunId, SharedItem, TeamRole};
use tokio::sync::{mpsc, oneshot};

use crate::{board::Stale, heartbeat::HeartbeatState};

/// A registry in which the run of a working member finds its [`TeamHandle`], by the id of the run. Clones share one
/// registry.
///
/// Give a clone to the agents, or to their tools, before they join the team.
///
/// ```
/// use archon_orchestrator::{TeamDesk, TeamHandleError};
/// use archon_types::RunId;
///
/// /// A tool of a member asks another member.
/// async fn ask_ada(desk: &TeamDesk, run: &RunId) -> Result<Option<String>, TeamHandleError> {
///     match desk.seat(run) {
///         Some(team) => team.ask("researcher", "When was the first moon landing?").await.map(Some),
///         None => Ok(None),
///     }
/// }
/// ```
#[derive(Clone, Default)]
pub struct TeamDesk(Arc<Mutex<HashMap<RunId, TeamHandle>>>);

impl TeamDesk {
    /// Creates a desk without handles.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the team handle of a member's run; `None` for a run that does not work for a team.
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

/// Handle with which a member's run reaches its team during one delegation.
#[derive(Clone)]
pub struct TeamHandle {
    pub(crate) call: CallId,
    pub(crate) role: Option<TeamRole>,
    pub(crate) team: mpsc::Sender<DeskRequest>,
    pub(crate) heartbeat: HeartbeatState,
}

/// Reason why the team did not do what a member asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TeamHandleError {
    /// The shared entry has another version than the writer expected.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The team refused the request, or the member that was asked failed.
    #[error("{reason}")]
    Refused {
        /// The reason, in one line.
        reason: String,
    },
    /// The member's role may not send this type of message.
    #[error("the role {role} may not send messages of type {message_type}")]
    NotAllowed {
        /// Name of the role.
        role: String,
        /// The type of the message.
        message_type: MessageType,
    },
    /// The member's role may ask only certain roles or members; the asked role or member is not among these.
    #[error("the role {role} may not give work to {to}")]
    NoPeer {
        /// Name of the role.
        role: String,
        /// The role or the member that was asked.
        to: String,
    },
    /// The team's run has ended, or the member's delegation was revoked.
    #[error("the run of the team has ended, or the delegation was revoked")]
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
        /// The calls of the asking run that are under way; `None` if the run must not be dropped.
        under_way: Option<CallsUnderWay>,
        reply: oneshot::Sender<Result<String, TeamHandleError>>,
    },
}

impl TeamHandle {
    /// Returns the shared entry with this key.
    ///
    /// # Errors
    /// [`TeamHandleError::Over`], or [`TeamHandleError::NotAllowed`] for the member's role.
    pub async fn read(&self, key: &str) -> Result<Option<SharedItem>, TeamHandleError> {
        self.may(MessageType::ContextRequest)?;
        self.request(|reply| What::Read { key: key.to_owned(), reply }).await
    }

    /// Writes a shared entry and returns its new version. With `expected`, the write fails unless the
    /// entry still has that version; 0 means that there must be no entry yet.
    ///
    /// # Errors
    /// [`TeamHandleError::Stale`], [`TeamHandleError::Over`], [`TeamHandleError::Refused`] for an invalid
    /// key, or [`TeamHandleError::NotAllowed`] for the member's role.
    pub async fn write(&self, key: &str, value: Json, expected: Option<u64>) -> Result<u64, TeamHandleError> {
        self.may(MessageType::InformationShare)?;
        self.request(|reply| What::Write { key: key.to_owned(), value, expected, reply }).await?
    }

    /// Waits until the shared entry has a version above `newer_than` (0 for any), and returns the entry.
    ///
    /// # Errors
    /// [`TeamHandleError::Over`], or [`TeamHandleError::NotAllowed`] for the member's role.
    pub async fn wait(&self, key: &str, newer_than: u64) -> Result<SharedItem, TeamHandleError> {
        self.may(MessageType::ContextRequest)?;
        self.request(|reply| What::Wait { key: key.to_owned(), newer_than, reply }).await
    }

    /// Asks a role, or a member by its id, to do a task, and returns the answer. If one delegation asks
    /// the same question twice, the team starts only one request.
    ///
    /// Do nothing else while you wait for the answer. If the asked members wait for a person, the team may drop the
    /// run that asks, and resume it from its log after the person's answer. An agent without a log then starts again
    /// from the beginning, and its repeated request finds the earlier one. The same holds for [`wait`](Self::wait)
    /// while the team is suspended.
    ///
    /// # Errors
    /// [`TeamHandleError::Refused`] with the chain of delegations or the failure, [`TeamHandleError::Over`],
    /// or [`TeamHandleError::NotAllowed`] or [`TeamHandleError::NoPeer`] for the member's role.
    pub async fn ask(&self, to: &str, task: &str) -> Result<String, TeamHandleError> {
        self.ask_during_calls(to, task, Some(CallsUnderWay::new(1))).await
    }

    /// Does the same as [`ask`](Self::ask) during other tool calls. The team may drop the run only if all
    /// tool calls under way wait for the team, and never if `under_way` is `None`.
    pub(crate) async fn ask_during_calls(
        &self,
        to: &str,
        task: &str,
        under_way: Option<CallsUnderWay>,
    ) -> Result<String, TeamHandleError> {
        self.may(MessageType::HelpRequest)?;
        let is_refused =
            |role: &&TeamRole| !role.peers.is_empty() && !role.peers.iter().any(|peer| peer == to);
        if let Some(role) = self.role.as_ref().filter(is_refused) {
            return Err(TeamHandleError::NoPeer { role: role.name.clone(), to: to.to_owned() });
        }
        self.request(|reply| What::Ask { to: to.to_owned(), task: task.to_owned(), under_way, reply }).await?
    }

    /// Sends a heartbeat. Every event of the member's run counts as a heartbeat, too.
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
        let request = DeskRequest { call: self.call, what: what(reply) };
        self.team.send(request).await.map_err(|_| TeamHandleError::Over)?;
        answer.await.map_err(|_| TeamHandleError::Over)
    }
}
