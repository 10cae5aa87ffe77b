//! The errors of activating a skill and of reading its files.

use std::path::PathBuf;

/// The reason why a skill was not activated, or why one of its files was not read. A model reads the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// No skill has this name.
    #[error("there is no skill `{name}`; {advice}")]
    Unknown {
        /// The requested name.
        name: String,
        /// A suggestion: the most similar name, or all names.
        advice: String,
    },
    /// The skill has `disable-model-invocation`, so that a model cannot activate it.
    #[error("the skill `{0}` can be activated only by the user; ask the user to send /{0}")]
    OnlyByPerson(String),
    /// The skill would activate itself, directly or through other skills. Contains the chain of names.
    #[error("Circular dependency detected: {0}")]
    Circular(String),
    /// The chain of skills that activate each other is too long. Contains the maximum depth.
    #[error("Maximum skill activation depth ({0}) exceeded")]
    TooDeep(u32),
    /// The skill that the request names as its caller is not active.
    #[error("the skill `{0}` is not active, so it cannot ask for another skill; leave `called_by` out")]
    CallerNotActive(String),
    /// A file cannot be read.
    #[error("{} cannot be read: {problem}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The reason.
        problem: String,
    },
    /// The folder of a project's skill has changed since a person trusted it.
    #[error("the skill in {} has changed since it was trusted; a person has to look at it and trust it again", .0.display())]
    Changed(PathBuf),
    /// The path leads out of the folder of the skill, or through a symbolic link.
    #[error(
        "`{0}` is not a path inside the folder of the skill; give a relative path without `..` and without links"
    )]
    Outside(String),
    /// The skill is not active, so its files cannot be read.
    #[error("the skill `{0}` is not active; activate it before you read its files")]
    NotActive(String),
}
