//! The replacement of `archon mcp` without the feature `mcp`, which explains how to build the program with
//! it.

use crate::{app::App, exit::Exit, failure::Failure};

/// Arguments of `archon mcp`, which are ignored.
#[derive(Debug, clap::Args)]
pub(crate) struct McpArgs {
    #[arg(hide = true, num_args = 0.., allow_hyphen_values = true, trailing_var_arg = true)]
    _rest: Vec<String>,
}

impl McpArgs {
    pub(crate) async fn run(self, _: &App) -> Result<Exit, Failure> {
        Err(Failure::usage("`archon mcp` is not in this build", "build with `--features mcp`"))
    }
}
