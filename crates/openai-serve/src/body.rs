//! Reads a request: its idempotency key, its body, and fields of simple types.

use std::{pin::pin, time::Duration};

use archon_types::{Json, TRIGGER_KEYS};
use axum::{
    body::Body,
    http::{HeaderMap, StatusCode},
};
use futures_util::{
    StreamExt,
    future::{Either, select},
};
use serde_json::Map;

use crate::{error::ApiError, shared::Shared};

/// The maximum length of an idempotency key in bytes.
const LONGEST_KEY: usize = 255;

/// The maximum time until a body has arrived.
const BODY_TIME: Duration = Duration::from_secs(30);

/// The fields of a body.
pub(crate) type Fields = Map<String, Json>;

/// Returns the idempotency key, without quotes around it.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let wrong = |detail: String| {
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_header", format!("Idempotency-Key: {detail}"))
    };
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(key) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(wrong("the header is there twice; send one key".to_owned()));
    }
    let key = key.to_str().map_err(|_| wrong("the key is no text in ASCII; send another key".to_owned()))?;
    let key = key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key);
    if key.is_empty() || key.len() > LONGEST_KEY {
        return Err(wrong(format!("the key must have 1 to {LONGEST_KEY} characters")));
    }
    if key.starts_with(TRIGGER_KEYS) {
        return Err(wrong(format!(
            "keys that begin with `{TRIGGER_KEYS}` are those of tasks; send another one"
        )));
    }
    Ok(Some(key.to_owned()))
}

/// Reads the body, which is a JSON object of at most [`max_body`](crate::ModelServerOptions::max_body) bytes.
pub(crate) async fn read_fields(shared: &Shared, body: Body) -> Result<Fields, ApiError> {
    let read = pin!(collect(body, shared.options.max_body));
    let deadline = shared.clock.sleep_until(shared.clock.now() + BODY_TIME);
    let bytes = match select(read, deadline).await {
        Either::Left((bytes, _)) => bytes?,
        Either::Right(_) => {
            let seconds = BODY_TIME.as_secs();
            let detail = format!("the body did not arrive in {seconds} s; send the request again");
            return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "slow_body", detail));
        }
    };
    let wrong = |detail: String| ApiError::new(StatusCode::BAD_REQUEST, "invalid_json", detail);
    match serde_json::from_slice(&bytes) {
        Ok(Json::Object(fields)) => Ok(fields),
        Ok(_) => Err(wrong("the body is no JSON object; send an object".to_owned())),
        Err(error) => Err(wrong(format!("the body is not JSON: {error}"))),
    }
}

async fn collect(body: Body, most: usize) -> Result<Vec<u8>, ApiError> {
    let mut chunks = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| {
            ApiError::new(
                StatusCode::BAD_REQUEST,
                "broken_body",
                format!("the body of the request ended early: {error}"),
            )
        })?;
        if chunk.len() > most - bytes.len() {
            let detail = format!("the body has more than {most} bytes; send a smaller one");
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_size", detail));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Returns the text of a field; `None` if the field is absent or null.
pub(crate) fn text<'a>(fields: &'a Fields, name: &str) -> Result<Option<&'a str>, ApiError> {
    match fields.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong_type(name, "a string")),
    }
}

/// Returns the text of a required field.
pub(crate) fn required_text<'a>(fields: &'a Fields, name: &str) -> Result<&'a str, ApiError> {
    text(fields, name)?.filter(|text| !text.is_empty()).ok_or_else(|| missing(name))
}

/// Returns the truth value of a field; false if the field is absent or null.
pub(crate) fn flag(fields: &Fields, name: &str) -> Result<bool, ApiError> {
    match fields.get(name) {
        None | Some(Json::Null) => Ok(false),
        Some(Json::Bool(flag)) => Ok(*flag),
        Some(_) => Err(wrong_type(name, "true or false")),
    }
}

/// Returns the error for a required field that is absent.
pub(crate) fn missing(param: &str) -> ApiError {
    ApiError::field("missing_required_parameter", param, format!("Missing required parameter: '{param}'."))
}

/// Returns the error for a field of another type.
pub(crate) fn wrong_type(param: &str, wanted: &str) -> ApiError {
    ApiError::field("invalid_type", param, format!("Invalid type for '{param}': it must be {wanted}."))
}
