//! Previews of tool calls: the changes that a call would make, shown to the person who is asked about it.

use serde::{Deserialize, Serialize};

/// A tool's preview of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Preview {
    /// The action, in a line.
    pub summary: String,
    /// The files that would change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// True if something outside of the working directory would change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside_cwd: bool,
    /// The reason why a person has to agree to this call each time, whatever rules say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// The possible answers, if not `approve`, `edit` and `cancel`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The time that the question may wait, milliseconds; default: the run's own setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Preview {
    /// Creates a preview with this summary.
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
    /// The difference in the unified format; none if it is too large to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The number of added lines.
    pub added: usize,
    /// The number of removed lines.
    pub removed: usize,
}

impl FileChange {
    /// Creates a change of `path` without details.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), created: false, diff: None, added: 0, removed: 0 }
    }
}
