//! The tool `git_diff`: shows changed lines.

use archon_types::{Json, Tool, ToolContext, ToolError, ToolResult, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use super::git::{self, Git};
use crate::{Workspace, sandbox::SandboxOptions};

/// Shows differences in the repository of a [`Workspace`] with the git program.
#[derive(Clone, Debug)]
pub struct GitDiff {
    spec: ToolSpec,
    git: Git,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Commit or range to compare with; the last commit if left out
    revision: Option<String>,
    /// Only this file or directory
    path: Option<String>,
    /// Only what is staged
    staged: Option<bool>,
}

impl GitDiff {
    /// Creates the tool for the repository of a workspace. Git runs with these sandbox options, but can
    /// only read: `write` is ignored.
    pub fn new(workspace: Workspace, options: SandboxOptions) -> Self {
        let parameters = crate::schema_of::<Arguments>();
        let spec = git::spec(
            "git_diff",
            "Git diff",
            "Shows the changed lines of files: since the last commit, or between commits.",
            parameters,
            serde_json::json!({ "path": "src" }),
        );
        Self { spec, git: Git::new(workspace, options) }
    }

    async fn run(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Arguments { revision, path, staged } = crate::macro_support::arguments(arguments)?;
        let mut command: Vec<String> = ["diff", "--no-ext-diff", "--no-textconv"].map(str::to_owned).into();
        command.extend(staged.unwrap_or(false).then(|| "--cached".to_owned()));
        let revision = revision.or_else(|| (!staged.unwrap_or(false)).then(|| "HEAD".to_owned()));
        command.extend(git::revision_and_path(revision, path));
        self.git.run(&command, "No differences.", context).await
    }
}

impl Tool for GitDiff {
    tool_methods!(run);
}
