//! The dashboard: a web page for people. Its files are compiled into the program. They contain no data, so they
//! need no token; the page gets its data from the other routes.

use std::{
    io::Write as _,
    sync::{Arc, OnceLock},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode,
        header::{
            ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
            IF_NONE_MATCH, REFERRER_POLICY, VARY,
        },
        request::Parts,
    },
    response::Response,
    routing::get,
};
use flate2::{Compression, write::GzEncoder};
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

/// All files of the page, one per line: the files of the folder `dashboard` whose type a browser needs.
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
    "forks.js";
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
    "steady.js";
    "stream.js";
    "tasks.js";
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
    "view-tasks.js";
    "view-tools.js";
    "view-transcript.js";
    "view-waterfall.js";
    "views.css";
    "virtual-list.js";
    "virtual.js";
    "waterfall-canvas.js";
    "waterfall-scale.js";
};

/// The HTML file of the page, which refers to the other files.
const PAGE: &str = "index.html";

/// The content security policy: files and data of this server only, no script or style within the page, no frames.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      object-src 'none'; img-src 'self' data:";

/// Adds the routes of the page: `GET /`, and a route for each other file.
pub(crate) fn add_routes(mut router: Router, state: &Arc<State>) -> Router {
    for (name, bytes) in FILES.iter().copied() {
        let Some(headers) = headers(name, bytes) else { continue };
        let file = Arc::new(Served { headers, bytes, zipped: OnceLock::new() });
        let state = state.clone();
        let handler = move |request: Request| {
            let (parts, _) = request.into_parts();
            let mut response = answer(&state, &parts, &file);
            protect(response.headers_mut());
            std::future::ready(response)
        };
        let path = if name == PAGE { "/".to_owned() } else { format!("/dashboard/{name}") };
        router = router.route(&path, get(handler));
    }
    router
}

/// A file that is served.
struct Served {
    headers: HeaderMap,
    bytes: &'static [u8],
    /// The file in gzip, made at the first request that accepts gzip. The inner `None` means that the file
    /// cannot be compressed.
    zipped: OnceLock<Option<Bytes>>,
}

fn answer(state: &State, parts: &Parts, file: &Served) -> Response {
    if let Err(problem) = check_page(state, parts) {
        return problem.into_response();
    }
    let zipped = || file.zipped.get_or_init(|| gzip(file.bytes)).clone();
    let mut response = if is_known(&parts.headers, &file.headers) {
        empty(StatusCode::NOT_MODIFIED)
    } else if let Some(bytes) = accepts_gzip(&parts.headers).then(zipped).flatten() {
        let mut response = Response::new(Body::from(bytes));
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    } else {
        Response::new(Body::from(file.bytes))
    };
    response.headers_mut().extend(file.headers.clone());
    response
}

/// Returns true if the header `If-None-Match` of the request has the entity tag of the file, or `*`.
fn is_known(request: &HeaderMap, file: &HeaderMap) -> bool {
    let tag = file.get(ETAG).and_then(|tag| tag.to_str().ok()).map(opaque);
    elements(request, IF_NONE_MATCH).any(|known| known == "*" || Some(opaque(known)) == tag)
}

/// Returns an entity tag without the prefix `W/` of weak tags.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

fn accepts_gzip(request: &HeaderMap) -> bool {
    elements(request, ACCEPT_ENCODING).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_none_or(|weight| weight > 0.0)
    })
}

/// Returns the elements of the list that a header has.
fn elements(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

/// Returns bytes in gzip; `None` if they cannot be compressed.
fn gzip(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

/// Returns the headers of a file; `None` for a file of an unknown type.
fn headers(name: &str, bytes: &[u8]) -> Option<HeaderMap> {
    let hash = hex(&Hash::hash(bytes));
    // A weak tag, since the file and its gzip form have the same one.
    let tag = HeaderValue::try_from(format!("W/\"{}\"", hash.get(..16)?)).ok()?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind(name)?));
    headers.insert(ETAG, tag);
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
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
    use std::{collections::BTreeSet, io::Read as _};

    use flate2::read::GzDecoder;

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

    #[test]
    fn gzip_of_a_file_is_smaller_and_has_its_bytes() {
        for (name, bytes) in FILES.iter().copied() {
            let zipped = gzip(bytes).unwrap();
            let mut whole = Vec::new();
            GzDecoder::new(&zipped[..]).read_to_end(&mut whole).unwrap();
            assert!(whole == bytes && zipped.len() < bytes.len(), "{name}");
        }
    }
}
