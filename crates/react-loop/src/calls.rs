//! The life of one tool call: requested, started, finished, with exactly one result at the end.

use std::{borrow::Cow, sync::Arc};

use archon_run::GrantedLease;
use archon_types::{
    AnsweredQuestion, ApprovalRequest, CALL_TOOL, CallId, Effect, Json, Message, Timestamp, ToolCall,
    ToolResult, ToolResultStatus, metadata,
};
use serde::{Deserialize, Serialize};

/// A tool call of the current turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallState {
    /// Id of the call in the run.
    pub id: CallId,
    /// The call to carry out. If the model called a deferred tool with [`CALL_TOOL`](archon_types::CALL_TOOL), this
    /// is the call of the deferred tool.
    pub call: Arc<ToolCall>,
    /// True if the model called the tool with [`CALL_TOOL`](archon_types::CALL_TOOL), not directly.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_by_name: bool,
    /// Stage of the call.
    pub stage: CallStage,
    /// A person's consent to the call; `None` if no person was asked or has agreed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<Consent>,
    /// True if the child run of the call was created. False again once a person allows a lost child run to start
    /// again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_begun: bool,
    /// The part of the budget granted to the child run, and the spending of the child run.
    #[serde(default, skip_serializing_if = "GrantedLease::is_none")]
    pub(crate) lease: GrantedLease,
    /// Position of this call's answer among the answers that people gave about the calls of the turn, from 1; 0 if
    /// no person answered. Calls run in this order.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub answer_place: u32,
    /// The last question that the tool asked during the call, with the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Arc<AnsweredQuestion>>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A person's consent to a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Consent {
    /// [`ApprovalRequest::binding`] of the question. This value identifies the tool and the arguments at the time of
    /// the question. The consent holds only for these, unless the person changed the arguments (`edited`).
    pub binding: String,
    /// Arguments that the person put in place of the model's. The consent holds for these arguments, with
    /// the tool of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Json>,
    /// The arguments that the question showed, if the person changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Json>,
    /// [`ApprovalRequest::action_summary`] of the question. `None` if the person changed the arguments,
    /// because the summary then does not describe the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// The stage of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallStage {
    /// The call has not started, or was cut off and may be repeated.
    Requested {
        /// Number of starts that a crash cut off.
        attempts: u32,
    },
    /// The call runs.
    Started {
        /// Number of the start, from 0.
        attempt: u32,
        /// Effect of a second execution of the call.
        effect: Effect,
    },
    /// The call failed and waits for a retry.
    Waiting {
        /// Number of starts so far.
        attempts: u32,
        /// Time of the retry.
        due: Timestamp,
        /// Result of the failed start. It becomes the result of the call if no retry follows.
        result: Arc<ToolResult>,
    },
    /// A person is asked about the call, or about a call of its child run.
    Asked {
        /// Number of starts so far.
        attempts: u32,
        /// The open questions. There is more than one only if they come from a child run.
        requests: Vec<ApprovalRequest>,
        /// True if a question expired and was asked once more.
        #[serde(default)]
        escalated: bool,
    },
    /// The call will not run; its result must still be recorded.
    Settled {
        /// The result.
        result: Arc<ToolResult>,
        /// True if a person gave the result, false if the call was refused.
        replied: bool,
    },
    /// The call is in doubt: the process died while the call ran, and the call may have taken effect.
    InDoubt {
        /// Number of starts so far.
        #[serde(default)]
        attempts: u32,
    },
    /// The call has its result.
    Finished {
        /// The result.
        result: Arc<ToolResult>,
        /// Time of the result.
        at: Timestamp,
    },
}

impl CallState {
    pub(crate) fn requested(id: CallId, call: impl Into<Arc<ToolCall>>) -> Self {
        Self {
            id,
            call: call.into(),
            is_by_name: false,
            stage: CallStage::Requested { attempts: 0 },
            consent: None,
            is_begun: false,
            lease: GrantedLease::default(),
            answer_place: 0,
            answered: None,
        }
    }

    /// Replaces a call of [`CALL_TOOL`](archon_types::CALL_TOOL) by the call of the tool that it names.
    pub(crate) fn resolve_name(mut self) -> Self {
        if let Some(call) = self.call.resolve_call_tool() {
            (self.call, self.is_by_name) = (Arc::new(call), true);
        }
        self
    }

    /// Returns the message with the result of the call, with the tool name that the model wrote in the call.
    pub(crate) fn result_message(&self, result: &ToolResult, at: Timestamp) -> Message {
        let mut message = Message::tool_result(&self.call, result, at);
        if let (true, Message::ToolResult(message)) = (self.is_by_name, &mut message) {
            CALL_TOOL.clone_into(&mut message.tool_name);
        }
        message
    }

    /// Returns the result and its time; `None` if the call has no result yet.
    pub fn result(&self) -> Option<(&ToolResult, Timestamp)> {
        match &self.stage {
            CallStage::Finished { result, at } => Some((result, *at)),
            _ => None,
        }
    }

    /// Returns true if the call may be worked on at `now`.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        match &self.stage {
            CallStage::Finished { .. } | CallStage::Asked { .. } | CallStage::Settled { .. } => false,
            CallStage::Waiting { due, .. } => *due <= now,
            _ => true,
        }
    }

    /// Records that the call failed and is retried at `due`.
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

    /// Stores the result. A second result for the same call is ignored.
    pub(crate) fn finish(&mut self, result: Arc<ToolResult>, at: Timestamp) {
        if self.result().is_none() {
            self.stage = CallStage::Finished { result, at };
        }
    }

    /// Records that the process which ran the call has died.
    pub(crate) fn lose(&mut self) {
        if let CallStage::Started { attempt, effect } = self.stage {
            self.stage = match effect.may_repeat() {
                true => CallStage::Requested { attempts: attempt + 1 },
                false => CallStage::InDoubt { attempts: attempt + 1 },
            };
        }
    }

    /// Returns the call to execute: if a person changed the arguments, the call with the changed arguments.
    pub(crate) fn wanted(&self) -> Cow<'_, ToolCall> {
        match self.consent.as_ref().and_then(|consent| consent.edited.clone()) {
            Some(arguments) => {
                Cow::Owned(ToolCall { arguments, malformed: None, ..ToolCall::clone(&self.call) })
            }
            None => Cow::Borrowed(&self.call),
        }
    }
}

/// Returns the result for a refused call: `text` for the model and for people, and `error_type` as its
/// [`ERROR_TYPE`](metadata::ERROR_TYPE).
pub(crate) fn refusal(text: String, error_type: &str) -> ToolResult {
    ToolResult::failed(ToolResultStatus::Error, text.clone(), text)
        .with_metadata(metadata::ERROR_TYPE, error_type)
}
