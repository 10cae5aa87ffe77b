//! JSON Schemas of the plan that a model is asked for.

use archon_types::{Json, ToolDefinition};
use serde_json::json;

/// Returns the JSON Schema of a plan, with the tools that subtasks may name.
pub fn plan_schema(tools: &[ToolDefinition]) -> Json {
    let mut names: Vec<Json> = tools.iter().map(|tool| tool.name.clone().into()).collect();
    names.push(Json::Null);
    json!({
        "type": "object",
        "properties": {
            "subtasks": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string"},
                        "description": {"type": "string"},
                        "expected_output": {"type": ["string", "null"]},
                        "tool_name": {"enum": names},
                        "tool_args": {"type": ["object", "null"]},
                        "dependencies": {"type": "array", "items": {"type": "string"}},
                        "critical": {"type": "boolean"},
                    },
                    "required": ["id", "description", "dependencies"],
                },
            },
        },
        "required": ["subtasks"],
    })
}

/// Returns the JSON Schema of a plan of exactly `subtasks` subtasks, `s1` and so on, each of which can only
/// depend on earlier ones. Thus even a very small model can only write a graph without cycles. Texts are
/// short, so that such a model ends its answer. The plan names tools without arguments: the agent that
/// executes a subtask chooses them.
pub fn plan_outline(subtasks: u32, tools: &[ToolDefinition]) -> Json {
    let mut names: Vec<Json> = tools.iter().map(|tool| tool.name.clone().into()).collect();
    names.push(Json::Null);
    let subtask = |number: u32| {
        let before: Vec<String> = (1..number).map(|earlier| format!("s{earlier}")).collect();
        let dependencies = match before.is_empty() {
            true => json!({"const": []}),
            false => json!({"type": "array", "items": {"enum": before}, "maxItems": number - 1}),
        };
        let mut properties = json!({
            "id": {"const": format!("s{number}")},
            "description": {"type": "string", "minLength": 8, "maxLength": 60},
            "dependencies": dependencies,
        });
        let mut required = vec!["id", "description", "dependencies"];
        if !tools.is_empty() {
            properties["tool_name"] = json!({"enum": names});
            required.push("tool_name");
        }
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    };
    let count = subtasks.max(1);
    let all: Vec<Json> = (1..=count).map(subtask).collect();
    json!({
        "type": "object",
        "properties": {
            "subtasks": {
                "type": "array", "prefixItems": all, "minItems": count, "maxItems": count,
            },
        },
        "required": ["subtasks"],
        "additionalProperties": false,
    })
}
