//! With the feature `local`: loads models, and fetches them.

use std::path::{Path, PathBuf};

use archon_local_model::{LocalModel, LocalModelError, LocalModelOptions};

use super::{PREFIX, directory, files};
use crate::{app::App, choose::Chosen, failure::Failure};

/// The third of the choices that somebody without a model has.
pub(crate) const CHOICE: &str = "In this program: fetch a model with `archon model pull`";

/// The model that would be used where none was named.
pub(crate) fn first(app: &App) -> Option<String> {
    files(app).into_iter().next().map(|(name, _)| format!("{PREFIX}{name}"))
}

/// Loads a model, by its name or by the path of its file.
pub(crate) async fn load(app: &App, name: &str, why: String) -> Result<Chosen, Failure> {
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    let path = path_of(app, name)?;
    // A name stays a name in the log; a path is written out, so that the run can be taken up from
    // another directory.
    let model = match Path::new(name).extension() {
        Some(_) => path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string(),
        None => name.to_owned(),
    };
    app.output.wait("loading the model");
    let loaded = tokio::task::spawn_blocking(move || LocalModel::load(&path, LocalModelOptions::default())).await;
    app.output.stop_waiting();
    let provider = loaded.map_err(|e| Failure::failed(format!("cannot load {model}: {e}"), "try another model"))??;
    Ok(Chosen { provider: std::sync::Arc::new(provider), model, why })
}

fn path_of(app: &App, name: &str) -> Result<PathBuf, Failure> {
    if let Some((_, path)) = files(app).into_iter().find(|(known, _)| known == name) {
        return Ok(path);
    }
    match Path::new(name).extension().is_some() {
        true => Ok(PathBuf::from(name)),
        false => Err(Failure::usage(
            format!("there is no model {name:?} in {}", directory(app).display()),
            format!("fetch it with `archon model pull {name}`; `archon model list` shows what there is"),
        )),
    }
}

impl From<LocalModelError> for Failure {
    fn from(e: LocalModelError) -> Self {
        match e {
            LocalModelError::Missing { .. } => Self::usage(e.to_string(), e.advice()),
            e => Self::failed(e.to_string(), e.advice()),
        }
    }
}
