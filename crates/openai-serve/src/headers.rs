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

/// The header that names the run of a response.
const RUN: &str = "x-archon-run";

/// Names the run of a response.
pub(crate) fn name_run(headers: &mut HeaderMap, run: &RunId) {
    if let Ok(run) = HeaderValue::try_from(run.as_str()) {
        headers.insert(RUN, run);
    }
}

/// Returns a response with a JSON body, of a run if there is one.
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
