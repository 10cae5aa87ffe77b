//! Classifies failed responses: status × body × headers → [`ProviderError`].
//!
//! Services agree on little but the status; the phrases of their bodies are data here, so a new phrase is
//! one more line in a table.

use std::time::Duration;

use archon_types::{ApiErrorKind, ErrorText, Json, ProviderError, Redactor};

use crate::content_filter;

/// The character at the end of a text that was cut. Redaction looks for it, because the cut may be within a
/// secret.
pub(crate) const CUT: char = '…';

/// Phrases in error texts that mean that the conversation exceeds the context window. Each entry has a phrase
/// in lower case, and the services that use it.
pub const OVERFLOW_PHRASES: &[(&str, &str)] = &[
    ("context_length_exceeded", "OpenAI, Cerebras: the error's code"),
    ("maximum context length", "OpenAI, DeepSeek, OpenRouter, vLLM"),
    ("exceeds the context window", "OpenAI: responses"),
    ("prompt is too long", "Anthropic, Fireworks"),
    ("exceed context limit", "Anthropic: prompt and answer together"),
    ("input token count", "Gemini, with `exceeds the maximum number of tokens`"),
    ("input is too long for requested model", "Bedrock"),
    ("maximum prompt length is", "xAI"),
    ("reduce the length of the messages", "Groq, Cerebras"),
    ("too large for model with", "Mistral"),
    ("exceeds the available context size", "llama.cpp"),
    ("exceed_context_size_error", "llama.cpp: the error's type"),
    ("greater than the context length", "LM Studio"),
    ("loaded with context length of only", "LM Studio"),
    ("exceeded max context length", "Ollama"),
    ("input length exceeds", "Ollama"),
    ("longer than the maximum model length", "vLLM"),
    ("`inputs` tokens + `max_new_tokens` must be", "Together, text-generation-inference"),
    ("inputs tokens + max_new_tokens must be", "Together, text-generation-inference"),
    ("total number of tokens in the prompt cannot exceed", "Cohere"),
    ("prompt token count of", "GitHub Models, with `exceeds the limit of`"),
    ("exceeded model token limit", "Moonshot"),
    ("context window exceeds limit", "MiniMax"),
    ("model_context_window_exceeded", "Z.ai: the finish reason"),
    ("range of input length should be", "Alibaba"),
];

/// Phrases, in lower case, that mean that a model does not support the requested level of thinking.
const THINKING_PHRASES: &[(&str, &str)] = &[
    ("reasoning_effort", "OpenAI, Groq, xAI: the parameter, unknown or with a value that is not taken"),
    ("reasoning.effort", "OpenAI: responses"),
    ("reasoning effort", "OpenRouter"),
    ("thinking.budget_tokens", "Anthropic: too small, or no less than max_tokens"),
    ("thinking.type", "Anthropic: a form of thinking that the model does not know"),
    ("thinking budget", "Gemini"),
    ("thinking level", "Gemini"),
    ("thinking_config", "Gemini"),
    ("does not support thinking", "Ollama"),
    ("thinking is not supported", "Anthropic, Gemini"),
    ("thinking is not enabled", "Gemini"),
    ("reasoning is not supported", "Mistral, OpenRouter"),
];

/// Phrases, in lower case, that mean that an account has no credit, for responses whose status does not show
/// it.
const QUOTA_PHRASES: &[(&str, &str)] = &[
    ("credit balance is too low", "Anthropic, with status 400"),
    ("prepayment credits are depleted", "Gemini"),
];

/// Phrases, in lower case, that mean that a model does not exist, for services that do not send status 404.
const MODEL_PHRASES: &[(&str, &str)] = &[
    ("model_not_found", "OpenAI, Groq: the error's code"),
    ("model not exist", "DeepSeek, with status 400"),
    ("invalid model:", "Mistral, with status 400"),
    ("not a valid model id", "OpenRouter, with status 400"),
    ("model identifier is invalid", "Bedrock, with status 400"),
];

