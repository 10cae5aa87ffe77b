//! Makes JSON Schemas that suit models: a single object, no references, no superfluous words.

use archon_types::Json;
use schemars::{JsonSchema, generate::SchemaSettings};

/// Returns the schema of `T` as a tool's parameters.
///
/// Inner types are inlined, because several providers and most small models cannot follow a `$ref`; only
/// recursive types keep one. Number formats such as `int64`, which do not help a model, and the `$schema`
/// line are removed.
///
/// ```
/// use archon_tools::schemars::{self, JsonSchema};
///
/// #[derive(JsonSchema)]
/// struct Lookup {
///     /// The word to look up.
///     word: String,
///     limit: Option<u8>,
/// }
///
/// assert_eq!(
///     archon_tools::schema_of::<Lookup>(),
///     serde_json::json!({
///         "type": "object",
///         "properties": {
///             "word": { "description": "The word to look up.", "type": "string" },
///             "limit": { "type": ["integer", "null"], "minimum": 0, "maximum": 255 },
///         },
///         "required": ["word"],
///     })
/// );
/// ```
pub fn schema_of<T: JsonSchema>() -> Json {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Json::Object(root) = &mut schema {
        root.remove("title");
        // The model reads the tool's description, not that of a private struct.
        root.remove("description");
        root.entry("properties").or_insert_with(|| Json::Object(serde_json::Map::new()));
    }
    drop_number_formats(&mut schema);
    schema
}

fn drop_number_formats(schema: &mut Json) {
    match schema {
        Json::Object(object) => {
            // A property may be called `format` too; only the keyword has a string as its value.
            if matches!(object.get("format"), Some(Json::String(format)) if is_number_format(format)) {
                object.remove("format");
            }
            object.values_mut().for_each(drop_number_formats);
        }
        Json::Array(items) => items.iter_mut().for_each(drop_number_formats),
        _ => {}
    }
}

fn is_number_format(format: &str) -> bool {
    ["int", "uint", "float", "double"]
        .iter()
        .any(|kind| format.strip_prefix(kind).is_some_and(|width| width.chars().all(|c| c.is_ascii_digit())))
}
