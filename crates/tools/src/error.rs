//! Errors of setting up tools. Errors during a call are results instead.

use std::{io, path::PathBuf};

/// A tool cannot be registered, or a workspace cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolSetupError {
    /// The registry already has a tool with this name.
    #[error("Tool '{name}' already registered")]
    AlreadyRegistered {
        /// The tool's name.
        name: String,
    },
    /// At least one provider would refuse the name. A valid name has at most 64 letters, digits, `_` and `-`;
    /// `.` separates namespaces.
    #[error("Tool name '{name}' cannot be used: {why}")]
    InvalidName {
        /// The tool's name.
        name: String,
        /// The problem with the name.
        why: &'static str,
    },
    /// The tool's parameters are not a JSON Schema of an object, or refer to another document.
    #[error("The parameters of tool '{name}' are not a usable JSON Schema: {why}")]
    InvalidSchema {
        /// The tool's name.
        name: String,
        /// The problem with the schema.
        why: String,
    },
    /// The tool's description is empty, so a model cannot know when to call it.
    #[error(
        "Tool '{name}' has no description: describe what the tool does, when to use it, its arguments and its result"
    )]
    NoDescription {
        /// The tool's name.
        name: String,
    },
    /// A permission rule is not valid.
    #[error("'{rule}' is not a valid permission rule: {why}")]
    InvalidRule {
        /// The rule as it was written.
        rule: String,
        /// The problem with the rule.
        why: &'static str,
    },
    /// The workspace's folder does not exist or is not a folder.
    #[error("The workspace '{}' cannot be used: {source}", path.display())]
    Workspace {
        /// The workspace's folder.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
}
