//! Calls that a tool makes itself: what they know of the run, and how they are heard as part of the tool's own call.

use std::sync::Arc;

use futures_core::future::BoxFuture;

use crate::{
    CallId, Context, DeltaKind, Effect, Event, ProcessGroup, ProcessLog, Processes, Progress, Sink,
    ToolAnnotations, ToolContext, ToolError,
};

/// How many tools may call each other in a row.
pub const MAX_TOOL_DEPTH: usize = 10;

impl ToolContext {
    /// What the calls know of the run that `tool`, which has this call, makes itself. They end with the call, what they
    /// say is its progress, and the processes that they start are its own. They cannot wait for a person, because they
    /// have no place of their own in the log.
    ///
    /// # Errors
    /// [`ToolError::Failed`] if `tool` is above this call already, or if too many tools are.
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
        run.sink = Arc::new(Below { call: self.clone() });
        run.processes =
            self.processes.clone().map(|processes| Arc::new(Through(processes)) as Arc<dyn ProcessLog>);
        Ok(run)
    }
}

impl ToolAnnotations {
    /// For a tool that calls others: as harmful as the most harmful of them.
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

/// What the calls below say is heard as the progress of the call; the runs of agents below are heard as ever.
struct Below {
    call: ToolContext,
}

impl Sink for Below {
    fn emit(&self, event: Event) {
        match event {
            Event::Delta(delta) if delta.run == self.call.run.run => {
                if let (DeltaKind::Progress { text, .. }, Some(progress)) = (delta.kind, &self.call.progress)
                {
                    progress(Progress::Text(text));
                }
            }
            other => self.call.run.sink.emit(other),
        }
    }
}

/// Processes of the calls below are those of the call: they stand in the log with it, and end with it.
struct Through(Arc<dyn Processes>);

impl ProcessLog for Through {
    fn spawned<'a>(&'a self, _: CallId, group: ProcessGroup) -> BoxFuture<'a, bool> {
        Box::pin(async move { self.0.register(group.id).await.is_ok() })
    }
}
