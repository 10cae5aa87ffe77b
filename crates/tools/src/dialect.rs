//! Chooses the dialect of JSON Schema for compiling a tool's schema.
//!
//! A schema is validated against its dialect's meta-schema before it is compiled. The meta-schema of
//! 2020-12, the default dialect, has eight documents. Compiled they take half a megabyte for the life of
//! the process, and compiling them takes longer than the whole start of a short run. The meta-schema of
//! draft 7 is one document, and a plain schema, as most tools have, means the same in both dialects.

use archon_types::Json;
use jsonschema::{Draft, ValidationOptions};
use serde_json::Map;

/// The dialect of schemas that name no dialect, and of the schemas that `#[tool]` derives.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

const KINDS: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Returns the options for compiling `schema`.
pub(crate) fn options(schema: &Json) -> ValidationOptions<'static> {
    let options = jsonschema::options().should_validate_formats(false);
    if is_plain(schema) { options.with_draft(Draft::Draft7) } else { options }
}

/// Returns whether `schema` uses only known keywords in their usual form, so that it is valid and means the
/// same in draft 7 and in 2020-12. The result is `false` if that is not certain.
fn is_plain(schema: &Json) -> bool {
    match schema {
        Json::Bool(_) => true,
        // Draft 7 ignores other keywords beside a reference.
        Json::Object(keywords) if keywords.contains_key("$ref") => {
            keywords.iter().all(|(keyword, value)| match keyword.as_str() {
                "$ref" => value.as_str().is_some_and(|reference| reference.starts_with("#/$defs/")),
                "$defs" | "$schema" | "title" | "description" | "$comment" | "default" | "examples" => {
                    is_plain_keyword(keyword, value)
                }
                _ => false,
            })
        }
        Json::Object(keywords) => keywords.iter().all(|(keyword, value)| is_plain_keyword(keyword, value)),
        _ => false,
    }
}

fn is_plain_keyword(keyword: &str, value: &Json) -> bool {
    match keyword {
        "$schema" => value.as_str() == Some(DIALECT),
        "title" | "description" | "format" | "$comment" => value.is_string(),
        "default" | "const" => true,
        "examples" | "enum" => value.is_array(),
        "deprecated" | "readOnly" | "writeOnly" | "uniqueItems" => value.is_boolean(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.is_u64()
        }
        "type" => {
            is_kind(value)
                || is_set_of(value, is_kind) && value.as_array().is_some_and(|kinds| !kinds.is_empty())
        }
        "required" => is_set_of(value, Json::is_string),
        "items" | "additionalProperties" | "propertyNames" | "not" => is_plain(value),
        "properties" | "$defs" => value.as_object().is_some_and(all_plain),
        "anyOf" | "oneOf" | "allOf" => {
            value.as_array().is_some_and(|schemas| !schemas.is_empty() && schemas.iter().all(is_plain))
        }
        _ => false,
    }
}

fn all_plain(schemas: &Map<String, Json>) -> bool {
    schemas.values().all(is_plain)
}

fn is_kind(value: &Json) -> bool {
    value.as_str().is_some_and(|kind| KINDS.contains(&kind))
}

/// Returns whether `value` is an array of different items that satisfy `item`. Each item is compared with all
/// others, because such arrays are short.
fn is_set_of(value: &Json, item: fn(&Json) -> bool) -> bool {
    value.as_array().is_some_and(|items| {
        items.iter().enumerate().all(|(at, one)| item(one) && !items[..at].contains(one))
    })
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};
    use serde_json::json;

    use super::*;

    #[test]
    fn is_plain_for_derived_schemas() {
        #[derive(serde::Deserialize, schemars::JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Arguments {
            /// A path.
            path: String,
            lines: Option<u32>,
            deep: Vec<Inner>,
        }
        #[derive(serde::Deserialize, schemars::JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        enum Inner {
            One(i64),
            Two { name: String },
        }
        let schema = schemars::schema_for!(Arguments);
        assert!(is_plain(schema.as_value()), "{schema:?}");
    }

    #[test]
    fn is_plain_is_false_for_invalid_or_unknown_keywords() {
        for schema in [
            json!({"type": "strin"}),
            json!({"required": "name"}),
            json!({"required": ["a", "a"]}),
            json!({"minLength": -1}),
            json!({"anyOf": []}),
            json!({"properties": {"a": {"type": []}}}),
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMinimum": true}),
            json!({"patternProperties": {}}),
            json!([]),
        ] {
            assert!(!is_plain(&schema), "{schema}");
        }
    }

    fn documents() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Json::from),
            (-2..3i64).prop_map(Json::from),
            select(vec![1.0, 2.5]).prop_map(Json::from),
            select(vec!["string", "a", ""]).prop_map(Json::from),
            Just(Json::Null),
        ];
        leaf.prop_recursive(2, 8, 3, |inner| {
            let key = select(vec!["string", "object", "a"]);
            prop_oneof![
                vec(inner.clone(), 0..3).prop_map(Json::from),
                vec((key, inner), 0..3).prop_map(object),
            ]
        })
    }

    fn object(entries: Vec<(&'static str, Json)>) -> Json {
        entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>().into()
    }

    /// Keywords with values that mostly fit them.
    fn schemas() -> impl Strategy<Value = Json> {
        let number = || prop_oneof![(-2..3i64).prop_map(Json::from), Just(json!(1.5))];
        let names =
            || vec(select(vec!["string", "object", "a"]).prop_map(Json::from), 0..3).prop_map(Json::from);
        let entry = prop_oneof![
            4 => (Just("type"), select(&KINDS).prop_map(Json::from)),
            4 => (select(vec!["minimum", "exclusiveMaximum"]), number()),
            4 => (select(vec!["minLength", "maxItems", "maxProperties"]), (0..3u64).prop_map(Json::from)),
            4 => (select(vec!["enum", "default", "examples"]), vec(number(), 1..3).prop_map(Json::from)),
            4 => (select(vec!["title", "format"]), Just(json!("email"))),
            2 => (select(vec!["type", "required", "title"]), names()),
            1 => (select(vec!["minLength", "format", "uniqueItems"]), prop_oneof![number(), Just(json!(true))]),
        ];
        let leaf = prop_oneof![vec(entry.clone(), 0..3).prop_map(object), any::<bool>().prop_map(Json::from)];
        leaf.prop_recursive(3, 16, 3, move |inner| {
            let members = vec((select(vec!["string", "object", "a"]), inner.clone()), 0..3).prop_map(object);
            let deep = prop_oneof![
                (select(vec!["items", "additionalProperties", "propertyNames", "not"]), inner.clone()),
                (select(vec!["properties", "$defs"]), members),
                (select(vec!["anyOf", "oneOf", "allOf"]), vec(inner, 0..3).prop_map(Json::from)),
            ];
            vec(prop_oneof![deep, entry.clone()], 0..4).prop_map(object)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn a_plain_schema_is_well_formed_and_means_the_same_in_both_dialects(
            schema in schemas(),
            instances in vec(documents(), 1..8),
        ) {
            if !is_plain(&schema) {
                return Ok(());
            }
            prop_assert!(jsonschema::meta::is_valid(&schema), "{schema}");
            let (ours, theirs) = (options(&schema).build(&schema), jsonschema::validator_for(&schema));
            let (Ok(ours), Ok(theirs)) = (ours, theirs) else { panic!("{schema}") };
            for instance in instances {
                prop_assert_eq!(ours.is_valid(&instance), theirs.is_valid(&instance), "{} {}", schema, instance);
            }
        }
    }
}
