//! JSON Schemas for services that know a part of JSON Schema only. What a service does not know is
//! written into the description, where the model reads it.

use archon_types::Json;
use serde_json::{Map, json};

/// What becomes of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It stays as it is.
    Keep,
    /// It says nothing that the service or the model needs.
    Drop,
    /// The model is told.
    Tell,
    /// Its value is a schema.
    Schema,
    /// Its value is a list of schemas, kept under this keyword.
    List(&'static str),
    /// Its value holds schemas by name.
    Named,
}

/// The schema with only what `fate` keeps. `finish` sees every object schema as it was and as it is now.
pub(crate) fn reduce(
    schema: &Json,
    fate: fn(&str, &Json) -> Fate,
    finish: fn(&Map<String, Json>, &mut Map<String, Json>),
) -> Json {
    let Json::Object(schema) = schema else {
        // `true` and `false`: anything, which few services can say.
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
