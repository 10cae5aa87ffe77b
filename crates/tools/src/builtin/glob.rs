//! The tool `glob`: lists files whose path matches a pattern, newest first.

use archon_types::{Json, Tool, ToolContext, ToolError, ToolResult, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{FilePattern, add_note};
use crate::{Workspace, arguments::clip, workspace::Places};

const DEFAULT_LIMIT: usize = 100;
const HIGHEST_LIMIT: usize = 2_000;
/// Maximum number of files and folders that one search visits.
const LOOKED_AT: usize = 200_000;

/// Finds files of a [`Workspace`] by pattern, without hidden and ignored ones.
#[derive(Clone, Debug)]
pub struct Glob {
    spec: ToolSpec,
    workspace: Workspace,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Pattern of paths, for example src/**/*.rs
    pattern: String,
    /// Directory to search; the root of the workspace if left out
    path: Option<String>,
    /// Maximum number of files
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

impl Glob {
    /// Creates the tool for the files of a workspace.
    pub fn new(workspace: Workspace) -> Self {
        let about =
            "Finds files by a pattern of their path and returns them, the most recently changed first.";
        let example = serde_json::json!({ "pattern": "src/**/*.rs" });
        let spec = super::spec::<Arguments>(["glob", "Find files"], about, super::reads_files(), example);
        Self { spec, workspace }
    }

    fn find(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Arguments { pattern, path, limit } = crate::macro_support::arguments(arguments)?;
        let limit = limit.unwrap_or(DEFAULT_LIMIT).min(HIGHEST_LIMIT);
        let folder = self.workspace.resolve_for(path.as_deref().unwrap_or_default(), context)?;
        let wanted = FilePattern::new(&pattern)?;
        let mut found = Vec::new();
        let places = Places::new(&self.workspace, &folder, &self.spec, None, context);
        for entry in places.walk(&folder).take(LOOKED_AT) {
            if context.cancel.is_cancelled() {
                return Err(ToolError::Cancelled);
            }
            let relative = entry.path.strip_prefix(&folder).unwrap_or(&entry.path);
            if entry.is_file && wanted.matches(relative) {
                found.push((entry.modified, entry.path));
            }
        }
        // Files with the same time are ordered by path.
        found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let there = found.len();
        let names: Vec<_> = found.iter().take(limit).map(|(_, path)| self.workspace.display(path)).collect();
        let mut result = match there {
            0 => ToolResult::success(format!("No files found for '{}'.", clip(&pattern, 100))),
            _ => ToolResult::success(names.join("\n")),
        };
        if there > limit {
            add_note(&mut result, format!("{} more. Narrow the pattern or the path.", there - limit));
        }
        let result = result.with_metadata("matches", there).with_metadata("truncated", there > limit);
        Ok(places.with_notes(result))
    }
}

impl Tool for Glob {
    tool_methods!(find in workspace);
}
