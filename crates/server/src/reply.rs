//! Responses: JSON, streams of events, and the headers that every response has.

use std::convert::Infallible;

use axum::{
    body::Body,
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
        },
    },
    response::Response,
};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Serialize;

use crate::problem::{Problem, Rule};

/// The first line of a stream of events: the pause in milliseconds before a browser connects again.
const RETRY: &str = "retry: 1000\n\n";

/// A comment in a stream of events, which shows proxies that the connection is alive.
pub(crate) const HEARTBEAT: &str = ": alive\n\n";

/// The result of an operation.
pub(crate) type Reply = Result<Response, Problem>;

/// Returns a response with a JSON body.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Reply {
    let text = serde_json::to_string(body)
        .map_err(|error| Problem::new(Rule::Internal, format!("the response cannot be written: {error}")))?;
    Ok(json_text(status, text))
}

/// Returns a response whose body is this JSON text.
pub(crate) fn json_text(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Returns a response with server-sent events. Each text is a whole event or comment.
pub(crate) fn event_stream(events: impl Stream<Item = String> + Send + 'static) -> Response {
    let first = stream::iter([RETRY.to_owned()]);
    let mut response = Response::new(Body::from_stream(first.chain(events).map(Ok::<_, Infallible>)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A proxy would hold events back until it has many.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Returns a response without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Adds the headers that every response has, unless it has them already. Browsers must not cache the response,
/// run scripts from it, show it in a frame, or give it to another site.
pub(crate) fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (REFERRER_POLICY, "same-origin"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    headers.entry("cross-origin-resource-policy").or_insert(HeaderValue::from_static("same-origin"));
}
