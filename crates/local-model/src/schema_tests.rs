//! Tests of the grammars of schemas: everything that they accept is valid, and they accept valid documents.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::json_text::json_text;
use crate::matcher::Matcher;
use crate::schema::{SchemaLimits, schema_grammar};

fn matcher(schema: &Value) -> Matcher {
    let limits = SchemaLimits { string: 8, items: 3 };
    Matcher::new(Arc::new(schema_grammar(schema, limits)))
}

fn accepts(schema: &Value, text: &str) -> bool {
    let mut matcher = matcher(schema);
    matcher.advance(text.as_bytes()) && matcher.may_end()
}

#[track_caller]
fn check(schema: Value, good: &[&str], bad: &[&str]) {
    for text in good {
        assert!(accepts(&schema, text), "{schema} must accept {text}");
    }
    for text in bad {
        assert!(!accepts(&schema, text), "{schema} must refuse {text}");
    }
}

#[test]
fn properties_come_in_order_and_optional_ones_may_be_left_out() {
    check(
        json!({
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}, "c": {"type": "null"}},
            "required": ["b"],
        }),
        &[
            r#"{"b": true}"#,
            r#"{"a": 1, "b": false}"#,
            r#"{"b": true, "c": null}"#,
            r#"{"a": 1, "b": true, "c": null}"#,
        ],
        &[
            "{}",
            r#"{"a": 1}"#,
            r#"{"b": true, "a": 1}"#,
            r#"{"b": true, "d": 1}"#,
            r#"{"b": true,}"#,
            r#"{, "b": true}"#,
        ],
    );
    check(
        json!({"type": "object", "properties": {"a": {"type": "null"}}}),
        &["{}", r#"{"a": null}"#],
        &["{,}"],
    );
}

