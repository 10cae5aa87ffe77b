//! The grace period of a cancelled run: limits its waits for locks and embedders.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Arc, OnceLock},
    task::Poll,
    time::Duration,
};

use archon_types::{BoxFuture, CancellationToken, Clock, Context, Embedder, MemoryError, Timestamp};

/// Length of the grace period.
const MOMENT: Duration = Duration::from_secs(1);

/// A grace period that starts with the cancel and is shared by all waits.
pub(super) struct GracePeriod {
    cancel: CancellationToken,
    clock: Arc<dyn Clock>,
    end: OnceLock<Timestamp>,
}

impl GracePeriod {
    pub(super) fn of(context: &Context) -> Arc<Self> {
        let (cancel, clock) = (context.cancel.clone(), context.clock.clone());
        Arc::new(Self { cancel, clock, end: OnceLock::new() })
    }

    /// Waits for `work`; returns `None` at the end of the grace period. If `work` is ready at its first
    /// poll, its result is always returned.
    pub(super) async fn wait_for<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let (mut work, mut over) = (pin!(work), pin!(self.over()));
        poll_fn(|task| match work.as_mut().poll(task) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => over.as_mut().poll(task).map(|()| None),
        })
        .await
    }

    fn is_over(&self) -> bool {
        self.end.get().is_some_and(|end| self.clock.now() >= *end)
    }

    async fn over(&self) {
        self.cancel.cancelled().await;
        let end = *self.end.get_or_init(|| self.clock.now() + MOMENT);
        self.clock.sleep_until(end).await;
    }
}

/// An embedder that fails after the grace period, so that texts are stored without vectors. After that time
/// the wrapped embedder is not called.
pub(super) struct HurriedEmbedder {
    pub(super) embedder: Arc<dyn Embedder>,
    pub(super) grace_period: Arc<GracePeriod>,
}

impl Embedder for HurriedEmbedder {
    fn id(&self) -> &str {
        self.embedder.id()
    }

    fn dimensions(&self) -> usize {
        self.embedder.dimensions()
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>> {
        Box::pin(async move {
            let made = match self.grace_period.is_over() {
                true => None,
                false => self.grace_period.wait_for(self.embedder.embed(texts)).await,
            };
            made.unwrap_or_else(|| {
                let problem = "it did not answer in the grace period of the cancelled run".to_owned();
                Err(MemoryError::Embedding { embedder: self.id().to_owned(), problem })
            })
        })
    }
}
