//! The parameters of a composite: the open parameters of its first calls, which are those without another
//! source.

use std::collections::BTreeMap;

use archon_types::{Json, ToolSpec};
use serde_json::{Map, json};

use super::{Composite, CompositeProblem, ToolNode};

/// The composite's parameters, and the call arguments that they fill.
pub(super) struct Parameters {
    pub(super) schema: Json,
    pub(super) sources: Vec<Source>,
}

/// A parameter of the composite, and the argument of a call that it fills.
pub(super) struct Source {
    pub(super) parameter: String,
    pub(super) node: String,
    pub(super) argument: String,
}

/// An open parameter: a parameter of one call that gets neither a constant nor a part of another call's
/// result.
struct Open<'s> {
    node: &'s ToolNode,
    argument: &'s str,
    schema: Json,
    is_required: bool,
}

/// Merges open parameters into the composite's schema. Different parameters with one name get their call's id
/// as a prefix; parameters that were explicitly given one name are shared.
pub(super) fn merged(
    composite: &Composite,
    spec: impl Fn(&str) -> Option<ToolSpec>,
    problems: &mut Vec<CompositeProblem>,
) -> Parameters {
    let specs: Vec<_> = composite
        .input_ids()
        .into_iter()
        .filter_map(|id| composite.node(id))
        .filter_map(|node| Some((node, spec(&node.tool)?)))
        .collect();
    let mut definitions = Map::new();
    let mut by_name: BTreeMap<String, Vec<Open<'_>>> = BTreeMap::new();
    let mut order = Vec::new();
    for (node, spec) in &specs {
        definitions.extend(definitions_of(node, spec));
        for open in open(composite, node, spec) {
            let name = node.parameters.get(open.argument).map_or(open.argument, String::as_str).to_owned();
            if !by_name.contains_key(&name) {
                order.push(name.clone());
            }
            by_name.entry(name).or_default().push(open);
        }
    }
    let (mut properties, mut required, mut sources) = (Map::new(), Vec::new(), Vec::new());
    for name in order {
        for (name, opens) in apart(&name, by_name.remove(&name).unwrap_or_default()) {
            let Some(first) = opens.first() else { continue };
            let is_shared = opens.iter().all(|open| open.schema == first.schema);
            if !is_shared || properties.contains_key(&name) {
                problems.push(CompositeProblem::SameParameter { name: name.clone() });
            }
            properties.insert(name.clone(), first.schema.clone());
            if opens.iter().any(|open| open.is_required) {
                required.push(Json::from(name.clone()));
            }
            sources.extend(opens.iter().map(|open| Source {
                parameter: name.clone(),
                node: open.node.id.clone(),
                argument: open.argument.to_owned(),
            }));
        }
    }
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    if !definitions.is_empty() {
        schema["$defs"] = definitions.into();
    }
    Parameters { schema, sources }
}

/// Separates parameters that have the same name, and returns them with their final names: each gets its
/// call's id as a prefix, unless the composite gave it the name.
fn apart<'s>(name: &str, opens: Vec<Open<'s>>) -> Vec<(String, Vec<Open<'s>>)> {
    if opens.len() < 2 {
        return vec![(name.to_owned(), opens)];
    }
    let (named, others): (Vec<_>, Vec<_>) =
        opens.into_iter().partition(|open| open.node.parameters.contains_key(open.argument));
    let prefixed = others.into_iter().map(|open| (format!("{}_{name}", open.node.id), vec![open]));
    let mut all: Vec<_> = prefixed.collect();
    if !named.is_empty() {
        all.push((name.to_owned(), named));
    }
    all
}

/// Returns the call's open parameters, in the order of its tool's schema.
fn open<'s>(composite: &'s Composite, node: &'s ToolNode, spec: &'s ToolSpec) -> Vec<Open<'s>> {
    let Some(properties) = spec.parameters.get("properties").and_then(Json::as_object) else {
        return Vec::new();
    };
    let required = required(spec);
    let is_given = |argument: &str| {
        node.arguments.contains_key(argument)
            || composite
                .nodes
                .iter()
                .flat_map(|other| &other.gives)
                .any(|mapping| mapping.node == node.id && mapping.argument == argument)
    };
    properties
        .iter()
        .filter(|(argument, _)| !is_given(argument))
        .map(|(argument, schema)| {
            let mut schema = schema.clone();
            rename_references(&mut schema, &node.id);
            if node
                .for_each
                .as_ref()
                .is_some_and(|each| each.argument == *argument && each.pointer.is_empty())
            {
                schema = json!({ "type": "array", "items": schema });
            } else if node.for_each.as_ref().is_some_and(|each| each.argument == *argument) {
                schema = json!({ "type": "array" });
            }
            Open { node, argument, schema, is_required: required.contains(&argument.as_str()) }
        })
        .collect()
}

/// Returns the arguments that a tool requires.
pub(super) fn required(spec: &ToolSpec) -> Vec<&str> {
    let list = spec.parameters.get("required").and_then(Json::as_array);
    list.into_iter().flatten().filter_map(Json::as_str).collect()
}

/// Returns the definitions of the tool's schema, with names prefixed by the call's id.
fn definitions_of(node: &ToolNode, spec: &ToolSpec) -> Map<String, Json> {
    let of = |key| spec.parameters.get(key).and_then(Json::as_object).into_iter().flatten();
    of("$defs")
        .chain(of("definitions"))
        .map(|(name, schema)| {
            let mut schema = schema.clone();
            rename_references(&mut schema, &node.id);
            (format!("{}_{name}", node.id), schema)
        })
        .collect()
}

fn rename_references(schema: &mut Json, node: &str) {
    match schema {
        Json::Object(entries) => {
            for (key, value) in entries.iter_mut() {
                match value {
                    Json::String(reference) if key == "$ref" => {
                        let inner = reference.strip_prefix("#/$defs/");
                        let inner = inner.or_else(|| reference.strip_prefix("#/definitions/"));
                        if let Some(renamed) = inner.map(|inner| format!("#/$defs/{node}_{inner}")) {
                            *reference = renamed;
                        }
                    }
                    other => rename_references(other, node),
                }
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| rename_references(item, node)),
        _ => {}
    }
}
