//! Replacements of commands that are not in this build, which explain how to build the program with them.

/// Declares the module of a command that is not in this build. The arguments of the command are ignored.
macro_rules! absent {
    (mod $module:ident: $args:ident, $command:literal, $advice:literal) => {
        mod $module {
            use crate::{app::App, exit::Exit, failure::Failure};

            #[derive(Debug, Default, clap::Args)]
            pub(crate) struct $args {
                #[arg(hide = true, num_args = 0.., allow_hyphen_values = true, trailing_var_arg = true)]
                _rest: Vec<String>,
            }

            impl $args {
                pub(crate) async fn run(self, _: &App) -> Result<Exit, Failure> {
                    Err(Failure::usage(concat!("`", $command, "` is not in this build"), $advice))
                }
            }
        }
    };
}
