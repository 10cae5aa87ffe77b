//! Falls back to another model when one model cannot answer, for callers without a loop.

use std::sync::Arc;

use archon_types::{
    ApiErrorKind, CancellationToken, Capabilities, Content, MediaKind, Message, Provider, ProviderError,
    Reads, Redactor, Request,
};

use crate::{
    Events,
    attempts::{Attempts, at_once},
};

/// A provider with models to fall back to.
///
/// The first provider gets the model that the request names, each other provider its own model. After a failure the
/// next provider is asked, except after a cancel, a content filter or a context overflow: these would most likely stop
/// the next provider too. A provider is skipped if its model cannot read the images or PDF files of the user messages.
/// If an answer fails after it has begun, the caller gets the error. The message names the provider that answered.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_providers::{FallbackProvider, ScriptedProvider};
/// use archon_types::Provider;
///
/// let service = Arc::new(ScriptedProvider::texts(["Hello."]));
/// let local: Arc<dyn Provider> = Arc::new(ScriptedProvider::texts(["Hi."]));
/// let provider = FallbackProvider::new(service, vec![(local, "qwen3".to_owned())]);
/// ```
#[derive(Clone, Debug)]
pub struct FallbackProvider {
    first: Arc<dyn Provider>,
    others: Arc<[(Arc<dyn Provider>, String)]>,
}

impl FallbackProvider {
    /// Creates a provider that asks `first` and then `others` in order. Each entry of `others` is a provider
    /// and the name of its model.
    pub fn new(first: Arc<dyn Provider>, others: Vec<(Arc<dyn Provider>, String)>) -> Self {
        Self { first, others: others.into() }
    }
}

impl Provider for FallbackProvider {
    fn id(&self) -> &str {
        self.first.id()
    }

    fn secrets(&self) -> Vec<Redactor> {
        let all = std::iter::once(&self.first).chain(self.others.iter().map(|(provider, _)| provider));
        all.flat_map(|provider| provider.secrets()).collect()
    }

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        let first = self.first.stream(request.clone(), cancel.clone());
        let (others, mut place) = (self.others.clone(), 0);
        let (asked, token) = (request.clone(), cancel.clone());
        let next = move |error: ProviderError| {
            let later = others.iter().enumerate().skip(place).filter(|_| may_help(&error));
            let reads = |(_, (provider, model)): &(usize, &(Arc<dyn Provider>, String))| {
                reads_all(provider.capabilities(model).reads, &asked)
            };
            let Some((at, (provider, model))) = later.into_iter().find(reads) else { return Err(error) };
            place = at + 1;
            let mut request = asked.clone();
            request.model.clone_from(model);
            request.reads = provider.capabilities(model).reads;
            Ok(at_once(provider.stream(request, token.clone())))
        };
        Box::pin(Attempts::new(at_once(first), self.id(), &request, cancel, next))
    }

    /// Returns the abilities of the first provider, with these changes: tool calls only if all models
    /// support them, the smallest known context window, and `retries` if any provider retries.
    fn capabilities(&self, model: &str) -> Capabilities {
        let mut all = self.first.capabilities(model);
        for (provider, model) in self.others.iter() {
            let other = provider.capabilities(model);
            all.native_tools &= other.native_tools;
            all.retries |= other.retries;
            all.context_window = [all.context_window, other.context_window].into_iter().flatten().min();
        }
        all
    }
}

/// Returns true unless it is known that a model with these abilities cannot read an image or a PDF file of a user
/// message. No model is sent other media, so they are no reason to skip one.
fn reads_all(reads: Reads, request: &Request) -> bool {
    let messages = request.messages.iter().filter(|message| matches!(***message, Message::User(_)));
    let media = messages.flat_map(|message| message.content()).filter_map(Content::as_media);
    media.map(|media| media.kind()).all(|kind| kind == MediaKind::Other || reads.may_have(kind))
}

/// Returns true if another model may answer after this error.
fn may_help(error: &ProviderError) -> bool {
    !matches!(
        error,
        ProviderError::Cancelled
            | ProviderError::ContextOverflow(_)
            | ProviderError::Api { kind: ApiErrorKind::ContentFiltered, .. }
    )
}
