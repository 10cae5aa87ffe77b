//! One-time links: a code in the address of a link, which the first browser exchanges for a cookie.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use archon_http_access::TokenHash;
use archon_types::{Secret, Timestamp};

use crate::cookie::hex;

/// The maximum number of unused codes of a token. A further code replaces the code of this token that expires
/// first.
const MOST: usize = 20;

/// The unused codes, by the first part of the code.
#[derive(Debug, Default)]
pub(crate) struct Codes(Mutex<HashMap<String, Waiting>>);

#[derive(Debug)]
struct Waiting {
    hash: TokenHash,
    token: usize,
    end: Timestamp,
}

impl Codes {
    /// Creates a code for a token, valid until `end`.
    pub(crate) fn create(&self, token: usize, end: Timestamp) -> Result<String, getrandom::Error> {
        let (mut id, mut secret) = ([0; 8], [0; 32]);
        getrandom::fill(&mut id)?;
        getrandom::fill(&mut secret)?;
        let (id, secret) = (hex(&id), hex(&secret));
        let waiting = Waiting { hash: TokenHash::of(&Secret::from(secret.as_str())), token, end };
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = codes.iter().filter(|(_, code)| code.token == token);
        if own.clone().count() >= MOST
            && let Some(first) = own.min_by_key(|(_, code)| code.end).map(|(id, _)| id.clone())
        {
            codes.remove(&first);
        }
        let code = format!("{id}.{secret}");
        codes.insert(id, waiting);
        Ok(code)
    }

    /// Removes a code, so that it cannot be used again, and returns the index of its token. Returns `None` if
    /// the code is wrong, was used or has expired.
    pub(crate) fn take(&self, code: &str, now: Timestamp) -> Option<usize> {
        let (id, secret) = code.split_once('.')?;
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|_, code| now < code.end);
        if !codes.get(id)?.hash.is_of(secret) {
            return None;
        }
        codes.remove(id).map(|code| code.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take_gives_the_token_once_and_before_the_end() {
        let (codes, at) = (Codes::default(), Timestamp::from_millis);
        let code = codes.create(1, at(1_000)).unwrap();
        let other = codes.create(2, at(1_000)).unwrap();
        let id = code.split_once('.').unwrap().0;
        for wrong in ["", ".", id, &format!("{id}."), &format!("{id}.{}", "0".repeat(64))] {
            assert_eq!(codes.take(wrong, at(1)), None, "{wrong}");
        }
        assert_eq!(codes.take(&code, at(999)), Some(1));
        assert_eq!(codes.take(&code, at(999)), None);
        assert_eq!(codes.take(&other, at(1_000)), None);
    }

    #[test]
    fn create_makes_room_for_a_new_code_by_one_of_the_same_token() {
        let (codes, at) = (Codes::default(), Timestamp::from_millis);
        let other = codes.create(1, at(500)).unwrap();
        let first = codes.create(0, at(1_000)).unwrap();
        for _ in 1..MOST {
            codes.create(0, at(2_000)).unwrap();
        }
        let last = codes.create(0, at(3_000)).unwrap();
        assert_eq!((codes.take(&first, at(1)), codes.take(&last, at(1))), (None, Some(0)));
        assert_eq!(codes.take(&other, at(1)), Some(1));
    }
}
