//! What of a run is remembered: what leaves the window, and all that was said when it ends.

use futures_core::future::BoxFuture;

use crate::{Compaction, Context, MemoryConfig, Message, Said, Trust};

/// What a memory tells a model with a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Told {
    /// For the model.
    pub text: String,
    /// How far the least believed of it is believed. What the model says from here on is believed no more.
    pub trust: Trust,
}

impl Told {
    /// A text, believed so far.
    pub fn new(text: impl Into<String>, trust: Trust) -> Self {
        Self { text: text.into(), trust }
    }
}

/// Recalls what fits what a run begins with, and keeps what is said: before anything leaves the model's window, and when
/// the run ends.
pub trait RunMemory: Send + Sync {
    /// Keeps the conversation's messages, all that there are so far, oldest first, each with who said it and how far it
    /// is believed. What was kept before is given again, believed as before, also by a later run of the session, a branch
    /// or a fork; what earlier runs took from the window is missing then, and a message of the program's stands in its
    /// place. `compaction` is what is about to be dropped from the window, or summed up; `None` at the end of the run. A
    /// failure is the memory's own to report: the run goes on, and its log has everything.
    ///
    /// The run waits for this, also when it is cancelled: what may take long and can be done later ends with
    /// `context.cancel`.
    fn keep<'a>(
        &'a self,
        context: &'a Context,
        said: Vec<Said>,
        compaction: Option<&'a Compaction>,
    ) -> BoxFuture<'a, ()>;

    /// What is remembered that fits a message of a person, as text for the model. It becomes a part of the message, in
    /// the run's log, with how far it is believed. `window` is what the model reads anyway, in full. A cancel drops it.
    /// Nothing by default.
    fn recall<'a>(
        &'a self,
        context: &'a Context,
        message: &'a Message,
        window: &'a [Said],
    ) -> BoxFuture<'a, Option<Told>> {
        let _ = (context, message, window);
        Box::pin(std::future::ready(None))
    }

    /// Which memory it is, for the log of each run: whoever resumes it elsewhere opens the same. Nothing by default.
    fn config(&self) -> Option<MemoryConfig> {
        None
    }
}
