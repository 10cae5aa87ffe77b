//! Matches patterns of addresses in rules. Scheme, host and path are matched separately, so that no text in a
//! path can pass for a host.

use super::wildcard;

/// The parts of an address or of a pattern.
struct Parts<'a> {
    scheme: &'a str,
    /// The host with user and port, if there are any.
    host: &'a str,
    /// The path and everything after it.
    rest: &'a str,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let (scheme, behind) = text.split_once("://")?;
        let end = behind.find(['/', '?', '#', '\\']).unwrap_or(behind.len());
        let (host, rest) = behind.split_at_checked(end)?;
        Some(Self { scheme, host, rest: if rest == "/" { "" } else { rest } })
    }
}

/// Returns whether a pattern matches an address. `*` alone matches every address; in the host of a pattern,
/// `*` matches nothing beyond the host's name.
pub(super) fn means(pattern: &str, url: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    let (Some(pattern), Some(url)) = (Parts::of(pattern), Parts::of(url)) else { return false };
    let (host, port) = split_port(url.host);
    let (wanted, wanted_port) = split_port(pattern.host);
    let is_path = pattern.rest == "/*" && url.rest.is_empty() || wildcard(pattern.rest, url.rest);
    wildcard(pattern.scheme, url.scheme)
        && !host.contains('@')
        && wildcard(&wanted.to_ascii_lowercase(), &host.to_ascii_lowercase())
        && port.is_none_or(|port| wanted_port.is_some_and(|wanted| wildcard(wanted, port)))
        && (port.is_some() || wanted_port.is_none_or(|wanted| wanted == "*"))
        && is_path
}

/// Returns whether a deny or ask pattern may match an address: the two are compared part by part, and also as
/// plain texts.
pub(super) fn may_mean(pattern: &str, url: &str) -> bool {
    means(pattern, url) || wildcard(pattern, url)
}

/// Splits a host from its port.
fn split_port(host: &str) -> (&str, Option<&str>) {
    // The colons of an IPv6 address are in brackets.
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    }
}
