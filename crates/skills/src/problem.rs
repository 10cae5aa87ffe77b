//! Problems of skills: warnings of the lenient load, and the findings of the strict validation.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// A problem of a skill, with the file and the line to correct.
///
/// ```
/// use archon_skills::validate;
///
/// let problems = validate("no/such/folder".as_ref());
/// assert_eq!(problems[0].to_string(), "no/such/folder:1: the path does not exist");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillProblem {
    /// The file, or the folder if the problem is not in a single file.
    pub file: PathBuf,
    /// The line in the file, from 1; 1 also for a problem of the whole file.
    pub line: usize,
    /// The kind of the problem.
    pub kind: SkillProblemKind,
    /// The problem and its effect, as a sentence without a full stop.
    pub text: String,
}

/// The kind of a [`SkillProblem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SkillProblemKind {
    /// The folder has no skill file, or the path is not a folder.
    Missing,
    /// The file cannot be read as text.
    Unreadable,
    /// The file has no frontmatter, or its end is missing.
    Frontmatter,
    /// The frontmatter is not valid YAML, or not a mapping.
    Yaml,
    /// The frontmatter has a field that the specification does not know.
    UnknownField,
    /// The name is missing, empty, too long, or not of the allowed form.
    Name,
    /// The name differs from the folder's name.
    FolderName,
    /// The description is missing, empty or too long.
    Description,
    /// The compatibility note is not a text, or too long.
    Compatibility,
    /// Another field, such as `allowed-tools`, has a value that is not understood.
    Field,
    /// Two skills have the same name.
    Conflict,
    /// A symbolic link was not followed.
    Link,
    /// There are too many folders, or they are too deep.
    Limit,
    /// No person has trusted the project's skill in its present form.
    Untrusted,
}

impl SkillProblem {
    pub(crate) fn new(
        file: impl AsRef<Path>,
        line: usize,
        kind: SkillProblemKind,
        text: impl Into<String>,
    ) -> Self {
        Self { file: file.as_ref().to_owned(), line: line.max(1), kind, text: text.into() }
    }
}

impl fmt::Display for SkillProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.text)
    }
}
