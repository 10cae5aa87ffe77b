//! Converts ("lowers") OpenAPI schemas to JSON Schema 2020-12. A `$ref` stays a `$ref`: its target is put under
//! `$defs`.

use std::collections::{BTreeMap, BTreeSet};

use archon_types::Json;
use serde_json::{Map, json};

use crate::{
    document::{Document, below, local},
    error::Problem,
    names::Names,
    text::{has_tags, plain},
};

/// Maximum number of characters of a text in a schema.
const TEXT: usize = 1_000;
/// Maximum depth of nested schemas.
const DEEPEST: usize = 100;
/// Maximum number of schemas of one tool. More of them would exceed [`LARGEST_SCHEMA`], and lowering them would take
/// long.
const MOST: usize = LARGEST_SCHEMA / 2;
/// Maximum size of the schema of a tool's arguments, in bytes of JSON.
pub(crate) const LARGEST_SCHEMA: usize = 256 << 10;

/// Keywords whose value is a schema.
const SCHEMAS: &[&str] = &[
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
const LISTS: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is an object of schemas.
const MAPS: &[&str] = &["dependentSchemas", "patternProperties", "properties"];
/// Keywords whose value is copied as it is.
const COPIED: &[&str] = &["const", "default", "enum", "example", "examples", "required", "type"];
const TEXTS: &[&str] = &["contentEncoding", "contentMediaType", "format", "pattern"];
const NUMBERS: &[&str] = &["exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"];
const COUNTS: &[&str] = &[
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
];
const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

/// Lowers the schemas of one tool, and the schemas that they refer to.
pub(crate) struct Lowering<'d> {
    document: &'d Document,
    /// The name under `$defs` of each schema that was referred to, by the pointer to the schema in the document.
    references: BTreeMap<String, String>,
    names: Names,
    /// Pointers to the schemas that were referred to and are not lowered yet.
    open: Vec<String>,
    /// The number of schemas so far.
    count: usize,
    /// The number of bytes of values and names that may still be copied.
    room: usize,
}

impl<'d> Lowering<'d> {
    pub(crate) fn new(document: &'d Document) -> Self {
        Self {
            document,
            references: BTreeMap::new(),
            names: Names::default(),
            open: Vec::new(),
            count: 0,
            room: LARGEST_SCHEMA,
        }
    }

    /// Lowers a schema. Schemas that it refers to are lowered by [`finish`](Self::finish).
    ///
    /// # Errors
    /// A part is not a schema, or refers to something outside of the document.
    pub(crate) fn lower(&mut self, schema: &Json, at: &str) -> Result<Json, Problem> {
        self.schema(schema, at, 0)
    }

    /// Lowers all schemas that were referred to, directly or indirectly, and returns them as the `$defs`. Each schema
    /// is lowered once, so circular references are possible.
    pub(crate) fn finish(mut self) -> Result<Map<String, Json>, Problem> {
        let mut defs = Map::new();
        while let Some(pointer) = self.open.pop() {
            let target = self.document.target(&pointer, &pointer)?;
            let lowered = self.schema(target, &pointer, 0)?;
            if let Some(name) = self.references.get(&pointer) {
                defs.insert(name.clone(), lowered);
            }
        }
        Ok(defs)
    }

    fn schema(&mut self, schema: &Json, at: &str, depth: usize) -> Result<Json, Problem> {
        if depth > DEEPEST {
            return Err(Problem::new(at, format!("its schema has more than {DEEPEST} levels")));
        }
        self.count += 1;
        if self.count > MOST {
            return Err(Problem::new(at, format!("the schema of its arguments has more than {MOST} parts")));
        }
        let object = match schema {
            Json::Bool(value) => return Ok(Json::Bool(*value)),
            Json::Object(object) => object,
            _ => return Err(Problem::new(at, "it is not a schema")),
        };
        let mut lowered = Map::new();
        if let Some(reference) = object.get("$ref") {
            let Some(reference) = reference.as_str() else {
                return Err(Problem::new(at, "its `$ref` is not a text"));
            };
            lowered.insert("$ref".to_owned(), self.reference(reference, at)?.into());
            if self.document.is_3_0 {
                // Version 3.0 ignores the other keywords; two of them cannot do harm.
                copy_text(object, "description", &mut lowered);
                return Ok(with_null(object, lowered));
            }
        }
        if object.contains_key("$dynamicRef") {
            return Err(Problem::new(at, "it has a `$dynamicRef`, which is not supported"));
        }
        for (key, value) in object {
            self.keyword(key, value, &mut lowered, at, depth)?;
        }
        drop_read_only(object, &mut lowered);
        if self.document.is_3_0 {
            lower_exclusive(object, &mut lowered);
            return Ok(with_null(object, lowered));
        }
        Ok(Json::Object(lowered))
    }

