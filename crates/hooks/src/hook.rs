//! One hook of a file, and a problem of a file.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crate::{digest::digest, event::HookEvent, matcher::Matcher};

/// A hook that was left out, and why. Shown, it is one line: the file, the line, what is wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookProblem {
    /// The file.
    pub path: PathBuf,
    /// The line in the file, from 1.
    pub line: usize,
    /// The problem, and what to do.
    pub text: String,
}

/// One command or endpoint for one event.
#[derive(Clone, Debug)]
pub(crate) struct OneHook {
    pub(crate) event: HookEvent,
    pub(crate) matcher: Matcher,
    pub(crate) action: Action,
    pub(crate) timeout: Duration,
    /// The file and the line, for people.
    pub(crate) place: String,
    /// For a hook of a project, what was trusted.
    pub(crate) trusted: Option<Arc<Trusted>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// A command line of the shell.
    Command(String),
    /// An address that gets the event in a POST request.
    Endpoint { url: reqwest::Url, headers: reqwest::header::HeaderMap },
}

/// The file of a project as a person trusted it.
#[derive(Debug)]
pub(crate) struct Trusted {
    text: String,
    commands: Vec<String>,
    project: PathBuf,
    pub(crate) digest: String,
}

impl Trusted {
    pub(crate) fn new(text: &str, hooks: &[OneHook], project: &Path) -> Self {
        let command = |hook: &OneHook| match &hook.action {
            Action::Command(line) => Some(line.clone()),
            Action::Endpoint { .. } => None,
        };
        let commands: Vec<String> = hooks.iter().filter_map(command).collect();
        let digest = digest(text, commands.iter().map(String::as_str), project);
        Self { text: text.to_owned(), commands, project: project.to_owned(), digest }
    }

    /// Returns whether the scripts are still those that a person trusted.
    pub(crate) fn holds(&self) -> bool {
        digest(&self.text, self.commands.iter().map(String::as_str), &self.project) == self.digest
    }
}

impl OneHook {
    /// Returns the hook as people know it: its command or address, and its place in a file.
    pub(crate) fn label(&self) -> String {
        match &self.action {
            Action::Command(line) => format!("the hook `{line}` ({})", self.place),
            Action::Endpoint { url, .. } => format!("the hook at {} ({})", without_key(url), self.place),
        }
    }

    /// Returns the event, the matcher, and the command or the address.
    pub(crate) fn description(&self) -> String {
        let action = match &self.action {
            Action::Command(line) => line.clone(),
            Action::Endpoint { url, .. } => format!("POST {}", without_key(url)),
        };
        format!("{} {}: {action}", self.event.name(), self.matcher.text())
    }
}

/// Returns an address without its user, its query and its fragment, which may hold a key.
fn without_key(url: &reqwest::Url) -> String {
    format!("{}://{}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

impl fmt::Display for HookProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.text)
    }
}
