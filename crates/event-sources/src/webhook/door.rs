//! The router of web hooks.

use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};

use archon_triggers::{TriggerEngine, TriggerError, TriggerEvent};
use archon_types::{Clock, Json, Timestamp};
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Path, Request, State},
    http::{HeaderValue, StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
    routing::post,
};

use super::{Hook, Refusal, Webhook, WebhookCounts, signature::Signed};

/// The longest time until the body of a request has arrived.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Takes requests of web hooks, and publishes them as events. Cloning is cheap, and clones share everything.
///
/// A JSON body with a text `type` is an event of this type, with the field `data` as its data, or the whole body without that
/// field. The type of another body is `received`. The id of the event is that of the request.
///
/// | answer | after |
/// |---|---|
/// | 202 | the event is stored, or no task takes it |
/// | 401 | a signature that is missing or wrong |
/// | 409 | a request that came before, or whose time is more than five minutes away |
/// | 413, 429 | a body that is too large, too many requests in a minute |
/// | 400 | a body that is not JSON, or does not arrive in time |
/// | 503 | an event that cannot be stored now: the service sends it again |
///
/// ```
/// use std::sync::Arc;
///
/// use archon_event_sources::{Webhook, WebhookDoor, WebhookError};
/// use archon_triggers::TriggerEngine;
/// use archon_types::{Clock, Secret};
/// use axum::Router;
///
/// /// Takes the events of a shop at `/webhooks/shop`.
/// fn with_shop(server: Router, engine: TriggerEngine, clock: Arc<dyn Clock>, secret: &Secret) -> Result<Router, WebhookError> {
///     let door = WebhookDoor::new(engine, clock, [Webhook::new("shop", secret)?]);
///     Ok(server.merge(door.router()))
/// }
/// ```
#[derive(Clone)]
pub struct WebhookDoor {
    shared: Arc<Shared>,
}

struct Shared {
    engine: TriggerEngine,
    clock: Arc<dyn Clock>,
    hooks: BTreeMap<String, Hook>,
}

impl WebhookDoor {
    /// Creates the door to an engine, which must be the one that serves the tasks. If several web hooks have the same
    /// name, the last one counts.
    pub fn new(
        engine: TriggerEngine,
        clock: Arc<dyn Clock>,
        hooks: impl IntoIterator<Item = Webhook>,
    ) -> Self {
        let now = clock.now();
        let hooks = hooks.into_iter().map(|hook| (hook.name.clone(), Hook::new(hook, now))).collect();
        Self { shared: Arc::new(Shared { engine, clock, hooks }) }
    }

    /// Returns the router, with `POST /webhooks/{name}`. It has no fallback, so you can merge it with other routers. The
    /// signature is its check: do not put it behind checks for an access token.
    pub fn router(&self) -> Router {
        Router::new().route("/webhooks/{name}", post(receive)).with_state(self.shared.clone())
    }

    /// Returns the numbers of requests to a web hook; `None` if there is none with this name.
    pub fn counts(&self, name: &str) -> Option<WebhookCounts> {
        self.shared.hooks.get(name).map(Hook::counts)
    }
}

impl std::fmt::Debug for WebhookDoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookDoor").field("hooks", &self.shared.hooks.keys()).finish_non_exhaustive()
    }
}

async fn receive(State(shared): State<Arc<Shared>>, Path(name): Path<String>, request: Request) -> Response {
    let Some(hook) = shared.hooks.get(&name) else { return StatusCode::NOT_FOUND.into_response() };
    let (parts, body) = request.into_parts();
    let body = match read_body(body, hook.hook.max_bytes, &*shared.clock).await {
        Ok(body) => body,
        Err(refusal) => {
            hook.count(Err(refusal), None);
            return answer(&name, Err(refusal));
        }
    };
    let signed = Signed::read(&parts.headers, &body);
    let result = match &signed {
        Some(signed) => shared.take(hook, signed, &body).await,
        None => Err(Refusal::WrongSignature),
    };
    hook.count(result, signed.as_ref());
    answer(&name, result)
}

impl Shared {
    async fn take(&self, hook: &Hook, signed: &Signed<'_>, body: &[u8]) -> Result<(), Refusal> {
        let now = self.clock.now();
        hook.admit(signed, now)?;
        let event = event(&hook.hook, signed.id, body, now).ok_or(Refusal::Unreadable)?;
        match self.engine.publish(&event).await {
            Ok(_) => Ok(()),
            // The service would send it again for ever.
            Err(TriggerError::EventTooLarge { .. }) => Err(Refusal::TooLarge),
            Err(error) => {
                tracing::warn!(hook = hook.hook.name, "an event is not stored: {error}");
                Err(Refusal::NotStored)
            }
        }
    }
}

/// Returns the event of a request; `None` if the body is not JSON.
fn event(hook: &Webhook, id: &str, body: &[u8], now: Timestamp) -> Option<TriggerEvent> {
    let mut body: Json = serde_json::from_slice(body).ok()?;
    let kind = body.get("type").and_then(Json::as_str).map(str::to_owned);
    let data = kind.as_ref().and_then(|_| body.get_mut("data")).map(Json::take);
    let kind = kind.unwrap_or_else(|| "received".to_owned());
    let mut event = TriggerEvent::new(id, &hook.name, kind, data.unwrap_or(body)).at(now);
    event.tenant.clone_from(&hook.tenant);
    Some(event)
}

async fn read_body(body: Body, most: usize, clock: &dyn Clock) -> Result<Vec<u8>, Refusal> {
    let mut read = pin!(to_bytes(body, most));
    match clock.before(clock.now() + BODY_TIME, |task| read.as_mut().poll(task)).await {
        Some(Ok(bytes)) => Ok(bytes.into()),
        Some(Err(_)) => Err(Refusal::TooLarge),
        None => Err(Refusal::Unreadable),
    }
}

fn answer(name: &str, result: Result<(), Refusal>) -> Response {
    let (status, text) = match result {
        Ok(()) => return StatusCode::ACCEPTED.into_response(),
        Err(Refusal::WrongSignature) => (StatusCode::UNAUTHORIZED, "the signature is missing or wrong"),
        Err(Refusal::Replayed) => {
            (StatusCode::CONFLICT, "the request came before, or its time is over 5 minutes from now")
        }
        Err(Refusal::TooLarge) => (StatusCode::PAYLOAD_TOO_LARGE, "the body is too large, or ended early"),
        Err(Refusal::TooFast(_)) => (StatusCode::TOO_MANY_REQUESTS, "too many requests in a minute"),
        Err(Refusal::Unreadable) => {
            (StatusCode::BAD_REQUEST, "the body is not JSON, or did not arrive in time")
        }
        Err(Refusal::NotStored) => (StatusCode::SERVICE_UNAVAILABLE, "the event cannot be stored now"),
    };
    tracing::info!(hook = name, status = status.as_u16(), "a web hook was refused: {text}");
    let mut response = (status, text).into_response();
    if let Err(Refusal::TooFast(wait)) = result {
        let seconds = u64::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(60);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
