//! The replacement of `archon mcp serve` without the feature `mcp-serve`, which explains how to build the
//! program with it.

use crate::{app::App, exit::Exit, failure::Failure};

/// Arguments of `archon mcp serve`, which are ignored.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[arg(hide = true, num_args = 0.., allow_hyphen_values = true, trailing_var_arg = true)]
    _rest: Vec<String>,
}

impl ServeArgs {
    pub(super) async fn run(self, _: &App) -> Result<Exit, Failure> {
        Err(Failure::usage("`archon mcp serve` is not in this build", "build with `--features mcp-serve`"))
    }
}