    /// Takes the size of a value or of a name from the room. Values are measured before they are copied: a document may
    /// have one of many megabytes, and refer to it from each of its operations.
    ///
    /// # Errors
    /// There is less room.
    fn spend(&mut self, size: Option<usize>, at: &str) -> Result<(), Problem> {
        let rest = size.and_then(|size| self.room.checked_sub(size));
        self.room = rest.ok_or_else(|| {
            let most = LARGEST_SCHEMA >> 10;
            Problem::new(at, format!("the schema of its arguments has more than {most} KiB"))
        })?;
        Ok(())
    }

    /// Adds a keyword to a lowered schema. The keyword is left out if it has no meaning for arguments, or if JSON
    /// Schema does not allow its value.
    fn keyword(
        &mut self,
        key: &str,
        value: &Json,
        lowered: &mut Map<String, Json>,
        at: &str,
        depth: usize,
    ) -> Result<(), Problem> {
        let at = || below(at, key);
        if COPIED.contains(&key) || TEXTS.contains(&key) {
            self.spend(size(value, self.room), &at())?;
        }
        let kept = match key {
            "title" | "description" => value.as_str().map(|text| plain(text, TEXT).into()),
            "type" => types(value),
            "required" => value.as_array().map(|names| distinct(names.iter())),
            "enum" => value.as_array().filter(|values| !values.is_empty()).map(|_| value.clone()),
            "const" => Some(value.clone()),
            // These change no call, so they are left out.
            "default" | "example" | "examples" if has_tags(&value.to_string()) => None,
            "default" => Some(value.clone()),
            "examples" => value.as_array().map(|_| value.clone()),
            "example" if !value.is_null() => {
                lowered.entry("examples").or_insert_with(|| json!([value]));
                None
            }
            "deprecated" | "uniqueItems" => value.as_bool().map(Json::Bool),
            "multipleOf" => value.as_f64().filter(|number| *number > 0.0).map(|_| value.clone()),
            "items" if value.is_array() => return self.list("prefixItems", value, lowered, &at(), depth),
            _ if SCHEMAS.contains(&key) => Some(self.schema(value, &at(), depth + 1)?),
            _ if LISTS.contains(&key) => return self.list(key, value, lowered, &at(), depth),
            _ if MAPS.contains(&key) => Some(self.map(value, &at(), depth)?),
            _ if TEXTS.contains(&key) => value.as_str().map(|_| value.clone()),
            _ if NUMBERS.contains(&key) => value.as_number().map(|_| value.clone()),
            _ if COUNTS.contains(&key) => value.as_u64().map(Json::from),
            _ => None,
        };
        if let Some(kept) = kept {
            lowered.insert(key.to_owned(), kept);
        }
        Ok(())
    }

    fn list(
        &mut self,
        key: &str,
        value: &Json,
        lowered: &mut Map<String, Json>,
        at: &str,
        depth: usize,
    ) -> Result<(), Problem> {
        let Some(schemas) = value.as_array() else {
            return Err(Problem::new(at, "it is not a list of schemas"));
        };
        let mut list = Vec::with_capacity(schemas.len());
        for (index, schema) in schemas.iter().enumerate() {
            list.push(self.schema(schema, &below(at, &index.to_string()), depth + 1)?);
        }
        if !list.is_empty() {
            lowered.insert(key.to_owned(), list.into());
        }
        Ok(())
    }

    fn map(&mut self, value: &Json, at: &str, depth: usize) -> Result<Json, Problem> {
        let Some(schemas) = value.as_object() else {
            return Err(Problem::new(at, "it is not an object of schemas"));
        };
        let mut map = Map::new();
        for (name, schema) in schemas {
            self.spend(Some(name.len()), at)?;
            map.insert(name.clone(), self.schema(schema, &below(at, name), depth + 1)?);
        }
        Ok(Json::Object(map))
    }

    /// Returns the `$ref` for the schema of the tool, `#/$defs/NAME`. The target is lowered later, and only once.
    fn reference(&mut self, reference: &str, at: &str) -> Result<String, Problem> {
        let pointer = local(reference, at)?;
        self.document.target(&pointer, at)?;
        if let Some(name) = self.references.get(&pointer) {
            return Ok(format!("#/$defs/{name}"));
        }
        let last = pointer.rsplit('/').next().unwrap_or_default().replace("~1", "_").replace("~0", "_");
        let name = self.names.argument(&last);
        self.references.insert(pointer.clone(), name.clone());
        self.open.push(pointer);
        Ok(format!("#/$defs/{name}"))
    }
}

