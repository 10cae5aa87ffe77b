//! The body of a request: JSON, a form, or a text in any other format.

use std::collections::BTreeMap;

use archon_types::Json;
use serde_json::json;

use crate::{
    OpenApiConfig,
    arguments::{Arguments, is_json},
    document::{Document, below},
    error::Problem,
    style::{Escape, Style, in_query},
    text::one_line,
};

/// The name of the argument for a body, and the other name, for an operation with a parameter called `body`.
const KEYS: [&str; 2] = ["body", "_request_body"];
const FORM: &str = "application/x-www-form-urlencoded";

/// The body of an operation.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) from: BodyFrom,
    pub(crate) is_required: bool,
    pub(crate) media: Media,
}

/// The arguments that a body is made of.
#[derive(Debug)]
pub(crate) enum BodyFrom {
    /// The argument with this name is the whole body.
    Argument(String),
    /// The arguments with these names are the fields of the body.
    Fields(Vec<String>),
}

/// The format of a body. The text in a variant is the media type.
#[derive(Debug)]
pub(crate) enum Media {
    Json(String),
    /// A form, with the style and `explode` of each field that declares one of them.
    Form(BTreeMap<String, (Style, bool)>),
    Text(String),
}

/// Reads the description of an operation's body, and adds the arguments for it. Returns `None` if the operation has
/// no body.
///
/// # Errors
/// The media type of the body is not supported, or its schema cannot be used.
pub(crate) fn read(
    document: &Document,
    config: &OpenApiConfig,
    operation: &Json,
    at: &str,
    arguments: &mut Arguments<'_>,
) -> Result<Option<Body>, Problem> {
    let Some(body) = operation.get("requestBody").filter(|body| !body.is_null()) else { return Ok(None) };
    let (body, at) = document.resolve(body, &below(at, "requestBody"))?;
    let at = below(&at, "content");
    let Some(content) = body["content"].as_object().filter(|content| !content.is_empty()) else {
        return Ok(None);
    };
    let find = |fits: fn(&str) -> bool| content.iter().find(|(media, _)| fits(media));
    let found =
        find(is_json).or_else(|| find(is_form)).or_else(|| find(|media| !media.starts_with("multipart/")));
    let Some((name, media)) = found else {
        let names: Vec<&str> = content.keys().map(String::as_str).collect();
        let names = one_line(&names.join(", "), 100);
        return Err(Problem::new(at, format!("its body is {names}; which is not supported")));
    };
    let at = below(&at, name);
    let (schema, at) = (&media["schema"], below(&at, "schema"));
    // If the fields become arguments, the target of a `$ref` is needed now.
    let is_reference =
        schema.as_object().is_some_and(|fields| fields.len() == 1 && fields.contains_key("$ref"));
    let (schema, at) = match config.hoist_body && is_reference {
        true => document.resolve(schema, &at)?,
        false => (schema, at),
    };
    let schema = match schema {
        // The model itself writes a body of another media type.
        _ if !is_json(name) && !is_form(name) => json!({ "type": "string" }),
        Json::Null => Json::Bool(true),
        schema => arguments.lowering.lower(schema, &at)?,
    };
    let is_required = body["required"] == Json::Bool(true);
    let kind = match () {
        () if is_json(name) => {
            Media::Json(if name.contains('*') { "application/json".into() } else { name.clone() })
        }
        () if is_form(name) => Media::Form(encodings(media)),
        () => Media::Text(name.clone()),
    };
    let fields = match config.hoist_body && !matches!(kind, Media::Text(_)) {
        true => hoist(&schema, is_required, arguments),
        false => None,
    };
    let from = fields.map(BodyFrom::Fields).unwrap_or_else(|| {
        let free = KEYS.iter().find(|key| arguments.names.is_free(key));
        let usual = format!("The body of the request, as {}.", one_line(name, 100));
        let text = body["description"].as_str().unwrap_or(&usual).into();
        BodyFrom::Argument(arguments.add(free.unwrap_or(&KEYS[1]), schema, &text, is_required))
    });
    Ok(Some(Body { from, is_required, media: kind }))
}

