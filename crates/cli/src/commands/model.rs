//! `archon model`: fetches models that run in this program, and shows them.

use clap::Subcommand;
use serde::Serialize;

use crate::{app::App, exit::Exit, failure::Failure, local, output::Look};

/// What to do with local models.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Fetch a model; one that was cut off is continued
    Pull {
        /// The model's name [default: a good small one]
        name: Option<String>,
    },
    /// The models on this disk
    List,
    /// Where a model is kept
    Path {
        /// The model's name [default: the first there is]
        name: Option<String>,
    },
}

/// A model on this disk.
#[derive(Debug, Serialize)]
struct Item {
    name: String,
    path: String,
    bytes: u64,
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
    let files = local::files(app);
    if files.is_empty() && !app.json {
        let directory = local::directory(app);
        app.output.note(
            Look::Plain,
            format!("no models in {}: fetch one with `archon model pull`", directory.display()),
        );
    }
    for (name, path) in files {
        let bytes = path.metadata().map_or(0, |m| m.len());
        let item = Item { name, path: path.display().to_string(), bytes };
        app.item(&item, || format!("{:<40}  {:>6} MB  {}", item.name, bytes / 1_000_000, item.path));
    }
    Ok(Exit::Finished)
}

fn path(app: &App, name: Option<&str>) -> Result<Exit, Failure> {
    let found = local::files(app).into_iter().find(|(n, _)| name.is_none_or(|name| n == name));
    let missing = || match name {
        Some(name) => format!("there is no model {name:?} in {}", local::directory(app).display()),
        None => format!("there are no models in {}", local::directory(app).display()),
    };
    let (name, path) = found.ok_or_else(|| {
        Failure::usage(
            missing(),
            "fetch one with `archon model pull`; `archon model list` shows what there is",
        )
    })?;
    let item = Item { name, bytes: path.metadata().map_or(0, |m| m.len()), path: path.display().to_string() };
    app.item(&item, || item.path.clone());
    Ok(Exit::Finished)
}
