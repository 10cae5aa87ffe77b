//! Problems of agent files.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// A problem of an agent file, with the file and the line to correct.
///
/// ```
/// use archon_skills::AgentFile;
///
/// let problems = AgentFile::parse("agents/notes.md", b"# Notes\n").unwrap_err();
/// assert_eq!(
///     problems[0].to_string(),
///     "agents/notes.md:1: the file must begin with a line `---` and YAML; the file is left out"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentFileProblem {
    /// The file, or the folder if the problem is not in a single file.
    pub file: PathBuf,
    /// The line in the file, from 1; 1 also for a problem of the whole file.
    pub line: usize,
    /// The problem and its effect, as a sentence without a full stop.
    pub text: String,
}

impl AgentFileProblem {
    pub(crate) fn new(file: impl AsRef<Path>, line: usize, text: impl Into<String>) -> Self {
        Self { file: file.as_ref().to_owned(), line: line.max(1), text: text.into() }
    }
}

impl fmt::Display for AgentFileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.text)
    }
}

impl std::error::Error for AgentFileProblem {}
