//! `archon schema`: prints JSON Schemas, for programs in other languages and for editors.

use clap::Subcommand;
use schemars::schema_for;

use crate::{app::App, config::Settings, exit::Exit, failure::Failure};

#[derive(Debug, Subcommand)]
pub(crate) enum SchemaCommand {
    /// Print the schema of the output with `--json`: one record or delta per line
    Events,
    /// Print the schema of archon.toml
    Config,
}

impl SchemaCommand {
    pub(crate) fn run(self, app: &App) -> Result<Exit, Failure> {
        let schema = match self {
            Self::Events => archon::types::event_log_schema(),
            Self::Config => schema_for!(Settings).to_value(),
        };
        let text = if app.json { schema.to_string() } else { format!("{schema:#}") };
        app.output.json(&text);
        Ok(Exit::Finished)
    }
}
