//! Loads and downloads local models, with the feature `local`.

use std::path::{Path, PathBuf};

use archon::types::CancellationToken;
use archon_local_model::{
    DEFAULT, EMBEDDERS, LocalEngineOptions, LocalModel, LocalModelError, LocalModelOptions, MODELS, Model,
    Prebuilt, PullOptions, PullProgress, engine_path, find, open_engine, prebuilt, pull as pull_model,
    pull_engine,
};

use super::{Known, create_directory, directory, engines, files};
use crate::{
    app::App,
    chosen::{Chosen, PREFIX},
    exit::Exit,
    failure::Failure,
    interrupt,
    name_advice::name_advice,
    output::{Look, Output},
};

/// The advice to download a model, in the error for a person without a model.
pub(crate) const CHOICE: &str = "In this program: download a model with `archon model pull`";

/// Returns the default model: the first of the known models that is on this disk, otherwise any other model
/// there.
pub(crate) fn first(app: &App) -> Option<String> {
    let rank = |name: &String| MODELS.iter().position(|m| m.name == *name).unwrap_or(MODELS.len());
    let name = files(app).into_iter().map(|(name, _)| name).min_by_key(rank)?;
    Some(format!("{PREFIX}{name}"))
}

/// Loads a model by its name or by the path of its file.
pub(crate) async fn load(app: &App, name: &str, why: String) -> Result<Chosen, Failure> {
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    let path = path_of(app, name)?;
    // The log has a name as it is; a path becomes absolute, so that the run can be resumed from another
    // directory.
    let model = match Path::new(name).extension() {
        Some(_) => path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string(),
        None => name.to_owned(),
    };
    app.output.wait("loading the model");
    let options = LocalModelOptions::default().with_engine(engine_options(app));
    let loaded = tokio::task::spawn_blocking(move || LocalModel::load(&path, options)).await;
    app.output.stop_waiting();
    let provider =
        loaded.map_err(|e| Failure::failed(format!("cannot load {model}: {e}"), "try another model"))??;
    Ok(Chosen { provider: std::sync::Arc::new(provider), keys: Vec::new(), model, why })
}

/// Returns the engine's options for this machine.
fn engine_options(app: &App) -> LocalEngineOptions {
    let settings = &app.config.settings;
    let mut options = LocalEngineOptions::default().with_cache(app.data_dir.join("cache").join("prompts"));
    if let Some(prebuilt) = prebuilt() {
        options = options.with_folder(engine_path(&engines(app), prebuilt));
    }
    if let Some(threads) = settings.local_threads {
        options = options.with_threads(threads);
    }
    match &settings.local_kernel {
        Some(kernel) => options.with_kernel(kernel),
        None => options,
    }
}

/// Returns a description of the engine for `archon doctor`, or the reason for its failure.
pub(crate) fn engine(app: &App) -> Result<String, Failure> {
    Ok(open_engine(&engine_options(app))?.to_string())
}

/// Returns the prebuilt engine for this machine and its folder, which may not exist yet.
pub(crate) fn prebuilt_engine(app: &App) -> Option<(Known, PathBuf)> {
    let prebuilt = prebuilt()?;
    let folder = engine_path(&engines(app), prebuilt);
    let (about, licence) = ("the engine that runs the models, built for this platform", "MIT");
    Some((Known { name: prebuilt.name(), about, licence, bytes: prebuilt.bytes }, folder))
}

pub(crate) fn catalogue() -> Vec<Known> {
    let known =
        |m: &Model| Known { name: m.name.to_owned(), about: m.about, licence: m.licence, bytes: m.bytes };
    MODELS.iter().chain(EMBEDDERS).map(known).collect()
}

/// Downloads the engine and a model, and prints the model's path. An interrupted download is continued
/// later.
pub(crate) async fn pull(app: &App, name: Option<&str>) -> Result<Exit, Failure> {
    let path = fetch(app, name).await?;
    let name = name.unwrap_or(DEFAULT.name);
    let Some(path) = path.map(|path| path.display().to_string()) else {
        app.output.note(Look::Plain, format!("continue with: archon model pull {name}"));
        return Ok(Exit::Interrupted);
    };
    app.item(&serde_json::json!({"name": name, "path": path}), || path.clone());
    Ok(Exit::Finished)
}

