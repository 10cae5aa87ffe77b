//! `archon completions`: prints the completion script of a shell.

use crate::{app::App, exit::Exit, failure::Failure};

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[cfg(feature = "shell")]
    #[arg(value_name = "SHELL")]
    shell: clap_complete::Shell,
    /// The shell
    #[cfg(not(feature = "shell"))]
    #[arg(value_name = "SHELL")]
    _shell: String,
}

impl CompletionsArgs {
    #[cfg(feature = "shell")]
    pub(crate) fn run(self, app: &App, whole: fn() -> clap::Command) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        let mut command = whole();
        clap_complete::generate(self.shell, &mut command, "archon", &mut script);
        app.output.piece(&String::from_utf8_lossy(&script));
        Ok(Exit::Finished)
    }

    #[cfg(not(feature = "shell"))]
    pub(crate) fn run(self, _: &App, _: fn() -> clap::Command) -> Result<Exit, Failure> {
        Err(Failure::usage("`archon completions` is not in this build", "build with `--features shell`"))
    }
}
