//! `archon trust`: agrees to what a project sets, runs and tells the model, lists the agreements, and removes them.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;

use crate::{
    agent_files,
    app::App,
    ask::Prompt,
    command_line::in_data_dir,
    config::{AgreedTable, Agreements, asks},
    exit::Exit,
    failure::Failure,
    hooks, instructions_file, openapi,
    output::Look,
    project_parts::{self, ProjectPart},
    skills,
    text::{visible, visible_path},
};

/// The name of a project's file with settings.
const SETTINGS: &str = "archon.toml";

#[derive(Debug, clap::Args)]
pub(crate) struct TrustArgs {
    #[command(subcommand)]
    command: Option<TrustCommand>,
    /// Agree without a question, for scripts
    #[arg(long)]
    yes: bool,
    /// The folder of the project [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// List the files, hooks, skills and MCP servers that were agreed to
    List,
    /// Take an agreement back
    Remove {
        /// The file, or the folder of a skill [default: ./archon.toml]
        file: Option<PathBuf>,
    },
}

impl TrustArgs {
    pub(crate) fn run(self, app: &App) -> Result<Exit, Failure> {
        let agreements = Agreements::in_folder(&app.data_dir);
        match self.command {
            None => agree(&in_folder(app, self.workspace), &agreements, self.yes),
            Some(TrustCommand::List) => list(app, &agreements),
            Some(TrustCommand::Remove { file }) => remove(app, &agreements, file),
        }
    }
}

/// Returns the context for the project in this folder, as the flag `--workspace` of other commands sets it.
fn in_folder(app: &App, folder: Option<PathBuf>) -> App {
    let mut app = app.clone();
    if let Some(folder) = folder {
        app.sources.project = Some(folder.join(SETTINGS));
        app.config.settings.workspace = Some(folder);
    }
    app
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

/// Returns the parts of the project that no person has agreed to in their current form.
fn waiting(app: &App) -> Vec<ProjectPart> {
    let parts = hooks::waiting(app).into_iter().chain(skills::waiting(app)).chain(agent_files::waiting(app));
    parts.chain(instructions_file::waiting(app)).collect()
}

/// Shows the settings and the parts of the project that wait for an agreement, and asks one question about all of them.
fn agree(app: &App, agreements: &Agreements, yes: bool) -> Result<Exit, Failure> {
    let asks = asks(&app.sources, agreements)?;
    let parts = waiting(app);
    let waiting = asks.as_ref().filter(|asks| !asks.is_agreed);
    if waiting.is_none() && parts.is_empty() {
        let file = app.sources.project.as_deref().map(visible_path).unwrap_or_default();
        let why = match asks {
            Some(_) => "agreed to already, with this content",
            None => "no settings that need an agreement",
        };
        app.output.note(Look::Plain, format!("{file}: {why}"));
        return Ok(Exit::Finished);
    }
    if !yes && !app.can_ask() {
        let path = waiting.map_or_else(|| &parts[0].path, |asks| &asks.path);
        return Err(no_terminal(path, "archon trust --yes"));
    }
    if let Some(asks) = waiting {
        let file = visible_path(&asks.path);
        let heading = format!("{file} sets where data is sent, or what the model reads and may use:");
        app.output.note(Look::Plain, heading);
        let lines = asks.lines().into_iter().chain(openapi::agreement_lines(app, &asks.apis));
        lines.for_each(|line| app.output.note(Look::Warning, format!("  {line}")));
    }
    if !is_agreed(app, &parts, yes) {
        return Ok(Exit::Failed);
    }
    if let Some(asks) = waiting {
        agreements.add(&asks.path, &asks.text)?;
    }
    finish(app, &parts)
}

/// Shows parts of the project, and asks for the agreement to them.
///
/// # Errors
/// [`Failure`] if there is no terminal on which to ask, or the agreements cannot be written.
#[cfg(feature = "skills")]
pub(super) fn agree_to_parts(
    app: &App,
    parts: &[ProjectPart],
    yes: bool,
    command: &str,
) -> Result<Exit, Failure> {
    if !yes && !app.can_ask() {
        return Err(no_terminal(&parts[0].path, command));
    }
    match is_agreed(app, parts, yes) {
        true => finish(app, parts),
        false => Ok(Exit::Failed),
    }
}

/// Shows parts of the project; returns true if a person agrees to all that was shown.
fn is_agreed(app: &App, parts: &[ProjectPart], yes: bool) -> bool {
    for part in parts {
        app.output.note(Look::Plain, &part.about);
        part.lines.iter().for_each(|line| app.output.note(Look::Warning, format!("  {}", visible(line))));
    }
    let question = match parts {
        [] => "Agree to the file as it is? [y/N] ",
        _ => "Agree to all of this as it is? [y/N] ",
    };
    let agrees = yes || Prompt::asks_yes(app, question);
    if !agrees {
        app.output.note(Look::Plain, "nothing was changed");
    }
    agrees
}

fn finish(app: &App, parts: &[ProjectPart]) -> Result<Exit, Failure> {
    project_parts::agree(app, parts)?;
    let what = if parts.is_empty() { "the file" } else { "one of these files" };
    app.output.note(Look::Plain, format!("agreed; after a change to {what} you are asked again"));
    Ok(Exit::Finished)
}

fn no_terminal(path: &Path, command: &str) -> Failure {
    let what = format!("{} is not agreed to: there is no terminal on which to ask", visible_path(path));
    Failure::usage(what, format!("read the file, then agree with: {command}"))
}

fn list(app: &App, agreements: &Agreements) -> Result<Exit, Failure> {
    for (file, sha256) in agreements.all(AgreedTable::Files)? {
        app.item(&json!({"file": file, "sha256": sha256}), || visible(&file));
    }
    for (file, sha256) in agreements.all(AgreedTable::Hooks)? {
        let item = json!({"file": file, "part": "hooks", "sha256": sha256});
        app.item(&item, || visible(&format!("{file}: hooks")));
    }
    for (folder, sha256) in agreements.all(AgreedTable::Skills)? {
        let item = json!({"file": folder, "part": "skill", "sha256": sha256});
        app.item(&item, || visible(&format!("{folder}: a skill")));
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
