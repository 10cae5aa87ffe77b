//! The cookie of a browser that opened a one-time link. The cookie does not contain the token: it is an expiry
//! time with an HMAC, whose key is the hash of the token. So it becomes invalid at that time, or when the token
//! changes.

use std::time::Duration;

use archon_http_access::TokenHash;
use archon_types::Timestamp;
use axum::http::{HeaderMap, header::COOKIE};
use hmac_sha256::HMAC;

/// The beginning of the text in the HMAC of a cookie, so that no HMAC for another purpose is a valid cookie.
const PURPOSE: &str = "archon cookie";
/// The text whose HMAC is part of the cookie's name.
const NAME: &str = "archon cookie name";

/// The connection of a request, as an extension of the request. It is missing if another program serves the router.
#[derive(Clone, Copy)]
pub(crate) struct Channel {
    /// True if the server itself encrypts the connection.
    pub(crate) is_encrypted: bool,
}

/// Returns the name of a server's cookies, which depends on the first token of the server. Browsers send a
/// cookie to all ports of a host, so two servers on one host need different names. After a restart, the server
/// must use the same name again.
pub(crate) fn name(first: Option<&TokenHash>) -> String {
    match first {
        Some(token) => format!("archon-{}", hex(&HMAC::mac(NAME, token.bytes())[..4])),
        None => "archon".to_owned(),
    }
}

/// Returns the value of a cookie that is valid until `end`.
pub(crate) fn value(token: &TokenHash, end: Timestamp) -> String {
    format!("{:x}.{}", end.as_millis(), hex(&seal(token, end)))
}

/// Returns true if `value` is the value of a cookie for this token and has not expired.
pub(crate) fn is_valid(value: &str, token: &TokenHash, now: Timestamp) -> bool {
    let Some((end, seal)) = value.split_once('.') else { return false };
    let (Ok(end), Some(seal)) = (u64::from_str_radix(end, 16), from_hex(seal)) else { return false };
    let end = Timestamp::from_millis(end);
    now < end && HMAC::verify(sealed_text(end), token.bytes(), &seal)
}

/// Returns the values of the cookies of this name in a request.
pub(crate) fn values<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let texts = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(other, _)| *other == name).map(|(_, value)| value)
}

/// Returns the header `Set-Cookie` for a value that is valid for `time`; a time of zero removes the cookie.
pub(crate) fn header(name: &str, value: &str, time: Duration, is_secure: bool) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{secure}", time.as_secs())
}

fn seal(token: &TokenHash, end: Timestamp) -> [u8; 32] {
    HMAC::mac(sealed_text(end), token.bytes())
}

fn sealed_text(end: Timestamp) -> String {
    format!("{PURPOSE}|{}", end.as_millis())
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use archon_types::Secret;

    use super::*;

    #[test]
    fn is_valid_is_for_its_token_until_its_end_only() {
        let (token, other) = (TokenHash::of(&Secret::from("a")), TokenHash::of(&Secret::from("b")));
        let at = Timestamp::from_millis;
        let cookie = value(&token, at(1_000));
        assert!(is_valid(&cookie, &token, at(999)));
        assert!(!is_valid(&cookie, &token, at(1_000)));
        assert!(!is_valid(&cookie, &other, at(999)));
        // The end cannot be moved.
        let seal = cookie.split_once('.').unwrap().1;
        assert!(!is_valid(&format!("ffff.{seal}"), &token, at(999)));
        for broken in ["", ".", "3e8", "3e8.", "3e8.zz", &cookie[..cookie.len() - 1], &format!("{cookie}0")] {
            assert!(!is_valid(broken, &token, at(999)), "{broken}");
        }
    }

    #[test]
    fn values_are_those_of_the_own_name() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "theme=dark; archon=1.a;archon=2.b".parse().unwrap());
        headers.append(COOKIE, "xarchon=3.c; archon=4.d; archon-1=5.e".parse().unwrap());
        assert_eq!(values(&headers, "archon").collect::<Vec<_>>(), ["1.a", "2.b", "4.d"]);
    }

    #[test]
    fn name_is_that_of_the_first_token_and_shows_nothing_of_it() {
        let (token, other) = (TokenHash::of(&Secret::from("a")), TokenHash::of(&Secret::from("b")));
        let first = name(Some(&token));
        assert_eq!(first, name(Some(&token)));
        assert_ne!(first, name(Some(&other)));
        let digits = first.strip_prefix("archon-").unwrap();
        assert!(digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{first}");
        assert!(!hex(token.bytes()).contains(digits));
    }
}
