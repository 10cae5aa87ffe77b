//! Downloads a model and the engine that runs it, and prints the progress as lines of JSON. It is for
//! installers, and for downloading a model before a program that uses this crate is built. Its source is also
//! a short example of `pull`.
//!
//! `archon-pull FOLDER MODEL` fills `FOLDER/engines` and `FOLDER/models`, which the command `archon` uses if
//! `FOLDER` is its data folder. Each line is an object: `{"fetching": NAME, "bytes": N, "of": N}`,
//! `{"terms": NAME, "licence": LICENCE, "kept": PATH}`, `{"checking": NAME}`, `{"ready": PATH}` or, as the
//! last, `{"error": PROBLEM, "advice": REMEDY}`.
#![allow(clippy::print_stdout, reason = "a program prints")]

use std::fs::DirBuilder;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use archon_local_model::{
    LocalModelError, Model, Prebuilt, PullOptions, PullProgress, find, prebuilt, pull, pull_engine,
};
use serde_json::{Value, json};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [folder, name] = words.as_slice() else {
        return failed("a folder and a model are required", "archon-pull FOLDER MODEL");
    };
    let Some(prebuilt) = prebuilt() else {
        return failed("no engine is built for this platform", "name a server: `archon run --base-url URL`");
    };
    let Some(model) = find(name) else {
        let error = LocalModelError::Unknown { name: name.clone() };
        return failed(&error.to_string(), error.advice());
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.to_string(), "close other programs and try again"),
    };
    match runtime.block_on(fetch(prebuilt, model, Path::new(folder))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error.to_string(), error.advice()),
    }
}

/// Downloads the engine and then the model. The engine is small, so a blocked network is noticed soon.
async fn fetch(prebuilt: &'static Prebuilt, model: &Model, folder: &Path) -> Result<(), LocalModelError> {
    let options = PullOptions::from_env();
    let (engines, models) = (private(folder.join("engines"))?, private(folder.join("models"))?);
    let mut told = Told::of(prebuilt.name(), "MIT");
    let engine = pull_engine(prebuilt, &engines, &options, |progress| told.progress(progress)).await?;
    say(&json!({"ready": engine}));
    let mut told = Told::of(model.name.to_owned(), model.licence);
    let model = pull(model, &models, &options, |progress| told.progress(progress)).await?;
    say(&json!({"ready": model}));
    Ok(())
}

/// Creates a folder for its owner only, like every folder below the data folder.
fn private(path: PathBuf) -> Result<PathBuf, LocalModelError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(&path) {
        Ok(()) => Ok(path),
        Err(source) => Err(LocalModelError::Io { path, source }),
    }
}

/// Prints the progress of one download, at most every 250 ms.
struct Told {
    name: String,
    licence: &'static str,
    last: Option<Instant>,
}

impl Told {
    const EVERY: Duration = Duration::from_millis(250);

    fn of(name: String, licence: &'static str) -> Self {
        Self { name, licence, last: None }
    }

    fn progress(&mut self, progress: PullProgress) {
        match progress {
            PullProgress::Fetched { bytes, of } => {
                if of != Some(bytes) && self.last.is_some_and(|last| last.elapsed() < Self::EVERY) {
                    return;
                }
                self.last = Some(Instant::now());
                say(&json!({"fetching": self.name, "bytes": bytes, "of": of}));
            }
            PullProgress::Terms { path, .. } => {
                say(&json!({"terms": self.name, "licence": self.licence, "kept": path}));
            }
            PullProgress::Checking => say(&json!({"checking": self.name})),
            _ => {}
        }
    }
}

fn failed(what: &str, advice: &str) -> ExitCode {
    say(&json!({"error": what, "advice": advice}));
    ExitCode::FAILURE
}

fn say(line: &Value) {
    println!("{line}");
}
