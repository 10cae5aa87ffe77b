//! A provider that replays a cassette, which a [`RecordingProvider`](crate::RecordingProvider) wrote.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{
    AssistantMessage, CancellationToken, Capabilities, ModelEvent, Provider, ProviderError, Request, Secret,
    StopReason,
};

use crate::{
    Events,
    cassette::{self, Call, HOW_TO_RECORD, difference, request_json},
    error::SetupError,
    scrub::Scrubber,
    tap::played,
};

/// A provider that answers with the recorded answers of a cassette, without the model.
///
/// Each recorded call answers one request: the first request that is equal to the recorded one. So concurrent
/// requests may come in any order. A request that was not recorded fails with a [`ProviderError::Other`]. The
/// error shows how the request differs from the next unused call, or that no call is left, and how to record
/// again. Clones share the cassette.
///
/// The format is a text of JSON lines: `{"cassette":1}`, then `{"request":{…},"events":[…]}` for each call;
/// for a model with abilities other than the default, also `"can":{…}`. Requests are compared in their
/// recorded form, with secrets replaced by `****`.
///
/// ```
/// use archon_providers::{ReplayProvider, SetupError};
/// use archon_types::Capabilities;
///
/// fn open_cassette(password: &str) -> Result<ReplayProvider, SetupError> {
///     let replay = ReplayProvider::open("tests/calls.jsonl")?;
///     Ok(replay.with_id("openai").with_capabilities(Capabilities::default()).hide(password))
/// }
/// ```
#[derive(Clone)]
pub struct ReplayProvider {
    id: String,
    path: PathBuf,
    calls: Arc<Mutex<Vec<Option<Call>>>>,
    /// The recorded models with their abilities, in the order of their first calls.
    models: Vec<(String, Capabilities)>,
    capabilities: Option<Capabilities>,
    scrubber: Scrubber,
}

impl ReplayProvider {
    /// Opens the cassette in this file. The provider's id is `replay`.
    ///
    /// # Errors
    /// [`SetupError::Cassette`] if the file cannot be read or is not a cassette of a known version.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, SetupError> {
        let path = path.into();
        let text = fs::read_to_string(&path)
            .map_err(|e| SetupError::cassette(&path, format!("the file cannot be read: {e}")))?;
        let calls = cassette::read(&text).map_err(|what| SetupError::cassette(&path, what))?;
        let mut models: Vec<(String, Capabilities)> = Vec::new();
        for call in &calls {
            let model = call.request["model"].as_str().unwrap_or_default();
            if models.iter().all(|(known, _)| known != model) {
                models.push((model.to_owned(), call.can));
            }
        }
        Ok(Self {
            id: "replay".to_owned(),
            path,
            calls: Arc::new(Mutex::new(calls.into_iter().map(Some).collect())),
            models,
            capabilities: None,
            scrubber: Scrubber::default(),
        })
    }

    /// Sets the id of the provider, for instance to that of the recorded provider. Default `replay`.
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Sets the abilities of all models. Default: the recorded ones.
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// Replaces this secret by `****` in requests before they are compared. Use it for each secret that was
    /// hidden in the recording.
    pub fn hide(mut self, secret: impl Into<Secret>) -> Self {
        self.scrubber.add(secret.into());
        self
    }

    /// Returns the names of the recorded models, in the order of their first calls.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.models.iter().map(|(model, _)| model.as_str())
    }

    /// Returns the path of the cassette.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of recorded calls that were not used yet. A test that expects all calls checks that
    /// the number is 0.
    pub fn unused_calls(&self) -> usize {
        self.lock().iter().flatten().count()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Call>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, request: &Request) -> Result<Call, ProviderError> {
        let asked = request_json(request, &self.scrubber);
        let mut calls = self.lock();
        let same = |call: &&mut Option<Call>| call.as_ref().is_some_and(|call| call.request == asked);
        if let Some(call) = calls.iter_mut().find(same).and_then(Option::take) {
            return Ok(call);
        }
        let path = self.path.display();
        let next = calls.iter().enumerate().find_map(|(at, call)| Some((at + 1, call.as_ref()?)));
        let problem = match next {
            None => format!("{path} has no answer left: all its {} calls were replayed", calls.len()),
            Some((number, call)) => {
                // Equal requests were replayed above, so there is a difference.
                let difference = difference(&call.request, &asked).unwrap_or_default();
                format!("{path} has no answer to this request; from call {number} it differs at {difference}")
            }
        };
        let advice = format!("if you changed it on purpose, record the cassette again: {HOW_TO_RECORD}");
        Err(ProviderError::Other(format!("{problem}; {advice}").into()))
    }
}

impl Provider for ReplayProvider {
    fn id(&self) -> &str {
        &self.id
    }

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        if cancel.is_cancelled() {
            let message = AssistantMessage {
                model: request.model,
                provider: self.id.clone(),
                stop_reason: StopReason::Aborted,
                ..AssistantMessage::default()
            };
            return played(vec![Ok(ModelEvent::Done(Box::new(message)))]);
        }
        played(self.take(&request).map_or_else(|error| vec![Err(error)], |call| call.events))
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        let recorded = || self.models.iter().find(|(known, _)| known == model).map(|(_, can)| *can);
        self.capabilities.or_else(recorded).unwrap_or_default()
    }
}

impl fmt::Debug for ReplayProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayProvider")
            .field("id", &self.id)
            .field("path", &self.path)
            .field("left", &self.unused_calls())
            .finish_non_exhaustive()
    }
}