/// Returns true if the text contains one of these phrases.
fn mentions(text: &str, phrases: &[(&str, &str)]) -> bool {
    let text = text.to_lowercase();
    phrases.iter().any(|(phrase, _)| text.contains(phrase))
}

/// Returns true if a service's error text means that the conversation exceeds the model's context window.
pub fn is_context_overflow(text: &str) -> bool {
    mentions(text, OVERFLOW_PHRASES)
}

/// A response without an answer: its status and headers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) retry_after: Option<Duration>,
    /// The target of a redirect.
    pub(crate) location: Option<String>,
}

impl Failure {
    /// Returns the error, given the body's text without secrets.
    pub(crate) fn classify(self, body: &str) -> ProviderError {
        if let Some(location) = &self.location {
            let message = format!(
                "the service redirects to {location:?}; if that address is right, set it as the base URL"
            );
            return self.api(ApiErrorKind::Other, message);
        }
        match serde_json::from_str::<Json>(body).ok().as_ref().and_then(ErrorObject::from_json) {
            // The status contradicts the body, so the message has both.
            Some(object) if (200..300).contains(&self.status) => {
                let seen = self.excerpt(body);
                self.classify_object(object).with_text(|message| format!("{message} ({seen})"))
            }
            Some(object) => self.classify_object(object),
            None => {
                let message = self.excerpt(body);
                self.by_status(message, is_context_overflow(body))
            }
        }
    }

    /// Classifies an error object. Its words take precedence over the status: many services send 400 for
    /// everything, and an error in the middle of a stream has no status of its own.
    fn classify_object(mut self, object: ErrorObject) -> ProviderError {
        if (200..300).contains(&self.status) {
            self.status = object.status.unwrap_or(0);
        }
        self.retry_after = self.retry_after.or(object.retry_after);
        let kind = object.kind.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| kind.contains(word));
        let overflow = is_context_overflow(&object.message) || is_context_overflow(&kind);
        if has(&["content_filter", "content_policy", "moderation", "safety"]) {
            return self.api(ApiErrorKind::ContentFiltered, object.message);
        }
        if has(&["api_key_invalid"]) {
            // Google's services send it with status 400.
            return ProviderError::Auth(self.with_status(object.message));
        }
        if has(&["insufficient_quota", "billing"]) || mentions(&object.message, QUOTA_PHRASES) {
            // It comes with status 429, but waiting does not help.
            return self.api(ApiErrorKind::Quota, object.message);
        }
        let refused = !overflow && matches!(self.status, 0 | 400 | 404 | 422);
        let said = |text: &str, phrases| refused && mentions(text, phrases);
        if said(&object.message, THINKING_PHRASES) || said(&object.parameter, THINKING_PHRASES) {
            return self.api(ApiErrorKind::Thinking, object.message);
        }
        if said(&object.message, MODEL_PHRASES) || said(&kind, MODEL_PHRASES) {
            return self.api(ApiErrorKind::NotFound, object.message);
        }
        if self.status != 0 {
            return self.by_status(object.message, overflow);
        }
        let status_of_kind = [
            (429, &["rate_limit", "too_many_requests", "resource_exhausted"][..]),
            (401, &["auth", "api_key", "permission"]),
            (404, &["not_found"]),
            (
                503,
                &[
                    "overloaded",
                    "server_error",
                    "api_error",
                    "internal",
                    "unavailable",
                    "insufficient_system_resource",
                ],
            ),
            (504, &["timeout", "timed_out", "deadline_exceeded"]),
            (400, &["invalid_request", "invalid_argument", "failed_precondition"]),
        ];
        if !overflow && let Some((status, _)) = status_of_kind.iter().find(|(_, words)| has(words)) {
            self.status = *status;
        }
        self.by_status(object.message, overflow)
    }

    fn by_status(self, message: String, overflow: bool) -> ProviderError {
        let retry_after = self.retry_after;
        match self.status {
            401 | 403 => ProviderError::Auth(self.with_status(message)),
            402 => self.api(ApiErrorKind::Quota, message),
            429 => ProviderError::RateLimited { retry_after, message: self.with_status(message) },
            // Status 413 alone may also mean a body that is too large, for instance because of an image.
            _ if overflow => ProviderError::ContextOverflow(self.with_status(message)),
            408 => ProviderError::Timeout(self.with_status(message)),
            404 => self.api(ApiErrorKind::NotFound, message),
            400 | 413 | 422 => self.api(ApiErrorKind::InvalidRequest, message),
            501 | 505 => self.api(ApiErrorKind::Other, message),
            425 | 500..=599 => ProviderError::Overloaded { status: self.status, retry_after, message },
            200..=299 => ProviderError::Protocol(self.with_status(message)),
            _ => self.api(ApiErrorKind::Other, message),
        }
    }

    fn with_status(&self, message: String) -> ErrorText {
        let mut text = ErrorText::from(message);
        text.status = (self.status > 0).then_some(self.status);
        text
    }

    fn api(&self, kind: ApiErrorKind, message: String) -> ProviderError {
        ProviderError::Api { status: self.status, kind, message }
    }

    /// Returns the status, the content type and the beginning of a body that is not an error object, for
    /// instance a gateway's page.
    pub(crate) fn excerpt(&self, body: &str) -> String {
        let kind = if self.content_type.is_empty() { "no content type" } else { &self.content_type };
        format!("status {}, {kind}: {}", self.status, first_words(body))
    }
}

