//! `archon completions`: prints the completion script of a shell.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::{app::App, args::Args, exit::Exit, failure::Failure};

/// Arguments of `archon completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl CompletionsArgs {
    pub(crate) fn run(self, app: &App) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Args::command(), "archon", &mut script);
        app.output.piece(&String::from_utf8_lossy(&script));
        Ok(Exit::Finished)
    }
}
