//! The life of one tool call: requested, started, finished, with exactly one result at the end.

use std::{borrow::Cow, sync::Arc};

use archon_types::{ApprovalRequest, CallId, Effect, Json, Timestamp, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};

/// A tool call of the turn that is under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallState {
    /// The call's place in the run.
    pub id: CallId,
    /// What the model asked for.
    pub call: Arc<ToolCall>,
    /// How far it is.
    pub stage: CallStage,
    /// To what a person agreed, if one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<Consent>,
    /// The run that it started had a log, and nobody agreed to begin it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_begun: bool,
}

/// To what a person agreed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Consent {
    /// [`ApprovalRequest::binding`] of the question: the tool as it was then, and the arguments that were asked about.
    pub binding: String,
    /// The arguments that the person wants instead of the model's. They are what was agreed to, of the tool that the
    /// question was bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Json>,
    /// The arguments that were asked about, where they were changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Json>,
}

/// How far a tool call is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallStage {
    /// Nothing happened yet, or what happened may be repeated.
    Requested {
        /// Starts that a crash cut off.
        attempts: u32,
    },
    /// It runs.
    Started {
        /// Which start, from 0.
        attempt: u32,
        /// What a second run would do.
        effect: Effect,
    },
    /// It failed, and it is tried again.
    Waiting {
        /// Starts so far.
        attempts: u32,
        /// When it is tried again.
        due: Timestamp,
        /// How it failed: its result if there is no other try after all.
        result: Arc<ToolResult>,
    },
    /// A person is asked about it, or about what the run that it started wants to do.
    Asked {
        /// Starts so far.
        attempts: u32,
        /// The open questions; more than one only where they came up from a run below.
        requests: Vec<ApprovalRequest>,
        /// Questions about it that nobody answered in time and that were put once more.
        #[serde(default)]
        escalated: bool,
    },
    /// It will not run, and this is to be its result.
    Settled {
        /// The result.
        result: Arc<ToolResult>,
        /// A person gave the result; else it was refused.
        replied: bool,
    },
    /// It was started, the process died, and nobody knows whether it took effect.
    InDoubt {
        /// Starts so far.
        #[serde(default)]
        attempts: u32,
    },
    /// It has its result.
    Finished {
        /// The result.
        result: Arc<ToolResult>,
        /// When it was there.
        at: Timestamp,
    },
}

impl CallState {
    pub(crate) fn requested(id: CallId, call: impl Into<Arc<ToolCall>>) -> Self {
        Self {
            id,
            call: call.into(),
            stage: CallStage::Requested { attempts: 0 },
            consent: None,
            is_begun: false,
        }
    }

    /// The result and when it was there.
    pub fn result(&self) -> Option<(&ToolResult, Timestamp)> {
        match &self.stage {
            CallStage::Finished { result, at } => Some((result, *at)),
            _ => None,
        }
    }

    /// Whether the call may be worked on at `now`.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        match &self.stage {
            CallStage::Finished { .. } | CallStage::Asked { .. } | CallStage::Settled { .. } => false,
            CallStage::Waiting { due, .. } => *due <= now,
            _ => true,
        }
    }

    /// The call failed and is tried again at `due`.
    pub(crate) fn wait(&mut self, result: Arc<ToolResult>, due: Timestamp) {
        if let CallStage::Started { attempt, .. } = self.stage {
            self.stage = CallStage::Waiting { attempts: attempt + 1, due, result };
        }
    }

    pub(crate) fn start(&mut self, attempt: u32, effect: Effect) {
        if self.result().is_none() {
            self.stage = CallStage::Started { attempt, effect };
        }
    }

    /// Takes the result; a second one for the same call is ignored.
    pub(crate) fn finish(&mut self, result: Arc<ToolResult>, at: Timestamp) {
        if self.result().is_none() {
            self.stage = CallStage::Finished { result, at };
        }
    }

    /// The process that ran the call is gone.
    pub(crate) fn lose(&mut self) {
        if let CallStage::Started { attempt, effect } = self.stage {
            self.stage = match effect.may_repeat() {
                true => CallStage::Requested { attempts: attempt + 1 },
                false => CallStage::InDoubt { attempts: attempt + 1 },
            };
        }
    }

    /// The call as it is to run: with the arguments that a person wants, if one changed them.
    pub(crate) fn wanted(&self) -> Cow<'_, ToolCall> {
        match self.consent.as_ref().and_then(|consent| consent.edited.clone()) {
            Some(arguments) => {
                Cow::Owned(ToolCall { arguments, malformed: None, ..ToolCall::clone(&self.call) })
            }
            None => Cow::Borrowed(&self.call),
        }
    }
}