/// Returns the least size of a value as JSON, in bytes; `None` if it is more than `most`. Nested values are measured
/// with a list, because a document may nest them deeply.
fn size(value: &Json, most: usize) -> Option<usize> {
    let (mut size, mut open) = (0_usize, vec![value]);
    while let Some(value) = open.pop() {
        size += 1;
        match value {
            Json::String(text) => size += text.len(),
            Json::Array(items) if items.len() <= most => open.extend(items),
            Json::Object(fields) if fields.len() <= most => {
                size += fields.keys().map(String::len).sum::<usize>();
                open.extend(fields.values());
            }
            Json::Array(_) | Json::Object(_) => return None,
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
        if size > most {
            return None;
        }
    }
    Some(size)
}

fn copy_text(from: &Map<String, Json>, key: &str, to: &mut Map<String, Json>) {
    if let Some(text) = from.get(key).and_then(Json::as_str) {
        to.insert(key.to_owned(), plain(text, TEXT).into());
    }
}

/// Returns the value of the keyword `type` with only the types that JSON Schema knows; `None` if none of them is
/// left.
fn types(value: &Json) -> Option<Json> {
    let known = |name: &&str| TYPES.contains(name);
    match value {
        Json::String(name) if name == "file" => Some("string".into()),
        Json::String(name) => Some(name.as_str()).filter(known).map(Json::from),
        Json::Array(names) => {
            let names = names.iter().filter(|name| name.as_str().is_some_and(|name| known(&name)));
            Some(distinct(names)).filter(|names| names.as_array().is_some_and(|names| !names.is_empty()))
        }
        _ => None,
    }
}

/// Returns the texts among the values, each of them once.
fn distinct<'v>(values: impl Iterator<Item = &'v Json>) -> Json {
    let mut known = BTreeSet::new();
    values.filter_map(Json::as_str).filter(|text| known.insert(*text)).collect()
}

/// Removes the properties with `readOnly`, which only responses have.
fn drop_read_only(schema: &Map<String, Json>, lowered: &mut Map<String, Json>) {
    let Some(properties) = schema.get("properties").and_then(Json::as_object) else { return };
    let is_read_only = |name: &str| properties.get(name).is_some_and(|schema| schema["readOnly"] == true);
    if let Some(Json::Object(properties)) = lowered.get_mut("properties") {
        properties.retain(|name, _| !is_read_only(name));
    }
    if let Some(Json::Array(required)) = lowered.get_mut("required") {
        required.retain(|name| !name.as_str().is_some_and(is_read_only));
    }
}

/// Turns the boolean `exclusiveMinimum` of version 3.0, which applies to `minimum`, into a limit of its own.
fn lower_exclusive(schema: &Map<String, Json>, lowered: &mut Map<String, Json>) {
    for (exclusive, limit) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if schema.get(exclusive) == Some(&Json::Bool(true))
            && let Some(limit) = lowered.shift_remove(limit)
        {
            lowered.insert(exclusive.to_owned(), limit);
        }
    }
}

/// Adds null to the allowed values if a schema of version 3.0 has `nullable: true`.
fn with_null(schema: &Map<String, Json>, mut lowered: Map<String, Json>) -> Json {
    if schema.get("nullable") != Some(&Json::Bool(true)) {
        return Json::Object(lowered);
    }
    let Some(Json::String(kind)) = lowered.get("type").cloned() else {
        let is_any =
            !["$ref", "allOf", "anyOf", "oneOf", "enum", "not"].iter().any(|key| lowered.contains_key(*key));
        return if is_any {
            Json::Object(lowered)
        } else {
            json!({ "anyOf": [lowered, { "type": "null" }] })
        };
    };
    if ["allOf", "anyOf", "oneOf", "not"].iter().any(|key| lowered.contains_key(*key)) {
        return json!({ "anyOf": [lowered, { "type": "null" }] });
    }
    if kind != "null" {
        lowered.insert("type".to_owned(), json!([kind, "null"]));
    }
    if let Some(Json::Array(values)) = lowered.get_mut("enum")
        && !values.contains(&Json::Null)
    {
        values.push(Json::Null);
    }
    Json::Object(lowered)
}

#[cfg(test)]
mod tests;
