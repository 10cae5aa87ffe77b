//! The agent's own model as a reader of facts for the agent's memory.

use archon_memory::LlmExtractor;

use super::{ArchonBuilder, Model};

impl ArchonBuilder {
    /// Returns an extractor that finds facts with the agent's own model and first key. Returns `None` if the model is
    /// not set yet or was set by name: call [`provider`](Self::provider) before. The calls of the extractor do not
    /// count towards the limits of runs.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use archon::{AgentMemory, ArchonBuilder, memory::Memory};
    /// fn with_facts(builder: ArchonBuilder, memory: Memory) -> ArchonBuilder {
    ///     let mut memory = AgentMemory::new(memory);
    ///     if let Some(extractor) = builder.own_model_extractor() {
    ///         memory = memory.with_extractor(Arc::new(extractor));
    ///     }
    ///     builder.memory(memory)
    /// }
    /// ```
    pub fn own_model_extractor(&self) -> Option<LlmExtractor> {
        match self.model.as_ref()? {
            Model::Given(providers, model) => Some(LlmExtractor::new(providers.first()?.clone(), model)),
            #[cfg(feature = "named-models")]
            Model::Named(_) => None,
        }
    }
}
