//! Reports of child runs to the driver of their caller that they have a log. The caller records
//! this before the child does anything, so that a log that is missing after a crash is known to be
//! lost.

use archon_types::{BoxFuture, CallId, CallerLog, RunId};
use tokio::sync::{mpsc, oneshot};

/// A child run has its log. The run waits until this is dropped, which happens once the caller has
/// recorded it.
pub(crate) struct Begun {
    pub(crate) call: CallId,
    pub(crate) child: RunId,
    _written: oneshot::Sender<()>,
}

/// Sends the reports; given to child runs.
#[derive(Clone)]
pub(crate) struct Reports(mpsc::Sender<Begun>);

impl Reports {
    /// Returns the end for child runs, and the end for the driver.
    pub(crate) fn channel() -> (Self, mpsc::Receiver<Begun>) {
        let (reports, begun) = mpsc::channel(64);
        (Self(reports), begun)
    }
}

impl CallerLog for Reports {
    fn child_begun<'a>(&'a self, call: CallId, child: &'a RunId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let (written, answer) = oneshot::channel();
            if self.0.send(Begun { call, child: child.clone(), _written: written }).await.is_ok() {
                let _ = answer.await;
            }
        })
    }
}
