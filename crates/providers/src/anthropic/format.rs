//! Answers of a given form: the JSON Schema as the service takes it.
//!
//! The service compiles a schema to a grammar and knows a part of JSON Schema only:
//! <https://platform.claude.com/docs/en/build-with-claude/structured-outputs>.

use archon_types::Json;
use serde_json::Map;

use crate::schema_subset::{Fate, reduce};

/// The formats of texts that the service knows.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// The schema with nothing in it that the service refuses.
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

/// Objects must be closed.
fn close(schema: &Map<String, Json>, strict: &mut Map<String, Json>) {
    if schema.get("type").is_some_and(|kind| kind == "object") || schema.contains_key("properties") {
        strict.insert("additionalProperties".to_owned(), Json::Bool(false));
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    // spec: P-08
    #[test]
    fn what_the_service_does_not_know_is_told_to_the_model() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "n": {"type": "integer", "minimum": 1, "maximum": 9, "description": "A number."},
                "when": {"type": "string", "format": "date", "pattern": "^2"},
                "odd": {"type": "string", "format": "regex"},
                "list": {"type": "array", "items": {"oneOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]}, "minItems": 3},
                "minimum": {"type": "object", "additionalProperties": true},
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
                  "type": "object",
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
}
