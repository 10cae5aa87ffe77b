//! The form of a plan that a model is asked for.

use archon_types::{Json, ToolDefinition};
use serde_json::json;

/// JSON Schema of a plan that a model is asked for, with the tools that it may name.
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

/// JSON Schema of a plan of exactly so many subtasks, `s1` and so on, of which each can only depend on those before it:
/// what it lets through is a graph without circles, however small the model is. Texts are short, so that a model that
/// does not know where to end comes to an end; arguments are left to the tool's user.
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
