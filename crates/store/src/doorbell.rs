//! Wakes whoever waits for messages to a run: at once within this process, and soon across processes.

use std::sync::Arc;
#[cfg(any(feature = "jsonl", feature = "sqlite"))]
use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use archon_types::BoxFuture;
use tokio::sync::Notify;

/// Rung when something was posted. Clones are one bell; every waiter looks for itself whether the
/// message is for its run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doorbell(Arc<Notify>);

impl Doorbell {
    pub(crate) fn ring(&self) {
        self.0.notify_waiters();
    }

    /// Ready when the bell rings after this call.
    pub(crate) fn rung(&self) -> BoxFuture<'_, ()> {
        // Registers now, not when it is polled.
        Box::pin(self.0.notified())
    }

    /// Ready when the bell rings after this call, or when another process makes, changes or removes what is
    /// at `place`, [`watch::PERIOD`] after that at the latest. The latter is noticed within a tokio runtime
    /// only, which needs its timers.
    #[cfg(any(feature = "jsonl", feature = "sqlite"))]
    pub(crate) fn changed(&self, place: std::path::PathBuf) -> BoxFuture<'_, ()> {
        let (before, rung) = (watch::changed_at(&place), self.rung());
        Box::pin(async move {
            if tokio::runtime::Handle::try_current().is_err() {
                return rung.await;
            }
            let (mut rung, mut elsewhere) = (rung, pin!(watch::elsewhere(&place, before)));
            poll_fn(|cx| match rung.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => elsewhere.as_mut().poll(cx),
            })
            .await;
        })
    }
}

/// Looks at a file's or directory's time of change, which costs next to nothing.
#[cfg(any(feature = "jsonl", feature = "sqlite"))]
mod watch {
    use std::{
        fs,
        path::Path,
        time::{Duration, SystemTime},
    };

    /// How often the place of a run that is being driven is looked at.
    pub(super) const PERIOD: Duration = Duration::from_millis(250);

    /// Longer than the tick of any file system's clock.
    const TICK: Duration = Duration::from_secs(2);

    /// When something last changed there; `None` if nothing is there.
    pub(super) fn changed_at(place: &Path) -> Option<SystemTime> {
        fs::metadata(place).and_then(|m| m.modified()).ok()
    }

    pub(super) async fn elsewhere(place: &Path, before: Option<SystemTime>) {
        // Of two changes within one tick of the file system's clock the second cannot be seen.
        let settled = before.is_none_or(|at| at.elapsed().is_ok_and(|age| age > TICK));
        loop {
            tokio::time::sleep(PERIOD).await;
            if !settled || changed_at(place) != before {
                return;
            }
        }
    }
}
