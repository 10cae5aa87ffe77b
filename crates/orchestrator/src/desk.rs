//! How a member at work speaks to its team: what is shared, what others are asked for, that it is alive.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{CallId, Json, MessageType, Role, RunId, SharedItem};
use tokio::sync::{mpsc, oneshot};

use crate::{board::Stale, vital::Vital};

/// Where members find their seat, by the run that they work in. Clones are the same desk.
///
/// Give a clone to the agents (or their tools) before they join the team.
#[derive(Clone, Default)]
pub struct Desk(Arc<Mutex<HashMap<RunId, Seat>>>);

impl Desk {
    /// A desk at which nobody sits.
    pub fn new() -> Self {
        Self::default()
    }

    /// The seat of the run that works for a team; none if it does not.
    pub fn seat(&self, run: &RunId) -> Option<Seat> {
        self.lock().get(run).cloned()
    }

    pub(crate) fn put(&self, run: RunId, seat: Seat) {
        self.lock().insert(run, seat);
    }

    pub(crate) fn clear(&self, run: &RunId) {
        self.lock().remove(run);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Seat>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one delegation in its team.
#[derive(Clone)]
pub struct Seat {
    pub(crate) call: CallId,
    pub(crate) role: Option<Role>,
    pub(crate) team: mpsc::Sender<Said>,
    pub(crate) vital: Vital,
}

/// Why the team did not do what a member wanted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SeatError {
    /// Somebody else wrote in between.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// Nobody did it.
    #[error("{reason}")]
    Refused {
        /// Why.
        reason: String,
    },
    /// The member's role does not allow it.
    #[error("the role {role} sends no {message_type}")]
    NotAllowed {
        /// The role.
        role: String,
        /// What was to be sent.
        message_type: MessageType,
    },
    /// The role hands work to others only.
    #[error("the role {role} hands no work to {to}")]
    NoPeer {
        /// The role.
        role: String,
        /// Who was to get it.
        to: String,
    },
    /// The team has ended, or has taken the work back.
    #[error("the team does not wait for this any more")]
    Over,
}

/// What a seat says to the team.
pub(crate) struct Said {
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
        reply: oneshot::Sender<Result<u64, SeatError>>,
    },
    Wait {
        key: String,
        newer_than: u64,
        reply: oneshot::Sender<SharedItem>,
    },
    Ask {
        to: String,
        task: String,
        /// Nothing else of the run goes on meanwhile.
        may_stop: bool,
        reply: oneshot::Sender<Result<String, SeatError>>,
    },
}

impl Seat {
    /// The entry that the team shares under `key`.
    ///
    /// # Errors
    /// [`SeatError::Over`], or the role may not.
    pub async fn read(&self, key: &str) -> Result<Option<SharedItem>, SeatError> {
        self.may(MessageType::ContextRequest)?;
        self.say(|reply| What::Read { key: key.to_owned(), reply }).await
    }

    /// Shares something. With `expected` only if the entry still has that version, 0 for none. Returns the new version.
    ///
    /// # Errors
    /// [`SeatError::Stale`], [`SeatError::Over`], or the role may not.
    pub async fn write(&self, key: &str, value: Json, expected: Option<u64>) -> Result<u64, SeatError> {
        self.may(MessageType::InformationShare)?;
        self.say(|reply| What::Write { key: key.to_owned(), value, expected, reply }).await?
    }

    /// Waits until the entry has a version above this one, 0 for any.
    ///
    /// # Errors
    /// [`SeatError::Over`], or the role may not.
    pub async fn wait(&self, key: &str, newer_than: u64) -> Result<SharedItem, SeatError> {
        self.may(MessageType::ContextRequest)?;
        self.say(|reply| What::Wait { key: key.to_owned(), newer_than, reply }).await
    }

    /// Asks a role, or a member by its id, to do something, and waits for the answer. The same question of the same
    /// delegation is asked once.
    ///
    /// Where those who are asked wait for a person, the run that asks is stopped here, and so is one that waits for an
    /// entry while the whole team rests: it is dropped, and goes on from its log once they have answered. An agent
    /// without a log begins anew, and finds what it asked for. So wait for nothing else beside it.
    ///
    /// # Errors
    /// [`SeatError::Refused`] with the chain that was refused or why it failed; [`SeatError::Over`]; or the role may not.
    pub async fn ask(&self, to: &str, task: &str) -> Result<String, SeatError> {
        self.ask_as(to, task, true).await
    }

    /// As [`ask`](Self::ask); `may_stop` says whether the run may be dropped here.
    pub(crate) async fn ask_as(&self, to: &str, task: &str, may_stop: bool) -> Result<String, SeatError> {
        self.may(MessageType::HelpRequest)?;
        if let Some(role) =
            self.role.as_ref().filter(|r| !r.peers.is_empty() && !r.peers.iter().any(|p| p == to))
        {
            return Err(SeatError::NoPeer { role: role.name.clone(), to: to.to_owned() });
        }
        self.say(|reply| What::Ask { to: to.to_owned(), task: task.to_owned(), may_stop, reply }).await?
    }

    /// Says that the member is alive. What its run emits says so, too.
    pub fn beat(&self) {
        self.vital.beat();
    }

    fn may(&self, message_type: MessageType) -> Result<(), SeatError> {
        self.beat();
        match &self.role {
            Some(role) if !role.messages.is_empty() && !role.messages.contains(&message_type) => {
                tracing::warn!(role = role.name, %message_type, "a member may not send this");
                Err(SeatError::NotAllowed { role: role.name.clone(), message_type })
            }
            _ => Ok(()),
        }
    }

    async fn say<T>(&self, what: impl FnOnce(oneshot::Sender<T>) -> What) -> Result<T, SeatError> {
        let (reply, answer) = oneshot::channel();
        let said = Said { call: self.call, what: what(reply) };
        self.team.send(said).await.map_err(|_| SeatError::Over)?;
        answer.await.map_err(|_| SeatError::Over)
    }
}
