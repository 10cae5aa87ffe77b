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
        // Longest first: a secret that begins with another must not leave its end behind.
        let mut all: Vec<_> = self.secrets.iter().chain(later.iter()).collect();
        all.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        for secret in all {
            if text.contains(secret.expose().as_str()) {
                text = text.replace(secret.expose().as_str(), "****");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: P-05
    #[test]
    fn a_secret_that_begins_with_another_is_hidden_to_its_end() {
        let mut redactor = Redactor::default();
        redactor.add(&"team-key".into());
        redactor.add(&"team-key-of-alice".into());
        redactor.add_later(&"team-key-of-alice-today".into());
        let text = "team-key team-key-of-alice team-key-of-alice-today".to_owned();
        assert_eq!(redactor.clean(text), "**** **** ****");
    }
}