/// The content of an error object.
#[derive(Default)]
struct ErrorObject {
    message: String,
    /// Type and code, joined.
    kind: String,
    /// The name of the wrong parameter, if the service names one.
    parameter: String,
    /// The status in the object itself.
    status: Option<u16>,
    /// The time to wait before a retry, if the object has one.
    retry_after: Option<Duration>,
}

impl ErrorObject {
    /// Reads `{"error": {"message", "type", "code"}}`, `{"error": "text"}`, `{"message"}`, `{"Message"}`,
    /// `{"detail"}` and a list that begins with one of them.
    fn from_json(body: &Json) -> Option<Self> {
        let body = body.get(0).unwrap_or(body);
        let error = match body.get("error") {
            Some(error @ Json::Object(_)) => error,
            Some(Json::String(text)) => return Some(Self::text(text)),
            _ => body,
        };
        let message = ["message", "detail", "Message"].into_iter().find_map(|key| error.get(key))?;
        let mut message = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
        // OpenRouter wraps the error of the service behind it.
        if let Some(raw) = error.pointer("/metadata/raw") {
            let text = raw.as_str().map_or_else(|| raw.to_string(), str::to_owned);
            let inner = serde_json::from_str(&text).ok().as_ref().and_then(Self::from_json);
            message = format!("{message}: {}", inner.map_or(text, |inner| inner.message));
        }
        // Azure lists the categories for which it refused a prompt.
        let results = error.pointer("/innererror/content_filter_result");
        if let Some(words) = results.and_then(content_filter::objections) {
            message = format!("{message} ({words})");
        }
        let words = ["type", "code", "status"].map(|key| match error.get(key) {
            Some(Json::String(word)) => word.clone(),
            _ => String::new(),
        });
        let status = error.get("code").or_else(|| error.get("status"));
        let status = status.and_then(|s| s.as_u64().or_else(|| s.as_str()?.parse().ok()));
        let status = status.and_then(|s| u16::try_from(s).ok()).filter(|s| (100..600).contains(s));
        let parameter = error.get("param").and_then(Json::as_str).unwrap_or_default().to_owned();
        let (reasons, retry_after) = details(error);
        // OpenRouter sends moderation errors with 403, which otherwise means a problem of the key.
        let is_flagged =
            ["/metadata/reasons", "/metadata/flagged_input"].iter().any(|at| error.pointer(at).is_some());
        let flagged = if is_flagged { " moderation" } else { "" };
        let kind = format!("{} {reasons}{flagged}", words.join(" "));
        Some(Self { message, kind, parameter, status, retry_after })
    }

