//! Errors in the form that OpenAI clients read: `{"error": {"message", "type", "param", "code"}}`.

use std::time::Duration;

use archon_types::{JournalError, Json, RunError, RunId};
use axum::{
    body::Body,
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER},
    },
    response::Response,
};
use serde_json::json;

use crate::headers;

/// The reason why a request is refused or has failed.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    /// The name of the rule that refused the request. It does not change between versions.
    pub(crate) code: &'static str,
    /// The field of the request, as in `messages[0].content`.
    pub(crate) param: Option<String>,
    pub(crate) message: String,
    pub(crate) run: Option<RunId>,
    /// The time after which the request may be sent again.
    pub(crate) retry_after: Option<Duration>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, param: None, message: message.into(), run: None, retry_after: None }
    }

    /// Creates the error for a field of a request that the client must change.
    pub(crate) fn field(code: &'static str, param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..Self::new(StatusCode::BAD_REQUEST, code, message) }
    }

    /// Adds the run of the request, unless the error already names a run.
    pub(crate) fn of_run(mut self, run: &RunId) -> Self {
        self.run.get_or_insert_with(|| run.clone());
        self
    }

    fn kind(&self) -> &'static str {
        if self.status.is_client_error() { "invalid_request_error" } else { "server_error" }
    }

    /// Returns the error as clients read it.
    pub(crate) fn json(&self) -> Json {
        json!({ "error": {
            "message": self.message,
            "type": self.kind(),
            "param": self.param,
            "code": self.code,
        } })
    }

    pub(crate) fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.json().to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // By themselves, official clients send a request twice again after most errors, and a run has effects.
        let may_retry = self.status == StatusCode::SERVICE_UNAVAILABLE && self.run.is_none();
        headers.insert("x-should-retry", HeaderValue::from_static(if may_retry { "true" } else { "false" }));
        if let Some(wait) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
        }
        if let Some(run) = &self.run {
            headers::name_run(headers, run);
        }
        response
    }
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        // OpenAI refuses a file that a model cannot read with this status.
        let status =
            if matches!(error, RunError::UnreadableMedia { .. }) { 400 } else { error.http_status() };
        let code = match (&error, status) {
            (RunError::UnknownRun { .. } | RunError::Journal(JournalError::UnknownRun { .. }), _) => {
                "unknown_run"
            }
            (RunError::SessionBusy { .. }, _) => "session_busy",
            (RunError::KeyUsed { .. }, _) => "idempotency_key",
            (RunError::TooManyStarts { .. }, _) => "start_limit",
            (_, 400) => "unsupported_media",
            (_, 404) => "unknown_run",
            (_, 409) => "conflict",
            (_, 422) => "refused",
            (_, 502) => "run_failed",
            (_, 503) => "unavailable",
            _ => "internal",
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut refused = Self::new(status, code, format!("{error} ({})", error.advice()));
        refused.run = error.run().cloned();
        if let RunError::TooManyStarts { wait } = error {
            refused.retry_after = Some(wait);
        }
        refused
    }
}

#[cfg(test)]
mod tests {
    use archon_types::MediaKind;

    use super::*;

    // spec: EX-16
    #[test]
    fn error_of_a_file_that_the_model_cannot_read_has_status_400() {
        let (model, name) = ("m".to_owned(), "a.pdf".to_owned());
        let error = ApiError::from(RunError::UnreadableMedia { model, kind: MediaKind::Pdf, name });
        assert_eq!((error.status.as_u16(), error.code), (400, "unsupported_media"));
        assert!(error.message.contains("a.pdf"), "{}", error.message);
    }
}
