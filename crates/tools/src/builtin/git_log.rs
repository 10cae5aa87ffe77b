//! The tool `git_log`: lists commits, newest first.

use archon_types::{Json, Tool, ToolContext, ToolError, ToolResult, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use super::git::{self, Git};
use crate::{Workspace, sandbox::SandboxOptions};

/// Lists commits of the repository in a [`Workspace`] with the git program.
#[derive(Clone, Debug)]
pub struct GitLog {
    spec: ToolSpec,
    git: Git,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Branch, tag, commit or range; the current branch if left out
    revision: Option<String>,
    /// Only commits that changed this file or directory
    path: Option<String>,
    /// Maximum number of commits
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

impl GitLog {
    /// Creates the tool for the repository of a workspace. Git runs with these sandbox options, but can
    /// only read: `write` is ignored.
    pub fn new(workspace: Workspace, options: SandboxOptions) -> Self {
        let parameters = crate::schema_of::<Arguments>();
        let spec = git::spec(
            "git_log",
            "Git log",
            "Lists commits, the newest first: hash, date, author, subject.",
            parameters,
            serde_json::json!({ "limit": 10 }),
        );
        Self { spec, git: Git::new(workspace, options) }
    }

    async fn run(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Arguments { revision, path, limit } = crate::macro_support::arguments(arguments)?;
        let count = format!("--max-count={}", limit.unwrap_or(20).min(500));
        let format = "--format=%h %ad %an: %s";
        let mut command: Vec<String> =
            ["log", &count, "--date=format:%Y-%m-%d %H:%M:%S %z", format].map(str::to_owned).into();
        command.extend(git::revision_and_path(revision, path));
        self.git.run(&command, "No commits.", context).await
    }
}

impl Tool for GitLog {
    tool_methods!(run);
}
