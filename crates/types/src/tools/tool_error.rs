//! The error of a tool, and the conversion of any other error into it.

use std::{error::Error, fmt, time::Duration};

use crate::messages::{ToolResult, metadata};

use super::approval::ApprovalRequest;

/// The error of a tool.
///
/// Any error converts with `?`: errors of the standard library, of `anyhow`, your own error types, and texts.
/// The result is [`Failed`](Self::Failed), and the model reads the text of the error and of its causes. To be
/// more precise, choose the variant yourself:
///
/// ```
/// use archon_types::ToolError;
///
/// fn read_note(name: &str) -> Result<String, ToolError> {
///     if name.contains('/') {
///         return Err(ToolError::InvalidArgs("the name of a note must not contain '/'".into()));
///     }
///     if name == "diary" {
///         return Err(ToolError::new("the diary is private"));
///     }
///     Ok(std::fs::read_to_string(name)?)
/// }
///
/// assert_eq!(read_note("a/b").unwrap_err().code(), "invalid_parameters");
/// assert_eq!(read_note("no such note").unwrap_err().code(), "execution_error");
/// ```
///
/// `ToolError` cannot implement `std::error::Error`, because every error converts into it. If you need such
/// an error, take the text: `anyhow::anyhow!("{error}")`. For the same reason, your own error type that
/// implements `std::error::Error` cannot have its own `From` conversion into `ToolError`: choose the variant
/// with `map_err`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolError {
    /// The tool failed.
    Failed(String),
    /// No tool has this name, or the file or other object that the call names does not exist.
    NotFound(String),
    /// The arguments are invalid.
    InvalidArgs(String),
    /// The call was cancelled.
    Cancelled,
    /// The call exceeded its time limit.
    Timeout(Duration),
    /// The call is not permitted.
    PermissionDenied(String),
    /// Memory, disk, processes or a quota ran out.
    Resource(String),
    /// The call waits for a person, and is executed again after the answer. Only for tools that are agents,
    /// and for tools that ask a question themselves ([`ApprovalRequest::of_tool`]).
    Suspended(Box<ApprovalRequest>),
}

impl ToolError {
    /// Creates a [`Failed`](Self::Failed) error with a text that the model reads.
    pub fn new(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }

    /// Returns the stable name of the variant: `execution_error`, `not_found`, `invalid_parameters`,
    /// `cancelled`, `timeout`, `permission_denied`, `resource_error` or `suspended`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Failed(_) => "execution_error",
            Self::NotFound(_) => "not_found",
            Self::InvalidArgs(_) => "invalid_parameters",
            Self::Cancelled => "cancelled",
            Self::Timeout(_) => "timeout",
            Self::PermissionDenied(_) => "permission_denied",
            Self::Resource(_) => "resource_error",
            Self::Suspended(_) => "suspended",
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(text)
            | Self::NotFound(text)
            | Self::InvalidArgs(text)
            | Self::PermissionDenied(text)
            | Self::Resource(text) => f.write_str(text),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Timeout(limit) => write!(f, "timed out after {} seconds", limit.as_secs_f64()),
            Self::Suspended(question) => {
                write!(f, "the call waits for a person: {}", question.action_summary)
            }
        }
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::Failed(with_causes(&*error.into()))
    }
}

/// Returns the texts of an error and of its causes, without repetitions.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    for cause in causes.take(DEEPEST) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// The maximum number of causes to follow, because an error may be its own cause.
const DEEPEST: usize = 16;

impl From<ToolError> for ToolResult {
    fn from(e: ToolError) -> Self {
        let result = match &e {
            ToolError::Timeout(limit) => Self::timeout(limit.as_secs_f64()),
            ToolError::Cancelled => Self::cancelled("Cancelled"),
            other => Self::error(other.to_string()),
        };
        result.with_metadata(metadata::ERROR_TYPE, e.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the note cannot be read")]
    struct Unreadable(#[source] std::io::Error);

    #[derive(Debug, thiserror::Error)]
    #[error("the note was not found: {0}")]
    struct SaysItsCause(#[source] std::io::Error);

    fn io() -> std::io::Error {
        std::io::Error::other("disk on fire")
    }

    fn failed_of(result: Result<(), ToolError>, expected: &str) {
        assert_eq!(result, Err(ToolError::Failed(expected.into())));
    }

    #[test]
    fn question_mark_on_any_error_gives_a_tool_error_with_its_causes() {
        failed_of((|| Ok(Err(io())?))(), "disk on fire");
        failed_of((|| Ok(Err(Unreadable(io()))?))(), "the note cannot be read: disk on fire");
        failed_of((|| Ok(Err(SaysItsCause(io()))?))(), "the note was not found: disk on fire");
        failed_of((|| Ok(Err("no such order")?))(), "no such order");
        failed_of((|| Ok(Err(format!("no order {}", 7))?))(), "no order 7");
        failed_of((|| Ok(Err(Box::<dyn Error + Send + Sync>::from("boxed"))?))(), "boxed");
    }

    #[test]
    fn question_mark_on_a_tool_error_keeps_its_kind() {
        let inner = || Err::<(), _>(ToolError::Timeout(Duration::from_secs(1)));
        let outer = || -> Result<(), ToolError> {
            inner()?;
            Ok(())
        };
        assert_eq!(outer(), Err(ToolError::Timeout(Duration::from_secs(1))));
    }
}
