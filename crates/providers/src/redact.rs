//! Keeps keys out of error texts: services like to repeat the key that they refuse.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use archon_types::{Json, Secret};

/// The shortest secret that is looked for; shorter ones would blank out ordinary words.
const SHORTEST: usize = 4;

/// How many secrets that came later are remembered; older ones have expired.
const MOST_LATER: usize = 8;

/// Stands where a text was cut: a secret may have been cut with it.
pub(crate) const CUT: char = '…';

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
        // As it stands in JSON that is shown as it came.
        let quoted = Json::from(secret.expose().as_str()).to_string();
        if let Some(escaped) = quoted.get(1..quoted.len() - 1)
            && escaped.len() > secret.expose().len().max(SHORTEST)
        {
            self.secrets.push(escaped.into());
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

    /// The text with every secret replaced by `****`, and so the beginning of one where the text was
    /// [cut](CUT).
    pub(crate) fn clean(&self, mut text: String) -> String {
        let later = self.later.lock().unwrap_or_else(PoisonError::into_inner);
        // Longest first: a secret that begins with another must not leave its end behind.
        let mut all: Vec<_> = self.secrets.iter().chain(later.iter()).collect();
        all.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        for secret in all {
            if text.contains(secret.expose().as_str()) {
                text = text.replace(secret.expose().as_str(), "****");
            }
            text = without_beginning(text, secret.expose());
        }
        text
    }
}

/// The text without a beginning of the secret right before a cut.
fn without_beginning(text: String, secret: &str) -> String {
    if !text.contains(CUT) {
        return text;
    }
    let mut pieces = text.split(CUT).peekable();
    let mut clean = String::with_capacity(text.len());
    while let Some(piece) = pieces.next() {
        let is_cut = pieces.peek().is_some();
        let ends = |length: &usize| secret.get(..*length).is_some_and(|start| piece.ends_with(start));
        match (SHORTEST..secret.len()).rev().find(ends).filter(|_| is_cut) {
            Some(length) => clean += &format!("{}****", &piece[..piece.len() - length]),
            None => clean += piece,
        }
        if is_cut {
            clean.push(CUT);
        }
    }
    clean
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

    // spec: P-05
    #[test]
    fn a_secret_is_hidden_where_the_text_was_cut_and_as_it_stands_in_json() {
        let mut redactor = Redactor::default();
        redactor.add(&"sk-ant-schlüssel".into());
        redactor.add(&"quo\"ted\\key".into());
        for (text, clean) in [
            ("the key sk-ant-schlüsse… is wrong", "the key ****… is wrong"),
            ("the key sk-ant-schl…", "the key ****…"),
            ("sk-ant-schlü… sk-ant… sk-a… sk-…", "****… ****… ****… sk-…"),
            ("task… sk-ant sk-ant", "task… sk-ant sk-ant"),
            (r#"{"key":"quo\"ted\\key"} quo"ted\key"#, r#"{"key":"****"} ****"#),
        ] {
            assert_eq!(redactor.clean(text.to_owned()), clean);
        }
    }
}
