//! Calls that a tool makes itself: their context in the run, and their progress within the tool's call.

use std::sync::Arc;

use futures_core::future::BoxFuture;

use crate::{
    log::{DeltaKind, Event, Sink},
    tools::{Effect, ProcessGroup, ProcessLog, Processes, Progress, ToolAnnotations, ToolError},
    values::CallId,
};

use super::{context::Context, tool::ToolContext};

/// The maximum length of a chain in which each tool calls the next one: 10 tools that call a tool. The last tool of
/// the chain calls none and does not count.
pub const MAX_TOOL_DEPTH: usize = 10;

impl ToolContext {
    /// Returns the context for inner calls: calls that `tool`, the tool of this call, makes itself. Inner calls are
    /// cancelled together with this call, and their progress and their processes count as those of this call.
    /// Inner calls cannot wait for a person, because they are not in the log.
    ///
    /// # Errors
    /// [`ToolError::Failed`] if `tool` is already in the chain of calling tools, or if the chain is too long.
    pub fn below(&self, tool: &str) -> Result<Context, ToolError> {
        let mut way = self.run.tools_above.to_vec();
        let is_above = way.iter().any(|above| above == tool);
        way.push(tool.to_owned());
        if is_above || way.len() > MAX_TOOL_DEPTH {
            let problem =
                if is_above { "tools call each other in a circle" } else { "tools call each other too deep" };
            return Err(ToolError::Failed(format!(
                "{problem}: {}. Nothing was done. Use the tools by themselves.",
                way.join(" → ")
            )));
        }
        let mut run = self.run.clone();
        run.tools_above = way.into();
        run.cancel = self.cancel.clone();
        run.can_ask = false;
        (run.agreed, run.agreed_above) = (None, false);
        // The run must not be dropped while the tool does other work beside these calls.
        run.under_way = None;
        run.tool_questions = None;
        run.sink = Arc::new(Below { call: self.clone() });
        run.processes =
            self.processes.clone().map(|processes| Arc::new(Through(processes)) as Arc<dyn ProcessLog>);
        Ok(run)
    }
}

impl ToolAnnotations {
    /// Returns annotations for a tool that calls other tools: as strict as the strictest of these tools.
    pub fn as_harmful_as<'a>(tools: impl IntoIterator<Item = &'a ToolAnnotations>) -> Self {
        let mut all = Self::read_only();
        for one in tools {
            all.effect = match (all.effect, one.effect) {
                (Effect::SideEffect, _) | (_, Effect::SideEffect) => Effect::SideEffect,
                (Effect::Idempotent, _) | (_, Effect::Idempotent) => Effect::Idempotent,
                _ => Effect::ReadOnly,
            };
            all.concurrency_safe &= one.concurrency_safe;
            all.destructive |= one.destructive;
            all.network |= one.network;
            all.permissions.extend(one.permissions.iter().cloned());
        }
        all.permissions.sort();
        all.permissions.dedup();
        all
    }
}

/// Passes on progress of inner calls as progress of the outer call, and events of child runs unchanged.
struct Below {
    call: ToolContext,
}

impl Sink for Below {
    fn emit(&self, event: Event) {
        match event {
            Event::Delta(delta) if delta.run == self.call.run.run => {
                if let (DeltaKind::ToolProgress { text, .. }, Some(progress)) =
                    (delta.kind, &self.call.progress)
                {
                    progress(Progress::Text(text));
                }
            }
            other => self.call.run.sink.emit(other),
        }
    }
}

/// Registers processes of inner calls as processes of the outer call: the outer call logs and ends them.
struct Through(Arc<dyn Processes>);

impl ProcessLog for Through {
    fn spawned<'a>(&'a self, _: CallId, group: ProcessGroup) -> BoxFuture<'a, bool> {
        Box::pin(async move { self.0.register(group.id).await.is_ok() })
    }
}
