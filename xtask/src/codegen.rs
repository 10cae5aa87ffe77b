//! `cargo xtask codegen`: writes the reference pages with the program that they describe. `--check` fails if
//! a page is out of date.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::metadata::Metadata;
use crate::{crate_pages, reach, repository, settings_page};

/// A page, and the function that makes its text with the built `archon`.
struct Page {
    path: &'static str,
    write: fn(program: &str) -> Result<String>,
}

const PAGES: &[Page] = &[
    Page { path: "docs/reference/cli.md", write: cli_reference },
    Page { path: "docs/reference/events.schema.json", write: events_schema },
    Page { path: "docs/reference/reach.md", write: reach::page },
    Page { path: "docs/reference/settings.md", write: settings_page::page },
];

const REFRESH: &str = "cargo xtask codegen";

pub(crate) fn run(mut args: Args) -> Result<()> {
    let check_only = args.flag("--check");
    args.finish()?;
    CommandLine::cargo("build --quiet -p archon-agents-cli").run()?;
    let program = Metadata::load()?.binary("debug", "archon").display().to_string();
    let pages = PAGES.iter().map(|page| Ok((page.path.to_owned(), (page.write)(&program)?)));
    let mut pages = pages.collect::<Result<Vec<_>>>()?;
    pages.extend(crate_pages::pages()?);
    let mut stale = Vec::new();
    for (page, text) in pages {
        let path = repository::root().join(&page);
        let there = fs::read_to_string(&path).unwrap_or_default();
        if there == text {
            continue;
        }
        if check_only {
            stale.push(differs(&page, &there, &text));
        } else {
            fs::create_dir_all(path.parent().unwrap_or(&path))
                .with_context(|| format!("cannot write {page}"))?;
            fs::write(&path, text).with_context(|| format!("cannot write {page}"))?;
            println!("wrote {page}");
        }
    }
    if !stale.is_empty() {
        bail!("{}; refresh with `{REFRESH}` and commit the result", stale.join("; "));
    }
    Ok(())
}

fn differs(path: &str, there: &str, text: &str) -> String {
    if there.is_empty() {
        return format!("{path} is missing");
    }
    let same = there.lines().zip(text.lines()).take_while(|(old, new)| old == new).count();
    format!("{path} differs from the program at line {}", same + 1)
}

fn cli_reference(program: &str) -> Result<String> {
    let mut text = format!(
        "# The `archon` command\n\nWritten by `{REFRESH}` from the program's own help; edits here are overwritten.\n"
    );
    describe(program, &[], &mut text)?;
    Ok(text)
}

/// Writes a section for each command, depth first, in the order of the help.
fn describe(program: &str, command: &[String], text: &mut String) -> Result<()> {
    let help = ask(program, command, "--help").output()?;
    let title =
        ["archon"].into_iter().chain(command.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    text.push_str(&format!("\n## `{title}`\n\n```text\n{}\n```\n", tidied(&help)));
    for name in subcommands(&help) {
        let mut inner = command.to_vec();
        inner.push(name);
        describe(program, &inner, text)?;
    }
    Ok(())
}

fn events_schema(program: &str) -> Result<String> {
    let printed = ask(program, &["schema".into(), "events".into()], "").output()?;
    let schema: serde_json::Value =
        serde_json::from_str(&printed).context("`archon schema events` did not print JSON")?;
    Ok(serde_json::to_string_pretty(&schema)? + "\n")
}

/// Returns a command line whose output is the same on every machine: fixed width, no colour.
fn ask(program: &str, command: &[String], flag: &str) -> CommandLine {
    let words = command.iter().map(String::as_str).chain([flag]).filter(|word| !word.is_empty());
    CommandLine::new(program).args(words.map(str::to_owned)).env("COLUMNS", "100").env("NO_COLOR", "1")
}

fn tidied(help: &str) -> String {
    help.trim_end().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Returns the names under `Commands:`. They are indented by two; continued lines are indented further.
fn subcommands(help: &str) -> Vec<String> {
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    listed
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subcommands_are_read_from_the_help() {
        let help = "Agents.\n\nUsage: archon <COMMAND>\n\nCommands:\n  run     Run a task\n          in full\n  runs    \
                    List\n  help    Print this\n\nOptions:\n  -v  More\n";
        assert_eq!(subcommands(help), ["run", "runs"]);
        assert_eq!(subcommands("Usage: archon run\n"), [""; 0]);
    }

    #[test]
    fn codegen_check_names_a_stale_page_and_line() {
        assert_eq!(differs("a.md", "", "x\n"), "a.md is missing");
        assert_eq!(differs("a.md", "x\ny\n", "x\nz\n"), "a.md differs from the program at line 2");
    }
}
