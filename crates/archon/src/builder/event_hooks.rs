//! Commands and HTTP endpoints on events of runs, as a part of an agent.

use super::ArchonBuilder;

archon_types::setters! {
impl ArchonBuilder {
    /// Sets event hooks: commands and HTTP endpoints that are called at events of runs. They may deny a call or a
    /// prompt, or ask a person about a call. They are called around the tool calls of the [`toolbox`](Self::toolbox),
    /// after every [`input_filter`](Self::input_filter), and in addition to [`hooks`](Self::hooks).
    ///
    /// ```
    /// use archon::{Archon, ArchonBuilder, hooks::EventHooks};
    /// fn with_events(hooks: EventHooks) -> ArchonBuilder {
    ///     Archon::builder().event_hooks(hooks)
    /// }
    /// ```
    pub fn event_hooks(self, hooks: archon_hooks::EventHooks) -> Self { self.event_hooks = Some(hooks) }
}
}
