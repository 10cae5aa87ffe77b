//! Problem documents (RFC 9457): each says which rule refused a request, and what to do.

use std::time::Duration;

use archon_types::{JournalError, MemoryError, RunError, RunId, TaskServiceError};
use axum::{
    body::Body,
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::Response,
};
use serde_json::json;

/// The rule that refused a request, or the kind of a failure. Its code is stable, and is the end of `type` in
/// the problem document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Host,
    Origin,
    CrossSite,
    NoToken,
    WrongToken,
    BearerOnly,
    Role,
    RequestLimit,
    StartLimit,
    WatcherLimit,
    ContentType,
    BodySize,
    SlowBody,
    MalformedBody,
    Body,
    Query,
    Header,
    Route,
    Method,
    OneTimeLink,
    Answered,
    NoMemories,
    UnknownMedia,
    NoTasks,
    NoNotifications,
    UnknownTask,
    TasksFull,
    UnknownRun,
    SessionBusy,
    KeyUsed,
    OtherFolder,
    Conflict,
    Refused,
    RunFailed,
    Unavailable,
    Internal,
}

impl Rule {
    /// Returns the code.
    pub(crate) const fn code(self) -> &'static str {
        self.parts().0
    }

    /// Returns the status of a response.
    pub(crate) const fn status(self) -> StatusCode {
        self.parts().2
    }

    /// Returns the code, the title and the status.
    const fn parts(self) -> (&'static str, &'static str, StatusCode) {
        match self {
            Self::Host => ("host-not-allowed", "The host is not one of this server", StatusCode::FORBIDDEN),
            Self::Origin => ("origin-not-allowed", "The page is not of this server", StatusCode::FORBIDDEN),
            Self::CrossSite => ("cross-site", "The request comes from another site", StatusCode::FORBIDDEN),
            Self::NoToken => ("token-missing", "A token is required", StatusCode::UNAUTHORIZED),
            Self::WrongToken => ("token-unknown", "The token is not known", StatusCode::UNAUTHORIZED),
            Self::BearerOnly => ("bearer-only", "The token itself is required", StatusCode::FORBIDDEN),
            Self::Role => ("role", "The role does not have the right", StatusCode::FORBIDDEN),
            Self::RequestLimit => ("request-limit", "Too many requests", StatusCode::TOO_MANY_REQUESTS),
            Self::StartLimit => ("start-limit", "Too many runs were started", StatusCode::TOO_MANY_REQUESTS),
            Self::WatcherLimit => {
                ("watcher-limit", "Too many streams are open", StatusCode::TOO_MANY_REQUESTS)
            }
            Self::ContentType => {
                ("content-type", "The body must be JSON", StatusCode::UNSUPPORTED_MEDIA_TYPE)
            }
            Self::BodySize => ("body-size", "The body is too large", StatusCode::PAYLOAD_TOO_LARGE),
            Self::SlowBody => ("slow-body", "The body did not come in time", StatusCode::REQUEST_TIMEOUT),
            Self::MalformedBody => ("malformed-body", "The body is not JSON", StatusCode::BAD_REQUEST),
            Self::Body => ("body", "The body does not fit", StatusCode::UNPROCESSABLE_ENTITY),
            Self::Query => ("query", "The query does not fit", StatusCode::BAD_REQUEST),
            Self::Header => ("header", "A header does not fit", StatusCode::BAD_REQUEST),
            Self::Route => ("unknown-route", "There is no such route", StatusCode::NOT_FOUND),
            Self::Method => ("method", "The route has no such method", StatusCode::METHOD_NOT_ALLOWED),
            Self::OneTimeLink => ("one-time-link", "The link is not valid", StatusCode::FORBIDDEN),
            Self::Answered => ("no-open-question", "The question is not open", StatusCode::CONFLICT),
            Self::NoMemories => ("no-memories", "There is no store of memories", StatusCode::NOT_FOUND),
            Self::UnknownMedia => {
                ("unknown-media", "The run has no such image or file", StatusCode::NOT_FOUND)
            }
            Self::NoTasks => ("no-tasks", "There are no tasks", StatusCode::NOT_FOUND),
            Self::NoNotifications => {
                ("no-notifications", "There are no notifications", StatusCode::NOT_FOUND)
            }
            Self::UnknownTask => ("unknown-task", "There is no such task", StatusCode::NOT_FOUND),
            Self::TasksFull => ("tasks-full", "Too much waits for the task", StatusCode::TOO_MANY_REQUESTS),
            Self::UnknownRun => ("unknown-run", "There is no such run", StatusCode::NOT_FOUND),
            Self::SessionBusy => ("session-busy", "The session is busy", StatusCode::CONFLICT),
            Self::KeyUsed => ("idempotency-key", "The key is of another request", StatusCode::CONFLICT),
            Self::OtherFolder => ("other-folder", "The run belongs to another folder", StatusCode::CONFLICT),
            Self::Conflict => ("conflict", "The state does not allow this now", StatusCode::CONFLICT),
            Self::Refused => ("refused", "The request must be changed", StatusCode::UNPROCESSABLE_ENTITY),
            Self::RunFailed => ("run-failed", "The run failed", StatusCode::BAD_GATEWAY),
            Self::Unavailable => {
                ("unavailable", "The request may succeed later", StatusCode::SERVICE_UNAVAILABLE)
            }
            Self::Internal => ("internal", "The service must be repaired", StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

/// The reason why a request is refused or has failed.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) rule: Rule,
    detail: String,
    advice: Option<String>,
    run: Option<RunId>,
    retry_after: Option<Duration>,
}

impl Problem {
    pub(crate) fn new(rule: Rule, detail: impl Into<String>) -> Self {
        Self { rule, detail: detail.into(), advice: None, run: None, retry_after: None }
    }

    /// Returns the problem of a request that names an unknown agent. The client must change the request.
    pub(crate) fn unknown_agent(error: &RunError) -> Self {
        let advice = "name one of the registered agents, and the kind of its runs: GET /v1/agents lists them";
        Self::new(Rule::Refused, error.to_string()).advise(advice)
    }

    /// Adds advice for a person.
    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Adds the time after which the same request may be admitted.
    pub(crate) fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Returns the document as JSON text.
    pub(crate) fn text(&self) -> String {
        let (code, title, status) = self.rule.parts();
        let mut document = json!({
            "type": format!("urn:archon:problem:{code}"),
            "title": title,
            "status": status.as_u16(),
            "detail": self.detail,
        });
        if let Some(advice) = &self.advice {
            document["advice"] = json!(advice);
        }
        if let Some(run) = &self.run {
            document["run"] = json!(run);
        }
        document.to_string()
    }

    pub(crate) fn into_response(self) -> Response {
        let (_, _, status) = self.rule.parts();
        let mut response = Response::new(Body::from(self.text()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(wait) = self.retry_after {
            // Whole seconds, and never less than the wait.
            headers.insert(RETRY_AFTER, HeaderValue::from(wait.as_millis().div_ceil(1_000) as u64));
        }
        response
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        let rule = match (&error, error.http_status()) {
            (RunError::UnknownRun { .. } | RunError::Journal(JournalError::UnknownRun { .. }), _) => {
                Rule::UnknownRun
            }
            (RunError::SessionBusy { .. }, _) => Rule::SessionBusy,
            (RunError::KeyUsed { .. }, _) => Rule::KeyUsed,
            (RunError::OtherFolder { .. }, _) => Rule::OtherFolder,
            (RunError::TooManyStarts { .. }, _) => Rule::StartLimit,
            (_, 404) => Rule::UnknownRun,
            (_, 409) => Rule::Conflict,
            (_, 422) => Rule::Refused,
            (_, 502) => Rule::RunFailed,
            (_, 503) => Rule::Unavailable,
            _ => Rule::Internal,
        };
        let mut problem = Self::new(rule, error.to_string()).advise(error.advice());
        problem.run = error.run().cloned();
        if let RunError::TooManyStarts { wait } = error {
            problem.retry_after = Some(wait);
        }
        problem
    }
}

impl From<MemoryError> for Problem {
    fn from(error: MemoryError) -> Self {
        let rule = match &error {
            MemoryError::Storage { .. } => Rule::Unavailable,
            MemoryError::Collection { .. }
            | MemoryError::OutOfScope { .. }
            | MemoryError::Question { .. } => Rule::Refused,
            _ => Rule::Internal,
        };
        Self::new(rule, error.to_string()).advise(error.advice())
    }
}

impl From<TaskServiceError> for Problem {
    fn from(error: TaskServiceError) -> Self {
        let rule = match &error {
            TaskServiceError::Unknown(_) => Rule::UnknownTask,
            TaskServiceError::Exists(_) => Rule::Conflict,
            TaskServiceError::Refused(_) => Rule::Refused,
            TaskServiceError::Full(_) => Rule::TasksFull,
            _ => Rule::Unavailable,
        };
        Self::new(rule, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_of_a_store_that_fails_has_a_status_and_advice() {
        let run = || RunId::new("run_1");
        let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
        for (error, status) in [
            (JournalError::Storage { action: "write", place: "runs".to_owned(), source }, 503),
            (JournalError::Locked { run: run() }, 409),
            (JournalError::Taken { run: run(), problem: "its log was removed".to_owned() }, 500),
        ] {
            let problem = Problem::from(RunError::from(error));
            assert_eq!(problem.rule.status().as_u16(), status, "{problem:?}");
            assert!(problem.advice.is_some_and(|advice| !advice.is_empty()));
        }
    }
}
