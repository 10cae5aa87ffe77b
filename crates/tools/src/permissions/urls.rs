//! Patterns of addresses in rules: scheme, host and path are held against those of the address each for
//! itself, so that no text in a path passes for a host.

use super::wildcard;

/// An address or a pattern in its parts.
struct Parts<'a> {
    scheme: &'a str,
    /// With user and port, if it has those.
    host: &'a str,
    /// The path and all behind it.
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

/// Whether a pattern means an address. `*` alone means each; in a host it stops at what ends a host's name.
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

/// Whether a pattern that denies or asks may mean an address: as it is read here, or as plain text.
pub(super) fn may_mean(pattern: &str, url: &str) -> bool {
    means(pattern, url) || wildcard(pattern, url)
}

/// A host's name and its port.
fn split_port(host: &str) -> (&str, Option<&str>) {
    // The colons of an IPv6 address stand in brackets.
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    }
}
