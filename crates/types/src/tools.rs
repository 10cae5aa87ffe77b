//! Descriptions of tools, their errors, credentials and processes, and questions to people.
//!
//! Imports only `values`, `messages` and `bus`.

mod approval;
mod binding;
mod credentials;
mod preview;
mod process;
mod session_mode;
mod step_list;
mod tool_error;
mod tool_execution;
mod tool_spec;

pub use approval::{
    Answer, AnsweredQuestion, ApprovalRequest, ApprovalSettings, Approver, AskLater, AskingRun, Decision,
    DynApprover, FnApprover, OnDeny, OnExpiry, QuestionKind,
};
pub use binding::{binding, rebound};
pub use credentials::{CredentialEntry, CredentialError, CredentialKey, CredentialStore, Credentials};
pub use preview::{FileChange, Preview};
pub use process::{ProcessGroup, ProcessLog, Processes};
pub use session_mode::{ModeSource, PLAN_TOOL, SessionMode, SharedMode};
pub use step_list::{ListedStep, STEP_LIST_TOOL, StepList, StepStatus};
pub use tool_error::ToolError;
pub use tool_execution::ToolExecutionStrategy;
pub use tool_spec::{
    Correction, Effect, Progress, Subject, ToolAnnotations, ToolDefinition, ToolInvocationRequest, ToolSpec,
};

pub(crate) use approval::{USUAL_WAIT_MS, is_usual_wait};
