//! What of a run is remembered: what leaves the window, and all that was said when it ends.

use futures_core::future::BoxFuture;

use crate::{Compaction, Context, Message, Said};

/// Recalls what fits what a run begins with, and keeps what is said: before anything leaves the model's window, and when
/// the run ends.
pub trait RunMemory: Send + Sync {
    /// Keeps the conversation's messages, all that there are so far, oldest first, each with who said it. What was kept
    /// before is given again, also by a later run of the session, a branch or a fork; what earlier runs took from the
    /// window is missing then, and a message of the program's stands in its place. `compaction` is what is about to be
    /// dropped from the window, or summed up; `None` at the end of the run. A failure is the memory's own to report: the
    /// run goes on, and its log has everything.
    ///
    /// The run waits for this, also when it is cancelled: what may take long and can be done later ends with
    /// `context.cancel`.
    fn keep<'a>(
        &'a self,
        context: &'a Context,
        said: Vec<Said>,
        compaction: Option<&'a Compaction>,
    ) -> BoxFuture<'a, ()>;

    /// What is remembered that fits a message of a person, as text for the model; it becomes a part of the message, in
    /// the run's log. `window` is what the model reads anyway, in full. A cancel drops it. Nothing by default.
    fn recall<'a>(
        &'a self,
        context: &'a Context,
        message: &'a Message,
        window: &'a [Said],
    ) -> BoxFuture<'a, Option<String>> {
        let _ = (context, message, window);
        Box::pin(std::future::ready(None))
    }
}
