//! The checks of every request, in this order: host, origin, site, token, the token's limit of requests, the
//! header `Authorization` for routes that refuse cookies, the role, and for a write the content type.

use std::sync::Arc;

use archon_http_access::bearer_token;
use axum::http::{
    HeaderMap, Method,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN},
    request::Parts,
};

use crate::{
    access::Token,
    cookie,
    problem::{Problem, Rule},
    route::Needs,
    state::State,
};

/// The header in which a browser says if the page that sent the request is of this server, of the same site or
/// of another site.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Checks that the request is for this server, and that no page of another site sent it.
pub(crate) fn check_page(state: &State, parts: &Parts) -> Result<(), Problem> {
    let host = host(parts).filter(|host| state.hosts.admits(host)).ok_or_else(|| {
        Problem::new(Rule::Host, "the host of the request is not one by which this server is reached")
            .advise("use an address that the server shows, or add the host to the allowed ones")
    })?;
    let mut origins = parts.headers.get_all(ORIGIN).iter();
    let is_own = origins.all(|origin| origin.to_str().is_ok_and(|origin| is_origin_of(origin, host)));
    if !is_own {
        return Err(Problem::new(Rule::Origin, "a page of another origin sent the request")
            .advise("send the request from a page of this server, or from a program"));
    }
    let mut sites = parts.headers.get_all(SEC_FETCH_SITE).iter();
    // "none" is a person who opened the address.
    if !sites.all(|site| site == "same-origin" || site == "none") {
        return Err(Problem::new(
            Rule::CrossSite,
            "a page of another site sent the request, or linked to it",
        )
        .advise("open the address yourself"));
    }
    Ok(())
}

/// Returns the token of a request that may use a route, and counts the request.
pub(crate) fn check_token(state: &State, parts: &Parts, needs: Needs) -> Result<Arc<Token>, Problem> {
    let token = token_of(state, &parts.headers)?;
    token.count_request(state.now())?;
    if needs == Needs::Bearer && !parts.headers.contains_key(AUTHORIZATION) {
        let detail = "the request has a cookie, and this route needs the token itself";
        return Err(Problem::new(Rule::BearerOnly, detail).advise("send `Authorization: Bearer TOKEN`"));
    }
    if let Needs::Right(right) = needs
        && !token.role.has(right)
    {
        let detail = format!("the role {} does not have the right {right}", token.role);
        return Err(Problem::new(Rule::Role, detail).advise("use a token of another role"));
    }
    Ok(token)
}

/// Checks that a write has the content type `application/json`.
pub(crate) fn check_body_type(parts: &Parts) -> Result<(), Problem> {
    if is_write(&parts.method) && !is_json(&parts.headers) {
        return Err(Problem::new(Rule::ContentType, "a write needs the content type application/json")
            .advise("send the header `Content-Type: application/json`, also without a body"));
    }
    Ok(())
}

/// Returns true for a method that may change something.
pub(crate) fn is_write(method: &Method) -> bool {
    *method != Method::GET && *method != Method::HEAD
}

/// Returns the host that the request names; `None` if it names none, or several.
fn host(parts: &Parts) -> Option<&str> {
    let mut headers = parts.headers.get_all(HOST).iter().map(|host| host.to_str().ok());
    let header = headers.next();
    if headers.next().is_some() {
        return None;
    }
    match (header, parts.uri.authority()) {
        (Some(header), None) => header,
        // HTTP/2 has no header `Host`.
        (None, Some(authority)) => Some(authority.as_str()),
        (Some(header), Some(authority)) => header.filter(|header| *authority == **header),
        (None, None) => None,
    }
}

/// Returns true if pages of `host` have this origin.
fn is_origin_of(origin: &str, host: &str) -> bool {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

fn token_of(state: &State, headers: &HeaderMap) -> Result<Arc<Token>, Problem> {
    let found = if headers.contains_key(AUTHORIZATION) {
        bearer_token(headers).and_then(|sent| state.tokens.iter().find(|token| token.hash.is_of(sent)))
    } else {
        let now = state.now();
        let mut cookies = cookie::values(headers, &state.cookie_name).peekable();
        if cookies.peek().is_none() {
            return Err(Problem::new(Rule::NoToken, "the request has no token")
                .advise("send `Authorization: Bearer TOKEN`, or open a one-time link"));
        }
        cookies.find_map(|value| state.tokens.iter().find(|token| cookie::is_valid(value, &token.hash, now)))
    };
    found.cloned().ok_or_else(|| {
        Problem::new(Rule::WrongToken, "the token is unknown or has expired")
            .advise("check the token, or open a new one-time link")
    })
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let kind = types.next().and_then(|kind| kind.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    types.next().is_none() && essence.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"))
}
