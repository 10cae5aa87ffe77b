//! What the three git tools share: the git program, run where it can only read.
//!
//! A repository's own configuration can name programs that git runs. Those that can be turned off are. The others,
//! which are the filters of files and what submodules name, run in the sandbox as well, without the network and
//! without the right to change a file; where the kernel cannot hold them they do not run, and what git says of
//! such files and submodules is less exact.

use std::{process::Command, time::Duration};

use archon_types::{Json, ToolAnnotations, ToolContext, ToolError, ToolResult, ToolSpec};

use crate::{
    Workspace,
    arguments::clip,
    sandbox::{self, Access, Cage, Ended, Finished, SandboxOptions},
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
    // It would run what checks signatures.
    "-c",
    "log.showSignature=false",
    // Or git would look into submodules with another git.
    "-c",
    "diff.submodule=short",
];

/// What git does not do on its own: read what others on this machine set up, ask, fetch what is missing.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    // Also for a git that does not know the one before: no protocol has this name.
    ("GIT_ALLOW_PROTOCOL", "none"),
];

/// Git in one workspace.
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

    /// Runs git with these arguments; `nothing` is said where it says nothing.
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
        match finished.ended.code() {
            Some(0) if finished.stdout.text.is_empty() => Ok(ToolResult::success(nothing)),
            Some(0) => Ok(ToolResult::success(finished.stdout.text)
                .with_metadata("truncated", finished.stdout.truncated)),
            Some(127) => Err(ToolError::NotFound("git is not installed on this system.".to_owned())),
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
        git.args(ALWAYS).args(settings).args(arguments).current_dir(self.workspace.root());
        git.envs(ENVIRONMENT.iter().copied());
        let finished = sandbox::run(&git, &self.cage, context, LIMIT).await?;
        match finished.ended {
            Ended::TimedOut => Err(ToolError::Timeout(LIMIT)),
            Ended::Flooded => {
                Err(ToolError::Resource("git said more than can be read. Name a path.".to_owned()))
            }
            Ended::DiskFull(_) => Err(ToolError::Resource("The disk is full: git was stopped.".to_owned())),
            Ended::Exited(_) => Ok(finished),
        }
    }

    /// Settings by which no filter runs that the repository's configuration names. Git has no switch for all.
    async fn filters_off(&self, context: &ToolContext) -> Result<Vec<String>, ToolError> {
        let names = ["config", "--null", "--name-only", "--get-regexp", r"^filter\."].map(str::to_owned);
        let finished = self.finish(&[], &names, context).await?;
        match finished.ended.code() {
            // 1: there is none. 127: there is no git, of which the next one says so.
            Some(0 | 1 | 127) if !finished.stdout.truncated => {}
            _ => return Err(failed(&finished)),
        }
        let mut settings = Vec::new();
        for name in finished.stdout.text.split('\0').filter(|name| !name.is_empty()) {
            // `filter.NAME.clean`, and the name may be anything.
            let Some((filter, _)) = name.rsplit_once('.') else { continue };
            if name.contains(['=', '\u{fffd}']) {
                return Err(ToolError::PermissionDenied(format!(
                    "The repository names a filter that cannot be turned off ({filter}), and there is no sandbox on this \
                     system. Git was not run."
                )));
            }
            for off in ["clean=", "smudge=", "process=", "required=false"] {
                settings.extend(["-c".to_owned(), format!("{filter}.{off}")]);
            }
        }
        Ok(settings)
    }
}

/// The same command, which does not start another git in submodules: their configuration names programs too.
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
