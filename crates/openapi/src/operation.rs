//! One operation of a document: its parameters, its body and the schema of its arguments.

use archon_types::Json;
use reqwest::Method;
use serde_json::{Map, json};

use crate::{
    OpenApiAuth, OpenApiConfig,
    arguments::{Arguments, is_json},
    body::{self, Body},
    document::{Document, below},
    error::Problem,
    hosts::Base,
    names::Names,
    schema::Lowering,
    style::{Escape, Style},
    text::{one_line, plain},
};

/// Maximum number of characters of a description that a model reads.
const DESCRIPTION: usize = 4_000;
/// Maximum number of parameters of an operation.
const MOST_PARAMETERS: usize = 1_000;
/// Maximum length of a parameter's name, in bytes.
const LONGEST_NAME: usize = 1_000;

/// Headers that do not become arguments: OpenAPI describes them elsewhere, they belong to the connection, or they
/// could make the server treat the request as another one.
const NOT_CHOSEN: &[&str] = &[
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-url",
    "x-rewrite-url",
];

/// An operation as its document describes it. All texts are untrusted.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) method: Method,
    /// The path with its parameters in braces.
    pub(crate) path: String,
    pub(crate) base: Base,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
    /// True if the operation itself declares that it takes no credentials.
    pub(crate) is_open: bool,
    pub(crate) tags: Vec<String>,
    /// The summary, on one line; empty if there is none.
    pub(crate) summary: String,
    pub(crate) description: String,
    /// JSON Schema of the arguments. It is moved into the tool's spec, and is null afterwards.
    pub(crate) schema: Json,
}

/// A parameter in the path, in the query or in a header.
#[derive(Debug)]
pub(crate) struct Parameter {
    /// The name of the argument of the tool.
    pub(crate) key: String,
    /// The name of the parameter in the request.
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) is_required: bool,
    pub(crate) style: Style,
    pub(crate) explode: bool,
    pub(crate) escape: Escape,
    /// True if the value is written as JSON.
    pub(crate) is_json: bool,
    /// True if the schema allows only numbers.
    pub(crate) is_number: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Path,
    Query,
    Header,
}

/// An operation in its document, before it is read.
#[derive(Clone, Copy)]
pub(crate) struct Source<'d> {
    pub(crate) document: &'d Document,
    pub(crate) config: &'d OpenApiConfig,
    pub(crate) method: &'d Method,
    pub(crate) path: &'d str,
    /// The path item: the object with the operations of one path. Its parameters and servers apply to all of them.
    pub(crate) item: &'d Json,
    pub(crate) item_at: &'d str,
    pub(crate) operation: &'d Json,
    pub(crate) at: &'d str,
}

impl Operation {
    /// Reads an operation. Problems that do not prevent its use are added to `notes`.
    ///
    /// # Errors
    /// The reason why the operation cannot become a tool.
    pub(crate) fn read(source: Source<'_>, base: Base, notes: &mut Vec<Problem>) -> Result<Self, Problem> {
        let Source { document, config, operation, at, .. } = source;
        if !source.path.starts_with('/') {
            return Err(Problem::new(at, "its path does not begin with a slash"));
        }
        let mut arguments = Arguments {
            lowering: Lowering::new(document),
            names: Names::default(),
            properties: Map::new(),
            required: Vec::new(),
        };
        let parameters = parameters(source, &mut arguments, notes)?;
        check_path(source.path, &parameters, at)?;
        let body = body::read(document, config, operation, at, &mut arguments)?;
        let text = |key: &str| operation[key].as_str().unwrap_or_default();
        let strings = operation["tags"].as_array().into_iter().flatten().filter_map(Json::as_str);
        let is_open = operation["security"].as_array().is_some_and(Vec::is_empty);
        Ok(Self {
            method: source.method.clone(),
            path: source.path.to_owned(),
            base,
            parameters,
            body,
            is_open,
            tags: strings.map(str::to_owned).collect(),
            summary: one_line(text("summary"), 200),
            description: plain(text("description").trim(), DESCRIPTION),
            schema: arguments.schema(at)?,
        })
    }
}

