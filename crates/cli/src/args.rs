//! The command line: what can be asked, in which words.
//!
//! Each command keeps its own arguments in its file under `commands/`.

use std::path::PathBuf;

use clap::{ArgAction, Parser};

use crate::commands::Command;

/// Runs agents that think, act with tools and answer, and keeps a log of everything they do.
#[derive(Debug, Parser)]
#[command(name = "archon", version, propagate_version = true, after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags that every command takes.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct GlobalArgs {
    /// Where runs and models are kept [default: the user's data directory]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Print JSON: one record, delta or item per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say more about what happens inside; repeat for more. RUST_LOG says it exactly
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

const AFTER_HELP: &str = "\
Exit codes: 0 finished, 1 failed, 2 usage, 3 suspended, 4 a limit was reached, 130 interrupted.
Settings: flags, then ARCHON_* variables, then ./archon.toml, then the user's archon.toml.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use expect_test::{Expect, expect};

    use super::*;

    fn check(line: &str, expected: Expect) {
        let words = std::iter::once("archon").chain(line.split(' ').filter(|w| !w.is_empty()));
        let seen = match Args::try_parse_from(words) {
            Ok(args) => format!("{args:?}"),
            Err(e) => format!("exit {}: {}", e.exit_code(), e.to_string().lines().next().unwrap_or_default()),
        };
        expected.assert_eq(&seen);
    }

    #[test]
    fn the_definitions_hold_together() {
        Args::command().debug_assert();
    }

    #[test]
    fn command_lines_mean_what_they_say() {
        check("run hello", expect![[""]]);
        check(
            "run --model M --base-url http://h/v1 --tools a,b --max-turns 3 --workspace W --mode text --session s hi",
            expect![[""]],
        );
        check("run --continue --json --data-dir D -vv hi", expect![[""]]);
        check("--json --data-dir D runs list", expect![[""]]);
        check("runs show r1 --json", expect![[""]]);
        check("resume r1", expect![[""]]);
        check("tools call calculator {\"expression\":\"2+2\"}", expect![[""]]);
        check("model pull", expect![[""]]);
        check("schema events", expect![[""]]);
        check("doctor", expect![[""]]);
    }

    #[test]
    fn wrong_command_lines_are_usage_errors() {
        check("", expect![[""]]);
        check("run", expect![[""]]);
        check("run --continue --session s hi", expect![[""]]);
        check("run --mode loud hi", expect![[""]]);
        check("run --max-turns -1 hi", expect![[""]]);
        check("run --max-turns 0 hi", expect![[""]]);
        check("rnu hi", expect![[""]]);
        check("schema nothing", expect![[""]]);
    }
}
