//! Errors of setting up tools. An error during a call becomes the result of the call instead.

use std::{io, path::PathBuf};

/// An error that prevents the setup of a tool, a permission rule or a workspace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolSetupError {
    /// The registry already has a tool with this name.
    #[error("Tool '{name}' already registered")]
    AlreadyRegistered {
        /// The tool's name.
        name: String,
    },
    /// The name is not valid. A valid name has 1 to 64 characters: ASCII letters, digits, `_`, `-` and `.`, which
    /// separates namespaces. The name of a tool with a source is such a name and `*` at its end.
    #[error("Tool name '{name}' cannot be used: {why}")]
    InvalidName {
        /// The tool's name.
        name: String,
        /// The problem with the name, for instance `it is empty`.
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
    /// The text of a permission rule is not valid.
    #[error("'{rule}' is not a valid permission rule: {why}")]
    InvalidRule {
        /// The rule as it was written.
        rule: String,
        /// The problem with the rule.
        why: &'static str,
    },
    /// The folder of a workspace does not exist, cannot be read, or is not a folder.
    #[error("The workspace '{}' cannot be used: {source}", path.display())]
    Workspace {
        /// The workspace's folder.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
}
