//! The replacement of `archon init` without the feature `setup`, which explains how to build the program
//! with it.

use crate::{app::App, exit::Exit, failure::Failure};

/// Arguments of `archon init`, which are ignored.
#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    #[arg(hide = true, num_args = 0.., allow_hyphen_values = true, trailing_var_arg = true)]
    _rest: Vec<String>,
}

impl InitArgs {
    pub(crate) async fn run(self, _: &App) -> Result<Exit, Failure> {
        Err(Failure::usage(
            "`archon init` is not in this build",
            "set the variable of the service and `model` in archon.toml, or build with `--features setup`",
        ))
    }
}
