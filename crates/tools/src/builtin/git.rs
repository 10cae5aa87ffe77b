//! Runs the git program for the git tools, so that it can only read.
//!
//! A repository's own configuration can name programs that git runs. Programs that git can turn off are
//! turned off. File filters and programs that submodules name run in the sandbox, without network and
//! without write access. Without a sandbox they do not run, and git's results about such files and
//! submodules are less exact.

use std::{process::Command, time::Duration};

use archon_types::{ToolContext, ToolError, ToolResult};

use crate::{
    Workspace,
    arguments::clip,
    sandbox::{self, Access, Cage, Ended, Finished, SandboxOptions},
};

const LIMIT: Duration = Duration::from_secs(30);
/// The engine's time limit of a call. It is longer than [`LIMIT`], so that the tool itself ends git in time.
pub(super) const CALL_LIMIT: Duration = Duration::from_secs(35);

/// Options of git before every subcommand.
const OPTIONS: &[&str] = &["--no-pager", "--no-optional-locks", "--literal-pathspecs"];

/// Settings for every subcommand. Without the last two git would run the program that checks signatures, and
/// start another git in submodules.
const SETTINGS: &[&str] = &[
    "safe.directory=*",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "color.ui=never",
    "core.quotePath=false",
    "log.showSignature=false",
    "diff.submodule=short",
];

/// Environment that keeps git from reading the machine's configuration, prompting, and fetching missing
/// objects.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    // For versions of git that do not know the variable above: no protocol has this name.
    ("GIT_ALLOW_PROTOCOL", "none"),
];

/// Runs the git program in one workspace; git can only read.
#[derive(Clone, Debug)]
pub(super) struct Git {
    workspace: Workspace,
    cage: Cage,
}

impl Git {
    pub(super) fn new(workspace: Workspace, options: SandboxOptions) -> Self {
        let cage = Cage::new(&workspace, Access::Read, options);
        Self { workspace, cage }
    }

    /// Runs git with these arguments. `nothing` is the text of the result if git prints nothing.
    pub(super) async fn run(
        &self,
        arguments: &[String],
        nothing: &str,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let finished = match self.cage.is_closed() {
            true => self.finish(&[], arguments, context).await?,
            false => self.finish(&self.filters_off(context).await?, &alone(arguments), context).await?,
        };
        match finished.end.ended.code() {
            Some(0) if finished.stdout.text.is_empty() => Ok(ToolResult::success(nothing)),
            Some(0) => Ok(ToolResult::success(finished.stdout.text)
                .with_metadata("truncated", finished.stdout.truncated)),
            Some(127) => Err(ToolError::NotFound(
                "git is not installed on this system. Go on without it, or ask the person to install it."
                    .to_owned(),
            )),
            _ => Err(failed(&finished)),
        }
    }

    async fn finish(
        &self,
        settings: &[String],
        arguments: &[String],
        context: &ToolContext,
    ) -> Result<Finished, ToolError> {
        let mut git = Command::new("git");
        git.args(OPTIONS).args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
        git.args(settings).args(arguments).current_dir(self.workspace.root());
        git.envs(ENVIRONMENT.iter().copied());
        let finished = sandbox::run(&git, &self.cage, context, LIMIT).await?;
        match finished.end.ended {
            Ended::TimedOut | Ended::Stopped => Err(ToolError::Timeout(LIMIT)),
            Ended::Flooded => Err(ToolError::Resource(
                "The output of git is too large and was not read. Name a path to get less.".to_owned(),
            )),
            Ended::DiskFull(_) => Err(ToolError::Resource(
                "The disk is full, so git was stopped. Ask the person to free space.".to_owned(),
            )),
            Ended::Exited(_) => Ok(finished),
        }
    }

    /// Returns settings that turn off all filters (programs that convert files) of the repository's
    /// configuration, one by one, because git has no switch for all of them.
    async fn filters_off(&self, context: &ToolContext) -> Result<Vec<String>, ToolError> {
        let names = ["config", "--null", "--name-only", "--get-regexp", r"^filter\."].map(str::to_owned);
        let finished = self.finish(&[], &names, context).await?;
        match finished.end.ended.code() {
            // 1: there are no filters. 127: there is no git, which the next command reports.
            Some(0 | 1 | 127) if !finished.stdout.truncated => {}
            _ => return Err(failed(&finished)),
        }
        let mut settings = Vec::new();
        for name in finished.stdout.text.split('\0').filter(|name| !name.is_empty()) {
            // `filter.NAME.clean`, where the name may be anything.
            let Some((filter, _)) = name.rsplit_once('.') else { continue };
            if name.contains(['=', '\u{fffd}']) {
                return Err(ToolError::PermissionDenied(format!(
                    "The filter {filter} of the repository cannot be turned off, and there is no sandbox on this system, so \
                     git was not run. Ask the person to run it."
                )));
            }
            for off in ["clean=", "smudge=", "process=", "required=false"] {
                settings.extend(["-c".to_owned(), format!("{filter}.{off}")]);
            }
        }
        Ok(settings)
    }
}

/// Adds an option to `status` and `diff` so that git starts no other git in submodules, because the
/// configuration of a submodule can name programs that git runs.
fn alone(arguments: &[String]) -> Vec<String> {
    let mut arguments = arguments.to_vec();
    if matches!(arguments.first().map(String::as_str), Some("status" | "diff")) {
        arguments.insert(1, "--ignore-submodules=dirty".to_owned());
    }
    arguments
}

fn failed(finished: &Finished) -> ToolError {
    ToolError::Failed(format!("git: {}", clip(finished.stderr.text.trim(), 800)))
}

/// Defines a tool that runs git: its type with `new`, and its implementation of `Tool`. The method `command`
/// of the arguments makes the command line. `if_empty` is the result if git prints nothing.
macro_rules! git_tool {
    (
        $(#[$doc:meta])*
        $tool:ident {
            arguments: $arguments:ty,
            name: $name:expr,
            label: $label:expr,
            about: $about:expr,
            example: $example:tt,
            if_empty: $if_empty:expr,
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $tool {
            spec: archon_types::ToolSpec,
            git: super::git::Git,
        }

        impl $tool {
            /// Creates the tool for the repository in the first folder of a workspace. Git runs in a sandbox
            /// with these options, but can only read: `write` is ignored.
            pub fn new(workspace: crate::Workspace, options: crate::sandbox::SandboxOptions) -> Self {
                let limit = super::git::CALL_LIMIT;
                let annotations = archon_types::ToolAnnotations::read_only().with_timeout(limit);
                let example = serde_json::json!($example);
                let spec = super::spec::<$arguments>([$name, $label], $about, annotations, example);
                Self { spec, git: super::git::Git::new(workspace, options) }
            }

            async fn run(
                &self,
                arguments: archon_types::Json,
                context: &archon_types::ToolContext,
            ) -> Result<archon_types::ToolResult, archon_types::ToolError> {
                let arguments: $arguments = crate::macro_support::arguments(arguments)?;
                self.git.run(&arguments.command(), $if_empty, context).await
            }
        }

        impl archon_types::Tool for $tool {
            tool_methods!(run);
        }
    };
}
pub(super) use git_tool;

/// Returns the end of a command line: a revision and a path, neither of which can be read as an option.
pub(super) fn revision_and_path(revision: Option<String>, path: Option<String>) -> Vec<String> {
    let mut arguments = vec!["--end-of-options".to_owned()];
    arguments.extend(revision.filter(|revision| !revision.is_empty()));
    arguments.push("--".to_owned());
    arguments.extend(path.filter(|path| !path.is_empty()));
    arguments
}
