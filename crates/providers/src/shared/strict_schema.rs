//! Checks if a service that strictly enforces JSON Schemas accepts a schema.
//!
//! The rules are OpenAI's: <https://platform.openai.com/docs/guides/structured-outputs#supported-schemas>.
//! With strict enforcement, the service refuses other schemas with status 400. Without it, the model reads
//! the schema and mostly follows it.

use archon_types::Json;
use serde_json::Map;

use crate::request::{is_object_schema, is_of_type};

/// The string formats that the service knows.
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Returns true if the schema can be enforced strictly: it is an object, all its objects are closed and
/// require all their properties, and it contains only known keywords.
pub(crate) fn is_strict(schema: &Json) -> bool {
    is_object_schema(schema) && schema.get("anyOf").is_none() && holds(schema)
}

fn holds(schema: &Json) -> bool {
    let Json::Object(schema) = schema else { return false };
    let has_type = ["type", "anyOf", "$ref"].iter().any(|key| schema.contains_key(*key));
    has_type
        && (!is_of_type(schema, "object") || is_closed(schema))
        && (!is_of_type(schema, "array") || schema.contains_key("items"))
        && schema.iter().all(|(key, value)| keyword_holds(key, value))
}

fn is_closed(schema: &Map<String, Json>) -> bool {
    let required = schema.get("required").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    let Some(properties) = schema.get("properties").and_then(Json::as_object) else { return false };
    schema.get("additionalProperties").is_some_and(|more| *more == false)
        && properties.keys().all(|name| required.iter().any(|known| known == name))
        && required.iter().all(|name| name.as_str().is_some_and(|name| properties.contains_key(name)))
}

fn keyword_holds(key: &str, value: &Json) -> bool {
    match key {
        "type"
        | "description"
        | "title"
        | "enum"
        | "const"
        | "required"
        | "additionalProperties"
        | "$ref"
        | "$schema"
        | "pattern"
        | "minimum"
        | "maximum"
        | "exclusiveMinimum"
        | "exclusiveMaximum"
        | "multipleOf"
        | "minItems"
        | "maxItems" => true,
        "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        "items" => holds(value),
        "anyOf" => value.as_array().is_some_and(|all| all.iter().all(holds)),
        "properties" | "$defs" | "definitions" => {
            value.as_object().is_some_and(|all| all.values().all(holds))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the schema of a closed object with one property.
    fn of(property: Json) -> Json {
        json!({"type": "object", "properties": {"p": property}, "required": ["p"], "additionalProperties": false})
    }

    // spec: P-15, P-19
    #[test]
    fn only_closed_schemas_are_strict() {
        let text = || json!({"type": "string"});
        let optional = json!({"type": "object", "properties": {"p": text()}, "additionalProperties": false});
        let open = json!({"type": "object", "properties": {"p": text()}, "required": ["p"]});
        let with_defs = |def: Json| {
            let mut schema = of(json!({"anyOf": [{"$ref": "#/$defs/d"}, {"type": "null"}]}));
            schema["$defs"] = json!({"d": def});
            schema
        };
        for schema in [
            of(text()),
            of(of(text())),
            of(
                json!({"type": ["string", "null"], "format": "uuid", "description": "An id.", "enum": ["a", null]}),
            ),
            of(
                json!({"type": "array", "items": of(json!({"type": "integer", "minimum": 1})), "maxItems": 3}),
            ),
            with_defs(of(text())),
            json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false}),
        ] {
            assert!(is_strict(&schema), "{schema}");
        }
        for schema in [
            text(),
            json!(true),
            json!({"type": "object"}),
            json!({"anyOf": [of(text())]}),
            open.clone(),
            optional.clone(),
            of(open.clone()),
            of(json!({"type": "array", "items": optional})),
            of(json!({"type": "array"})),
            of(json!({"anyOf": [open.clone(), {"type": "null"}]})),
            of(json!({"type": ["object", "null"]})),
            of(json!({"enum": ["a"]})),
            of(json!({})),
            of(json!({"type": "string", "minLength": 1})),
            of(json!({"type": "string", "default": ""})),
            of(json!({"type": "integer", "format": "uint32"})),
            of(json!({"oneOf": [text()]})),
            with_defs(open),
        ] {
            assert!(!is_strict(&schema), "{schema}");
        }
    }
}
