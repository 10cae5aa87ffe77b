//! `cargo xtask eval NAME`: how well a model does on a fixed set of tasks. The measuring programs live beside what
//! they measure; this only knows where.

use anyhow::{Result, bail};

use crate::args::Args;
use crate::command_line::CommandLine;

/// Name → the cargo command that prints the table.
const EVALS: &[(&str, &str)] =
    &[("local", "run --release -p archon-local-model --features engine --example eval --")];

pub(crate) fn run(mut args: Args) -> Result<()> {
    let name = args.name()?;
    line(&name, args.rest())?.run()
}

fn line(name: &str, rest: Vec<String>) -> Result<CommandLine> {
    match EVALS.iter().find(|(known, _)| *known == name) {
        Some((_, line)) => Ok(CommandLine::cargo(line).args(rest)),
        None => {
            let known: Vec<_> = EVALS.iter().map(|(known, _)| *known).collect();
            bail!("there is no eval `{name}`; there is: {}", known.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_words_are_passed_on() {
        let line = line("local", vec!["--tasks".into(), "my set".into()]).unwrap();
        assert!(line.to_string().ends_with("--example eval -- --tasks \"my set\""), "{line}");
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_list() {
        assert_eq!(
            line("moon", vec![]).err().unwrap().to_string(),
            "there is no eval `moon`; there is: local"
        );
    }
}
