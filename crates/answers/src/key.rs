//! The key of tokens.

use archon_types::Secret;
use hmac_sha256::HMAC;

use crate::error::AnswerError;

/// The fewest bytes of a secret.
const SHORTEST: usize = 16;

/// The text whose HMAC is the key, so that a secret with another use gives no key of that use away.
const PURPOSE: &str = "archon answers";

/// The key that makes and checks the tokens of links and replies. Keep its secret as long as questions are open: with
/// another secret, all tokens that were sent before are invalid.
///
/// ```
/// use archon_answers::{AnswerError, AnswerKey};
/// use archon_types::Secret;
///
/// assert!(AnswerKey::new(&Secret::from("0f1e2d3c4b5a69788796a5b4c3d2e1f0")).is_ok());
/// assert!(matches!(AnswerKey::new(&Secret::from("short")), Err(AnswerError::WeakKey)));
/// ```
#[derive(Clone, Debug)]
pub struct AnswerKey(Secret<[u8; 32]>);

impl AnswerKey {
    /// Derives the key from `secret`, without the white space at its ends. Use a random secret: whoever guesses it can
    /// make valid tokens.
    ///
    /// # Errors
    /// [`AnswerError::WeakKey`] if the secret has less than 16 bytes, without the white space at its ends.
    pub fn new(secret: &Secret<String>) -> Result<Self, AnswerError> {
        let text = secret.expose().trim();
        if text.len() < SHORTEST {
            return Err(AnswerError::WeakKey);
        }
        Ok(Self(Secret::new(HMAC::mac(PURPOSE, text))))
    }

    pub(crate) fn seal(&self, text: &str) -> [u8; 32] {
        HMAC::mac(text, self.0.expose())
    }

    pub(crate) fn is_seal(&self, text: &str, seal: &[u8; 32]) -> bool {
        HMAC::verify(text, self.0.expose(), seal)
    }
}
