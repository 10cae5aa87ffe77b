//! Follows the program that fetches the model and its engine while cargo builds.

use std::path::PathBuf;

use serde_json::Value;

/// Progress of the downloads.
#[derive(Debug, Default)]
pub(super) struct Download {
    name: String,
    bytes: u64,
    of: u64,
    /// The finished parts: the engine, then the model.
    ready: Vec<PathBuf>,
    /// The failure, with its remedy.
    failure: Option<String>,
}

/// Number of parts: the engine and the model.
const PARTS: usize = 2;

impl Download {
    /// Reads a line of the program; returns text for a person, if there is any.
    pub(super) fn line(&mut self, line: &str) -> Option<String> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let number = |key: &str| value[key].as_u64().unwrap_or_default();
        if let Some(name) = text("fetching") {
            (self.name, self.bytes, self.of) = (name, number("bytes"), number("of"));
        } else if let Some(name) = text("checking") {
            self.name = format!("checking {name}");
            (self.bytes, self.of) = (0, 0);
        } else if let Some(path) = text("ready") {
            self.ready.push(path.into());
        } else if let Some(error) = text("error") {
            self.failure = Some(format!("{error}\n  {}", text("advice").unwrap_or_default()));
        } else if let (Some(licence), Some(kept)) = (text("licence"), text("kept")) {
            let name = text("terms").unwrap_or_default();
            return Some(format!("the model {name}: licence {licence}, kept in {kept}"));
        }
        None
    }

    pub(super) fn is_complete(&self) -> bool {
        self.ready.len() == PARTS
    }

    /// Returns the reason of a failure.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Returns the progress, for the end of a line.
    pub(super) fn text(&self) -> String {
        match (self.is_complete(), self.of) {
            (true, _) => "model there".to_owned(),
            (_, 0) if self.name.is_empty() => "model to come".to_owned(),
            (_, 0) => self.name.clone(),
            (_, of) => format!("{} {} of {} MB", self.name, self.bytes / 1_000_000, of.div_ceil(1_000_000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_each_kind_moves_the_download_on() {
        let mut download = Download::default();
        assert_eq!(download.text(), "model to come");
        assert_eq!(download.line(r#"{"fetching":"llama","bytes":4000000,"of":10824547}"#), None);
        assert_eq!(download.text(), "llama 4 of 11 MB");
        download.line(r#"{"ready":"/d/engines/llama"}"#);
        let terms = r#"{"terms":"gemma","licence":"Gemma Terms of Use","kept":"/d/gemma.TERMS.html"}"#;
        let said = download.line(terms).unwrap();
        assert_eq!(said, "the model gemma: licence Gemma Terms of Use, kept in /d/gemma.TERMS.html");
        download.line(r#"{"fetching":"gemma","bytes":100000000,"of":253113024}"#);
        assert_eq!(download.text(), "gemma 100 of 254 MB");
        download.line(r#"{"checking":"gemma"}"#);
        assert_eq!(download.text(), "checking gemma");
        assert!(!download.is_complete());
        download.line(r#"{"ready":"/d/models/gemma.gguf"}"#);
        assert!(download.is_complete() && download.text() == "model there");
    }

    #[test]
    fn line_of_an_error_keeps_the_advice() {
        let mut download = Download::default();
        download.line(r#"{"error":"no connection","advice":"try again"}"#);
        download.line("no json");
        assert_eq!(download.failure(), Some("no connection\n  try again"));
    }
}
