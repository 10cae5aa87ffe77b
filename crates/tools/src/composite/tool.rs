//! A composite as a tool.

use std::{fmt, sync::Arc};

use archon_types::{
    BoxFuture, CallId, Context, DeltaKind, Effect, Event, Json, ProcessGroup, ProcessLog, Processes,
    Progress, Sink, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult, ToolSpec,
};

use super::{
    Composite, CompositeProblem, MAX_DEPTH,
    graph::Graph,
    parameters::{Source, merged},
    run::Running,
};
use crate::{ToolEngine, ToolRegistry};

/// A tool made of others. Its result is that of the call that it ends with, or, of several, an object of their results.
///
/// The result's metadata hold a `trace` of the calls, and after a failure `partial_results`, by call. Calls that wait for
/// nothing that is under way are made side by side if their tools may run beside each other.
pub struct CompositeTool {
    spec: ToolSpec,
    pub(super) composite: Composite,
    pub(super) engine: ToolEngine,
    /// For each call, by its place, the places of those that it waits for.
    pub(super) waits_for: Vec<Vec<usize>>,
    pub(super) sources: Vec<Source>,
    tools: Vec<String>,
}

impl CompositeTool {
    pub(super) fn new(composite: Composite, engine: ToolEngine) -> Result<Self, Vec<CompositeProblem>> {
        let registry = engine.registry();
        let mut problems = composite.validate(registry);
        if !problems.is_empty() {
            return Err(problems);
        }
        let spec = |tool: &str| registry.get(tool).map(|tool| tool.spec().clone());
        let parameters = merged(&composite, spec, &mut problems);
        let mut tools: Vec<String> = composite.nodes.iter().map(|node| node.tool.clone()).collect();
        tools.sort();
        tools.dedup();
        let spec = ToolSpec::new(&composite.name, &composite.description, parameters.schema)
            .with_annotations(annotations(&tools, registry));
        let waits_for = Graph::new(&composite).waits_for();
        Ok(Self {
            spec,
            waits_for,
            sources: parameters.sources,
            tools,
            engine: engine.for_parts(),
            composite,
        })
    }

    /// The same tool with another time limit; 300 s by default.
    pub fn with_time_limit(mut self, limit: std::time::Duration) -> Self {
        self.spec.annotations.timeout_ms = Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// What its calls know of the run.
    fn context(&self, call: &ToolContext) -> Result<Context, ToolError> {
        let mut way = call.run.tools_above.to_vec();
        let is_above = way.contains(&self.spec.name);
        way.push(self.spec.name.clone());
        if is_above || way.len() > MAX_DEPTH {
            let problem =
                if is_above { "tools call each other in a circle" } else { "tools call each other too deep" };
            return Err(ToolError::Failed(format!(
                "{problem}: {}. Nothing was done. Use the tools by themselves.",
                way.join(" → ")
            )));
        }
        let mut run = call.run.clone();
        run.tools_above = way.into();
        run.cancel = call.cancel.clone();
        // A call below cannot wait for an answer, because it has no place of its own in the log.
        run.can_ask = false;
        run.sink = Arc::new(Below { call: call.clone() });
        run.processes =
            call.processes.clone().map(|processes| Arc::new(Through(processes)) as Arc<dyn ProcessLog>);
        Ok(run)
    }
}

/// As harmful as the most harmful of its tools.
fn annotations(tools: &[String], registry: &ToolRegistry) -> ToolAnnotations {
    let mut all = ToolAnnotations::read_only();
    all.timeout_ms = Some(300_000);
    for tool in tools.iter().filter_map(|name| registry.get(name)) {
        let one = &tool.spec().annotations;
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

impl Tool for CompositeTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let run = self.context(context)?;
            Ok(Running::new(self, arguments, context, run).until_end().await)
        })
    }

    fn calls(&self) -> &[String] {
        &self.tools
    }
}

/// What the calls below say is heard as the composite's own progress; the runs of agents below are heard as ever.
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

/// Processes of the calls below are the composite's: they stand in the log with its call, and end with it.
struct Through(Arc<dyn Processes>);

impl ProcessLog for Through {
    fn spawned<'a>(&'a self, _: CallId, group: ProcessGroup) -> BoxFuture<'a, bool> {
        Box::pin(async move { self.0.register(group.id).await.is_ok() })
    }
}

impl fmt::Debug for CompositeTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompositeTool").field("spec", &self.spec).finish_non_exhaustive()
    }
}
