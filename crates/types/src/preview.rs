//! What a call would change, as data: for the person who is asked about it, before anything happens.

use serde::{Deserialize, Serialize};

/// What a tool foresees of one call of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Preview {
    /// What is going to happen, in a line.
    pub summary: String,
    /// The files that would change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// Something outside the working directory would change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside_cwd: bool,
    /// Why a person has to agree to this call each time, whatever rules say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// What may be answered, where that is not `approve`, `edit` and `cancel`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// How long the question may wait, milliseconds, where the run's own setting is not to hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Preview {
    /// A preview of this one line.
    pub fn new(summary: impl Into<String>) -> Self {
        Self { summary: summary.into(), ..Self::default() }
    }
}

/// What would become of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FileChange {
    /// The file, as the tool's results name it.
    pub path: String,
    /// It is not there yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub created: bool,
    /// The difference in the unified format; none where it is too large to be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Lines that are added.
    pub added: usize,
    /// Lines that are taken away.
    pub removed: usize,
}

impl FileChange {
    /// A change of `path` without more detail.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), created: false, diff: None, added: 0, removed: 0 }
    }
}
