//! Records every call of a model in a [cassette](crate::ReplayProvider), without secrets.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
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

/// A provider whose calls are recorded in a file.
///
/// Texts that look like a key are replaced by `****` before they are written, and so are the
/// [secrets](Provider::secrets) of the provider and those that were passed to [`hide`](Self::hide). A call
/// is written when it ends; a call that is cancelled or dropped is not written. If the file cannot be
/// written, the call fails with an error, so that no call is lost silently.
#[derive(Clone)]
pub struct RecordingProvider {
    inner: Arc<dyn Provider>,
    path: PathBuf,
    file: Arc<Mutex<fs::File>>,
    scrubber: Scrubber,
}

impl RecordingProvider {
    /// Records the calls of `inner` in a new cassette, which replaces an existing one.
    ///
    /// # Errors
    /// [`SetupError::Cassette`] if the file cannot be written.
    pub fn create(inner: Arc<dyn Provider>, path: impl Into<PathBuf>) -> Result<Self, SetupError> {
        let path = path.into();
        let file = fs::File::create(&path).and_then(|mut file| {
            file.write_all(header().as_bytes())?;
            Ok(file)
        });
        let file = file.map_err(|e| SetupError::cassette(&path, e.to_string()))?;
        Ok(Self { inner, path, file: Arc::new(Mutex::new(file)), scrubber: Scrubber::default() })
    }

    /// Replaces this secret by `****` wherever it occurs.
    pub fn hide(mut self, secret: impl Into<Secret>) -> Self {
        self.scrubber.add(secret.into());
        self
    }

    /// Creates a provider that records the calls of `inner` in the same cassette.
    pub fn also_record(&self, inner: Arc<dyn Provider>) -> Self {
        Self { inner, ..self.clone() }
    }

    /// Returns the path of the cassette.
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
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // One write for each line, so that a crash rarely leaves half a line.
        file.write_all(line.as_bytes()).map_err(|e| {
            ProviderError::Other(
                format!("the cassette {} cannot be written: {e}", self.path.display()).into(),
            )
        })
    }
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
