//! The one error of everybody who starts, watches, answers, resumes or deletes runs.

use std::error::Error as StdError;

use crate::{AgentId, JournalError, RunId, RunKind, RunRefused, RunStatus};

/// Why a run was not started, resumed, answered, forked or deleted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The run cannot be resumed as asked.
    #[error(transparent)]
    Refused(#[from] RunRefused),
    /// There is no such run.
    #[error("no run {run}{}", nearest_text(nearest))]
    UnknownRun {
        /// The id that was given.
        run: RunId,
        /// Ids of runs that are there and look most like it, the nearest first.
        nearest: Vec<RunId>,
    },
    /// Runs of this kind cannot do that.
    #[error("run {run} is of kind {kind}, which cannot {action}")]
    Unsupported {
        /// The run.
        run: RunId,
        /// Its kind.
        kind: RunKind,
        /// The action, as in "be steered".
        action: &'static str,
        /// The way that works instead, in a line.
        instead: &'static str,
    },
    /// Runs of this kind cannot have that.
    #[error("runs of kind {kind} cannot have {what}")]
    NotForKind {
        /// The kind of the run.
        kind: RunKind,
        /// The thing, as in "tools for one run".
        what: &'static str,
        /// The way that works instead, in a line.
        instead: &'static str,
    },
    /// No agent is registered for the run.
    #[error("no agent {agent} is registered for runs of kind {kind}{}", known_text(known))]
    NoAgent {
        /// The agent that was named, by the caller or in the run's log.
        agent: AgentId,
        /// The kind of the run.
        kind: RunKind,
        /// The registered agents, each as `KIND NAME`.
        known: Vec<String>,
    },
    /// The idempotency key belongs to a run that was asked for otherwise.
    #[error("the key {key:?} started run {run}, with another {differs}")]
    KeyUsed {
        /// The key.
        key: String,
        /// The run that it started.
        run: RunId,
        /// What differs, as in "prompt".
        differs: &'static str,
    },
    /// The newest run of the session works or waits: a message beside it would be missing from the conversation.
    #[error("the session's run {run} is {status}")]
    SessionBusy {
        /// The run.
        run: RunId,
        /// Its status.
        status: RunStatus,
    },
    /// There is nothing to work on.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The agent refused, or its run ended without an outcome.
    #[error("{source}")]
    Agent {
        /// The error of the agent.
        source: Box<dyn StdError + Send + Sync>,
        /// The remedy, in a line.
        advice: String,
    },
}

impl RunError {
    /// An error of an agent's own, with its remedy.
    pub fn agent(source: impl StdError + Send + Sync + 'static, advice: impl Into<String>) -> Self {
        Self::Agent { source: Box::new(source), advice: advice.into() }
    }

    /// The remedy, in a line.
    pub fn advice(&self) -> &str {
        match self {
            Self::Journal(error) => error.advice(),
            Self::Refused(refused) => refused.advice(),
            Self::UnknownRun { .. } => "`archon runs list` shows the runs there are",
            Self::Unsupported { instead, .. } | Self::NotForKind { instead, .. } => instead,
            Self::NoAgent { .. } => "register the agent that started the run, under the same id",
            Self::KeyUsed { .. } => "use a new key for each request",
            Self::SessionBusy { status: RunStatus::Suspended, .. } => {
                "answer its questions, cancel it, or branch: `WhenBusy::Branch`"
            }
            Self::SessionBusy { .. } => {
                "queue the message: `WhenBusy::Queue`; wait until the run has ended; or branch: `WhenBusy::Branch`"
            }
            Self::EmptyPrompt => "say what is to be done",
            Self::Agent { advice, .. } => advice,
        }
    }
}

fn nearest_text(nearest: &[RunId]) -> String {
    match nearest {
        [] => String::new(),
        nearest => {
            let names: Vec<_> = nearest.iter().map(RunId::as_str).collect();
            format!("; the nearest are {}", names.join(", "))
        }
    }
}

fn known_text(known: &[String]) -> String {
    match known {
        [] => String::new(),
        known => format!("; there is: {}", known.join(", ")),
    }
}
