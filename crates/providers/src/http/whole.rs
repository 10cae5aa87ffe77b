//! Runs one exchange whose answer is not streamed.

use archon_types::{CancellationToken, ProviderError, Timestamp};
use reqwest::Request;

use super::{
    Transport,
    body::{Body, BodyError},
    events::{body_error, compressed, failure_of},
    watch::Watch,
};
use crate::classify;

/// A successful answer.
pub(crate) struct Whole {
    pub(crate) text: String,
    /// The excerpt of the body for the error if the text is no valid answer.
    pub(crate) shown: String,
}

/// Sends a request and reads the answer. A response with a status of failure is an error, as in a stream.
/// Dropping the future closes the connection.
pub(crate) async fn answer(
    transport: &Transport,
    request: Request,
    now: Timestamp,
) -> Result<Whole, ProviderError> {
    let redacted = |error| classify::redacted(error, &transport.redactor);
    let mut watch = Watch::new(CancellationToken::new(), transport.options.timeouts);
    let mut sent = transport.send(request)?;
    let response = std::future::poll_fn(|cx| watch.poll_for(&mut sent, cx)).await;
    let response =
        response.map_err(|limit| redacted(body_error(BodyError::Interrupted(limit), transport)))?;
    let response = response.map_err(|e| redacted(transport.failure(e)))?;
    let failure = failure_of(response.status(), response.headers(), now);
    if let Some(reason) = compressed(&response) {
        return Err(redacted(failure.classify(&reason)));
    }
    let is_success = response.status().is_success();
    let (text, end) = Body::new(response, watch).text().await;
    let text = transport.redactor.clean(text);
    if !is_success || classify::is_error(&text) {
        return Err(failure.classify(&text));
    }
    end.map_err(|e| redacted(body_error(e, transport)))?;
    Ok(Whole { shown: failure.excerpt(&text), text })
}
