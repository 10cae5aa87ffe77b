//! `POST /v1/messages`: messages of tenants to the assistant.

use std::{collections::BTreeMap, sync::Arc};

use archon::{
    RunError,
    orchestrator::{Assistant, AssistantError, AssistantReply, Incoming},
    server::{
        Caller, Right, Server,
        axum::{
            Router,
            body::{Body, to_bytes},
            extract::Request,
            http::{HeaderValue, StatusCode, header::CONTENT_TYPE},
            response::Response,
            routing::post,
        },
    },
    types::{Json, TenantId},
};
use serde::Deserialize;
use serde_json::json;

/// The most bytes of a message.
const MOST_BYTES: usize = 1 << 20;

/// The body of a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    text: String,
}

/// The assistant, and the tenant of each token.
#[derive(Clone)]
pub(super) struct Messages {
    pub(super) assistant: Arc<Assistant>,
    pub(super) tenants: Arc<BTreeMap<String, TenantId>>,
}

impl Messages {
    /// Returns the router, behind the checks of the server.
    pub(super) fn router(self, server: &Server) -> Router {
        let answer = move |request: Request| {
            let messages = self.clone();
            async move { messages.answer(request).await.unwrap_or_else(|refused| refused) }
        };
        server.guarded(Router::new().route("/v1/messages", post(answer)), Right::Operate)
    }

    async fn answer(&self, request: Request) -> Result<Response, Response> {
        let caller = request.extensions().get::<Caller>();
        let tenant = caller.and_then(|caller| self.tenants.get(caller.name())).cloned();
        let tenant = tenant.ok_or_else(|| {
            refusal(StatusCode::UNAUTHORIZED, "token-unknown", "the token is not known", "send a token")
        })?;
        let bytes = to_bytes(request.into_body(), MOST_BYTES).await.map_err(|_| {
            let detail = format!("the message has more than {MOST_BYTES} bytes, or did not come");
            refusal(StatusCode::PAYLOAD_TOO_LARGE, "body-size", &detail, "send a shorter message")
        })?;
        let sent: Sent = serde_json::from_slice(&bytes).map_err(|error| {
            let detail = format!("the body does not fit: {error}");
            refusal(StatusCode::UNPROCESSABLE_ENTITY, "body", &detail, "send {\"text\": \"…\"}")
        })?;
        if sent.text.trim().is_empty() {
            return Err(refusal(
                StatusCode::UNPROCESSABLE_ENTITY,
                "body",
                "the message is empty",
                "write a text",
            ));
        }
        // In a task of its own, which goes on if the client disconnects: the message may have had an effect already.
        let assistant = self.assistant.clone();
        let work = async move { assistant.handle_message(Incoming::person(tenant, sent.text)).await };
        match tokio::spawn(work).await {
            Ok(Ok(reply)) => Ok(reply_of(&reply)),
            Ok(Err(error)) => Err(problem_of(&error)),
            Err(error) => {
                let detail = format!("the work broke off: {error}");
                Err(refusal(StatusCode::INTERNAL_SERVER_ERROR, "internal", &detail, "look at the runs first"))
            }
        }
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

fn problem_of(error: &AssistantError) -> Response {
    let (status, rule) = match error {
        AssistantError::Conversation { source, .. } => match **source {
            RunError::SessionBusy { .. } => (409, "session-busy"),
            ref source => (source.http_status(), "run-failed"),
        },
        _ => (503, "unavailable"),
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    refusal(status, rule, &error.to_string(), error.advice())
}

/// Returns a problem document (RFC 9457).
fn refusal(status: StatusCode, rule: &str, detail: &str, advice: &str) -> Response {
    let body = json!({
        "type": format!("urn:archon:problem:{rule}"),
        "title": status.canonical_reason().unwrap_or_default(),
        "status": status.as_u16(),
        "detail": detail,
        "advice": advice,
    });
    response(status, "application/problem+json", &body)
}

fn response(status: StatusCode, kind: &'static str, body: &Json) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
