//! The command `archon`: parses the command line, runs a command, and returns its exit code.
//!
//! Use it to run agents from a terminal or a script. A program of your own depends on `archon-agents` instead.
//!
//! # Example
//!
//! ```sh
//! archon init                                 # chooses a provider, tries its key and keeps it
//! archon run "What is 12% of 350?"
//! archon                                      # a conversation; `/help` lists its commands
//! ```

mod agent_files;
mod app;
mod args;
mod ask;
mod assemble;
#[cfg(all(feature = "serve", feature = "skills", feature = "triggers"))]
mod assistant;
mod attach;
mod board;
#[cfg(any(feature = "openapi", feature = "mcp-sign-in"))]
mod browser_answer;
mod cassette;
#[cfg(feature = "chat")]
mod chat;
mod choose;
mod chosen;
mod command_line;
mod commands;
mod config;
mod confirm;
mod credentials;
mod drive;
mod exit;
mod failure;
mod hooks;
mod instructions_file;
mod interrupt;
mod lists;
mod loaded_apis;
mod local;
mod mcp;
mod memory;
mod misspelt;
mod name_advice;
mod openapi;
mod output;
mod own_file;
mod permissions;
#[cfg(feature = "chat")]
mod person;
mod piped;
mod planning;
mod project_parts;
mod provenance;
mod question;
mod recorded;
mod render;
mod secret_input;
mod servers;
mod skills;
mod start;
#[cfg(feature = "triggers")]
mod tasks;
mod text;
#[cfg(all(feature = "embedder", feature = "mcp"))]
mod tool_embedder;
mod tool_workspace;
mod toolset;
mod traces;
#[cfg(feature = "setup")]
mod trial;
#[cfg(all(unix, feature = "undo"))]
mod undo;

use std::process::ExitCode;

use clap::{Parser, error::ErrorKind};

fn main() -> ExitCode {
    // A conversation starts this program once more, to restore the terminal if the conversation is killed.
    #[cfg(all(unix, feature = "chat"))]
    if chat::is_guard() {
        return chat::guard();
    }
    // Parses before any other work, so that `--version` and mistakes are answered at once.
    match args::Args::try_parse() {
        Ok(args) => start::run(args).into(),
        // Help and versions go to stdout and are not errors, even if the reader has gone away. For a group of
        // commands without the name of one, the group's help is shown.
        Err(e) if !e.use_stderr() || e.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = e.print();
            if e.use_stderr() { exit::Exit::Usage.into() } else { ExitCode::SUCCESS }
        }
        Err(e) => {
            let failure = failure::Failure::from(&e);
            output::Output::system().failure(&failure);
            failure.exit().into()
        }
    }
}
