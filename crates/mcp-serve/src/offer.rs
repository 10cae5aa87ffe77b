//! The tools and agents that a server offers, as the protocol describes them.

use std::sync::Arc;

use archon_types::{AgentId, Effect, Json, RunKind, ToolSpec};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::json;

/// An agent that is offered as a tool with a prompt.
///
/// A client may read, answer and cancel every run with the agent's id, except child runs. So register the agent in
/// the run service under an id that nothing else uses.
///
/// ```
/// use archon_mcp_serve::OfferedAgent;
/// use archon_types::RunKind;
///
/// let planner = OfferedAgent::new("trips", "Plans a trip.", "trip-planner").with_kind(RunKind::Plan);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfferedAgent {
    /// The name of the tool: letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// The description for the client's model: the purpose of the agent.
    pub description: String,
    /// The id of the agent in the run service.
    pub agent: AgentId,
    /// The kind of the agent's runs. Default [`RunKind::Loop`].
    pub kind: RunKind,
}

impl OfferedAgent {
    /// Creates the offer of an agent whose runs are loops.
    pub fn new(name: impl Into<String>, description: impl Into<String>, agent: impl Into<AgentId>) -> Self {
        let (name, description, agent) = (name.into(), description.into(), agent.into());
        Self { name, description, agent, kind: RunKind::Loop }
    }

    /// Sets the kind of the agent's runs, for instance a plan or a team. Default [`RunKind::Loop`].
    pub fn with_kind(mut self, kind: RunKind) -> Self {
        self.kind = kind;
        self
    }
}

/// Describes a tool to clients. The hints are those of the tool's annotations.
pub(crate) fn tool(spec: &ToolSpec) -> Tool {
    let annotations = &spec.annotations;
    let hints = ToolAnnotations::new()
        .read_only(annotations.effect == Effect::ReadOnly)
        .destructive(annotations.destructive)
        .idempotent(annotations.effect.may_repeat())
        .open_world(annotations.network);
    let mut parameters = object(spec.parameters.clone());
    parameters.entry("type").or_insert_with(|| "object".into());
    let mut tool = Tool::new(spec.name.clone(), spec.description.clone(), parameters).with_annotations(hints);
    tool.title = Some(spec.label.clone()).filter(|label| !label.is_empty());
    tool
}

/// Describes an agent to clients.
pub(crate) fn agent(offered: &OfferedAgent) -> Tool {
    let input = json!({
        "type": "object",
        "properties": { "prompt": { "type": "string", "description": "The task, with all that the agent needs to know." } },
        "required": ["prompt"],
        "additionalProperties": false,
    });
    let output = json!({
        "type": "object",
        "properties": {
            "run": { "type": "string", "description": "The id of the run, to look at it or to resume it." },
            "status": {
                "type": "string",
                "enum": ["finished", "failed", "limit", "cancelled", "suspended"],
                "description": "The state of the run.",
            },
            "answer": { "type": "string", "description": "The answer, or its beginning if the run did not finish." },
        },
        "required": ["run", "status"],
    });
    let hints = ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true);
    let mut tool =
        Tool::new(offered.name.clone(), offered.description.clone(), object(input)).with_annotations(hints);
    tool.output_schema = Some(Arc::new(object(output)));
    tool
}

fn object(schema: Json) -> JsonObject {
    match schema {
        Json::Object(fields) => fields,
        _ => JsonObject::new(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn tool_has_the_hints_of_its_annotations_and_an_object_schema() {
        for (annotations, hints) in [
            (archon_types::ToolAnnotations::read_only(), (true, false, true)),
            (archon_types::ToolAnnotations::default(), (false, false, false)),
            (archon_types::ToolAnnotations::destructive(), (false, true, false)),
        ] {
            let spec = ToolSpec::new("step", "Takes a step.", json!({})).with_annotations(annotations);
            let offered = tool(&spec);
            let seen = offered.annotations.unwrap();
            let seen = [seen.read_only_hint, seen.destructive_hint, seen.idempotent_hint].map(Option::unwrap);
            assert_eq!((seen[0], seen[1], seen[2]), hints);
            assert_eq!(offered.input_schema["type"], "object");
        }
    }
}