/// Downloads the engine and a model, and returns the model's path; `None` if a person stopped the download.
pub(crate) async fn fetch(app: &App, name: Option<&str>) -> Result<Option<PathBuf>, Failure> {
    let options = PullOptions::from_env();
    let model = match name {
        Some(name) => find(name).ok_or_else(|| unknown(name))?,
        None => DEFAULT,
    };
    let cancel = CancellationToken::new();
    let listener = interrupt::listen(cancel.clone(), app.output.clone());
    let pulled = tokio::select! {
        pulled = fetch_both(app, model, &options) => Some(pulled),
        () = cancel.cancelled() => None,
    };
    listener.abort();
    app.output.stop_waiting();
    pulled.transpose()
}

/// Downloads the engine first, since it is small and shows at once if this machine can run it; then the
/// model.
async fn fetch_both(app: &App, model: &'static Model, options: &PullOptions) -> Result<PathBuf, Failure> {
    if let Some(prebuilt) =
        prebuilt().filter(|_| model.ending == "gguf" && !cfg!(feature = "local-from-source"))
    {
        fetch_engine(app, prebuilt, options).await?;
    }
    let directory = directory(app);
    create_directory(&directory)?;
    app.output.note(Look::Plain, format!("{}: {}", model.name, model.about));
    app.output.note(Look::Plain, format!("licence: {}", model.licence));
    let mut shown = Shown { output: &app.output, percent: 0 };
    Ok(pull_model(model, &directory, options, |progress| shown.progress(progress)).await?)
}

async fn fetch_engine(app: &App, prebuilt: &'static Prebuilt, options: &PullOptions) -> Result<(), Failure> {
    let directory = engines(app);
    create_directory(&directory)?;
    let mut shown = Shown { output: &app.output, percent: 0 };
    let folder = pull_engine(prebuilt, &directory, options, |progress| {
        if shown.percent == 0 && matches!(progress, PullProgress::Fetched { .. }) {
            app.output.note(Look::Plain, format!("{}: the engine (licence: MIT)", prebuilt.name()));
            shown.percent = 1;
        }
        shown.progress(progress);
    })
    .await?;
    // Checks the engine before the model is downloaded.
    open_engine(&engine_options(app).with_folder(folder))?;
    Ok(())
}

/// Shows the progress of a download: as a bar on a terminal, otherwise as a line for every tenth.
struct Shown<'a> {
    output: &'a Output,
    percent: u64,
}

impl Shown<'_> {
    fn progress(&mut self, progress: PullProgress) {
        match progress {
            // The name and the licence were printed before; a package's own notice is about the package.
            PullProgress::Terms { path, .. } => {
                self.output.note(Look::Plain, format!("the licence terms are in {}", path.display()));
            }
            PullProgress::Fetched { bytes, of: Some(of) } if of > 0 => {
                self.output.progress(bytes, of);
                let percent = bytes.saturating_mul(100) / of / 10 * 10;
                if percent > self.percent && !self.output.spins {
                    self.percent = percent;
                    self.output.note(Look::Plain, format!("{percent} % of {} MB", of / 1_000_000));
                }
            }
            PullProgress::Checking => self.output.wait("checking"),
            _ => {}
        }
    }
}

fn unknown(name: &str) -> Failure {
    let names = MODELS.iter().chain(EMBEDDERS).map(|m| m.name);
    let error = LocalModelError::Unknown { name: name.to_owned() };
    Failure::usage(error.to_string(), name_advice(name, "models", names))
}

fn path_of(app: &App, name: &str) -> Result<PathBuf, Failure> {
    if let Some((_, path)) = files(app).into_iter().find(|(known, _)| known == name) {
        return Ok(path);
    }
    match Path::new(name).extension().is_some() {
        true => Ok(PathBuf::from(name)),
        false => Err(Failure::usage(
            format!("there is no model {name:?} in {}", directory(app).display()),
            format!("download it with `archon model pull {name}`; `archon model list` shows the models"),
        )),
    }
}

impl From<LocalModelError> for Failure {
    fn from(e: LocalModelError) -> Self {
        match e {
            LocalModelError::Missing { .. } | LocalModelError::EngineMissing { .. } => {
                Self::usage(e.to_string(), e.advice())
            }
            e => Self::failed(e.to_string(), e.advice()),
        }
    }
}
