//! The tool `git_log`: lists commits, newest first.

use schemars::JsonSchema;
use serde::Deserialize;

use super::git::{git_tool, revision_and_path};

git_tool!(
    /// Lists commits of the repository in a [`Workspace`](crate::Workspace) with the git program.
    GitLog {
        arguments: Arguments,
        name: "git_log",
        label: "Git log",
        about: "Lists commits, the newest first: hash, date, author, subject.",
        example: { "limit": 10 },
        if_empty: "No commits.",
    }
);

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

impl Arguments {
    fn command(self) -> Vec<String> {
        let count = format!("--max-count={}", self.limit.unwrap_or(20).min(500));
        let format = "--format=%h %ad %an: %s";
        let mut command: Vec<String> =
            ["log", &count, "--date=format:%Y-%m-%d %H:%M:%S %z", format].map(str::to_owned).into();
        command.extend(revision_and_path(self.revision, self.path));
        command
    }
}
