//! `POST /v1/messages`: messages of tenants to the assistant.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use archon::{
    RunError, SystemClock,
    orchestrator::{Assistant, AssistantError, AssistantReply, Incoming},
    server::{
        Caller, Right, Server,
        axum::{
            Router,
            body::{Body, to_bytes},
            extract::Request,
            http::{
                HeaderValue, StatusCode,
                header::{CONTENT_TYPE, RETRY_AFTER},
            },
            response::Response,
            routing::post,
        },
    },
    types::{Clock as _, Json, TenantId, Timestamp, TokenBucket},
};
use serde::Deserialize;
use serde_json::json;

/// The most bytes of a message.
const MOST_BYTES: usize = 1 << 20;

/// The most messages of a tenant in an hour.
const MOST_MESSAGES: u32 = 600;

/// The body of a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    text: String,
}

/// The assistant, the tenant of each token, and the messages that each tenant may still send.
#[derive(Clone)]
pub(super) struct Messages {
    assistant: Arc<Assistant>,
    tenants: Arc<BTreeMap<String, TenantId>>,
    buckets: Arc<Mutex<BTreeMap<TenantId, TokenBucket>>>,
}

/// A refusal of a request, as a problem document (RFC 9457).
struct Refusal {
    status: StatusCode,
    rule: &'static str,
    detail: String,
    advice: String,
    /// The time after which the same request may be admitted.
    retry_after: Option<Duration>,
}

impl Messages {
    pub(super) fn new(assistant: Assistant, tenants: BTreeMap<String, TenantId>) -> Self {
        Self { assistant: Arc::new(assistant), tenants: Arc::new(tenants), buckets: Arc::default() }
    }

    /// Returns the router, behind the checks of the server.
    pub(super) fn router(self, server: &Server) -> Router {
        let answer = move |request: Request| {
            let messages = self.clone();
            async move { messages.answer(request).await.unwrap_or_else(|refusal| refusal.response()) }
        };
        server.guarded(Router::new().route("/v1/messages", post(answer)), Right::Operate)
    }

    async fn answer(&self, request: Request) -> Result<Response, Refusal> {
        let caller = request.extensions().get::<Caller>();
        let tenant = caller.and_then(|caller| self.tenants.get(caller.name())).cloned();
        let tenant = tenant.ok_or_else(|| {
            Refusal::new(StatusCode::UNAUTHORIZED, "token-unknown", "the token is not known", "send a token")
        })?;
        // Before all work: each message costs a search in the memory and calls of models.
        self.take(&tenant, SystemClock.now())?;
        let bytes = to_bytes(request.into_body(), MOST_BYTES).await.map_err(|_| {
            let detail = format!("the message has more than {MOST_BYTES} bytes, or ended early");
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "body-size", detail, "send a shorter message")
        })?;
        let wrong = |detail: String| {
            Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "body", detail, "send {\"text\": \"…\"}")
        };
        let sent: Sent = serde_json::from_slice(&bytes)
            .map_err(|error| wrong(format!("the body is not a message: {error}")))?;
        if sent.text.trim().is_empty() {
            return Err(wrong("the message is empty".to_owned()));
        }
        // In a task of its own, which goes on if the client disconnects: the message may have had an effect already.
        let assistant = self.assistant.clone();
        let work = async move { assistant.handle_message(Incoming::person(tenant, sent.text)).await };
        match tokio::spawn(work).await {
            Ok(Ok(reply)) => Ok(reply_of(&reply)),
            Ok(Err(error)) => Err(Refusal::of(&error)),
            Err(error) => {
                let detail = format!("the work on the message was interrupted: {error}");
                Err(Refusal::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "internal",
                    detail,
                    "look at the runs first",
                ))
            }
        }
    }

    /// Counts a message of a tenant.
    fn take(&self, tenant: &TenantId, now: Timestamp) -> Result<(), Refusal> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = || TokenBucket::new(MOST_MESSAGES, Duration::from_secs(3600), now);
        buckets.entry(tenant.clone()).or_insert_with(bucket).take(now).map_err(|at| {
            let wait = at.since(now);
            let detail = format!("the tenant {tenant} sent more than {MOST_MESSAGES} messages in an hour");
            let advice = format!("send it again in {} s", seconds(wait));
            let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, "message-limit", detail, advice);
            Refusal { retry_after: Some(wait), ..refusal }
        })
    }
}

/// Returns whole seconds, and never less than the time.
fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

impl Refusal {
    fn new(
        status: StatusCode,
        rule: &'static str,
        detail: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { status, rule, detail: detail.into(), advice: advice.into(), retry_after: None }
    }

    fn of(error: &AssistantError) -> Self {
        let (status, rule) = match error {
            AssistantError::Conversation { source, .. } => match **source {
                RunError::SessionBusy { .. } => (409, "session-busy"),
                ref source => (source.http_status(), "run-failed"),
            },
            _ => (503, "unavailable"),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::new(status, rule, error.to_string(), error.advice())
    }

    fn response(self) -> Response {
        let body = json!({
            "type": format!("urn:archon:problem:{}", self.rule),
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "detail": self.detail,
            "advice": self.advice,
        });
        let mut response = response(self.status, "application/problem+json", &body);
        if let Some(wait) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds(wait)));
        }
        response
    }
}

fn reply_of(reply: &AssistantReply) -> Response {
    let run = reply.run.as_ref().map(|run| run.outcome());
    let body = json!({
        "text": reply.text,
        "run": run.map(|outcome| &outcome.run),
        "status": run.map(|outcome| json!(outcome.status)["status"].clone()),
        "waiting": reply.waiting,
    });
    let mut response = response(StatusCode::OK, "application/json", &body);
    // The log of requests names the run.
    if let Some(run) = run.and_then(|outcome| HeaderValue::from_str(outcome.run.as_str()).ok()) {
        response.headers_mut().insert("x-archon-run", run);
    }
    response
}

fn response(status: StatusCode, kind: &'static str, body: &Json) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
