//! Makes the hint that there is a next page of results, with the arguments for the call that reads it. The next page
//! is requested only if the model makes this call.

use archon_types::Json;
use reqwest::{
    Url,
    header::{HeaderMap, LINK},
};
use serde_json::Map;

use crate::operation::{Operation, Parameter, Place};

/// Maximum size of the arguments in a hint, in bytes of JSON.
const LARGEST: usize = 2_000;
/// Fields of a response that contain the cursor of the next page, as [`folded`] names.
const FIELDS: &[&str] = &["nextcursor", "nexttoken", "nextpagetoken", "nextpagecursor", "continuationtoken"];
/// Objects of a response that may contain these fields.
const AROUND: &[&str] = &["meta", "metadata", "pagination", "paging", "page_info", "response_metadata"];
/// Parameters that take the cursor of a page, as [`folded`] names.
const PARAMETERS: &[&str] =
    &["cursor", "pagetoken", "nexttoken", "pagecursor", "continuationtoken", "token", "after"];

/// Returns the arguments of the call that reads the next page; `None` if there is no next page, or if no argument can
/// select it.
pub(crate) fn next_arguments(
    operation: &Operation,
    arguments: &Map<String, Json>,
    url: &Url,
    headers: &HeaderMap,
    body: &Json,
) -> Option<Map<String, Json>> {
    let mut next = arguments.clone();
    let in_query = || operation.parameters.iter().filter(|one| one.place == Place::Query && !one.is_json);
    match next_link(headers).and_then(|link| url.join(&link).ok()) {
        Some(link) if link.origin() == url.origin() && link.path() == url.path() => {
            for (name, value) in link.query_pairs() {
                if let Some(parameter) = in_query().find(|one| one.name == name) {
                    // A list has several pairs of its name, and stays as it is.
                    if !arguments.get(&parameter.key).is_some_and(|old| old.is_array() || old.is_object()) {
                        next.insert(parameter.key.clone(), typed(parameter, &value));
                    }
                }
            }
        }
        _ => {
            let (field, value) = next_field(body)?;
            let wanted = std::iter::once(field.as_str()).chain([&field["next".len().min(field.len())..]]);
            let mut wanted = wanted.chain(PARAMETERS.iter().copied());
            let parameter = wanted.find_map(|name| in_query().find(|one| folded(&one.name) == name))?;
            next.insert(parameter.key.clone(), typed(parameter, &value));
        }
    }
    let is_short =
        |next: &Map<String, Json>| serde_json::to_vec(next).is_ok_and(|json| json.len() <= LARGEST);
    Some(next).filter(|next| next != arguments && is_short(next))
}

/// Returns the address in the header `Link` with the relation `next`.
fn next_link(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok());
    let links = values.flat_map(|value| value.split('<').skip(1));
    let mut parts = links.filter_map(|link| link.split_once('>'));
    let is_next = |parameters: &str| {
        let mut relations = parameters.split([';', ',']).filter_map(|part| part.trim().strip_prefix("rel="));
        relations
            .any(|names| names.trim_matches('"').split(' ').any(|name| name.eq_ignore_ascii_case("next")))
    };
    parts.find(|(_, parameters)| is_next(parameters)).map(|(address, _)| address.to_owned())
}

/// Returns the folded name and the value of the field that contains the cursor of the next page.
fn next_field(body: &Json) -> Option<(String, String)> {
    let objects = std::iter::once(body).chain(AROUND.iter().map(|name| &body[*name]));
    let mut fields = objects.filter_map(Json::as_object).flatten().map(|(name, value)| (folded(name), value));
    fields.find_map(|(name, value)| {
        let value = match value {
            Json::String(text) if !text.is_empty() => text.clone(),
            Json::Number(number) => number.to_string(),
            _ => return None,
        };
        FIELDS.contains(&name.as_str()).then_some((name, value))
    })
}

/// Returns a name in lower case without `_` and `-`.
fn folded(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

fn typed(parameter: &Parameter, value: &str) -> Json {
    let number = value.parse::<serde_json::Number>().ok().filter(|_| parameter.is_number);
    number.map_or_else(|| Json::from(value), Json::Number)
}
