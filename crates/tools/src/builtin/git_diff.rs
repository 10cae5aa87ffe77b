//! The tool `git_diff`: shows changed lines.

use schemars::JsonSchema;
use serde::Deserialize;

use super::git::{git_tool, revision_and_path};

git_tool!(
    /// Shows differences in the repository of a [`Workspace`](crate::Workspace) with the git program.
    GitDiff {
        arguments: Arguments,
        name: "git_diff",
        label: "Git diff",
        about: "Shows the changed lines of files: since the last commit, or between commits.",
        example: { "path": "src" },
        if_empty: "No differences.",
    }
);

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

impl Arguments {
    fn command(self) -> Vec<String> {
        let staged = self.staged.unwrap_or(false);
        let mut command: Vec<String> = ["diff", "--no-ext-diff", "--no-textconv"].map(str::to_owned).into();
        command.extend(staged.then(|| "--cached".to_owned()));
        let revision = self.revision.or_else(|| (!staged).then(|| "HEAD".to_owned()));
        command.extend(revision_and_path(revision, self.path));
        command
    }
}
