//! The access token behind a request: its rights, its one-time links, and the cookie of a browser.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::Query,
    http::{
        HeaderValue, Method, StatusCode,
        header::{LOCATION, SET_COOKIE},
        request::Parts,
    },
    response::Response,
};
use serde::Deserialize;
use serde_json::json;

use crate::{
    access::Token,
    cookie::{self, Channel},
    problem::{Problem, Rule},
    reply::{Reply, empty, json},
    role::Right,
    state::State,
};

#[derive(Deserialize)]
struct SignInQuery {
    #[serde(default)]
    code: String,
}

/// Returns the name of the token, its role and its rights.
pub(crate) fn me(token: &Token) -> Reply {
    let rights: Vec<Right> = token.role.rights().collect();
    json(StatusCode::OK, &json!({ "name": token.name, "role": token.role, "rights": rights }))
}

/// Creates a one-time link for the token of the request. This needs no right, since the link gives nothing that
/// the token does not give. A request with a cookie gets no link: otherwise a cookie could be renewed for ever.
pub(crate) fn link(state: &State, token: &Arc<Token>) -> Reply {
    let unknown = || Problem::new(Rule::Internal, "the token is not one of this server").advise("try again");
    let index = state.tokens.iter().position(|other| Arc::ptr_eq(other, token)).ok_or_else(unknown)?;
    let (link, end) = state.create_link(index).map_err(|error| {
        Problem::new(Rule::Internal, format!("the link cannot be created: {error}")).advise("try again")
    })?;
    json(StatusCode::CREATED, &json!({ "link": link, "expires_at": end }))
}

/// Exchanges the code of a one-time link for a cookie, and redirects the browser to
/// [`ServerOptions::home`](crate::ServerOptions::home).
pub(crate) fn sign_in(state: &State, parts: &Parts) -> Reply {
    let refused = || {
        Problem::new(Rule::OneTimeLink, "the link was used before, has expired, or was never valid")
            .advise("open a new one-time link")
    };
    // Who only looks at the link does not use it up.
    if parts.method == Method::HEAD {
        return Err(refused());
    }
    let query = Query::<SignInQuery>::try_from_uri(&parts.uri).map_err(|_| refused())?;
    let now = state.now();
    let token = state.codes.take(&query.code, now).and_then(|index| state.tokens.get(index));
    let token = token.ok_or_else(refused)?;
    let time = state.options.cookie_time;
    let value = cookie::value(&token.hash, now + time);
    let mut response = with_cookie(state, parts, &value, time);
    *response.status_mut() = StatusCode::SEE_OTHER;
    let home = HeaderValue::try_from(&state.options.home);
    response.headers_mut().insert(LOCATION, home.unwrap_or(HeaderValue::from_static("../")));
    tracing::info!(target: "archon::server", by = %token.name, "a one-time link was used");
    Ok(response)
}

/// Removes the cookie.
pub(crate) fn sign_out(state: &State, parts: &Parts) -> Response {
    with_cookie(state, parts, "", Duration::ZERO)
}

fn with_cookie(state: &State, parts: &Parts, value: &str, time: Duration) -> Response {
    let mut response = empty(StatusCode::NO_CONTENT);
    let is_encrypted = parts.extensions.get::<Channel>().is_some_and(|channel| channel.is_encrypted);
    let is_secure = state.options.secure_cookie || is_encrypted;
    let header = cookie::header(&state.cookie_name, value, time, is_secure);
    if let Ok(header) = HeaderValue::try_from(header) {
        response.headers_mut().insert(SET_COOKIE, header);
    }
    response
}
