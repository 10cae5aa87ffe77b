//! The arguments of a tool while they are collected from parameters and a body.

use archon_types::Json;
use serde_json::{Map, json};

use crate::{
    error::Problem,
    names::Names,
    schema::{LARGEST_SCHEMA, Lowering},
    text::{has_tags, one_line, plain},
};

/// The arguments of an operation while they are collected.
pub(crate) struct Arguments<'d> {
    pub(crate) lowering: Lowering<'d>,
    pub(crate) names: Names,
    pub(crate) properties: Map<String, Json>,
    pub(crate) required: Vec<String>,
}

impl Arguments<'_> {
    /// Adds an argument: `schema` is its lowered schema, and `text` its description. Returns the name of the
    /// argument.
    pub(crate) fn add(&mut self, name: &str, mut schema: Json, text: &Json, is_required: bool) -> String {
        let key = self.names.argument(name);
        if let Some(text) = text.as_str() {
            if schema == Json::Bool(true) {
                schema = json!({});
            }
            if let Json::Object(fields) = &mut schema {
                fields.insert("description".to_owned(), plain(text, 1_000).into());
            }
        }
        self.properties.insert(key.clone(), schema);
        if is_required {
            self.required.push(key.clone());
        }
        key
    }

    /// Returns the schema of all arguments.
    ///
    /// # Errors
    /// The schema is too large, has invisible characters, or is not a JSON Schema.
    pub(crate) fn schema(self, at: &str) -> Result<Json, Problem> {
        let mut schema =
            json!({ "type": "object", "properties": self.properties, "additionalProperties": false });
        if !self.required.is_empty() {
            schema["required"] = self.required.into();
        }
        let defs = self.lowering.finish()?;
        if !defs.is_empty() {
            schema["$defs"] = Json::Object(defs);
        }
        let text = schema.to_string();
        if text.len() > LARGEST_SCHEMA {
            let most = LARGEST_SCHEMA >> 10;
            return Err(Problem::new(
                at,
                format!("the schema of its arguments has {} KiB, of at most {most}", text.len() >> 10),
            ));
        }
        // Descriptions have no invisible characters any more. Elsewhere they are not removed, because values and names
        // must arrive unchanged.
        if has_tags(&text) {
            let problem =
                "the schema of its arguments has invisible characters, which can hide words from a person";
            return Err(Problem::new(at, problem));
        }
        let checked = jsonschema::options().should_validate_formats(false).build(&schema);
        match checked {
            Ok(_) => Ok(schema),
            Err(error) => {
                let why = one_line(&error.to_string(), 200);
                Err(Problem::new(at, format!("the schema of its arguments is not a JSON Schema: {why}")))
            }
        }
    }
}

/// Returns whether a media type is JSON.
pub(crate) fn is_json(media: &str) -> bool {
    let kind = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json") || kind == "*/*" || kind == "text/json"
}
