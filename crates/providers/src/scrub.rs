//! Removes secrets from text that is written to a file: known secrets, and text that looks like a key.

use archon_types::{Json, Redactor, Secret};

/// The replacement of a secret.
const HIDDEN: &str = "****";

/// The minimum length of a known secret in bytes; removing shorter ones would remove ordinary words.
const SHORTEST: usize = 4;

/// Beginnings of keys, the minimum number of letters, digits, `_`, `-` and `.` after them, and the services
/// that use them.
const KEYS: &[(&str, usize, &str)] = &[
    ("sk-", 16, "OpenAI, Anthropic, OpenRouter, DeepSeek, Moonshot"),
    ("xai-", 16, "xAI"),
    ("gsk_", 16, "Groq"),
    ("csk-", 16, "Cerebras"),
    ("fw_", 16, "Fireworks"),
    ("nvapi-", 16, "NVIDIA"),
    ("hf_", 16, "Hugging Face"),
    ("AIza", 30, "Google"),
    ("ya29.", 20, "Google: OAuth"),
    ("AKIA", 16, "AWS: access key"),
    ("ASIA", 16, "AWS: temporary access key"),
    ("ABSK", 30, "Bedrock: API key"),
    ("ghp_", 20, "GitHub"),
    ("gho_", 20, "GitHub"),
    ("ghs_", 20, "GitHub"),
    ("github_pat_", 20, "GitHub"),
    ("glpat-", 16, "GitLab"),
    ("xoxb-", 16, "Slack"),
    ("xoxp-", 16, "Slack"),
    ("eyJ", 40, "a JSON Web Token"),
    ("Bearer ", 16, "any bearer token"),
];

/// Removes secrets from texts.
#[derive(Clone, Default)]
pub(crate) struct Scrubber {
    secrets: Vec<Secret>,
    /// The redactors of providers; they contain the providers' secrets.
    redactors: Vec<Redactor>,
}

impl Scrubber {
    /// Adds a secret to remove.
    pub(crate) fn add(&mut self, secret: Secret) {
        if secret.expose().len() >= SHORTEST {
            // The secret as it appears in JSON that is written as text, for instance in the arguments of a
            // call.
            let quoted = Json::from(secret.expose().as_str()).to_string();
            let escaped = quoted.get(1..quoted.len() - 1).filter(|escaped| *escaped != secret.expose());
            self.secrets.extend(escaped.map(Secret::from));
            self.secrets.push(secret);
            // Longest first: if a secret begins with another one, its end must not remain.
            self.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        }
    }

    /// Adds redactors, whose secrets are removed as well.
    pub(crate) fn and(mut self, redactors: Vec<Redactor>) -> Self {
        self.redactors.extend(redactors);
        self
    }

    /// Returns the text without secrets; `None` if the text contains none.
    pub(crate) fn scrubbed(&self, text: &str) -> Option<String> {
        let mut clean: Option<String> = None;
        for redactor in &self.redactors {
            let seen = clean.as_deref().unwrap_or(text);
            let cleaner = redactor.clean(seen.to_owned());
            if cleaner != seen {
                clean = Some(cleaner);
            }
        }
        for secret in self.secrets.iter().map(Secret::expose) {
            let seen = clean.as_deref().unwrap_or(text);
            if seen.contains(secret.as_str()) {
                clean = Some(seen.replace(secret.as_str(), HIDDEN));
            }
        }
        for (start, least, _) in KEYS {
            if let Some(cleaner) = without(clean.as_deref().unwrap_or(text), start, *least) {
                clean = Some(cleaner);
            }
        }
        clean
    }

    /// Removes secrets from every string in a JSON value, except the keys of objects.
    pub(crate) fn clean(&self, value: &mut Json) {
        match value {
            Json::String(text) => {
                if let Some(clean) = self.scrubbed(text) {
                    *text = clean;
                }
            }
            Json::Array(items) => items.iter_mut().for_each(|item| self.clean(item)),
            Json::Object(fields) => fields.values_mut().for_each(|field| self.clean(field)),
            _ => {}
        }
    }
}

/// Returns the text with each key that begins with `start` replaced; `None` if the text contains none.
fn without(text: &str, start: &str, least: usize) -> Option<String> {
    let (mut clean, mut copied, mut from) = (String::new(), 0, 0);
    while let Some(at) = text[from..].find(start).map(|at| from + at) {
        from = at + start.len();
        // In the middle of a word it is no key: `task-…` contains `sk-`.
        if text[..at].ends_with(|c: char| c.is_ascii_alphanumeric()) {
            continue;
        }
        let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '=');
        let length = text[from..].find(|c| !belongs(c)).unwrap_or(text.len() - from);
        // A word without digits is no key: `sk-learn-documentation`.
        let is_key = length >= least && text[from..from + length].contains(|c: char| c.is_ascii_digit());
        if is_key {
            clean.push_str(&text[copied..at]);
            clean.push_str(HIDDEN);
            from += length;
            copied = from;
        }
    }
    (copied > 0).then(|| clean + &text[copied..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scrubber_hides_known_and_probable_secrets() {
        let mut scrubber = Scrubber::default();
        scrubber.add("hunter2".into());
        scrubber.add("abc".into());
        scrubber.add("hunter2-of-alice".into());
        for (text, clean) in [
            ("the password is hunter2.", Some("the password is ****.")),
            ("abc", None),
            ("hunter2-of-alice, hunter2", Some("****, ****")),
            ("key=sk-proj-0123456789abcdef, then", Some("key=****, then")),
            ("Authorization: Bearer abcdefghijklmnop1", Some("Authorization: ****")),
            ("Bearer of bad news arrived here today", None),
            ("task-0123456789abcdef0", None),
            ("sk-learn-documentation-page", None),
            ("AKIA0123456789ABCDEF sk-aaaaaaaaaaaaaaaaaaa1", Some("**** ****")),
            ("sk-", None),
            ("ä sk-0123456789abcdefä", Some("ä ****ä")),
            ("", None),
        ] {
            assert_eq!(scrubber.scrubbed(text).as_deref(), clean, "{text}");
        }
        scrubber.add("two\nlines \"quoted\"".into());
        let arguments = json!({"key": "two\nlines \"quoted\""}).to_string();
        assert_eq!(scrubber.scrubbed(&arguments).as_deref(), Some(r#"{"key":"****"}"#));
        let mut value = json!({"hunter2": ["hunter2", {"k": "a hunter2"}], "n": 1});
        scrubber.clean(&mut value);
        assert_eq!(value, json!({"hunter2": ["****", {"k": "a ****"}], "n": 1}));
    }
}
