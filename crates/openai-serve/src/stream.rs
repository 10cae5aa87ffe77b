//! Streams a run as server-sent events, in the form of one of the two endpoints.

use std::convert::Infallible;

use archon_types::RunError;
use axum::{
    body::Body,
    http::{
        HeaderValue,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::Response,
};
use futures_util::{StreamExt, stream};

use crate::{
    ending::Ending,
    error::ApiError,
    follow::{Followed, Step},
    headers::name_run,
    transcript::{Part, Piece},
};

/// A comment, which shows the client and all proxies that the connection is alive.
const HEARTBEAT: &str = ": alive\n\n";

/// Writes the events of an endpoint.
pub(crate) trait Writer: Send + 'static {
    /// Writes the beginning.
    fn begin(&mut self) -> String;

    /// Writes pieces of the answer.
    ///
    /// # Errors
    /// The protocol cannot express a piece.
    fn pieces(&mut self, pieces: &[Piece]) -> Result<String, ApiError>;

    /// Writes the last pieces and the end. `parts` are all parts of the answer.
    ///
    /// # Errors
    /// The run failed, and the protocol reports this by an error.
    fn end(&mut self, pieces: &[Piece], parts: &[Part], ending: &Ending) -> Result<String, ApiError>;

    /// Writes an error, which is the last event.
    fn fail(&mut self, error: &ApiError) -> String;
}

/// Returns the response that streams a run.
pub(crate) fn respond(followed: Followed, mut writer: impl Writer) -> Response {
    let run = followed.run.clone();
    let first = stream::iter([Ok(writer.begin())]);
    let rest = stream::unfold((followed, writer), |(mut followed, mut writer)| async move {
        let text = next_text(&mut followed, &mut writer).await?;
        Some((Ok::<_, Infallible>(text), (followed, writer)))
    });
    let mut response = Response::new(Body::from_stream(first.chain(rest)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A proxy would hold events back until it has many.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    name_run(headers, &run);
    response
}

/// Returns the next text of a stream; `None` at its end.
async fn next_text(followed: &mut Followed, writer: &mut impl Writer) -> Option<String> {
    loop {
        let clock = followed.shared.clock.clone();
        let pause = clock.sleep_until(clock.now() + followed.shared.options.heartbeat);
        let step = tokio::select! {
            biased;
            step = followed.next() => Some(step),
            () = pause => None,
        };
        let Some(step) = step else { return Some(HEARTBEAT.to_owned()) };
        let written = match step? {
            Ok(Step::Said(pieces)) => writer.pieces(&pieces),
            Ok(Step::Ended(pieces, ending)) => writer.end(&pieces, followed.transcript.parts(), &ending),
            Err(error) => Err(error),
        };
        match written {
            // A piece of which nothing is written, such as the end of a part.
            Ok(text) if text.is_empty() => {}
            Ok(text) => return Some(text),
            Err(error) => {
                followed.leave();
                return Some(writer.fail(&error.of_run(&followed.run)));
            }
        }
    }
}

/// Returns the error of a failed run.
pub(crate) fn failure_of(ending: &Ending) -> ApiError {
    RunError::Failed { outcome: Box::new(ending.outcome.clone()) }.into()
}
