//! The dashboard: a page for people, whose files are a part of the program. The files hold no data, so they need no token;
//! what the page shows comes from the other routes.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
        },
        request::Parts,
    },
    response::Response,
    routing::get,
};
use hmac_sha256::Hash;

use crate::{
    check::check_page,
    cookie::hex,
    reply::{empty, protect},
    state::State,
};

/// The name and the bytes of a file of the page.
type File = (&'static str, &'static [u8]);

macro_rules! files {
    ($($name:literal;)*) => {
        &[$(($name, include_bytes!(concat!("../dashboard/", $name)).as_slice())),*]
    };
}

/// All files of the page: those of the folder `dashboard` whose type a browser needs, one a line.
const FILES: &[File] = files! {
    "announce.js";
    "answers.js";
    "api.js";
    "app.css";
    "app.js";
    "call-item.js";
    "controls.js";
    "conversation.js";
    "costs.js";
    "data.js";
    "diff-view.js";
    "fold-calls.js";
    "fold-deltas.js";
    "fold-messages.js";
    "fold-model.js";
    "fold-notes.js";
    "fold.js";
    "fork-dialog.js";
    "format.js";
    "help-dialog.js";
    "hooks.js";
    "icon.svg";
    "index.html";
    "item-foot.js";
    "keyboard.js";
    "keys.js";
    "markdown-blocks.js";
    "markdown-inline.js";
    "markdown.js";
    "me.js";
    "pause.js";
    "performance.js";
    "preact.js";
    "question-card.js";
    "record-summary.js";
    "route.js";
    "run-actions.js";
    "run-log.js";
    "states.js";
    "status.js";
    "stream.js";
    "transcript-item.js";
    "view-approvals.js";
    "view-graph.js";
    "view-memories.js";
    "view-playground.js";
    "view-records.js";
    "view-run-usage.js";
    "view-run.js";
    "view-runs.js";
    "view-session.js";
    "view-sessions.js";
    "view-tools.js";
    "view-transcript.js";
    "view-waterfall.js";
    "views.css";
    "virtual-list.js";
    "virtual.js";
    "waterfall-canvas.js";
    "waterfall-scale.js";
};

/// The page, which refers to the other files.
const PAGE: &str = "index.html";

/// The content security policy: files and data of this server only, no script or style within the page, no frames.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      object-src 'none'; img-src 'self' data:";

/// Adds the routes of the page: `GET /`, and a route for each other file.
pub(crate) fn add_routes(mut router: Router, state: &Arc<State>) -> Router {
    for (name, bytes) in FILES.iter().copied() {
        let Some(headers) = headers(name, bytes) else { continue };
        let state = state.clone();
        let handler = move |request: Request| {
            let (parts, _) = request.into_parts();
            let mut response = answer(&state, &parts, &headers, bytes);
            protect(response.headers_mut());
            std::future::ready(response)
        };
        let path = if name == PAGE { "/".to_owned() } else { format!("/dashboard/{name}") };
        router = router.route(&path, get(handler));
    }
    router
}

fn answer(state: &State, parts: &Parts, headers: &HeaderMap, bytes: &'static [u8]) -> Response {
    if let Err(problem) = check_page(state, parts) {
        return problem.into_response();
    }
    let is_known = headers.get(ETAG).is_some_and(|tag| parts.headers.get(IF_NONE_MATCH) == Some(tag));
    let mut response = match is_known {
        true => empty(StatusCode::NOT_MODIFIED),
        false => Response::new(Body::from(bytes)),
    };
    response.headers_mut().extend(headers.clone());
    response
}

/// Returns the headers of a file; `None` for a file of an unknown type.
fn headers(name: &str, bytes: &[u8]) -> Option<HeaderMap> {
    let hash = hex(&Hash::hash(bytes));
    let tag = HeaderValue::try_from(format!("\"{}\"", hash.get(..16)?)).ok()?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind(name)?));
    headers.insert(ETAG, tag);
    // A browser asks each time whether the file has changed, so that page and server always fit together.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    Some(headers)
}

/// Returns the type of a file; `None` for a file that is not sent, such as a licence.
fn kind(name: &str) -> Option<&'static str> {
    match name.rsplit_once('.')?.1 {
        "html" => Some("text/html; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn files_are_those_of_the_folder_with_a_type() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/dashboard")).unwrap();
        let entries = folder.map(Result::unwrap).filter(|entry| entry.path().is_file());
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let sent: BTreeSet<String> = names.filter(|name| kind(name).is_some()).collect();
        let table: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(table, sent, "one line of FILES for each file of the folder");
        assert_eq!(table.len(), FILES.len());
        assert!(table.contains(PAGE));
    }
}
