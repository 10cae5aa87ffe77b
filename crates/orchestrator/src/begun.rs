//! What a run that works for a call says to whoever drives its caller: that it has a log. The caller writes it down before
//! the run does anything, so that a log that is missing after a crash is known to be lost.

use archon_types::{BoxFuture, CallId, CallerLog, RunId};
use tokio::sync::{mpsc, oneshot};

/// A run has its log, and waits until its caller's log says so: until this is dropped.
pub(crate) struct Begun {
    pub(crate) call: CallId,
    pub(crate) child: RunId,
    _written: oneshot::Sender<()>,
}

/// Where runs say it.
#[derive(Clone)]
pub(crate) struct Reports(mpsc::Sender<Begun>);

impl Reports {
    /// The end for runs, and the end for the driver.
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
