//! Patterns for files, such as `*.rs` or `src/**/*.toml`.

use std::path::Path;

use archon_types::ToolError;
use globset::{GlobBuilder, GlobMatcher};

use crate::arguments::clip;

/// A file pattern. With a `/` it matches the path below the searched folder, without a `/` only the file
/// name.
pub(super) struct FilePattern {
    matcher: GlobMatcher,
    name_only: bool,
}

impl FilePattern {
    pub(super) fn new(pattern: &str) -> Result<Self, ToolError> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let glob = GlobBuilder::new(pattern).literal_separator(true).build().map_err(|e| {
            ToolError::InvalidArgs(format!(
                "The file name pattern '{}' cannot be used: {}. Example: *.rs",
                clip(pattern, 100),
                e.kind()
            ))
        })?;
        Ok(Self { matcher: glob.compile_matcher(), name_only: !pattern.contains('/') })
    }

    /// Returns whether a path, relative to the searched folder, matches.
    pub(super) fn matches(&self, path: &Path) -> bool {
        match path.file_name() {
            Some(name) if self.name_only => self.matcher.is_match(Path::new(name)),
            _ => self.matcher.is_match(path),
        }
    }
}
