//! The long-term memory of an agent's runs. A failure of the memory is logged, and the run goes on.

use archon_memory::{AgentMemory, TurnMemory};
use archon_react_loop::MODEL_SUMMARY;
use archon_types::{
    Attributed, BoxFuture, Compaction, Context, MemoryConfig, Message, RecalledText, RunMemory,
};
use archon_views::ErrorContext;

pub(crate) struct Remembering(TurnMemory);

impl Remembering {
    pub(crate) fn new(parts: AgentMemory) -> Self {
        Self(TurnMemory::new(parts, MODEL_SUMMARY))
    }
}

impl RunMemory for Remembering {
    fn keep<'a>(
        &'a self,
        context: &'a Context,
        said: Vec<Attributed>,
        compaction: Option<&'a Compaction>,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Err(error) = self.0.keep(context, &said, compaction).await {
                let severity =
                    ErrorContext::of_memory(&error, context.run.clone(), context.clock.now()).severity;
                tracing::warn!(run = %context.run, %error, %severity, advice = error.advice(), "the messages of the run are not stored in the memory");
            }
        })
    }

    fn recall<'a>(
        &'a self,
        context: &'a Context,
        message: &'a Message,
        window: &'a [Attributed],
    ) -> BoxFuture<'a, Option<RecalledText>> {
        Box::pin(self.0.recall(context, message, window))
    }

    fn config(&self) -> Option<MemoryConfig> {
        self.0.config()
    }
}
