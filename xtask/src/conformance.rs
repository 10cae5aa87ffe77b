//! `cargo xtask conformance providers`: compares our requests and parsing with the services' own client
//! libraries. (`conformance mcp` is in `mcp_suite.rs`, `conformance openai` in `openai_clients.rs`, `conformance servers`
//! in `reference_servers.rs`, `conformance skills` in `skills_suite.rs`.)
//!
//! The provider tests write down every exchange with a fixture. Python packages of the services (openai,
//! anthropic, google-genai, botocore) then check that the requests are like their own, and read the same
//! answers; `tests/conformance/providers.py` compares. Last comes a real server of an OpenAI-compatible
//! protocol, see `third_party.rs`. The packages come from PyPI, into a folder under cargo's target directory;
//! the server's model is fetched as by `archon model pull`.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::mcp_suite;
use crate::metadata::Metadata;
use crate::openai_clients;
use crate::python::environment;
use crate::reference_servers;
use crate::skills_suite;
use crate::third_party;

/// Pinned, so that a new release of a package cannot break the check; raised by hand.
const PACKAGES: &[&str] =
    &["openai==3.54.0", "anthropic==2.12.0", "google-genai==3.4.0", "botocore==1.44.5", "pydantic==2.14.3"];

pub(crate) fn run(mut args: Args) -> Result<()> {
    let without_server = args.flag("--without-server");
    let name = args.name()?;
    args.finish()?;
    match &*name {
        "mcp" => mcp_suite::run(),
        "openai" => openai_clients::run(),
        "providers" => providers(without_server),
        "servers" => reference_servers::run(),
        "skills" => skills_suite::run(),
        _ => bail!(
            "there is no conformance check `{name}`; there are: mcp, openai, providers, servers, skills"
        ),
    }
}

fn providers(without_server: bool) -> Result<()> {
    let folder = Metadata::load()?.target_directory.join("conformance");
    let python = environment(&folder, PACKAGES)?;
    let exchanges = folder.join("exchanges.jsonl");
    if exchanges.exists() {
        fs::remove_file(&exchanges).with_context(|| format!("cannot remove {}", exchanges.display()))?;
    }
    let exchanges = exchanges.display().to_string();
    CommandLine::cargo("test --quiet -p archon-providers --all-features --lib")
        .env("ARCHON_EXCHANGES", &exchanges)
        .run()?;
    CommandLine::new(&python).args(["tests/conformance/providers.py", &exchanges]).run()?;
    if without_server {
        return Ok(());
    }
    third_party::provider()
}