#[test]
fn strings_are_well_formed_and_end() {
    check(
        json!({"type": "string", "minLength": 1, "maxLength": 3}),
        &[r#""a""#, r#""äöü""#, r#""\"\\\n""#, r#""\u001f""#, "\"\u{10ffff}\""],
        &[r#""""#, r#""abcd""#, "\"a", "\"\n\"", r#""\x""#],
    );
    let mut half = matcher(&json!({"type": "string"}));
    assert!(half.advance(b"\"\xc3") && !half.accepts(b"\"") && half.accepts(b"\xa4\""));
    assert!(!half.accepts(b"\xff"));
}

#[test]
fn numbers_keep_to_their_sign_and_to_small_ranges() {
    check(json!({"type": "integer"}), &["0", "-7", "120"], &["01", "1.5", "+1", "-"]);
    check(json!({"type": "integer", "minimum": 1}), &["1", "99"], &["0", "-1"]);
    check(json!({"type": "integer", "minimum": -1, "maximum": 2}), &["-1", "0", "2"], &["3", "-2"]);
    check(json!({"type": "number", "minimum": 0}), &["0.5", "1e9", "12.25E-3"], &["-1", "1.", ".5"]);
}

#[test]
fn constants_choices_and_lists() {
    check(json!({"enum": ["a", 1, null]}), &["\"a\"", "1", "null"], &["\"b\"", "2"]);
    check(json!({"const": {"k": [1, 2]}}), &[r#"{"k": [1, 2]}"#], &[r#"{"k": [1]}"#]);
    check(json!({"type": ["integer", "null"]}), &["1", "null"], &["true"]);
    check(
        json!({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}),
        &["[1]", "[1, 2]"],
        &["[]", "[1, 2, 3]", "[1 2]"],
    );
    check(json!({"oneOf": [{"type": "boolean"}, {"const": 3}]}), &["true", "3"], &["4"]);
}

#[test]
fn references_may_lead_back() {
    let tree = json!({
        "$ref": "#/$defs/node",
        "$defs": {"node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/node"}},
            "required": ["name"],
        }},
    });
    check(tree, &[r#"{"name": "a", "next": {"name": "b"}}"#], &[r#"{"name": "a", "next": {}}"#]);
    check(json!({"$ref": "#"}), &[], &["{}", "1"]);
}

#[test]
fn required_alternatives_beside_properties_are_held() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    });
    check(schema, &[r#"{"a": 1}"#, r#"{"b": 1}"#, r#"{"a": 1, "b": 2}"#], &["{}"]);
}

#[test]
fn grammar_of_an_empty_schema_accepts_any_document() {
    for schema in [json!({}), json!(true), json!({"type": "object"})] {
        check(schema, &[r#"{"a": [1, {"b": "c"}], "d": null}"#], &["{", "nul"]);
    }
    check(
        json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        &[r#"{"x": 1}"#],
        &[r#"{"x": "y"}"#],
    );
}

/// A schema together with a document that is valid against it.
fn schema_and_document() -> impl Strategy<Value = (Value, Value)> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(|b| (json!({"type": "boolean"}), json!(b))),
        any::<i64>().prop_map(|n| (json!({"type": "integer"}), json!(n))),
        (-1e9..1e9).prop_map(|n: f64| (json!({"type": "number"}), json!(n))),
        ".{0,8}".prop_map(|s| (json!({"type": "string", "maxLength": 8}), json!(s))),
        (0_i64..50, 0_i64..50).prop_map(|(low, span)| {
            (json!({"type": "integer", "minimum": low, "maximum": low + span}), json!(low + span / 2))
        }),
        proptest::collection::vec("[a-z]{1,4}", 1..4)
            .prop_map(|words| (json!({"enum": words}), json!(words[0]))),
        Just((json!({"type": ["null", "string"], "maxLength": 4}), Value::Null)),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let member = ("[a-zäß\"]{1,5}", inner.clone(), any::<bool>(), any::<bool>());
        prop_oneof![
            proptest::collection::vec(member, 0..4).prop_map(object),
            (inner.clone(), 1_usize..4).prop_map(|((schema, document), n)| {
                (json!({"type": "array", "items": schema, "maxItems": 3}), json!(vec![document; n]))
            }),
            (inner.clone(), inner).prop_map(|((a, document), (b, _))| (json!({"anyOf": [b, a]}), document)),
        ]
    })
}

/// The members: name, schema and value, required or not, present or not.
fn object(members: Vec<(String, (Value, Value), bool, bool)>) -> (Value, Value) {
    let (mut properties, mut required, mut document) = (Map::new(), Vec::new(), Map::new());
    for (name, (schema, value), is_required, is_present) in members {
        if properties.contains_key(&name) {
            continue;
        }
        properties.insert(name.clone(), schema);
        if is_required {
            required.push(name.clone());
        }
        if is_required || is_present {
            document.insert(name, value);
        }
    }
    let schema = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false
    });
    (schema, Value::Object(document))
}

/// Writes a random document: any byte that the grammar allows.
fn scribble(schema: &Value, seed: u64) -> Option<String> {
    let mut matcher = matcher(schema);
    let mut state = seed;
    let mut text = Vec::new();
    while !matcher.must_end() && text.len() < 4_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let allowed: Vec<u8> = (0..=u8::MAX).filter(|byte| matcher.accepts(&[*byte])).collect();
        if allowed.is_empty() || (matcher.may_end() && state >> 62 == 0) {
            break;
        }
        let byte = allowed[(state >> 33) as usize % allowed.len()];
        assert!(matcher.advance(&[byte]));
        text.push(byte);
    }
    matcher.may_end().then(|| String::from_utf8(text).expect("the grammar allows UTF-8 only"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_valid_document_is_accepted((schema, document) in schema_and_document()) {
        let text = json_text(&document);
        prop_assert!(accepts(&schema, &text), "{} refuses {}", schema, text);
    }

    #[test]
    fn grammar_accepted_documents_are_valid((schema, _) in schema_and_document(), seed: u64) {
        if let Some(text) = scribble(&schema, seed) {
            let document: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
            prop_assert!(jsonschema::is_valid(&schema, &document), "{} does not hold for {}", schema, text);
        }
    }
}
