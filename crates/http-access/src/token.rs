//! The tokens of requests.

use archon_types::Secret;
use hmac_sha256::Hash;
use hyper::header::{AUTHORIZATION, HeaderMap};

/// The hash of a token. A server keeps the hash, so that a comparison takes the same time for every wrong token.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Creates the hash of a token.
    pub fn of(token: &Secret) -> Self {
        Self(Hash::hash(token.expose().as_bytes()))
    }

    /// Returns true if this is the hash of `token`.
    pub fn is_of(&self, token: &str) -> bool {
        Hash::verify(token, &self.0)
    }

    /// Returns the bytes of the hash, which are as secret as the token.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("****")
    }
}

/// Returns the token of the header `Authorization: Bearer TOKEN`; `None` without such a header.
pub fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearer_token_is_that_of_the_scheme_bearer() {
        for (header, token) in [
            (Some("Bearer token-1"), Some("token-1")),
            (Some("bearer  token-1"), Some("token-1")),
            (Some("Basic token-1"), None),
            (Some("Bearer"), None),
            (None, None),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(AUTHORIZATION, header.parse().unwrap());
            }
            assert_eq!(bearer_token(&headers), token, "{header:?}");
        }
    }

    #[test]
    fn token_hash_debug_shows_nothing_of_the_token() {
        assert_eq!(format!("{:?}", TokenHash::of(&Secret::from("token-1"))), "****");
    }
}
