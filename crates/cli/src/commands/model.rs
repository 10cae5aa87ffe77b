//! `archon model`: downloads local models and lists them.

use std::path::Path;

use clap::Subcommand;
use serde::Serialize;

use crate::{
    app::App,
    chosen::PREFIX,
    exit::Exit,
    failure::Failure,
    local::{self, Known},
    output::Look,
};

/// Arguments of `archon model`.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Download a model, or continue an interrupted download
    Pull {
        /// The model's name [default: gemma-3-270m]
        name: Option<String>,
    },
    /// List the models on this disk, and those that can be downloaded
    List,
    /// Print the path of a model
    Path {
        /// The model's name [default: the first model on this disk]
        name: Option<String>,
    },
}

/// A model that is on this disk or can be downloaded.
#[derive(Debug, Serialize)]
struct Item {
    name: String,
    /// The path of the file; missing if the model was not downloaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    licence: Option<&'static str>,
}

impl ModelCommand {
    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        match self {
            Self::Pull { name } => local::pull(app, name.as_deref()).await,
            Self::List => list(app),
            Self::Path { name } => path(app, name.as_deref()),
        }
    }
}

fn list(app: &App) -> Result<Exit, Failure> {
    let mut known = local::catalogue();
    if let Some((engine, folder)) = local::prebuilt_engine(app) {
        let path = folder.is_dir().then(|| folder.display().to_string());
        let Known { name, about, licence, bytes } = engine;
        let item = Item { name, path, bytes, about: Some(about), licence: Some(licence) };
        app.item(&item, || row(&item));
    }
    let files = local::files(app);
    if files.is_empty() && known.is_empty() && !app.json {
        app.output.note(Look::Plain, format!("no models in {}", local::directory(app).display()));
    }
    for (name, path) in files {
        let about = known.iter().position(|k| k.name == name).map(|at| known.remove(at));
        let (about, licence) = (about.as_ref().map(|k| k.about), about.as_ref().map(|k| k.licence));
        let item = Item { about, licence, ..on_disk(name, &path) };
        app.item(&item, || row(&item));
    }
    for Known { name, about, licence, bytes } in known {
        let item = Item { name, path: None, bytes, about: Some(about), licence: Some(licence) };
        app.item(&item, || row(&item));
    }
    Ok(Exit::Finished)
}

fn on_disk(name: String, path: &Path) -> Item {
    let bytes = path.metadata().map_or(0, |m| m.len());
    Item { name, path: Some(path.display().to_string()), bytes, about: None, licence: None }
}

fn row(item: &Item) -> String {
    let place = match (&item.path, item.about, item.licence) {
        (Some(path), ..) => path.clone(),
        (None, Some(about), Some(licence)) => format!("can be downloaded: {about} ({licence})"),
        _ => String::new(),
    };
    format!("{:<24} {:>5} MB  {place}", item.name, item.bytes / 1_000_000)
}

fn path(app: &App, name: Option<&str>) -> Result<Exit, Failure> {
    let best = local::first(app);
    let name = name.or_else(|| best.as_deref()?.strip_prefix(PREFIX));
    let found = local::files(app).into_iter().find(|(n, _)| name.is_none_or(|name| n == name));
    let missing = || match name {
        Some(name) => format!("there is no model {name:?} in {}", local::directory(app).display()),
        None => format!("there are no models in {}", local::directory(app).display()),
    };
    let (name, path) = found.ok_or_else(|| {
        Failure::usage(
            missing(),
            "download one with `archon model pull`; `archon model list` shows the models",
        )
    })?;
    let item = on_disk(name, &path);
    app.item(&item, || path.display().to_string());
    Ok(Exit::Finished)
}
