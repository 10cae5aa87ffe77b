//! What stands between a model's call and a tool: one question each, asked in order.

use std::sync::Arc;

use archon_types::{ApprovalRequest, Context, Json, ToolCall, ToolResult};

use crate::{EngineOptions, ToolRegistry, registry::Registered};

/// A question about a call. Guards have no effect on the world and do not wait.
pub(crate) trait Guard: Send + Sync {
    /// Looks at the call, given what earlier guards found.
    fn check(&self, inspection: &mut Inspection<'_>) -> Verdict;
}

/// What a guard makes of a call.
pub(crate) enum Verdict {
    /// Nothing stands against it.
    Pass,
    /// It will not run; the model reads this.
    Refuse(Box<ToolResult>),
    /// A person decides.
    Ask(Box<ApprovalRequest>),
}

/// A call while guards look at it.
pub(crate) struct Inspection<'c> {
    pub(crate) call: &'c ToolCall,
    pub(crate) run: &'c Context,
    pub(crate) registry: &'c ToolRegistry,
    pub(crate) options: &'c EngineOptions,
    /// What a person wants done instead of what the model sent.
    pub(crate) edited: Option<Json>,
    /// Found by the first guard.
    pub(crate) tool: Option<Arc<Registered>>,
    /// Of the arguments, in bytes; measured before anything looks inside them.
    pub(crate) argument_bytes: usize,
}

impl<'c> Inspection<'c> {
    pub(crate) fn new(
        call: &'c ToolCall,
        run: &'c Context,
        registry: &'c ToolRegistry,
        options: &'c EngineOptions,
    ) -> Self {
        Self { call, run, registry, options, edited: None, tool: None, argument_bytes: 0 }
    }

    /// The arguments that the tool would get.
    pub(crate) fn arguments(&self) -> &Json {
        self.edited.as_ref().unwrap_or(&self.call.arguments)
    }
}

impl Verdict {
    /// Refuses with a text for the model and a stable name for the reason.
    pub(crate) fn refuse(reason: &'static str, text: impl Into<String>) -> Self {
        Self::Refuse(Box::new(ToolResult::error(text).with_metadata("error_type", reason)))
    }
}
