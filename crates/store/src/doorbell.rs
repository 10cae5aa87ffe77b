//! Wakes whoever waits for messages to a run, within this process.

use std::sync::Arc;

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
}
