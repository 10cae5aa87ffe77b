//! Records every call of a model in a cassette: a file for a [`ReplayProvider`](crate::ReplayProvider),
//! without secrets.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{
    CancellationToken, ModelEvent, Provider, ProviderError, Request, Secret, StopReason, provider_methods_of,
};

use crate::{
    Events,
    cassette::{self, header, request_json},
    error::SetupError,
    scrub::Scrubber,
    tap::{Heard, Tap},
};

/// A provider that records all its calls in a file, a cassette. A [`ReplayProvider`](crate::ReplayProvider)
/// answers from this file without the model.
///
/// The calls are kept in `FILE.new` until [`finish`](Self::finish) puts them in the place of `FILE`. So a
/// recording that failed, or was not finished, leaves an earlier cassette as it was.
///
/// Texts that look like a key are replaced by `****` before they are written, and so are the
/// [secrets](Provider::secrets) of the provider and those that were passed to [`hide`](Self::hide). A call
/// is written when it ends; a call that is cancelled or dropped is not written. If the file cannot be
/// written, the call fails with an error, so that no call is lost silently.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("calls.jsonl");
/// use std::sync::Arc;
///
/// use archon_providers::{RecordingProvider, ReplayProvider, ScriptedProvider};
///
/// let recording = RecordingProvider::create(Arc::new(ScriptedProvider::new([])), &path)?;
/// // Give a clone of `recording` to an agent, and let the agent work. Then:
/// recording.finish()?;
/// assert_eq!(ReplayProvider::open(&path)?.unused_calls(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RecordingProvider {
    inner: Arc<dyn Provider>,
    path: PathBuf,
    draft: Arc<Draft>,
    scrubber: Scrubber,
}

/// The file of a cassette that is not finished. It is removed when the last provider that records to it is dropped.
struct Draft {
    path: PathBuf,
    /// `None` if the recording was finished.
    file: Mutex<Option<fs::File>>,
}

impl RecordingProvider {
    /// Creates a provider that records the calls of `inner` in a new cassette. [`finish`](Self::finish) moves the
    /// cassette to `path`.
    ///
    /// # Errors
    /// [`SetupError::Cassette`] if the file cannot be written.
    pub fn create(inner: Arc<dyn Provider>, path: impl Into<PathBuf>) -> Result<Self, SetupError> {
        let path = path.into();
        let draft = Draft::create(&path).map_err(|e| unwritable(&path, &e))?;
        Ok(Self { inner, path, draft: Arc::new(draft), scrubber: Scrubber::default() })
    }

    /// Moves the recorded calls to the path of the cassette, where they replace an existing cassette. A call of the
    /// model that ends later fails. A second call of `finish` does nothing.
    ///
    /// # Errors
    /// [`SetupError::Cassette`] if the file cannot be written.
    pub fn finish(&self) -> Result<(), SetupError> {
        let mut file = self.draft.lock();
        if file.is_some() {
            fs::rename(&self.draft.path, &self.path).map_err(|e| unwritable(&self.path, &e))?;
            *file = None;
        }
        Ok(())
    }

    /// Replaces this secret by `****` in everything that this provider writes to the cassette. Call it before
    /// [`also_record`](Self::also_record), since providers that were made before do not hide the secret.
    ///
    /// ```
    /// use archon_providers::RecordingProvider;
    ///
    /// fn without(recording: RecordingProvider, password: &str) -> RecordingProvider {
    ///     recording.hide(password)
    /// }
    /// ```
    pub fn hide(mut self, secret: impl Into<Secret>) -> Self {
        self.scrubber.add(secret.into());
        self
    }

    /// Creates a second provider, which records the calls of `inner` in the same cassette.
    pub fn also_record(&self, inner: Arc<dyn Provider>) -> Self {
        Self { inner, ..self.clone() }
    }

    /// Returns the path of the cassette. The file has the recorded calls only after [`finish`](Self::finish).
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn keep(&self, request: &Request, heard: &Heard) -> Result<(), ProviderError> {
        let cancelled = match heard.last() {
            Some(Ok(ModelEvent::Done(message))) => message.stop_reason == StopReason::Aborted,
            Some(Err(error)) => *error == ProviderError::Cancelled,
            _ => true,
        };
        if cancelled {
            return Ok(());
        }
        let scrubber = self.scrubber.clone().and(self.inner.secrets());
        let can = self.inner.capabilities(&request.model);
        let line = cassette::line(&request_json(request, &scrubber), heard, &can, &scrubber);
        let written = match &mut *self.draft.lock() {
            Some(file) => file.write_all(line.as_bytes()),
            None => Err(io::Error::other("the recording was finished before this call ended")),
        };
        written.map_err(|e| ProviderError::Other(unwritable(&self.path, &e).to_string().into()))
    }
}

impl Draft {
    fn create(cassette: &Path) -> io::Result<Self> {
        if cassette.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let mut path = cassette.as_os_str().to_owned();
        path.push(".new");
        let mut file = fs::File::create(&path)?;
        file.write_all(header().as_bytes())?;
        Ok(Self { path: path.into(), file: Mutex::new(Some(file)) })
    }

    fn lock(&self) -> MutexGuard<'_, Option<fs::File>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.lock().is_some() {
            // A file that stays is replaced by the next recording.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn unwritable(path: &Path, error: &io::Error) -> SetupError {
    SetupError::cassette(path, format!("the file cannot be written: {error}"))
}

impl Provider for RecordingProvider {
    provider_methods_of!(inner: id, secrets, capabilities);

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        let (this, asked) = (self.clone(), request.clone());
        let keep = move |heard: Heard| this.keep(&asked, &heard);
        Box::pin(Tap::new(self.inner.stream(request, cancel), keep))
    }
}

archon_types::debug_fields!(RecordingProvider: inner, path);
