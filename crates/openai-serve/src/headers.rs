//! Headers of requests and responses, and responses with a JSON body.

use archon_types::{Json, RunId};
use axum::{
    body::Body,
    http::{
        HeaderMap, HeaderValue,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::Response,
};

/// The name of the response header with the id of the run.
const RUN: &str = "x-archon-run";

/// Adds the header with the id of the run.
pub(crate) fn name_run(headers: &mut HeaderMap, run: &RunId) {
    if let Ok(run) = HeaderValue::try_from(run.as_str()) {
        headers.insert(RUN, run);
    }
}

/// Returns a response with a JSON body, and with the id of the run in a header if there is a run.
pub(crate) fn json_response(body: &Json, run: Option<&RunId>) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(run) = run {
        name_run(headers, run);
    }
    response
}
