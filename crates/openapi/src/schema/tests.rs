//! Tests of lowered schemas.

use super::*;

fn document(version: &str, schemas: Json) -> Document {
    let root = json!({ "openapi": version, "components": { "schemas": schemas } });
    Document::new(root, "pets", None, String::new()).unwrap()
}

fn lowered(version: &str, schema: Json) -> Json {
    Lowering::new(&document(version, json!({}))).lower(&schema, "#/at").unwrap()
}

#[test]
fn lower_of_version_3_0_turns_its_own_keywords_into_those_of_json_schema() {
    for (schema, expected) in [
        (json!({ "type": "string", "nullable": true }), json!({ "type": ["string", "null"] })),
        (
            json!({ "type": "string", "enum": ["a"], "nullable": true }),
            json!({ "type": ["string", "null"], "enum": ["a", null] }),
        ),
        (
            json!({ "allOf": [{ "type": "object" }], "nullable": true }),
            json!({ "anyOf": [{ "allOf": [{ "type": "object" }] }, { "type": "null" }] }),
        ),
        (json!({ "minimum": 1, "exclusiveMinimum": true }), json!({ "exclusiveMinimum": 1 })),
        (json!({ "maximum": 1, "exclusiveMaximum": false }), json!({ "maximum": 1 })),
        (json!({ "type": "integer", "example": 7 }), json!({ "type": "integer", "examples": [7] })),
        (json!({ "discriminator": {}, "xml": {}, "x-y": 1, "externalDocs": {} }), json!({})),
        // A property may have the name of a keyword.
        (
            json!({ "properties": { "nullable": { "type": "boolean" }, "example": {}, "$ref": {} } }),
            json!({ "properties": { "nullable": { "type": "boolean" }, "example": {}, "$ref": {} } }),
        ),
        // Data are not schemas.
        (json!({ "default": { "nullable": true } }), json!({ "default": { "nullable": true } })),
    ] {
        assert_eq!(lowered("3.0.3", schema.clone()), expected, "{schema}");
    }
}

#[test]
fn lower_leaves_out_keywords_with_a_value_that_json_schema_refuses() {
    let schema = json!({
        "type": ["string", "any"], "required": true, "minLength": -1, "enum": [], "allOf": [], "multipleOf": 0,
        "pattern": 3, "maximum": "9", "uniqueItems": "yes", "deprecated": true,
    });
    assert_eq!(lowered("3.1.0", schema), json!({ "type": ["string"], "deprecated": true }));
    assert_eq!(lowered("3.1.0", json!({ "type": "any" })), json!({}));
}

#[test]
fn lower_leaves_out_properties_that_only_responses_have() {
    let schema = json!({
        "properties": { "id": { "type": "integer", "readOnly": true }, "name": { "type": "string" } },
        "required": ["id", "name"],
    });
    let expected = json!({ "properties": { "name": { "type": "string" } }, "required": ["name"] });
    assert_eq!(lowered("3.1.0", schema), expected);
}

#[test]
fn lower_keeps_references_and_finish_has_each_reachable_schema_once() {
    let schemas = json!({
        "Node": { "type": "object", "properties": { "next": { "$ref": "#/components/schemas/Node" } } },
        "Other": { "type": "string" },
        "List": { "type": "array", "items": { "$ref": "#/components/schemas/Node" } },
    });
    let document = document("3.0.0", schemas);
    let mut lowering = Lowering::new(&document);
    let schema = json!({ "$ref": "#/components/schemas/List", "maxItems": 3, "description": "Some." });
    let lowered = lowering.lower(&schema, "#/at").unwrap();
    assert_eq!(lowered, json!({ "$ref": "#/$defs/List", "description": "Some." }));
    let defs = lowering.finish().unwrap();
    assert_eq!(defs.keys().collect::<Vec<_>>(), ["List", "Node"]);
    assert_eq!(defs["Node"]["properties"]["next"], json!({ "$ref": "#/$defs/Node" }));
}

