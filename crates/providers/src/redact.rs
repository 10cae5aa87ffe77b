//! Keeps keys out of error texts: services like to repeat the key that they refuse.

use archon_types::Secret;

/// The shortest secret that is looked for; shorter ones would blank out ordinary words.
const SHORTEST: usize = 4;

/// The values that no text may show.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redactor(Vec<Secret>);

impl Redactor {
    pub(crate) fn add(&mut self, secret: &Secret) {
        if secret.expose().len() >= SHORTEST {
            self.0.push(secret.clone());
        }
    }

    /// The text with every secret replaced by `****`.
    pub(crate) fn clean(&self, mut text: String) -> String {
        for secret in &self.0 {
            if text.contains(secret.expose().as_str()) {
                text = text.replace(secret.expose().as_str(), "****");
            }
        }
        text
    }
}
