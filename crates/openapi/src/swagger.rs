//! Documents of version 2.0 (Swagger), turned into the form of version 3.0: servers, parameters and bodies. Schemas stay
//! at their place, because references may lead to any part of a document.

use archon_types::Json;
use serde_json::{Map, json};

/// The methods of a path, as documents write them.
pub(crate) const METHODS: &[&str] =
    &["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];

/// Keywords of a parameter that belong to its schema in version 3.0.
const SCHEMA: &[&str] = &[
    "type",
    "format",
    "items",
    "default",
    "enum",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
];
const FORM: &str = "application/x-www-form-urlencoded";

/// Converts a document of version 2.0 to version 3.0.
pub(crate) fn converted(mut root: Json) -> Json {
    let server = server(&root);
    if let Json::Object(paths) = root["paths"].take() {
        let convert = |(path, item): (String, Json)| (path, path_item(&root, item));
        let paths: Map<String, Json> = paths.into_iter().map(convert).collect();
        root["paths"] = Json::Object(paths);
    }
    root["servers"] = server;
    root["openapi"] = "3.0.0".into();
    root
}

/// Returns the list of servers, with one entry: the host, with `https` if the document names that scheme or none,
/// otherwise with its first scheme. Without a host, the entry is the path alone.
fn server(root: &Json) -> Json {
    let path = root["basePath"].as_str().unwrap_or("/");
    let Some(host) = root["host"].as_str() else { return json!([{ "url": path }]) };
    let schemes: Vec<&str> =
        root["schemes"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let scheme = if schemes.is_empty() || schemes.contains(&"https") { "https" } else { schemes[0] };
    json!([{ "url": format!("{scheme}://{host}{path}") }])
}

fn path_item(root: &Json, mut item: Json) -> Json {
    let shared = item.as_object_mut().and_then(|item| item.shift_remove("parameters")).unwrap_or_default();
    for method in METHODS {
        let Some(Json::Object(operation)) = item.get_mut(*method) else { continue };
        let own = operation.shift_remove("parameters").unwrap_or_default();
        let all = [&shared, &own].map(|list| list.as_array().cloned().unwrap_or_default()).concat();
        let consumes = operation.get("consumes").unwrap_or(&root["consumes"]);
        let media = consumes.as_array().into_iter().flatten().filter_map(Json::as_str).collect::<Vec<_>>();
        let (parameters, body) = split(root, all, &media);
        operation.insert("parameters".to_owned(), parameters.into());
        if let Some(body) = body {
            operation.insert("requestBody".to_owned(), body);
        }
    }
    item
}

/// Splits the parameters of version 2.0: returns the parameters of version 3.0, and the body that the other
/// parameters describe.
fn split(root: &Json, all: Vec<Json>, consumes: &[&str]) -> (Vec<Json>, Option<Json>) {
    let (mut parameters, mut body) = (Vec::new(), None);
    let (mut properties, mut required, mut has_file) = (Map::new(), Vec::new(), false);
    for parameter in all {
        let target =
            parameter["$ref"].as_str().and_then(|reference| root.pointer(reference.strip_prefix('#')?));
        let parameter = target.cloned().unwrap_or(parameter);
        let is_required = parameter["required"] == Json::Bool(true);
        match parameter["in"].as_str() {
            Some("body") => {
                let media = consumes.first().copied().unwrap_or("application/json");
                let content = json!({ media: { "schema": parameter["schema"] } });
                let text = &parameter["description"];
                body = Some(json!({ "content": content, "required": is_required, "description": text }));
            }
            Some("formData") => {
                let name = parameter["name"].as_str().unwrap_or_default().to_owned();
                has_file |= parameter["type"] == "file";
                if is_required {
                    required.push(name.clone());
                }
                properties.insert(name, field(&parameter));
            }
            _ => parameters.push(with_schema(parameter)),
        }
    }
    if !properties.is_empty() {
        let media = if has_file || !consumes.is_empty() && !consumes.contains(&FORM) {
            "multipart/form-data"
        } else {
            FORM
        };
        let is_required = !required.is_empty();
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        body = Some(json!({ "content": { media: { "schema": schema } }, "required": is_required }));
    }
    (parameters, body)
}

/// Returns the schema of a parameter, with its description.
fn field(parameter: &Json) -> Json {
    let mut schema = schema(parameter);
    if let Some(text) = parameter["description"].as_str() {
        schema["description"] = text.into();
    }
    schema
}

fn schema(parameter: &Json) -> Json {
    let fields = SCHEMA.iter().filter_map(|key| Some(((*key).to_owned(), parameter.get(*key)?.clone())));
    Json::Object(fields.collect())
}

/// Converts a parameter to version 3.0. A `$ref` without a target is kept, and causes a problem when it is read.
fn with_schema(mut parameter: Json) -> Json {
    let schema = schema(&parameter);
    let is_in_query = parameter["in"] == "query";
    let style = match parameter["collectionFormat"].as_str() {
        Some("multi") => Some(("form", true)),
        Some("ssv") => Some(("spaceDelimited", false)),
        Some("pipes") => Some(("pipeDelimited", false)),
        Some("tsv") => Some(("tsv", false)),
        _ if is_in_query => Some(("form", false)),
        _ => None,
    };
    if let Json::Object(fields) = &mut parameter {
        fields.insert("schema".to_owned(), schema);
        if let Some((style, explode)) = style {
            fields.insert("style".to_owned(), style.into());
            fields.insert("explode".to_owned(), explode.into());
        }
    }
    parameter
}
