//! One hook of a file, and a problem of a file.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crate::{
    digest::{NamedFile, digest, named_files},
    event::HookEvent,
    matcher::Matcher,
};

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
    pub(crate) path: PathBuf,
    pub(crate) line: usize,
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
    /// Creates the file with the present content of the files that its commands name.
    ///
    /// # Errors
    /// The line of a hook whose command names files that cannot be trusted, and the reason.
    pub(crate) fn new(text: &str, hooks: &[OneHook], project: &Path) -> Result<Self, (usize, String)> {
        let commands: Vec<String> = hooks.iter().filter_map(OneHook::command).map(str::to_owned).collect();
        let refused = hooks.iter().find_map(|hook| Some((hook.line, hook.named_files(project).err()?)));
        if let Some(refused) = refused {
            return Err(refused);
        }
        let digest = digest(text, commands.iter().map(String::as_str), project).map_err(|text| (1, text))?;
        Ok(Self { text: text.to_owned(), commands, project: project.to_owned(), digest })
    }

    /// Returns whether the scripts are still those that a person trusted.
    pub(crate) fn holds(&self) -> bool {
        let now = digest(&self.text, self.commands.iter().map(String::as_str), &self.project);
        now.is_ok_and(|digest| digest == self.digest)
    }
}

/// A hook as a person reads it before its file is trusted. As text, it is the event, the matcher, and the command or the
/// address.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookDescription {
    /// The event, the matcher, and the command or the address without the keys in it.
    pub text: String,
    /// True for a command, false for an address.
    pub is_command: bool,
    /// The files of the project that the command names, relative to the project's folder. The hash that a person
    /// trusts covers them; it covers no other program or script that the command runs.
    pub files: Vec<String>,
}

impl fmt::Display for HookDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl OneHook {
    fn command(&self) -> Option<&str> {
        match &self.action {
            Action::Command(line) => Some(line),
            Action::Endpoint { .. } => None,
        }
    }

    fn named_files(&self, project: &Path) -> Result<Vec<NamedFile>, String> {
        self.command().map_or_else(|| Ok(Vec::new()), |line| named_files(line, project))
    }

    /// Returns the hook as people know it: its command or address, and its place in a file.
    pub(crate) fn label(&self) -> String {
        let place = format!("{}:{}", self.path.display(), self.line);
        match &self.action {
            Action::Command(line) => format!("the hook `{line}` ({place})"),
            Action::Endpoint { url, .. } => format!("the hook at {} ({place})", without_key(url)),
        }
    }

    /// Returns the description for a person, with the files in this project that the command names.
    pub(crate) fn description(&self, project: &Path) -> HookDescription {
        let action = match &self.action {
            Action::Command(line) => line.clone(),
            Action::Endpoint { url, .. } => format!("POST {}", without_key(url)),
        };
        let files = self.named_files(project).unwrap_or_default();
        let mut files: Vec<String> = files.into_iter().map(|file| file.name).collect();
        files.sort();
        files.dedup();
        HookDescription {
            text: format!("{} {}: {action}", self.event.name(), self.matcher.text()),
            is_command: self.command().is_some(),
            files,
        }
    }
}

/// Returns an address without its user, its query and its fragment, which may hold a key. The port stays: another one is
/// another program.
fn without_key(url: &reqwest::Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

impl fmt::Display for HookProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.text)
    }
}
