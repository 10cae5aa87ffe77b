//! What the three git tools share: the git program, run where it can only read.
//!
//! A repository's own configuration can name programs that git runs. They run in the sandbox as well, without the
//! network and without the right to change a file, and those that can be turned off are.

use std::{process::Command, time::Duration};

use archon_types::{Json, ToolAnnotations, ToolContext, ToolError, ToolResult, ToolSpec};

use crate::{
    Workspace,
    arguments::clip,
    sandbox::{self, Access, Cage, Ended, SandboxOptions},
};

const LIMIT: Duration = Duration::from_secs(30);

/// Before every subcommand.
const ALWAYS: &[&str] = &[
    "--no-pager",
    "--no-optional-locks",
    "--literal-pathspecs",
    "-c",
    "safe.directory=*",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "color.ui=never",
    "-c",
    "core.quotePath=false",
];

/// Git in one workspace.
#[derive(Clone, Debug)]
pub(super) struct Git {
    workspace: Workspace,
    cage: Cage,
}

impl Git {
    pub(super) fn new(workspace: Workspace, options: SandboxOptions) -> Self {
        let cage = Cage::new(workspace.roots().to_vec(), Access::Read, options);
        Self { workspace, cage }
    }

    /// Runs git with these arguments; `nothing` is said where it says nothing.
    pub(super) async fn run(
        &self,
        arguments: &[String],
        nothing: &str,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let mut git = Command::new("git");
        git.args(ALWAYS).args(arguments).current_dir(self.workspace.root());
        git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0");
        let finished = sandbox::run(&git, &self.cage, context, LIMIT).await?;
        match finished.ended {
            Ended::TimedOut => return Err(ToolError::Timeout(LIMIT)),
            Ended::Flooded => {
                return Err(ToolError::Resource("git said more than can be read. Name a path.".to_owned()));
            }
            Ended::Exited(_) => {}
        }
        match finished.ended.code() {
            Some(0) if finished.stdout.text.is_empty() => Ok(ToolResult::success(nothing)),
            Some(0) => Ok(ToolResult::success(finished.stdout.text)
                .with_metadata("truncated", finished.stdout.truncated)),
            Some(127) => Err(ToolError::NotFound("git is not installed on this system.".to_owned())),
            _ => Err(ToolError::Failed(format!("git: {}", clip(finished.stderr.text.trim(), 800)))),
        }
    }
}

pub(super) fn spec(name: &str, label: &str, about: &str, parameters: Json, example: Json) -> ToolSpec {
    let mut annotations = ToolAnnotations::read_only();
    annotations.timeout_ms = Some(35_000);
    let mut spec = ToolSpec::new(name, about, parameters).with_annotations(annotations);
    spec.label = label.to_owned();
    spec.examples.push(example);
    spec
}

/// The end of a command line: a revision and a path, neither of which is taken for an option.
pub(super) fn revision_and_path(revision: Option<String>, path: Option<String>) -> Vec<String> {
    let mut arguments = vec!["--end-of-options".to_owned()];
    arguments.extend(revision.filter(|revision| !revision.is_empty()));
    arguments.push("--".to_owned());
    arguments.extend(path.filter(|path| !path.is_empty()));
    arguments
}
