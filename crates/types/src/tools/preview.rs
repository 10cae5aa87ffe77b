//! Previews of tool calls: the changes that a call would make, for the person who decides about it.

use serde::{Deserialize, Serialize};

/// A tool's preview of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Preview {
    /// The action of the call, as one line.
    pub summary: String,
    /// The files that the call would change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// True if the call would change something outside of the working directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside_cwd: bool,
    /// The reason why no permission rule can allow this call, so that a person must approve it; `None` if a
    /// rule can allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// The possible answers; empty for `approve`, `edit` and `cancel`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The time that the question may wait, in milliseconds; `None` for the setting of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Preview {
    /// Creates a preview whose `summary` names the action of the call, as one line.
    pub fn new(summary: impl Into<String>) -> Self {
        Self { summary: summary.into(), ..Self::default() }
    }
}

/// The change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FileChange {
    /// The file, as the tool's results name it.
    pub path: String,
    /// True if the file does not exist yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub created: bool,
    /// The difference in the unified format; `None` if it is too large to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The number of added lines.
    pub added: usize,
    /// The number of removed lines.
    pub removed: usize,
}

impl FileChange {
    /// Creates a change of the existing file `path`, without a diff and without numbers of lines.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), created: false, diff: None, added: 0, removed: 0 }
    }
}
