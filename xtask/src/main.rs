//! `cargo xtask COMMAND`: the only entry to the project's tasks. This file looks the command up in one list.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its terminal")]

mod accept;
mod accept_demo;
mod accept_security;
mod accept_speed;
mod advisories;
mod args;
mod banned;
mod bfcl;
mod book;
mod callgrind;
mod catalogue;
mod ci;
mod circles;
mod codegen;
mod command_line;
mod conformance;
mod crate_downloads;
mod crate_pages;
mod dashboard;
mod demo;
mod deps;
mod doc_links;
mod environment;
mod eval;
mod features;
mod fuzz;
mod instructions;
mod layers;
mod markdown;
mod mcp_suite;
mod metadata;
mod named_files;
mod native_tools;
mod new_project;
mod openai_clients;
mod openapi;
mod peers;
mod postgres;
mod prepare;
mod python;
mod reach;
mod readme;
mod readme_figures;
mod redis;
mod reference_pages;
mod reference_servers;
mod registry;
mod repository;
mod rust_source;
mod rust_version;
mod sample;
mod semver;
mod settings_page;
mod sizes;
mod skills_suite;
mod spec;
mod spec_citations;
#[cfg(test)]
mod statics;
mod stored_run;
mod talk_sets;
mod third_party;
mod tidy;
mod tutorials;
mod type_names;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::args::Args;

/// A task; a new one is a new file and a line in [`COMMANDS`].
struct Command {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(Args) -> Result<()>,
}

const COMMANDS: &[Command] = &[
    Command { name: "ci", usage: "[--list]", about: "every check, in the order CI runs them", run: ci::run },
    Command {
        name: "demo",
        usage: "[--scene N]",
        about: "from a fresh clone to what an agent can do, proven",
        run: demo::run,
    },
    Command { name: "layers", usage: "", about: "edges between crates, circles in them", run: layers::run },
    Command {
        name: "tidy",
        usage: "",
        about: "file headers, sizes, names, links and banned words",
        run: tidy::run,
    },
    Command {
        name: "spec",
        usage: "[--all|--summary|--sample N [--seed S]]",
        about: "rows and the tests that cite them",
        run: spec::run,
    },
    Command { name: "codegen", usage: "[--check]", about: "refresh the generated pages", run: codegen::run },
    Command {
        name: "book",
        usage: "[--check|--update] [--page FILE]",
        about: "build the book; check its links and blocks and run its commands",
        run: book::run,
    },
    Command {
        name: "new",
        usage: "",
        about: "make the project of `archon new` and run its tests",
        run: new_project::run,
    },
    Command {
        name: "tutorials",
        usage: "[--update] [--page FILE]",
        about: "make the projects of the book's tutorials, and compare their output with the pages",
        run: tutorials::run,
    },
    Command {
        name: "registry",
        usage: "",
        about: "make a folder of all packages, and build README's program and the command from it",
        run: registry::run,
    },
    Command {
        name: "semver",
        usage: "REVISION",
        about: "changes of the public items since a revision that break their users",
        run: semver::run,
    },
    Command {
        name: "rust-version",
        usage: "",
        about: "the workspace builds with the Rust version that it declares",
        run: rust_version::run,
    },
    Command {
        name: "features",
        usage: "[--sample N [--seed S]]",
        about: "each package compiles without features, and with each of its features alone",
        run: features::run,
    },
    Command { name: "prepare", usage: "", about: "install the tools that ci needs", run: prepare::run },
    Command {
        name: "native-tools",
        usage: "[--mail]",
        about: "install what building the local engine from source needs, or the servers of the test of mail",
        run: native_tools::run,
    },
    Command {
        name: "accept",
        usage: "NAME|all [--seed N] [--fuzz-seconds N]",
        about: "an acceptance suite in full length, or every suite",
        run: accept::run,
    },
    Command {
        name: "eval",
        usage: "NAME [ARG...]",
        about: "measure how well a model does, or what memories find",
        run: eval::run,
    },
    Command {
        name: "fuzz",
        usage: "[TARGET...] [--seconds N]",
        about: "parsers of foreign text against bytes that try to break them",
        run: fuzz::run,
    },
    Command {
        name: "third-party",
        usage: "",
        about: "a provider and the command against llama.cpp's own server",
        run: third_party::run,
    },
    Command {
        name: "peers",
        usage: "[--count] [--only NAME]",
        about: "one program in other agent frameworks, and its size",
        run: peers::run,
    },
    Command {
        name: "postgres",
        usage: "ARG...",
        about: "cargo with a PostgreSQL for its tests",
        run: postgres::run,
    },
    Command {
        name: "redis",
        usage: "ARG...",
        about: "cargo with a redis-server for its tests",
        run: redis::run,
    },
    Command {
        name: "conformance",
        usage: "mcp | openai | servers | skills | providers [--without-server]",
        about: "what we send and read against the suites, servers and clients of others",
        run: conformance::run,
    },
    Command {
        name: "openapi",
        usage: "",
        about: "make the tools of a large OpenAPI document, within a time and a memory",
        run: openapi::run,
    },
    Command {
        name: "dashboard",
        usage: "[--without-browser]",
        about: "the dashboard: unit tests of its modules, and its flows in a Chromium",
        run: dashboard::run,
    },
    Command {
        name: "catalogue",
        usage: "FILE --version V --date D",
        about: "refresh the catalogue of models from a downloaded list",
        run: catalogue::run,
    },
    Command {
        name: "advisories",
        usage: "[--database DIR] [--fetch]",
        about: "before a release: known holes in the crates that we use",
        run: advisories::run,
    },
    Command {
        name: "instructions",
        usage: "[--renew]",
        about: "instructions of a turn, a delta, an append and a call, against kept figures",
        run: instructions::run,
    },
    Command {
        name: "deps",
        usage: "[--build] [--sets]",
        about: "crates behind each crate, build time",
        run: deps::run,
    },
];

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_default();
    match dispatch(&name, words.collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a command; `ci` calls this for steps that are xtask commands.
fn dispatch(name: &str, words: Vec<String>) -> Result<()> {
    if matches!(name, "" | "help" | "-h" | "--help") {
        print!("{}", help());
        return Ok(());
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        bail!("there is no command `{name}`\n\n{}", help());
    };
    (command.run)(Args::new(command.name, command.usage, words))
}

fn help() -> String {
    let mut text = String::from("usage: cargo xtask COMMAND\n\n");
    for command in COMMANDS {
        let call = format!("{} {}", command.name, command.usage);
        text.push_str(&format!("  {call:24} {}\n", command.about));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_command_is_answered_with_the_list() {
        let error = dispatch("lunch", vec![]).unwrap_err().to_string();
        assert!(error.starts_with("there is no command `lunch`"), "{error}");
        assert!(error.contains("ci [--list]"), "{error}");
    }
}
