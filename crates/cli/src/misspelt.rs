//! The error of a wrong command line, with the command or flag that is nearest to a misspelt word.

use archon::types::nearest;
use clap::{
    CommandFactory as _,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::{args::Args, failure::Failure};

/// Returns the command or flag that is most similar to an unknown word; of two equally similar ones the
/// first in the list, which is the more common one.
pub(crate) fn find_meant(e: &clap::Error) -> Option<String> {
    let mut all = Args::command();
    all.build();
    let command = find_command(e, &all);
    match e.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = context(e, ContextKind::InvalidSubcommand)?;
            nearest(&word, command.get_subcommands().map(clap::Command::get_name)).map(str::to_owned)
        }
        ErrorKind::UnknownArgument => {
            let word = context(e, ContextKind::InvalidArg)?;
            let flags = command.get_arguments().filter_map(clap::Arg::get_long);
            nearest(word.strip_prefix("--")?, flags).map(|flag| format!("--{flag}"))
        }
        _ => None,
    }
}

/// Finds the command that was given the unknown word, by the usage in the parser's error.
fn find_command<'a>(e: &clap::Error, all: &'a clap::Command) -> &'a clap::Command {
    let usage = context(e, ContextKind::Usage).unwrap_or_default();
    let words = usage.split_whitespace().skip_while(|word| *word != "archon").skip(1);
    let mut command = all;
    for word in words {
        let Some(next) = command.find_subcommand(word) else { break };
        command = next;
    }
    command
}

fn context(e: &clap::Error, kind: ContextKind) -> Option<String> {
    match e.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::StyledStr(text) => Some(text.to_string()),
        _ => None,
    }
}

/// Returns the error of the command line's parser in this program's form: the first line becomes `what`, the
/// tips and the usage become advice.
impl From<&clap::Error> for Failure {
    fn from(e: &clap::Error) -> Self {
        let text = e.to_string();
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
        let first = lines.next().unwrap_or_default();
        let mut what = first.strip_prefix("error: ").unwrap_or(first).to_owned();
        // Missing arguments are in lines of their own.
        while what.ends_with([':', '>']) {
            let Some(line) = lines.next_if(|line| line.starts_with(['<', '-'])) else { break };
            what = format!("{what} {line}");
        }
        let meant = find_meant(e);
        let tip = |line: &str| match line {
            line if line.starts_with("For more information") => None,
            // Drops the parser's own guess, and the usage that contains it.
            _ if meant.is_some() => None,
            line => Some(line.strip_prefix("tip: ").unwrap_or(line).replace("Usage:", "usage:")),
        };
        let mut advice: Vec<_> = lines.filter_map(tip).collect();
        advice.extend(meant.map(|name| format!("did you mean `{name}`?")));
        advice.push("--help shows more".to_owned());
        Self::usage(what, advice.join("; ").replace("?; ", "? "))
    }
}
