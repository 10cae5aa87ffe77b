//! Splits thinking from the text of a model, for any provider.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use archon_types::{
    CancellationToken, Content, ModelEvent, Provider, ProviderError, Request, provider_methods_of,
};
use futures_core::Stream;

use crate::{
    Events,
    think_tags::{Piece, ThinkSplitter},
};

/// A provider that moves thinking between `<think>` or `<thinking>` tags out of the text of another
/// provider's answers, into thinking blocks.
///
/// [`OpenAiCompatible`](crate::OpenAiCompatible) does this itself if the service's [`Compat`](crate::Compat)
/// sets `think_tags`; this wrapper does it for other providers. If the provider reports thinking itself,
/// thinking between tags is dropped.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_providers::{ScriptedProvider, ThinkingTagsProvider};
///
/// let model = Arc::new(ScriptedProvider::texts(["<think>Hm.</think>Hello."]));
/// let provider = ThinkingTagsProvider::new(model);
/// ```
#[derive(Clone, Debug)]
pub struct ThinkingTagsProvider {
    inner: Arc<dyn Provider>,
}

impl ThinkingTagsProvider {
    /// Creates a provider that passes requests to `inner` and splits its answers.
    pub fn new(inner: Arc<dyn Provider>) -> Self {
        Self { inner }
    }
}

impl Provider for ThinkingTagsProvider {
    provider_methods_of!(inner: id, secrets, capabilities);

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        let inner = self.inner.stream(request, cancel);
        Box::pin(Split {
            inner,
            splitter: ThinkSplitter::default(),
            is_native: false,
            is_open: true,
            out: VecDeque::new(),
        })
    }
}

struct Split {
    inner: Events,
    splitter: ThinkSplitter,
    /// True if the provider reported thinking itself.
    is_native: bool,
    /// True if the last text block may continue.
    is_open: bool,
    out: VecDeque<Result<ModelEvent, ProviderError>>,
}

impl Split {
    fn take(&mut self, event: Result<ModelEvent, ProviderError>) {
        match event {
            Ok(ModelEvent::TextDelta(text)) => {
                let (out, native) = (&mut self.out, self.is_native);
                self.splitter.push(text, |piece| out.extend(delta(piece, native)));
            }
            Ok(ModelEvent::ThinkingDelta(text)) => {
                self.is_native = true;
                self.out.push_back(Ok(ModelEvent::ThinkingDelta(text)));
            }
            Ok(ModelEvent::Done(mut message)) => {
                self.finish();
                message.content = split(message.content);
                self.out.push_back(Ok(ModelEvent::Done(message)));
            }
            Err(error) => {
                self.finish();
                self.out.push_back(Err(error));
            }
            other => self.out.push_back(other),
        }
    }

    fn finish(&mut self) {
        let (out, native) = (&mut self.out, self.is_native);
        if std::mem::replace(&mut self.is_open, false) {
            self.splitter.finish(|piece| out.extend(delta(piece, native)));
        }
    }
}

fn delta(piece: Piece, is_native: bool) -> Option<Result<ModelEvent, ProviderError>> {
    match piece {
        Piece::Text(text) => Some(Ok(ModelEvent::TextDelta(text))),
        Piece::Thinking(text) if !is_native => Some(Ok(ModelEvent::ThinkingDelta(text))),
        _ => None,
    }
}

/// Returns the blocks of a message, split in the same way as the deltas.
fn split(blocks: Vec<Content>) -> Vec<Content> {
    let mut splitter = ThinkSplitter::default();
    let (mut all, mut is_native) = (Vec::new(), false);
    for block in blocks {
        match block {
            Content::Text { text } => splitter.push(text, |piece| add(&mut all, piece, is_native)),
            block => {
                is_native |= matches!(block, Content::Thinking { .. });
                all.push(block);
            }
        }
    }
    splitter.finish(|piece| add(&mut all, piece, is_native));
    all
}

fn add(all: &mut Vec<Content>, piece: Piece, is_native: bool) {
    match (piece, all.last_mut()) {
        (Piece::Text(more), Some(Content::Text { text })) => text.push_str(&more),
        (Piece::Text(text), _) => all.push(Content::Text { text }),
        (Piece::Thinking(_), _) if is_native => {}
        (Piece::Thinking(more), Some(Content::Thinking { thinking, .. })) => thinking.push_str(&more),
        (Piece::Thinking(thinking), _) => all.push(Content::Thinking { thinking, signature: None }),
        (Piece::ThinkingEnd, _) => {}
    }
}

impl Stream for Split {
    type Item = Result<ModelEvent, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(event) = self.out.pop_front() {
                return Poll::Ready(Some(event));
            }
            match ready!(self.inner.as_mut().poll_next(cx)) {
                Some(event) => self.take(event),
                None => return Poll::Ready(None),
            }
        }
    }
}
