//! Keeps keys out of error texts: services like to repeat the key that they refuse.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use archon_types::Secret;

/// The shortest secret that is looked for; shorter ones would blank out ordinary words.
const SHORTEST: usize = 4;

/// How many secrets that came later are remembered; older ones have expired.
const MOST_LATER: usize = 8;

/// The values that no text may show.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    secrets: Vec<Secret>,
    /// Tokens that are refreshed.
    later: Mutex<VecDeque<Secret>>,
}

impl Redactor {
    pub(crate) fn add(&mut self, secret: &Secret) {
        if secret.expose().len() >= SHORTEST {
            self.secrets.push(secret.clone());
        }
    }

    /// Adds a secret that was not known from the start, for instance a token that was fetched.
    pub(crate) fn add_later(&self, secret: &Secret) {
        let mut later = self.later.lock().unwrap_or_else(PoisonError::into_inner);
        if secret.expose().len() < SHORTEST || later.contains(secret) {
            return;
        }
        later.truncate(MOST_LATER - 1);
        later.push_front(secret.clone());
    }

    /// The text with every secret replaced by `****`.
    pub(crate) fn clean(&self, mut text: String) -> String {
        let later = self.later.lock().unwrap_or_else(PoisonError::into_inner);
        for secret in self.secrets.iter().chain(later.iter()) {
            if text.contains(secret.expose().as_str()) {
                text = text.replace(secret.expose().as_str(), "****");
            }
        }
        text
    }
}