    fn text(text: &str) -> Self {
        Self { message: text.to_owned(), ..Self::default() }
    }
}

/// Returns the reasons and the time to wait from the details that Google's services send:
/// <https://cloud.google.com/apis/design/errors#error_details>.
fn details(error: &Json) -> (String, Option<Duration>) {
    let mut reasons = String::new();
    let mut wait = None;
    for detail in error.get("details").and_then(Json::as_array).into_iter().flatten() {
        if let Some(reason) = detail.get("reason").and_then(Json::as_str) {
            reasons.push_str(reason);
            reasons.push(' ');
        }
        let delay = detail.get("retryDelay").and_then(Json::as_str);
        let seconds = delay.and_then(|delay| delay.strip_suffix('s')?.parse().ok());
        wait = wait.or_else(|| Duration::try_from_secs_f64(seconds?).ok());
    }
    (reasons, wait)
}

/// Returns true if a JSON text is an error object rather than an answer.
pub(crate) fn is_error(text: &str) -> bool {
    serde_json::from_str::<Json>(text)
        .is_ok_and(|json| json.get("choices").is_none() && ErrorObject::from_json(&json).is_some())
}

/// Returns true if JSON text is invalid only because it ends too early, most likely because the connection
/// broke. The parser reports an incomplete number, such as `-` or `1.`, as a syntax error.
fn is_torn(error: &serde_json::Error, text: &str) -> bool {
    let is_at_end = || {
        let last = text.rsplit('\n').next().unwrap_or_default();
        error.line() == text.split('\n').count() && error.column() >= last.len()
    };
    error.is_eof() || (error.is_syntax() && text.ends_with(['-', '+', '.', 'e', 'E']) && is_at_end())
}

/// Returns the error for an event that cannot be parsed because it was cut off. The caller reports the error only if
/// another event follows; otherwise the connection most likely broke. `end_mark` is a text that is not JSON and
/// marks the end of the stream; it may be cut off too.
///
/// # Errors
/// The same error, if the event is invalid for another reason.
pub(crate) fn torn(
    error: &serde_json::Error,
    data: &str,
    what: &str,
    end_mark: Option<&str>,
) -> Result<ProviderError, ProviderError> {
    let unread = ProviderError::Protocol(format!("{what} ({error}): {}", first_words(data)).into());
    let is_cut = is_torn(error, data) || end_mark.is_some_and(|mark| mark.starts_with(data));
    if is_cut { Ok(unread) } else { Err(unread) }
}

/// Classifies an error object in the middle of a stream.
pub(crate) fn stream_error(event: &Json) -> ProviderError {
    let failure = Failure { status: 200, ..Failure::default() };
    match ErrorObject::from_json(event) {
        Some(object) => failure.classify_object(object),
        None => failure.classify_object(ErrorObject::text(&first_words(&event.to_string()))),
    }
}

/// Classifies the data of an event that reports an error: an error object or plain text.
pub(crate) fn error_in(data: &str) -> ProviderError {
    stream_error(&serde_json::from_str(data).unwrap_or_else(|_| Json::String(data.to_owned())))
}

/// Returns the first 200 characters in one line, followed by `…` if text was cut.
pub(crate) fn first_words(text: &str) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        // One more than 200, to know if the text goes on.
        words.extend(word.chars().take(201));
        if let Some((end, _)) = words.char_indices().nth(200) {
            words.truncate(end);
            words.push(CUT);
            break;
        }
    }
    if words.is_empty() { "an empty body".to_owned() } else { words }
}

/// Returns the error with every secret removed from its text.
pub(crate) fn redacted(error: ProviderError, redactor: &Redactor) -> ProviderError {
    error.with_text(|text| redactor.clean_cut(text, CUT))
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;
