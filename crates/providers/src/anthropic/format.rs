//! Converts the JSON Schema of structured output into the form that the service accepts.
//!
//! The service compiles a schema to a grammar and knows only a part of JSON Schema:
//! <https://platform.claude.com/docs/en/build-with-claude/structured-outputs>.

use archon_types::Json;
use serde_json::Map;

use crate::{
    request::is_of_type,
    schema_subset::{Fate, reduce},
};

/// The string formats that the service knows.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// Returns the schema without anything that the service refuses.
pub(super) fn strict(schema: &Json) -> Json {
    reduce(schema, fate, close)
}

fn fate(key: &str, value: &Json) -> Fate {
    match key {
        "format" if !value.as_str().is_some_and(|f| FORMATS.contains(&f)) => Fate::Tell,
        "minItems" if !matches!(value.as_u64(), Some(0 | 1)) => Fate::Tell,
        "type" | "description" | "title" | "enum" | "const" | "required" | "format" | "default" | "$ref"
        | "minItems" => Fate::Keep,
        "additionalProperties" | "$schema" | "$id" | "$comment" => Fate::Drop,
        "items" => Fate::Schema,
        "anyOf" | "oneOf" => Fate::List("anyOf"),
        "allOf" => Fate::List("allOf"),
        "properties" | "$defs" | "definitions" => Fate::Named,
        _ => Fate::Tell,
    }
}

/// Forbids the properties that an object schema does not list, as the service requires.
fn close(schema: &Map<String, Json>, strict: &mut Map<String, Json>) {
    if is_object(schema) {
        strict.insert("additionalProperties".to_owned(), Json::Bool(false));
    }
}

fn is_object(schema: &Map<String, Json>) -> bool {
    is_of_type(schema, "object") || schema.contains_key("properties")
}

/// Returns true if the schema contains a map: an object with property names that the schema does not list.
/// The service requires that such properties are forbidden, so a map could only be empty.
pub(super) fn has_maps(schema: &Json) -> bool {
    let Json::Object(schema) = schema else { return false };
    is_map(schema)
        || schema.iter().any(|(key, value)| match fate(key, value) {
            Fate::Schema => has_maps(value),
            Fate::List(_) => value.as_array().into_iter().flatten().any(has_maps),
            Fate::Named => value.as_object().into_iter().flatten().any(|(_, schema)| has_maps(schema)),
            Fate::Keep | Fate::Drop | Fate::Tell => false,
        })
}

fn is_map(schema: &Map<String, Json>) -> bool {
    let names_some = schema.get("properties").and_then(Json::as_object).is_some_and(|all| !all.is_empty());
    let takes_more = match schema.get("additionalProperties") {
        // A schema that lists properties rarely means to allow others.
        None => !names_some,
        Some(more) => *more != false,
    };
    is_object(schema) && (takes_more || schema.contains_key("patternProperties"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    // spec: P-08
    #[test]
    fn schema_unsupported_keywords_are_described_in_words() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "n": {"type": "integer", "minimum": 1, "maximum": 9, "description": "A number."},
                "when": {"type": "string", "format": "date", "pattern": "^2"},
                "odd": {"type": "string", "format": "regex"},
                "list": {"type": "array", "items": {"oneOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]}, "minItems": 3},
                "minimum": {"type": ["object", "null"], "additionalProperties": true},
            },
            "required": ["n"],
            "$defs": {"x": {"const": 7}},
        });
        expect![[r##"
            {
              "type": "object",
              "properties": {
                "n": {
                  "type": "integer",
                  "description": "A number.\nMust also hold: minimum 1, maximum 9."
                },
                "when": {
                  "type": "string",
                  "format": "date",
                  "description": "Must also hold: pattern \"^2\"."
                },
                "odd": {
                  "type": "string",
                  "description": "Must also hold: format \"regex\"."
                },
                "list": {
                  "type": "array",
                  "items": {
                    "anyOf": [
                      {
                        "$ref": "#/$defs/x"
                      },
                      {
                        "type": "null"
                      }
                    ]
                  },
                  "description": "Must also hold: minItems 3."
                },
                "minimum": {
                  "type": [
                    "object",
                    "null"
                  ],
                  "additionalProperties": false
                }
              },
              "required": [
                "n"
              ],
              "$defs": {
                "x": {
                  "const": 7
                }
              },
              "additionalProperties": false
            }"##]]
        .assert_eq(&serde_json::to_string_pretty(&strict(&schema)).unwrap());
    }

    // spec: P-08
    #[test]
    fn has_maps_finds_maps_at_any_depth() {
        let with = |property: Json| json!({"type": "object", "properties": {"p": property}});
        for (schema, expected) in [
            (with(json!({"type": "object"})), true),
            (with(json!({"type": ["object", "null"]})), true),
            (with(json!({"type": "object", "additionalProperties": {"type": "string"}})), true),
            (
                with(json!({"type": "array", "items": {"anyOf": [{"type": "object"}, {"type": "null"}]}})),
                true,
            ),
            (json!({"type": "object", "properties": {"p": {}}, "additionalProperties": true}), true),
            (json!({"type": "object", "properties": {"p": {}}, "$defs": {"d": {"type": "object"}}}), true),
            (json!({"type": "object", "properties": {"p": {}}, "patternProperties": {"^x": {}}}), true),
            (with(with(json!({"type": "string"}))), false),
            (with(json!({"type": "object", "additionalProperties": false})), false),
            (with(json!({"const": {"type": "object"}})), false),
        ] {
            assert_eq!(has_maps(&schema), expected, "{schema}");
        }
    }
}
