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
};

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

impl From<Known> for Item {
    fn from(Known { name, about, licence, bytes }: Known) -> Self {
        Self { name, path: None, bytes, about: Some(about), licence: Some(licence) }
    }
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
        let item = Item { path, ..Item::from(engine) };
        app.item(&item, || row(&item));
    }
    let files = local::files(app);
    let is_empty = files.is_empty() && known.is_empty();
    app.note_if(is_empty, format!("no models in {}", local::directory(app).display()));
    for (name, path) in files {
        let about = known.iter().position(|k| k.name == name).map(|at| known.remove(at));
        let (about, licence) = about.map(|known| (known.about, known.licence)).unzip();
        let item = Item { about, licence, ..on_disk(name, &path) };
        app.item(&item, || row(&item));
    }
    for item in known.into_iter().map(Item::from) {
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
    let (name, path) = found.ok_or_else(|| {
        let missing =
            name.map_or("there are no models".to_owned(), |name| format!("there is no model {name:?}"));
        let what = format!("{missing} in {}", local::directory(app).display());
        Failure::usage(what, "download one with `archon model pull`; `archon model list` shows the models")
    })?;
    let item = on_disk(name, &path);
    app.item(&item, || path.display().to_string());
    Ok(Exit::Finished)
}
