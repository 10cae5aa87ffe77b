//! The tool `list_files`: lists a folder, or the files below it that match a pattern.

use std::path::Path;

use archon_types::{Json, Tool, ToolContext, ToolError, ToolResult, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{FilePattern, add_note};
use crate::{
    Workspace,
    workspace::{Entry, Places},
};

const DEFAULT_LIMIT: usize = 200;
const HIGHEST_LIMIT: usize = 2_000;

/// Lists one folder of a [`Workspace`] completely, or all files below it without hidden and ignored ones.
/// Paths are relative to the workspace; folders end with `/`.
#[derive(Clone, Debug)]
pub struct ListFiles {
    spec: ToolSpec,
    workspace: Workspace,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Directory to list; the current one if left out
    path: Option<String>,
    /// Only files with this name pattern, in all subdirectories, for example *.rs
    pattern: Option<String>,
    /// List all subdirectories too
    recursive: Option<bool>,
    /// Maximum number of entries
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

impl ListFiles {
    /// Creates the tool for the files of a workspace.
    pub fn new(workspace: Workspace) -> Self {
        let about = "Lists the files in a directory. Use it to find out which files there are.";
        let example = serde_json::json!({ "path": "." });
        let spec =
            super::spec::<Arguments>(["list_files", "List files"], about, super::reads_files(), example);
        Self { spec, workspace }
    }

    fn list(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Arguments { path, pattern, recursive, limit } = crate::macro_support::arguments(arguments)?;
        let path = path.unwrap_or_default();
        let folder = self.workspace.resolve_for(&path, context)?;
        if !folder.is_dir() {
            return Err(ToolError::InvalidArgs(format!(
                "'{path}' is a file. Use read_file to see what is in it."
            )));
        }
        let limit = limit.unwrap_or(DEFAULT_LIMIT).min(HIGHEST_LIMIT);
        let pattern =
            pattern.filter(|pattern| !pattern.is_empty()).map(|p| FilePattern::new(&p)).transpose()?;
        let places = Places::new(&self.workspace, &folder, &self.spec, None, context);
        let found = match (pattern, recursive.unwrap_or(false)) {
            (None, false) => self.entries(&folder, &places)?,
            (pattern, _) => {
                let below = places.walk(&folder).take_while(|_| !context.cancel.is_cancelled());
                self.files_below(&folder, pattern.as_ref(), limit, below)
            }
        };
        if context.cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        Ok(places.with_notes(self.result(&folder, found, limit)))
    }

    fn entries(&self, folder: &Path, places: &Places) -> Result<Vec<String>, ToolError> {
        let failed =
            |e| ToolError::Failed(format!("'{}' cannot be listed: {e}", self.workspace.display(folder)));
        let mut names = Vec::new();
        for entry in self.workspace.entries(folder).map_err(failed)? {
            if places.allow(&entry.path) {
                names.push(self.workspace.display(&entry.path) + if entry.is_dir { "/" } else { "" });
            }
        }
        names.sort();
        Ok(names)
    }

    /// Collects the matching files, at most one more than the limit.
    fn files_below(
        &self,
        folder: &Path,
        pattern: Option<&FilePattern>,
        limit: usize,
        below: impl Iterator<Item = Entry>,
    ) -> Vec<String> {
        let mut found = Vec::new();
        for entry in below {
            let relative = entry.path.strip_prefix(folder).unwrap_or(&entry.path);
            if entry.is_dir || pattern.is_some_and(|pattern| !pattern.matches(relative)) {
                continue;
            }
            found.push(self.workspace.display(&entry.path));
            if found.len() > limit {
                break;
            }
        }
        found
    }

    fn result(&self, folder: &Path, mut found: Vec<String>, limit: usize) -> ToolResult {
        let there = found.len();
        found.truncate(limit);
        let mut result = match there {
            0 => ToolResult::success(format!("No files in '{}'.", self.workspace.display(folder))),
            _ => ToolResult::success(found.join("\n")),
        };
        if there > limit {
            add_note(&mut result, format!("More than {limit}. Narrow the path or the pattern."));
        }
        result.with_metadata("entries", found.len()).with_metadata("truncated", there > limit)
    }
}

impl Tool for ListFiles {
    tool_methods!(list in workspace);
}
