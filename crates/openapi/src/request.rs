//! The request of a call: its address, its headers and its body, without credentials.

use archon_types::{Json, ToolError};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use reqwest::{
    Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::Map;

use crate::{
    operation::{Operation, Parameter, Place},
    style::{in_header, in_path, in_query},
    text::one_line,
};

/// Characters of a path in a document that a URL cannot have.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// A request that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<String>,
}

/// Returns the arguments of a call as a map, which is empty for null.
///
/// # Errors
/// The arguments are neither an object nor null.
pub(crate) fn fields(arguments: Json) -> Result<Map<String, Json>, ToolError> {
    match arguments {
        Json::Null => Ok(Map::new()),
        Json::Object(fields) => Ok(fields),
        _ => Err(ToolError::InvalidArgs("The arguments must be an object.".to_owned())),
    }
}

impl Operation {
    /// Makes the request for a call with these arguments.
    ///
    /// # Errors
    /// A required argument is missing, or a value would lead to another path or cannot be a header.
    pub(crate) fn request(&self, arguments: &Map<String, Json>) -> Result<Prepared, ToolError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*;q=0.8"));
        let mut query = Vec::new();
        for parameter in self.parameters.iter().filter(|one| one.place != Place::Path) {
            let Some(value) = parameter.value(arguments) else {
                if parameter.is_required && !arguments.contains_key(&parameter.key) {
                    return Err(missing(&parameter.key));
                }
                continue;
            };
            if parameter.place == Place::Header {
                let (name, value) = header(&parameter.name, &in_header(&value, parameter.explode))?;
                headers.insert(name, value);
            } else {
                let Parameter { name, style, explode, escape, .. } = parameter;
                query.extend(in_query(name, &value, *style, *explode, *escape));
            }
        }
        let body = self.body(arguments, &mut headers)?;
        Ok(Prepared { url: self.url(arguments, &query)?, headers, body })
    }

    /// Returns the address of a request.
    fn url(&self, arguments: &Map<String, Json>, query: &[String]) -> Result<Url, ToolError> {
        let path = self.filled_path(arguments)?;
        let mut address = format!("{}{path}", self.base.address);
        if !query.is_empty() {
            address.push(if path.contains('?') { '&' } else { '?' });
            address.push_str(&query.join("&"));
        }
        let wrong =
            |why: String| ToolError::InvalidArgs(format!("The address of the request is wrong: {why}"));
        Url::parse(&address).map_err(|e| wrong(e.to_string()))
    }

    /// Returns the path with its parameters filled in.
    fn filled_path(&self, arguments: &Map<String, Json>) -> Result<String, ToolError> {
        let (mut path, mut rest) = (String::new(), self.path.as_str());
        while let Some((before, (name, after))) =
            rest.split_once('{').and_then(|(before, after)| Some((before, after.split_once('}')?)))
        {
            path.extend(utf8_percent_encode(before, PATH));
            let parameter = self.parameters.iter().find(|one| one.place == Place::Path && one.name == name);
            let parameter = parameter.ok_or_else(|| missing(name))?;
            let value = parameter.value(arguments).ok_or_else(|| missing(&parameter.key))?;
            let text = in_path(name, &value, parameter.style, parameter.explode);
            if text.is_empty() {
                // The path would be that of another operation.
                return Err(ToolError::InvalidArgs(format!("The argument '{}' is empty.", parameter.key)));
            }
            path.push_str(&text);
            rest = after;
        }
        path.extend(utf8_percent_encode(rest, PATH));
        // Even when they are percent-encoded, these are no names but steps to another path, and many servers decode a slash
        // before they take the steps.
        let plain = path.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
        match plain.split(['/', '?']).any(|part| matches!(part, "." | "..")) {
            true => Err(ToolError::InvalidArgs("A part of a path cannot be '.' or '..'.".to_owned())),
            false => Ok(path),
        }
    }

    fn body(
        &self,
        arguments: &Map<String, Json>,
        headers: &mut HeaderMap,
    ) -> Result<Option<String>, ToolError> {
        let Some(body) = &self.body else { return Ok(None) };
        let Some(value) = body.value(arguments) else {
            return if body.is_required { Err(missing("body")) } else { Ok(None) };
        };
        let (media, text) = body.write(&value).map_err(ToolError::InvalidArgs)?;
        let media = HeaderValue::from_str(&media);
        headers.insert(CONTENT_TYPE, media.unwrap_or(HeaderValue::from_static("application/json")));
        Ok(Some(text))
    }
}

impl Parameter {
    /// Returns the value of the argument: as a JSON text if the parameter is written as JSON; `None` if it is absent
    /// or null.
    fn value(&self, arguments: &Map<String, Json>) -> Option<Json> {
        let value = arguments.get(&self.key).filter(|value| !value.is_null())?;
        Some(if self.is_json { value.to_string().into() } else { value.clone() })
    }
}

/// Returns the name and the value of a header.
///
/// # Errors
/// The name or the value has characters that a header cannot have.
pub(crate) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ToolError> {
    let made =
        HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_bytes(value.as_bytes()).ok());
    made.ok_or_else(|| {
        let name = one_line(name, 60);
        ToolError::InvalidArgs(format!(
            "The header '{name}' or its value has characters that headers cannot have."
        ))
    })
}

fn missing(key: &str) -> ToolError {
    ToolError::InvalidArgs(format!("The argument '{}' is missing.", one_line(key, 100)))
}
