//! What can go wrong while tools are put together. What goes wrong in a call is a result instead.

use std::{io, path::PathBuf};

/// Why a tool could not be registered, or a workspace not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another tool has the name. Names are unique in a registry.
    #[error("Tool '{name}' already registered")]
    AlreadyRegistered {
        /// The name.
        name: String,
    },
    /// Providers take letters, digits, `_` and `-`, at most 64; `.` separates namespaces.
    #[error("Tool name '{name}' cannot be used: {why}")]
    InvalidName {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The tool's parameters are no JSON Schema of an object, or one that needs another document.
    #[error("The parameters of tool '{name}' are not a usable JSON Schema: {why}")]
    InvalidSchema {
        /// The tool.
        name: String,
        /// What is wrong with its schema.
        why: String,
    },
    /// The tool's description is empty, so no model can know when to call it.
    #[error(
        "Tool '{name}' has no description: say what it does, when to use it, what goes in and what comes out"
    )]
    NoDescription {
        /// The tool.
        name: String,
    },
    /// A permission rule is none.
    #[error("'{rule}' is no rule: {why}")]
    InvalidRule {
        /// The rule as it was written.
        rule: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The folder that tools are to see is not there, or is no folder.
    #[error("The workspace '{}' cannot be used: {source}", path.display())]
    Workspace {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
