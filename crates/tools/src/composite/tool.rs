//! The tool that runs a composite.

use archon_types::{Json, Subject, ToolAnnotations, ToolSpec};
use serde_json::json;

use super::{
    Composite, CompositeProblem, ToolNode,
    graph::Graph,
    parameters::{Source, merged},
};
use crate::{ToolEngine, arguments::call_beginning, guards::needs_consent};

/// A tool made of other tools. Its result is the result of the composite's last call or, if there are
/// several last calls, an object with their results.
///
/// The result's metadata have the list `trace` with each call that has ended or was skipped: its status and, unless it
/// was skipped, its time. After a failure they also have `partial_results`: the results of successful calls, by the id
/// of the call. Independent calls run concurrently if their tools allow that.
pub struct CompositeTool {
    pub(super) spec: ToolSpec,
    pub(super) composite: Composite,
    pub(super) engine: ToolEngine,
    /// For each call, by index, the indexes of the calls that it waits for.
    pub(super) waits_for: Vec<Vec<usize>>,
    pub(super) sources: Vec<Source>,
    pub(super) tools: Vec<String>,
    /// The specs that the tools had when the composite was made. An approval of the composite covers only
    /// tools that still have these specs.
    parts: Vec<ToolSpec>,
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
        let used: Vec<_> = tools.iter().filter_map(|name| registry.get(name)).collect();
        let mut annotations =
            ToolAnnotations::as_harmful_as(used.iter().map(|tool| &tool.spec().annotations));
        annotations.timeout_ms = Some(300_000);
        // A person is asked about the whole before it begins, because a step cannot wait in the run's log.
        annotations.requires_confirmation =
            used.iter().any(|tool| needs_consent(tool.spec(), engine.options().ask));
        let parts: Vec<ToolSpec> = used.iter().map(|tool| tool.spec().clone()).collect();
        let mut spec = ToolSpec::new(&composite.name, &composite.description, parameters.schema)
            .with_annotations(annotations);
        // Binds an approval that waited to this graph and these tools.
        let made_of = json!({ "graph": format!("{composite:?}"), "parts": parts });
        spec.version = archon_types::binding(&spec, &made_of, &Subject::Unknown);
        let waits_for = Graph::new(&composite).waits_for();
        Ok(Self {
            spec,
            waits_for,
            sources: parameters.sources,
            tools,
            parts,
            engine: engine.for_parts(),
            composite,
        })
    }

    /// Returns whether approval of the composite covers a tool. A tool that was replaced since is not
    /// covered.
    pub(super) fn covers(&self, part: &ToolSpec) -> bool {
        self.parts.contains(part)
    }

    /// Describes a call of the composite for a person: its tool, its constants, and its inputs from other calls.
    pub(super) fn step(&self, node: &ToolNode) -> String {
        let mut text = node.tool.clone();
        if !node.arguments.is_empty() {
            text.push_str(&format!(" with {}", call_beginning(&Json::from(node.arguments.clone()))));
        }
        let gives = |other: &&ToolNode| other.gives.iter().any(|mapping| mapping.node == node.id);
        let from: Vec<_> = self.composite.nodes.iter().filter(gives).map(|other| other.id.as_str()).collect();
        if !from.is_empty() {
            text.push_str(&format!(", given the result of {}", from.join(" and ")));
        }
        if let Some(each) = &node.for_each {
            text.push_str(&format!(", for each item of '{}'", each.argument));
        }
        text
    }

    /// Sets the time limit of one run of the whole composite. Default 300 s.
    ///
    /// ```
    /// use std::time::Duration;
    /// use archon_tools::CompositeTool;
    /// fn quick(research: CompositeTool) -> CompositeTool {
    ///     research.with_time_limit(Duration::from_secs(60))
    /// }
    /// ```
    pub fn with_time_limit(mut self, limit: std::time::Duration) -> Self {
        self.spec.annotations = self.spec.annotations.with_timeout(limit);
        self
    }
}

archon_types::debug_fields!(CompositeTool: spec);
