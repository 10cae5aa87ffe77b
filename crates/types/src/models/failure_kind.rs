//! The kinds of failures of runs and model calls, with stable names.

use serde::{Deserialize, Serialize};

/// The kind of a run's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The model's service was not reached, or did not answer in time.
    Unreachable,
    /// The service was too busy for the request, even after the retries.
    Overloaded,
    /// The API key is missing, or the service refuses it.
    Auth,
    /// The service refused the request, for instance because it does not know the model.
    Rejected,
    /// The conversation does not fit into the model's context window.
    ContextOverflow,
    /// The model gave no answer, for a reason that no other kind names.
    Model,
    /// The model's answers cannot be parsed.
    UnparsableAnswer,
    /// The answer does not match its schema.
    StructuredOutput,
    /// The model declined to answer where an answer was required.
    Declined,
    /// The run reached a limit, and [`OnLimit::Error`](crate::OnLimit::Error) makes that a failure.
    Limit,
    /// An [`InputFilter`](crate::InputFilter) rejected the prompt.
    Filtered,
    /// There is no plan, or the plan is invalid.
    Plan,
    /// Subtasks failed, and the goal needs them.
    Subtasks,
    /// No branch of a parallel loop has an answer, or no branch was selected.
    NoBranch,
    /// The run was refused before it began.
    Refused,
    /// Code that the program supplied panicked.
    Panicked,
    /// Any other failure, and failures from logs that name no kind.
    Other,
}

impl FailureKind {
    /// Returns true if the failed run may succeed when it is resumed without a change. A failed run of a plan
    /// or a team that has no answer can be resumed only in this case; other failed runs can always be
    /// resumed.
    pub const fn may_pass(self) -> bool {
        !matches!(self, Self::ContextOverflow | Self::Filtered | Self::Plan | Self::Subtasks | Self::Refused)
    }

    /// Returns advice for a person on how to deal with the failure, as one line. A resumed run keeps the work
    /// that is in its log.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Unreachable => "start the model's service, or correct its address; then resume the run",
            Self::Overloaded => "wait a little, then resume the run",
            Self::Auth => "correct the key of the model's service, then resume the run",
            Self::Rejected => "check the model's name and the request's options, then resume the run",
            Self::ContextOverflow => "begin a new session, or use a model with a larger context window",
            Self::Model | Self::UnparsableAnswer | Self::Declined => {
                "resume the run, or choose another model"
            }
            Self::StructuredOutput => "resume the run to try again, or ask for a simpler schema",
            Self::Limit => "resume the run with larger limits: `MoreLimits`",
            Self::Filtered => "change the prompt as the error says",
            Self::Plan => "describe the goal in other words, or give a plan",
            Self::Subtasks => "correct the cause of the failures, then start the goal again",
            Self::NoBranch => "correct the cause of the failures, then resume the run",
            Self::Refused => "change what the error names, then start the run again",
            Self::Panicked => "correct the code that panicked, then resume the run",
            Self::Other => "look at the run's log, then resume the run",
        }
    }
}

crate::values::named! { FailureKind:
    Unreachable = "unreachable",
    Overloaded = "overloaded",
    Auth = "auth",
    Rejected = "rejected",
    ContextOverflow = "context_overflow",
    Model = "model",
    UnparsableAnswer = "unparsable_answer",
    StructuredOutput = "structured_output",
    Declined = "declined",
    Limit = "limit",
    Filtered = "filtered",
    Plan = "plan",
    Subtasks = "subtasks",
    NoBranch = "no_branch",
    Refused = "refused",
    Panicked = "panicked",
    Other = "other",
}

/// The kind of a failed model call, as records name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelErrorCode {
    /// The service received too many requests.
    RateLimited,
    /// The service is too busy, or failed temporarily.
    Overloaded,
    /// The connection broke, or the service was not reached.
    Network,
    /// No server at the address can be used: nothing listens there (on this machine), or the server does not
    /// use TLS.
    Unreachable,
    /// The request timed out: no data came, or the answer was not complete in time.
    Timeout,
    /// The key is missing or refused.
    Auth,
    /// The service refused the request.
    Api,
    /// The conversation does not fit into the model's context window.
    ContextOverflow,
    /// The answer violates the protocol.
    Protocol,
    /// The request was cancelled.
    Cancelled,
    /// Any other failure.
    Other,
}

crate::values::named! { ModelErrorCode:
    RateLimited = "rate_limited",
    Overloaded = "overloaded",
    Network = "network",
    Unreachable = "unreachable",
    Timeout = "timeout",
    Auth = "auth",
    Api = "api",
    ContextOverflow = "context_overflow",
    Protocol = "protocol",
    Cancelled = "cancelled",
    Other = "other",
}

impl From<ModelErrorCode> for FailureKind {
    /// Converts the failure of a model call into the kind of the run's failure.
    fn from(code: ModelErrorCode) -> Self {
        match code {
            ModelErrorCode::RateLimited | ModelErrorCode::Overloaded => Self::Overloaded,
            ModelErrorCode::Network | ModelErrorCode::Unreachable | ModelErrorCode::Timeout => {
                Self::Unreachable
            }
            ModelErrorCode::Auth => Self::Auth,
            ModelErrorCode::Api => Self::Rejected,
            ModelErrorCode::ContextOverflow => Self::ContextOverflow,
            ModelErrorCode::Protocol => Self::UnparsableAnswer,
            ModelErrorCode::Cancelled | ModelErrorCode::Other => Self::Model,
        }
    }
}
