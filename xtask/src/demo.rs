//! `cargo xtask demo`: from a fresh clone to an agent's answer on this machine, with no account and no key. Each
//! command is shown as a person would type it. With `--check` it fails unless the answer was calculated and is right.

use std::path::Path;

use anyhow::Result;

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::kept_run;
use crate::metadata::Metadata;

/// Small enough for a laptop, and wrong without a calculator often enough to show that one is used.
pub(crate) const TASK: &str = "What is 15% of 200?";

/// What a right answer holds, and the tool that it comes from.
pub(crate) const ANSWER: &str = "30";
pub(crate) const TOOL: &str = "calculator";

pub(crate) fn run(mut args: Args) -> Result<()> {
    let check = args.flag("--check");
    args.finish()?;
    CommandLine::cargo("build --profile demo -p archon-cli").run()?;
    let archon = Metadata::load()?.binary("demo", "archon").display().to_string();
    CommandLine::new(&archon).args(["model", "pull"]).run()?;
    // Named, so that no key or server of this machine is used instead.
    let file = CommandLine::new(&archon).args(["model", "path"]).output()?;
    let name = Path::new(file.trim()).file_stem().unwrap_or_default().display();
    CommandLine::new(&archon).args(["run", "--model", &format!("local:{name}"), TASK]).run()?;
    if check {
        kept_run::check_newest(&archon, &[], TOOL, ANSWER)?;
    }
    Ok(())
}
