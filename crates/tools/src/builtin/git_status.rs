//! The tool `git_status`: lists the changes since the last commit.

use schemars::JsonSchema;
use serde::Deserialize;

use super::git::git_tool;

git_tool!(
    /// Shows the state of the repository in a [`Workspace`](crate::Workspace) with the git program.
    GitStatus {
        arguments: Arguments,
        name: "git_status",
        label: "Git status",
        about: "Shows the branch and which files were changed, added or deleted since the last commit.",
        example: {},
        if_empty: "Nothing was changed.",
    }
);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Only this file or directory
    path: Option<String>,
}

impl Arguments {
    fn command(self) -> Vec<String> {
        let command = ["status", "--short", "--branch", "--"].map(str::to_owned);
        command.into_iter().chain(self.path.filter(|path| !path.is_empty())).collect()
    }
}
