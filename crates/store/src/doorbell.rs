//! Notifies waiters of new messages to a run: at once within this process, within 250 ms across processes.

use std::sync::Arc;
#[cfg(any(feature = "jsonl", feature = "sqlite"))]
use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use archon_types::BoxFuture;
use tokio::sync::Notify;

/// A notifier that is triggered when a message to any run is posted. Every waiter checks if the message is
/// for its run. Clones share the notifier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doorbell(Arc<Notify>);

impl Doorbell {
    pub(crate) fn ring(&self) {
        self.0.notify_waiters();
    }

    /// Returns a future that is ready at the next `ring` after this call.
    pub(crate) fn rung(&self) -> BoxFuture<'_, ()> {
        // The waiter registers now, not at the first poll.
        Box::pin(self.0.notified())
    }

    /// Returns a future that is ready at the next `ring` after this call, or at most [`watch::PERIOD`] after
    /// another process created, changed or removed the file or directory at `place`. Changes by other
    /// processes are noticed only within a Tokio runtime, since polling needs its timers.
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

/// Polls the modification time of a file or directory, which is cheap.
#[cfg(any(feature = "jsonl", feature = "sqlite"))]
mod watch {
    use std::{
        fs,
        path::Path,
        time::{Duration, SystemTime},
    };

    /// The time between two polls.
    pub(super) const PERIOD: Duration = Duration::from_millis(250);

    /// The coarsest resolution of modification times in any file system.
    const TICK: Duration = Duration::from_secs(2);

    /// Returns the time of the last change at `place`; `None` if nothing exists there.
    pub(super) fn changed_at(place: &Path) -> Option<SystemTime> {
        fs::metadata(place).and_then(|m| m.modified()).ok()
    }

    pub(super) async fn elsewhere(place: &Path, before: Option<SystemTime>) {
        // The second of two changes within one tick of the file system's clock is invisible, so a recent
        // change counts as unseen.
        let settled = before.is_none_or(|at| at.elapsed().is_ok_and(|age| age > TICK));
        loop {
            tokio::time::sleep(PERIOD).await;
            if !settled || changed_at(place) != before {
                return;
            }
        }
    }
}
