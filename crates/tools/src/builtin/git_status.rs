//! The tool `git_status`: lists the changes since the last commit.

use archon_types::{Json, Tool, ToolContext, ToolError, ToolResult, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use super::git::{self, Git};
use crate::{Workspace, sandbox::SandboxOptions};

/// Shows the state of the repository in a [`Workspace`] with the git program.
#[derive(Clone, Debug)]
pub struct GitStatus {
    spec: ToolSpec,
    git: Git,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Only this file or directory
    path: Option<String>,
}

impl GitStatus {
    /// Creates the tool for the repository of a workspace. Git runs with these sandbox options, but can
    /// only read: `write` is ignored.
    pub fn new(workspace: Workspace, options: SandboxOptions) -> Self {
        let parameters = crate::schema_of::<Arguments>();
        let spec = git::spec(
            "git_status",
            "Git status",
            "Shows the branch and which files were changed, added or deleted since the last commit.",
            parameters,
            serde_json::json!({}),
        );
        Self { spec, git: Git::new(workspace, options) }
    }

    async fn run(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Arguments { path } = crate::macro_support::arguments(arguments)?;
        let mut command: Vec<String> = ["status", "--short", "--branch"].map(str::to_owned).into();
        command.push("--".to_owned());
        command.extend(path.filter(|path| !path.is_empty()));
        self.git.run(&command, "Nothing was changed.", context).await
    }
}

impl Tool for GitStatus {
    tool_methods!(run);
}
