//! The memory of runs, which stores messages before they leave the context window and at the end of a run,
//! and recalls memories for prompts.

use futures_core::future::BoxFuture;

use crate::{
    config::MemoryConfig,
    messages::{Attributed, Compaction, Message, RecalledText},
};

use super::context::Context;

/// Stores the messages of a run before they leave the model's context window and at the end of the run, and
/// recalls memories for prompts.
///
/// ```
/// use archon_types::{Attributed, BoxFuture, Compaction, Context, RunMemory};
///
/// /// Prints the number of messages, and keeps none.
/// struct Printed;
///
/// impl RunMemory for Printed {
///     fn keep<'a>(
///         &'a self,
///         context: &'a Context,
///         said: Vec<Attributed>,
///         _compaction: Option<&'a Compaction>,
///     ) -> BoxFuture<'a, ()> {
///         println!("{}: {} messages", context.session, said.len());
///         Box::pin(std::future::ready(()))
///     }
/// }
/// ```
pub trait RunMemory: Send + Sync {
    /// Stores the messages of the conversation so far. Called before `compaction` removes or summarises
    /// messages, and with `None` at the end of the run.
    ///
    /// `said` has all messages, oldest first, each with its speaker and its trust level. Messages that were
    /// stored before are passed again with the same trust level, also by a later run of the session, a branch
    /// or a fork. Messages that earlier runs removed from the window are missing; in their place is a message of
    /// [`Speaker::Program`](crate::Speaker::Program), such as a summary.
    ///
    /// The memory must report its own failures: the run goes on in any case, and its log has all messages.
    ///
    /// The run waits for this method, even after a cancel. Slow work that can wait must stop at
    /// `context.cancel`.
    fn keep<'a>(
        &'a self,
        context: &'a Context,
        said: Vec<Attributed>,
        compaction: Option<&'a Compaction>,
    ) -> BoxFuture<'a, ()>;

    /// Returns memories that fit a person's message, as text for the model. The run's log stores the text and its
    /// trust level as a part of the message. `window` has the messages that the model reads anyway. A cancel drops
    /// the returned future. Default: `None`.
    fn recall<'a>(
        &'a self,
        context: &'a Context,
        message: &'a Message,
        window: &'a [Attributed],
    ) -> BoxFuture<'a, Option<RecalledText>> {
        let _ = (context, message, window);
        Box::pin(std::future::ready(None))
    }

    /// Returns the configuration of the memory. Each run logs it, so that another process can resume the run
    /// with the same memory. Default: `None`.
    fn config(&self) -> Option<MemoryConfig> {
        None
    }
}