#[test]
fn references_of_the_same_last_step_have_different_names() {
    let root = json!({ "openapi": "3.1.0", "a": { "Pet": { "type": "string" } }, "b": { "Pet": {} } });
    let document = Document::new(root, "pets", None, String::new()).unwrap();
    let mut lowering = Lowering::new(&document);
    let schema = json!({ "anyOf": [{ "$ref": "#/a/Pet" }, { "$ref": "#/b/Pet" }, { "$ref": "#/a/Pet" }] });
    let lowered = lowering.lower(&schema, "#/at").unwrap();
    let references: Vec<&Json> =
        lowered["anyOf"].as_array().unwrap().iter().map(|one| &one["$ref"]).collect();
    assert_eq!(references, ["#/$defs/Pet", "#/$defs/Pet_2", "#/$defs/Pet"]);
}

#[test]
fn lower_names_the_pointer_of_a_part_that_is_no_schema() {
    let document = document("3.1.0", json!({ "Bad": { "properties": { "a/b": 3 } } }));
    for (schema, pointer, text) in [
        (json!({ "items": "x" }), "#/at/items", "it is not a schema"),
        (json!({ "anyOf": {} }), "#/at/anyOf", "it is not a list of schemas"),
        (json!({ "$ref": "other.json" }), "#/at", "it refers to `other.json`, which is outside"),
        (json!({ "$ref": 3 }), "#/at", "its `$ref` is not a text"),
        (json!({ "$dynamicRef": "#node" }), "#/at", "it has a `$dynamicRef`"),
        (
            json!({ "$ref": "#/components/schemas/Bad" }),
            "#/components/schemas/Bad/properties/a~1b",
            "it is not",
        ),
    ] {
        let mut lowering = Lowering::new(&document);
        let problem = match lowering.lower(&schema, "#/at") {
            Ok(_) => lowering.finish().unwrap_err(),
            Err(problem) => problem,
        };
        assert_eq!(problem.pointer, pointer);
        assert!(problem.text.starts_with(text), "{problem:?}");
    }
}

#[test]
fn lower_refuses_a_schema_with_too_many_levels() {
    let deep = (0..500).fold(json!({}), |inner, _| json!({ "not": inner }));
    let document = document("3.1.0", json!({}));
    assert!(Lowering::new(&document).lower(&deep, "#/at").unwrap_err().text.contains("100 levels"));
}

#[test]
fn lower_of_values_that_are_too_large_is_refused_before_they_are_copied() {
    let long = "a".repeat(LARGEST_SCHEMA);
    let many: Vec<usize> = (0..=LARGEST_SCHEMA).collect();
    for schema in [
        json!({ "enum": many }),
        json!({ "const": long }),
        json!({ "default": { long.clone(): 1 } }),
        json!({ "pattern": long }),
        json!({ "properties": { format!("{long}b"): {} } }),
        // Each of them alone would fit.
        json!({ "anyOf": [{ "example": long[1..] }, { "title": "b", "required": ["c", "d"] }] }),
    ] {
        let document = document("3.1.0", json!({}));
        let refused = Lowering::new(&document).lower(&schema, "#/at").unwrap_err();
        assert_eq!(refused.text, "the schema of its arguments has more than 256 KiB");
    }
    assert_eq!(size(&json!({ "ab": [null, "cde", 4.5] }), 100), Some(1 + 2 + 1 + 1 + 4 + 1));
    assert_eq!((size(&json!(long), LARGEST_SCHEMA), size(&json!(many), LARGEST_SCHEMA)), (None, None));
}

#[test]
fn lower_of_many_names_takes_each_once() {
    let names: Vec<String> = (0..8_000).map(|number| format!("n{number}")).collect();
    let twice: Vec<&String> = names.iter().chain(&names).collect();
    let properties: Map<String, Json> =
        names.iter().map(|name| (name.clone(), json!({ "readOnly": name.ends_with('0') }))).collect();
    let schema = lowered("3.1.0", json!({ "properties": properties, "required": twice }));
    assert_eq!(schema["required"].as_array().unwrap().len(), 7_200);
    assert_eq!(schema["properties"].as_object().unwrap().len(), 7_200);
}
