//! A person's consent: what is asked, and what can be answered.

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{Json, Timestamp};

/// A question to a person that stands between a call and its effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// Unique everywhere.
    pub request_id: String,
    /// Who wants to act.
    pub agent_name: String,
    /// What is going to happen, in a line.
    pub action_summary: String,
    /// The tool's name and exact arguments, or whatever else a person needs to see.
    pub details: Json,
    /// What may be answered; `approve`, `edit` and `cancel` unless said otherwise.
    pub options: Vec<String>,
    /// When the question expires, which counts as cancel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Whether the arguments may be changed.
    pub allow_modification: bool,
}

impl ApprovalRequest {
    /// A question with the three usual options and no deadline.
    pub fn new(request_id: impl Into<String>, action_summary: impl Into<String>, details: Json) -> Self {
        Self {
            request_id: request_id.into(),
            agent_name: String::new(),
            action_summary: action_summary.into(),
            details,
            options: ["approve", "edit", "cancel"].map(str::to_owned).into(),
            expires_at: None,
            allow_modification: true,
        }
    }
}

/// What a person said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "answer", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Answer {
    /// Do it.
    Approve,
    /// Do it with these arguments, which are validated again.
    Edit {
        /// The new arguments.
        arguments: Json,
    },
    /// Do not do it.
    Cancel {
        /// Why, for the model; empty means no reason was given.
        #[serde(default)]
        reason: String,
    },
}

/// Decides about questions, now or later.
pub trait Approver: Send + Sync {
    /// Answers at once, or says that a person will.
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Decision>;
}

/// What an [`Approver`] makes of a question.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Decision {
    /// Decided.
    Now(Answer),
    /// The run suspends until the answer comes.
    Later,
}
