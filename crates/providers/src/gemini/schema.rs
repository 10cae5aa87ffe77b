//! Converts JSON Schemas into the form that Gemini accepts in `parametersJsonSchema` and
//! `responseJsonSchema`: <https://ai.google.dev/gemini-api/docs/structured-output#json_schema_support>.

use archon_types::Json;
use serde_json::Map;

use crate::schema_subset::{Fate, reduce};

/// Returns the schema without anything that the service refuses.
pub(super) fn accepted(schema: &Json) -> Json {
    reduce(schema, fate, finish)
}

fn fate(key: &str, value: &Json) -> Fate {
    match key {
        "type" | "description" | "title" | "enum" | "required" | "format" | "$ref" | "$id" | "$anchor"
        | "minItems" | "maxItems" | "minimum" | "maximum" | "propertyOrdering" => Fate::Keep,
        "items" => Fate::Schema,
        "additionalProperties" if value.is_boolean() => Fate::Keep,
        "additionalProperties" => Fate::Schema,
        "anyOf" | "oneOf" => Fate::List("anyOf"),
        "prefixItems" => Fate::List("prefixItems"),
        "properties" | "$defs" => Fate::Named,
        "$schema" | "$comment" | "examples" => Fate::Drop,
        _ => Fate::Tell,
    }
}

fn finish(schema: &Map<String, Json>, reduced: &mut Map<String, Json>) {
    // A reference allows no other keys next to it.
    if schema.contains_key("$ref") {
        reduced.retain(|key, _| key.starts_with('$'));
    }
    if let Some(Json::String(only)) = schema.get("const") {
        reduced.insert("enum".to_owned(), Json::Array(vec![Json::String(only.clone())]));
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    // spec: P-22
    #[test]
    fn schema_unsupported_keywords_are_described_in_words() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "n": {"type": "integer", "minimum": 1, "multipleOf": 2, "description": "A number."},
                "kind": {"const": "x"},
                "either": {"oneOf": [{"$ref": "#/$defs/a", "description": "gone"}, {"type": "null"}]},
                "map": {"type": "object", "additionalProperties": {"type": "string", "pattern": "^a"}},
            },
            "required": ["n"],
            "additionalProperties": false,
            "$defs": {"a": {"type": ["string", "null"], "maxLength": 3}},
        });
        expect![[r##"
            {
              "type": "object",
              "properties": {
                "n": {
                  "type": "integer",
                  "minimum": 1,
                  "description": "A number.\nMust also hold: multipleOf 2."
                },
                "kind": {
                  "description": "Must also hold: const \"x\".",
                  "enum": [
                    "x"
                  ]
                },
                "either": {
                  "anyOf": [
                    {
                      "$ref": "#/$defs/a"
                    },
                    {
                      "type": "null"
                    }
                  ]
                },
                "map": {
                  "type": "object",
                  "additionalProperties": {
                    "type": "string",
                    "description": "Must also hold: pattern \"^a\"."
                  }
                }
              },
              "required": [
                "n"
              ],
              "additionalProperties": false,
              "$defs": {
                "a": {
                  "type": [
                    "string",
                    "null"
                  ],
                  "description": "Must also hold: maxLength 3."
                }
              }
            }"##]]
        .assert_eq(&serde_json::to_string_pretty(&accepted(&schema)).unwrap());
    }
}