/// Reads the parameters of an operation, and the parameters of its path that the operation does not override.
fn parameters(
    source: Source<'_>,
    arguments: &mut Arguments<'_>,
    notes: &mut Vec<Problem>,
) -> Result<Vec<Parameter>, Problem> {
    let mut found: Vec<(&str, &str, &Json, String)> = Vec::new();
    for (list, at) in [(source.item, source.item_at), (source.operation, source.at)] {
        let at = below(at, "parameters");
        for (index, parameter) in list["parameters"].as_array().into_iter().flatten().enumerate() {
            let (parameter, at) = source.document.resolve(parameter, &below(&at, &index.to_string()))?;
            let (Some(name), Some(place)) = (parameter["name"].as_str(), parameter["in"].as_str()) else {
                return Err(Problem::new(at, "it has no `name` or no `in`"));
            };
            if name.len() > LONGEST_NAME {
                return Err(Problem::new(at, format!("its name has more than {LONGEST_NAME} bytes")));
            }
            found.retain(|(other, other_place, ..)| (*other, *other_place) != (name, place));
            found.push((name, place, parameter, at));
            if found.len() > MOST_PARAMETERS {
                return Err(Problem::new(
                    source.at,
                    format!("it has more than {MOST_PARAMETERS} parameters"),
                ));
            }
        }
    }
    let mut parameters = Vec::new();
    for (name, place, parameter, at) in found {
        let is_required = parameter["required"] == Json::Bool(true);
        let place = match place {
            "path" => Place::Path,
            "query" => Place::Query,
            "header" => Place::Header,
            "cookie" if is_required => {
                notes.push(Problem::new(
                    at,
                    format!("the cookie '{}' is required, and cookies are not sent", one_line(name, 60)),
                ));
                continue;
            }
            "cookie" => continue,
            other => {
                return Err(Problem::new(
                    at,
                    format!("it is in '{}', which is not supported", one_line(other, 40)),
                ));
            }
        };
        if !is_argument(name, place, source) {
            continue;
        }
        parameters.push(read_parameter(name, place, parameter, &at, arguments)?);
    }
    Ok(parameters)
}

/// Returns whether a parameter becomes an argument. It does not if it is a header in `NOT_CHOSEN`, if it carries the
/// credentials, or if it is a path parameter that the path does not contain.
fn is_argument(name: &str, place: Place, source: Source<'_>) -> bool {
    match (place, &source.config.auth) {
        (Place::Header, _) if NOT_CHOSEN.contains(&&*name.to_ascii_lowercase()) => false,
        (Place::Header, OpenApiAuth::ApiKey { header, .. }) => !header.eq_ignore_ascii_case(name),
        (Place::Query, OpenApiAuth::QueryKey { name: own, .. }) => own != name,
        (Place::Path, _) => source.path.contains(&format!("{{{name}}}")),
        _ => true,
    }
}

fn read_parameter(
    name: &str,
    place: Place,
    parameter: &Json,
    at: &str,
    arguments: &mut Arguments<'_>,
) -> Result<Parameter, Problem> {
    let is_required = place == Place::Path || parameter["required"] == Json::Bool(true);
    let content = parameter["content"].as_object().and_then(|content| content.iter().next());
    let (schema, schema_at) = match content {
        Some((media, _)) if !is_json(media) && !media.starts_with("text/") => {
            return Err(Problem::new(at, format!("its content is '{}', not JSON", one_line(media, 60))));
        }
        Some((media, content)) => (&content["schema"], below(&below(&below(at, "content"), media), "schema")),
        None => (&parameter["schema"], below(at, "schema")),
    };
    let schema = if schema.is_null() { json!({}) } else { arguments.lowering.lower(schema, &schema_at)? };
    let style = match parameter["style"].as_str() {
        Some(style) => Style::named(style),
        None if place == Place::Query => Some(Style::Form),
        None => Some(Style::Simple),
    };
    let fits = |style: &Style| match place {
        Place::Path => matches!(style, Style::Simple | Style::Label | Style::Matrix),
        Place::Query => matches!(style, Style::Form | Style::Space | Style::Pipe | Style::Deep),
        Place::Header => *style == Style::Simple,
    };
    let Some(style) = style.filter(fits) else {
        let style = one_line(parameter["style"].as_str().unwrap_or_default(), 40);
        return Err(Problem::new(at, format!("the style '{style}' does not exist for this place")));
    };
    let escape = match (place, parameter["allowReserved"] == Json::Bool(true)) {
        (Place::Header, _) => Escape::Nothing,
        (Place::Query, true) => Escape::Reserved,
        _ => Escape::Strict,
    };
    let kind = &schema["type"];
    let is_number = kind == "integer" || kind == "number";
    Ok(Parameter {
        key: arguments.add(name, schema, &parameter["description"], is_required),
        name: name.to_owned(),
        place,
        is_required,
        style,
        explode: parameter["explode"].as_bool().unwrap_or(style == Style::Form),
        escape,
        is_json: content.is_some_and(|(media, _)| is_json(media)),
        is_number,
    })
}

/// Checks that each `{name}` in the path has a path parameter with this name.
fn check_path(path: &str, parameters: &[Parameter], at: &str) -> Result<(), Problem> {
    let mut rest = path;
    while let Some((_, place)) = rest.split_once('{') {
        let Some((name, after)) = place.split_once('}') else {
            return Err(Problem::new(at, "its path has a brace that is not closed"));
        };
        if !parameters.iter().any(|one| one.place == Place::Path && one.name == name) {
            return Err(Problem::new(
                at,
                format!("its path has '{{{}}}', and no such parameter", one_line(name, 60)),
            ));
        }
        rest = after;
    }
    Ok(())
}
