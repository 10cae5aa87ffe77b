//! `archon trust`: agrees to a project's archon.toml, lists the agreements, and removes them.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;

use crate::{
    app::App,
    ask::Prompt,
    command_line::in_data_dir,
    config::{Agreements, asks},
    exit::Exit,
    failure::Failure,
    output::Look,
    text::{visible, visible_path},
};

#[derive(Debug, clap::Args)]
pub(crate) struct TrustArgs {
    #[command(subcommand)]
    command: Option<TrustCommand>,
    /// Agree without a question, for scripts
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// List the settings files and MCP servers that were agreed to
    List,
    /// Take an agreement back
    Remove {
        /// The settings file [default: ./archon.toml]
        file: Option<PathBuf>,
    },
}

impl TrustArgs {
    pub(crate) fn run(self, app: &App) -> Result<Exit, Failure> {
        let agreements = Agreements::in_folder(&app.data_dir);
        match self.command {
            None => agree(app, &agreements, self.yes),
            Some(TrustCommand::List) => list(app, &agreements),
            Some(TrustCommand::Remove { file }) => remove(app, &agreements, file),
        }
    }
}

/// Returns the warning about settings of the project to which no person has agreed.
pub(crate) fn warning(app: &App) -> Option<String> {
    let asks = app.config.asks.as_ref()?;
    Some(format!(
        "{} sets {}, but no person has agreed to it, so it is ignored. Show it and agree: {}",
        visible_path(&asks.path),
        asks.keys.join(", "),
        in_data_dir(app, "archon trust"),
    ))
}

fn agree(app: &App, agreements: &Agreements, yes: bool) -> Result<Exit, Failure> {
    let Some(asks) = asks(&app.sources, agreements)? else {
        let file = app.sources.project.as_deref().map(visible_path).unwrap_or_default();
        app.output.note(Look::Plain, format!("{file}: no settings that need an agreement"));
        return Ok(Exit::Finished);
    };
    let file = visible_path(&asks.path);
    if asks.is_agreed {
        app.output.note(Look::Plain, format!("{file}: agreed to already, with this content"));
        return Ok(Exit::Finished);
    }
    if !yes && !app.can_ask() {
        let what = format!("{file} is not agreed to: there is no terminal on which to ask");
        return Err(Failure::usage(what, "read the file, then agree with: archon trust --yes"));
    }
    let heading = format!("{file} sets where data is sent, or what the model reads and may use:");
    app.output.note(Look::Plain, heading);
    asks.lines().iter().for_each(|line| app.output.note(Look::Warning, format!("  {line}")));
    if !yes && !Prompt::asks_yes(app, "Agree to the file as it is? [y/N] ") {
        app.output.note(Look::Plain, "nothing was changed");
        return Ok(Exit::Failed);
    }
    agreements.add(&asks.path, &asks.text)?;
    app.output.note(Look::Plain, "agreed; after a change to the file you are asked again");
    Ok(Exit::Finished)
}

fn list(app: &App, agreements: &Agreements) -> Result<Exit, Failure> {
    for (file, sha256) in agreements.all()? {
        app.item(&json!({"file": file, "sha256": sha256}), || visible(&file));
    }
    for (file, servers) in agreements.servers()? {
        for (server, sha256) in servers {
            let item = json!({"file": file, "server": server, "sha256": sha256});
            app.item(&item, || visible(&format!("{file}: the MCP server {server}")));
        }
    }
    Ok(Exit::Finished)
}

fn remove(app: &App, agreements: &Agreements, file: Option<PathBuf>) -> Result<Exit, Failure> {
    let named = file.or_else(|| app.sources.project.clone());
    let file = named.and_then(|file| std::path::absolute(file).ok()).unwrap_or_default();
    if !agreements.remove(&file)? {
        let what = format!("no person has agreed to {}", visible_path(&file));
        return Err(Failure::usage(what, "`archon trust list` shows the files that were agreed to"));
    }
    app.output.note(Look::Plain, format!("{}: the agreement is taken back", visible_path(&file)));
    Ok(Exit::Finished)
}
