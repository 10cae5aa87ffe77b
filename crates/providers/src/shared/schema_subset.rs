//! Reduces JSON Schemas for services that support only a part of JSON Schema. Unsupported keywords are
//! written into the description, where the model reads them.

use archon_types::Json;
use serde_json::{Map, json};

/// The treatment of a keyword in a JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The keyword is kept unchanged.
    Keep,
    /// The keyword is removed, since neither the service nor the model needs it.
    Drop,
    /// The keyword is written into the description for the model.
    Tell,
    /// The keyword's value is a schema, which is reduced.
    Schema,
    /// The keyword's value is a list of schemas; the reduced schemas are kept under this keyword.
    List(&'static str),
    /// The keyword's value is an object of schemas by name, which are reduced.
    Named,
}

/// Returns the schema with only the keywords that `fate` keeps. The callback `finish` can change every
/// object schema; its arguments are the schema before and after the reduction.
pub(crate) fn reduce(
    schema: &Json,
    fate: fn(&str, &Json) -> Fate,
    finish: fn(&Map<String, Json>, &mut Map<String, Json>),
) -> Json {
    let Json::Object(schema) = schema else {
        // `true` or `false`: a schema that few services can express becomes one that allows anything.
        return json!({});
    };
    let reduce = |schema: &Json| reduce(schema, fate, finish);
    let mut reduced = Map::new();
    let mut told = Vec::new();
    for (key, value) in schema {
        match fate(key, value) {
            Fate::Keep => drop(reduced.insert(key.clone(), value.clone())),
            Fate::Drop => {}
            Fate::Tell => told.push(format!("{key} {value}")),
            Fate::Schema => drop(reduced.insert(key.clone(), reduce(value))),
            Fate::List(name) => {
                let all = value.as_array().into_iter().flatten().map(reduce).collect();
                reduced.insert(name.to_owned(), Json::Array(all));
            }
            Fate::Named => {
                let all = value.as_object().into_iter().flatten();
                let all = all.map(|(name, schema)| (name.clone(), reduce(schema))).collect();
                reduced.insert(key.clone(), Json::Object(all));
            }
        }
    }
    if !told.is_empty() {
        let said = reduced.get("description").and_then(Json::as_str).unwrap_or_default();
        let separator = if said.is_empty() { "" } else { "\n" };
        let description = format!("{said}{separator}Must also hold: {}.", told.join(", "));
        reduced.insert("description".to_owned(), Json::String(description));
    }
    finish(schema, &mut reduced);
    Json::Object(reduced)
}
