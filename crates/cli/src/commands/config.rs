//! `archon config`: the settings files, the values in them, and their problems.

mod problems;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;

use crate::{
    app::App,
    config::{KEYS, Name, Owner, Problem, Settings, Source},
    exit::Exit,
    failure::Failure,
    mcp, own_file,
    text::{visible, visible_path},
};
use problems::problems;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// The settings files in the order of reading: a later file takes precedence
    Path,
    /// Print settings, each with its origin
    Get {
        /// The setting, as max_turns or permissions.allow [default: all settings that are set]
        name: Option<String>,
    },
    /// Set a setting in your own file; its comments and its layout stay
    Set {
        /// The setting, as max_turns or permissions.allow
        name: String,
        /// The value; the items of a list are separated by commas
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// Write into the file of the project, ./archon.toml
        #[arg(long)]
        project: bool,
    },
    /// Check all files for mistakes, and print each mistake with its line
    Check,
}

impl ConfigCommand {
    /// Returns the settings of flags; `None` if the command works without valid settings.
    pub(crate) fn settings(&self) -> Option<Settings> {
        matches!(self, Self::Get { .. }).then(Settings::default)
    }

    pub(crate) fn run(self, app: &App) -> Result<Exit, Failure> {
        match self {
            Self::Path => Ok(path(app)),
            Self::Get { name } => get(app, name.as_deref()),
            Self::Set { name, value, project } => {
                set(app, &name, &value, if project { Owner::Project } else { Owner::User })
            }
            Self::Check => check(app),
        }
    }
}

fn files(app: &App) -> impl Iterator<Item = (Owner, &PathBuf)> {
    [Owner::User, Owner::Project].into_iter().filter_map(|owner| Some((owner, app.sources.file(owner)?)))
}

fn path(app: &App) -> Exit {
    for (owner, path) in files(app) {
        let exists = path.exists();
        let whose = if owner == Owner::User { "yours" } else { "the project's" };
        let item = json!({"file": path.display().to_string(), "whose": whose, "exists": exists});
        let mark = if exists { "" } else { ", missing" };
        app.item(&item, || format!("{}  ({whose}{mark})", visible_path(path)));
    }
    Exit::Finished
}

fn get(app: &App, name: Option<&str>) -> Result<Exit, Failure> {
    let name = name.map(Name::parse).transpose()?;
    let found: Vec<_> = match &name {
        Some(name) => Source::of(&app.config, &app.sources, name)?,
        None => KEYS
            .iter()
            .map(|key| Source::of(&app.config, &app.sources, &Name::of_key(key)))
            .collect::<Result<Vec<_>, _>>()?
            .concat(),
    };
    for Source { name, value, origin, line } in &found {
        let from = match line {
            Some(line) => format!("{origin}:{line}"),
            None => origin.to_string(),
        };
        let item =
            json!({"name": name.to_string(), "value": value, "from": origin.to_string(), "line": line});
        app.item(&item, || visible(&format!("{name} = {value}  # {from}")));
    }
    match name.filter(|_| found.is_empty()) {
        Some(name) => Err(Failure::failed(
            format!("`{name}` is not set"),
            format!("set it: archon config set {name} VALUE; it is: {}", name.description()),
        )),
        None => Ok(Exit::Finished),
    }
}

#[cfg(feature = "setup")]
fn set(app: &App, name: &str, value: &str, owner: Owner) -> Result<Exit, Failure> {
    use crate::config::Edit;
    let name = Name::parse(name)?;
    let path = app.sources.file(owner).ok_or_else(|| {
        Failure::usage("there is no home directory with settings", "set HOME, or write with --project")
    })?;
    let mut edit = Edit::of(path, owner)?;
    let value = edit.set(&name, value)?;
    edit.write()?;
    let file = visible_path(path);
    let item = json!({"name": name.to_string(), "value": value, "file": file});
    app.report(&item, format!("{file}: {name} = {value}"));
    warn_if_without_effect(app, &name, path);
    Ok(Exit::Finished)
}

#[cfg(not(feature = "setup"))]
fn set(app: &App, name: &str, _: &str, owner: Owner) -> Result<Exit, Failure> {
    Name::parse(name)?;
    let file = app.sources.file(owner).map(|path| path.display().to_string()).unwrap_or_default();
    Err(Failure::usage(
        "`archon config set` is not in this build",
        format!("write the setting into {file}, or build with `--features setup`"),
    ))
}

/// Writes a note if the setting that was just written has no effect: because another layer sets it, or
/// because no person agreed to the file.
#[cfg(feature = "setup")]
fn warn_if_without_effect(app: &App, name: &Name, path: &Path) {
    use crate::config::{Config, Origin};
    use crate::output::Look;
    // Other files may have problems; `archon config check` is for them.
    let Ok(config) = Config::load(&app.sources, Settings::default()) else { return };
    let asks = config.asks.as_ref().is_some_and(|asks| asks.path == path && asks.keys.contains(&name.key()));
    match config.origin(name.key()) {
        _ if asks => {
            app.output.note(Look::Plain, "the setting takes effect after you agree to the file: archon trust")
        }
        Some(Origin::User(file) | Origin::Project(file)) if file == path => {}
        Some(other) if name.is_replaced() => {
            app.output.note(Look::Plain, format!("{other} sets it as well, and takes precedence"));
        }
        _ => {}
    }
}

fn check(app: &App) -> Result<Exit, Failure> {
    let servers = app.sources.project.as_ref().map(|file| file.with_file_name(mcp::FILE));
    let checks = files(app).map(|(owner, path)| (path.clone(), Some(owner)));
    let (mut count, mut read) = (0, 0);
    for (path, owner) in checks.chain(servers.map(|path| (path, None))) {
        let Some(text) = own_file::read_settings(&path)? else { continue };
        read += 1;
        let found = match owner {
            Some(owner) => problems(&path, &text, owner),
            None => mcp::file_problems(&text),
        };
        count += found.len();
        found.iter().for_each(|problem| show(app, &path, problem));
    }
    let files = if read == 1 { "1 file".to_owned() } else { format!("{read} files") };
    let problems = if count == 1 { "1 problem".to_owned() } else { format!("{count} problems") };
    app.note(format!("{files} read, {problems}"));
    Ok(if count == 0 { Exit::Finished } else { Exit::Failed })
}

fn show(app: &App, path: &Path, problem: &Problem) {
    let mut item = json!(problem);
    item["file"] = path.display().to_string().into();
    app.item(&item, || {
        let place = visible(&format!("{}:{}", path.display(), problem.line));
        format!("{place}: {}; {}", visible(&problem.problem), visible(&problem.advice))
    });
}
