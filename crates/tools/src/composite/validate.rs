//! Validates a composite and returns all problems at once.

use std::collections::{BTreeMap, BTreeSet};

use archon_types::{Json, MAX_TOOL_DEPTH, ToolSpec, nearest};

use super::{
    Composite, CompositeProblem, OnNodeFailure, ToolNode,
    graph::Graph,
    parameters::{merged, required},
};
use crate::ToolRegistry;

pub(super) fn problems(composite: &Composite, registry: &ToolRegistry) -> Vec<CompositeProblem> {
    let mut problems = names(composite);
    let cycles = Graph::new(composite).cycles();
    problems.extend(cycles.into_iter().map(|nodes| CompositeProblem::Cycle { nodes }));
    let spec = |tool: &str| registry.get(tool).map(|tool| tool.spec().clone());
    let inputs: BTreeSet<&str> = composite.input_ids().into_iter().collect();
    for node in &composite.nodes {
        match spec(&node.tool) {
            Some(spec) => arguments(composite, node, &spec, inputs.contains(&*node.id), &mut problems),
            None => {
                let names = registry.names();
                let nearest = nearest(&node.tool, names.iter().map(String::as_str)).map(str::to_owned);
                let (node, tool) = (node.id.clone(), node.tool.clone());
                problems.push(CompositeProblem::UnknownTool { node, tool, nearest });
            }
        }
    }
    merged(composite, spec, &mut problems);
    let mut way = vec![composite.name.clone()];
    let tools: Vec<String> = composite.nodes.iter().map(|node| node.tool.clone()).collect();
    problems.extend(depth(&tools, registry, &mut way, &mut BTreeMap::new()).err());
    problems
}

/// Returns the problems of the composite that do not depend on the registered tools.
fn names(composite: &Composite) -> Vec<CompositeProblem> {
    let mut problems = Vec::new();
    if composite.nodes.is_empty() {
        problems.push(CompositeProblem::Empty);
    }
    let mut look = |id: &str, place| {
        if composite.node(id).is_none() {
            problems.push(CompositeProblem::UnknownNode { node: id.to_owned(), place });
        }
    };
    composite.nodes.iter().flat_map(|node| &node.gives).for_each(|mapping| look(&mapping.node, "a mapping"));
    composite.inputs.iter().for_each(|id| look(id, "the list of inputs"));
    composite.outputs.iter().for_each(|id| look(id, "the list of outputs"));
    for node in &composite.nodes {
        let pointers = node.gives.iter().map(|mapping| &mapping.pointer);
        let wrong = pointers
            .chain(node.for_each.iter().map(|each| &each.pointer))
            .filter(|pointer| !pointer.is_empty() && !pointer.starts_with('/'));
        problems.extend(
            wrong
                .map(|pointer| CompositeProblem::Pointer { node: node.id.clone(), pointer: pointer.clone() }),
        );
    }
    problems
}

/// Adds the problems with a call's arguments.
fn arguments(
    composite: &Composite,
    node: &ToolNode,
    spec: &ToolSpec,
    is_input: bool,
    problems: &mut Vec<CompositeProblem>,
) {
    let mapped =
        composite.nodes.iter().flat_map(|other| &other.gives).filter(|mapping| mapping.node == node.id);
    let given = node.arguments.keys().chain(mapped.map(|mapping| &mapping.argument));
    let (properties, is_closed) = known(spec);
    let (mut seen, id) = (BTreeSet::new(), || node.id.clone());
    for argument in given {
        if !seen.insert(argument.as_str()) {
            problems.push(CompositeProblem::TwoSources { node: id(), argument: argument.clone() });
        }
    }
    let named = node.parameters.keys().map(String::as_str);
    let each = node.for_each.iter().map(|each| each.argument.as_str());
    for argument in seen.iter().copied().chain(named).chain(each.clone()).collect::<BTreeSet<_>>() {
        if is_closed && !properties.contains(argument) {
            let (tool, argument) = (node.tool.clone(), argument.to_owned());
            problems.push(CompositeProblem::UnknownArgument { node: id(), tool, argument });
        }
    }
    let is_open = |argument: &str| is_input && properties.contains(argument);
    let needed: BTreeSet<&str> = required(spec).into_iter().chain(each).collect();
    let missing = needed.into_iter().filter(|argument| !seen.contains(argument) && !is_open(argument));
    problems.extend(
        missing
            .map(|argument| CompositeProblem::MissingArgument { node: id(), argument: argument.to_owned() }),
    );
    let is_retried = matches!(node.on_failure, OnNodeFailure::Retry(times) if times > 0);
    if is_retried && !spec.annotations.effect.may_repeat() {
        problems.push(CompositeProblem::NotRepeatable { node: id(), tool: node.tool.clone() });
    }
}

/// Returns the parameters that a tool's schema names, and whether the schema forbids others.
fn known(spec: &ToolSpec) -> (BTreeSet<&str>, bool) {
    let properties = spec.parameters.get("properties").and_then(Json::as_object);
    let names = properties.into_iter().flat_map(|all| all.keys()).map(String::as_str).collect();
    (names, spec.parameters.get("additionalProperties") == Some(&Json::Bool(false)))
}

/// Returns the number of levels of composites among these tools and the tools that they call: 0 if none of
/// them is a composite. `way` lists the tools from the outermost composite to these tools.
fn depth(
    tools: &[String],
    registry: &ToolRegistry,
    way: &mut Vec<String>,
    known: &mut BTreeMap<String, usize>,
) -> Result<usize, CompositeProblem> {
    let mut deepest = 0;
    for tool in tools {
        way.push(tool.clone());
        if way[..way.len() - 1].contains(tool) {
            let start = way.iter().position(|name| name == tool).unwrap_or_default();
            return Err(CompositeProblem::Recursion { tools: way.split_off(start) });
        }
        let below = match known.get(tool) {
            Some(below) => *below,
            None => match registry.get(tool).filter(|tool| !tool.calls().is_empty()) {
                Some(inner) => 1 + depth(inner.calls(), registry, way, known)?,
                None => 0,
            },
        };
        // The composite itself counts as one level.
        if way.len() - 1 + below > MAX_TOOL_DEPTH {
            return Err(CompositeProblem::TooDeep {
                depth: way.len() - 1 + below,
                tools: std::mem::take(way),
            });
        }
        known.insert(tool.clone(), below);
        deepest = deepest.max(below);
        way.pop();
    }
    Ok(deepest)
}