/// Adds an argument for each field of a body, and returns the names. Adds nothing and returns `None` if the body is
/// not one plain object, if a field has the name of a parameter, or if an optional body has required fields.
fn hoist(schema: &Json, is_required: bool, arguments: &mut Arguments<'_>) -> Option<Vec<String>> {
    const PLAIN: &[&str] =
        &["type", "properties", "required", "title", "description", "examples", "deprecated", "default"];
    let is_plain = |(key, value): (&String, &Json)| {
        PLAIN.contains(&key.as_str()) || key == "additionalProperties" && *value == Json::Bool(false)
    };
    let fields = schema.as_object().filter(|fields| fields.iter().all(is_plain))?;
    let properties = fields.get("properties")?.as_object()?;
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let is_known = required.iter().all(|name| properties.contains_key(*name));
    if schema["type"] != "object" || !is_known || !is_required && !required.is_empty() {
        return None;
    }
    if !properties.keys().all(|name| arguments.names.is_free(name)) {
        return None;
    }
    let names = properties.iter().map(|(name, schema)| {
        arguments.add(name, schema.clone(), &Json::Null, required.contains(&name.as_str()))
    });
    Some(names.collect())
}

fn is_form(media: &str) -> bool {
    media.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(FORM)
}

fn encodings(media: &Json) -> BTreeMap<String, (Style, bool)> {
    let mut found = BTreeMap::new();
    for (name, encoding) in media["encoding"].as_object().into_iter().flatten() {
        let style = encoding["style"].as_str();
        if style.is_some() || encoding["explode"].is_boolean() {
            let style = style.and_then(Style::named).unwrap_or(Style::Form);
            let explode = encoding["explode"].as_bool().unwrap_or(style == Style::Form);
            found.insert(name.clone(), (style, explode));
        }
    }
    found
}

impl Body {
    /// Returns the value of the body from the arguments of a call; `None` if they contain no body.
    pub(crate) fn value(&self, arguments: &serde_json::Map<String, Json>) -> Option<Json> {
        match &self.from {
            BodyFrom::Argument(key) => arguments.get(key).cloned(),
            BodyFrom::Fields(names) => {
                let given =
                    names.iter().filter_map(|name| Some((name.clone(), arguments.get(name)?.clone())));
                let fields: serde_json::Map<String, Json> = given.collect();
                (self.is_required || !fields.is_empty()).then_some(Json::Object(fields))
            }
        }
    }

    /// Returns the media type and the text of a body.
    ///
    /// # Errors
    /// The value does not fit the media type.
    pub(crate) fn write(&self, value: &Json) -> Result<(String, String), String> {
        match &self.media {
            Media::Json(media) => Ok((media.clone(), value.to_string())),
            Media::Text(media) => match value {
                Json::String(text) => Ok((media.clone(), text.clone())),
                _ => Err("the body must be a text".to_owned()),
            },
            Media::Form(encodings) => {
                let Some(fields) = value.as_object() else {
                    return Err("the body must be an object".to_owned());
                };
                let pairs =
                    fields.iter().flat_map(|(name, value)| form_field(name, value, encodings.get(name)));
                Ok((FORM.to_owned(), pairs.collect::<Vec<_>>().join("&")))
            }
        }
    }
}

/// Returns the pairs `name=value` of a form's field. An object is written as JSON, unless the field has a style.
fn form_field(name: &str, value: &Json, style: Option<&(Style, bool)>) -> Vec<String> {
    match style {
        Some((style, explode)) => in_query(name, value, *style, *explode, Escape::Strict),
        None if value.is_object() => {
            in_query(name, &value.to_string().into(), Style::Form, true, Escape::Strict)
        }
        None => in_query(name, value, Style::Form, true, Escape::Strict),
    }
}
