//! References in arguments: `{subtask}` and `{subtask.field[0]}` stand for results, `{key}` for an
//! initial value of the plan.
//!
//! A text that is only a reference becomes the value itself, with its type; within other text, a
//! reference becomes the value's text. `{{subtask}}` is the literal text `{subtask}`. All other braces,
//! as in JSON or code, stay as they are.

use archon_types::{Json, ToolResult};

use crate::texts::text_of;

/// A reference to a value, or to a part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The name: the id of a subtask, the `save_as` name of a result, or a key of the task's context.
    pub head: String,
    /// The path to a part of the value; empty for the whole value.
    pub path: Vec<PathStep>,
}

/// One step of a path into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// A field of an object: `.name`.
    Field(String),
    /// An element of a list, by its index from 0: `[0]`.
    Index(usize),
}

impl Reference {
    /// Returns true if the reference may be a number in braces, as in regular expressions. Such a name is
    /// a reference only if a value has that name.
    pub fn may_be_text(&self) -> bool {
        self.path.is_empty() && self.head.bytes().all(|b| b.is_ascii_digit())
    }

    /// Returns the part of `value` at the path.
    fn walk(&self, value: &Json) -> Result<Json, Unresolved> {
        let mut at = value;
        for step in &self.path {
            let next = match step {
                PathStep::Field(name) => at.get(name),
                PathStep::Index(index) => at.get(index),
            };
            let missing = || Unresolved::NoSuchPart { reference: self.to_string(), there: describe(at) };
            at = next.ok_or_else(missing)?;
        }
        Ok(at.clone())
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{{}", self.head)?;
        for step in &self.path {
            match step {
                PathStep::Field(name) => write!(f, ".{name}")?,
                PathStep::Index(index) => write!(f, "[{index}]")?,
            }
        }
        f.write_str("}")
    }
}

/// Reason why a reference has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unresolved {
    /// No value has this name.
    #[error("no value is known for {reference}")]
    Unknown {
        /// The reference.
        reference: String,
    },
    /// The value has no part at the path.
    #[error("{reference} refers to a missing part: the value is {there}")]
    NoSuchPart {
        /// The reference.
        reference: String,
        /// A description of the value that was found.
        there: String,
    },
}

/// A piece of a text with references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Reference(Reference),
}

/// Returns the pieces of a text, in order.
pub(crate) fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let inner = rest.strip_prefix('{').unwrap_or_default();
        if let Some((_, length)) = reference(inner).filter(|(_, length)| inner[*length..].starts_with('}')) {
            plain.push_str(&inner[..length]);
            rest = &inner[length + 1..];
        } else if let Some((reference, length)) = reference(rest) {
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Reference(reference));
            rest = &rest[length..];
        } else {
            plain.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    pieces
}

/// Returns the reference, if the text is only a reference.
pub(crate) fn only_reference(text: &str) -> Option<Reference> {
    reference(text).filter(|(_, length)| *length == text.len()).map(|(reference, _)| reference)
}

/// Returns true if a reference can have this name.
pub(crate) fn is_name(text: &str) -> bool {
    name_length(text) == Some(text.len())
}

/// Returns the length of the name with which the text starts.
fn name_length(text: &str) -> Option<usize> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let length = text.find(|c| !is_name(c)).unwrap_or(text.len());
    (1..=LONGEST_NAME).contains(&length).then_some(length)
}

/// Returns the reference with which the text starts, and the reference's length in bytes.
pub(crate) fn reference(text: &str) -> Option<(Reference, usize)> {
    let end = text.find('}')?;
    let inner = text.strip_prefix('{')?.get(..end - 1)?;
    let (head, mut rest) = inner.split_at(name_length(inner)?);
    let mut path = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let length = name_length(after)?;
            path.push(PathStep::Field(after[..length].to_owned()));
            rest = &after[length..];
        } else {
            let (index, after) = rest.strip_prefix('[')?.split_once(']')?;
            path.push(PathStep::Index(index.parse().ok()?));
            rest = after;
        }
    }
    Some((Reference { head: head.to_owned(), path }, end + 1))
}

const LONGEST_NAME: usize = 100;

/// Returns all references in a value, in order.
pub fn references(value: &Json) -> Vec<Reference> {
    let mut found = Vec::new();
    collect_references(value, &mut found);
    found
}

fn collect_references(value: &Json, found: &mut Vec<Reference>) {
    match value {
        Json::String(text) => found.extend(pieces(text).into_iter().filter_map(|piece| match piece {
            Piece::Reference(reference) => Some(reference),
            Piece::Text(_) => None,
        })),
        Json::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        Json::Object(entries) => entries.values().for_each(|entry| collect_references(entry, found)),
        _ => {}
    }
}

/// Replaces every reference in a value by the value that `lookup` returns for the reference's name.
///
/// # Errors
/// The first reference that has no value.
pub fn resolve(value: &Json, lookup: &dyn Fn(&str) -> Option<Json>) -> Result<Json, Unresolved> {
    Ok(match value {
        Json::String(text) => resolve_text(text, lookup)?,
        Json::Array(items) => items.iter().map(|item| resolve(item, lookup)).collect::<Result<_, _>>()?,
        Json::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| Ok((key.clone(), resolve(value, lookup)?)));
            Json::Object(entries.collect::<Result<_, _>>()?)
        }
        other => other.clone(),
    })
}

/// Replaces references like [`resolve`], in one text.
///
/// # Errors
/// See [`resolve`].
pub fn resolve_text(text: &str, lookup: &dyn Fn(&str) -> Option<Json>) -> Result<Json, Unresolved> {
    if let Some(reference) = only_reference(text) {
        return value_of(&reference, lookup);
    }
    let piece = |piece: Piece| match piece {
        Piece::Text(text) => Ok(text),
        Piece::Reference(reference) => Ok(text_of(&value_of(&reference, lookup)?)),
    };
    Ok(Json::String(pieces(text).into_iter().map(piece).collect::<Result<_, _>>()?))
}

fn value_of(reference: &Reference, lookup: &dyn Fn(&str) -> Option<Json>) -> Result<Json, Unresolved> {
    match lookup(&reference.head) {
        Some(value) => reference.walk(&value),
        None if reference.may_be_text() => Ok(Json::String(reference.to_string())),
        None => Err(Unresolved::Unknown { reference: reference.to_string() }),
    }
}

/// Returns the value that a reference to this result stands for: the parsed JSON if the text of the result is JSON,
/// otherwise the text. A number that would change when it is parsed, such as `1.10`, stays text.
pub fn value_of_result(result: &ToolResult) -> Json {
    let text = result.text();
    let trimmed = text.trim();
    match serde_json::from_str(trimmed) {
        // Text that would change as a number stays text: a version, an amount, or too many digits.
        Ok(Json::Number(number)) if number.to_string() != trimmed => Json::String(text),
        Ok(value) if !trimmed.is_empty() => value,
        _ => Json::String(text),
    }
}

pub(crate) fn describe(value: &Json) -> String {
    match value {
        Json::Object(entries) if entries.is_empty() => "an object with no entries".to_owned(),
        Json::Object(entries) => {
            let keys: Vec<_> = entries.keys().take(10).map(String::as_str).collect();
            format!("an object with {}", keys.join(", "))
        }
        Json::Array(items) => format!("an array of {}", items.len()),
        Json::String(_) => "text".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn known(name: &str) -> Option<Json> {
        let known = json!({
            "search": {"hits": [{"title": "Tokyo", "people": 14_000_000}], "n": 1},
            "city": "Paris",
            "st-1": [1, 2],
            "7": "seven",
        });
        known.get(name).cloned()
    }

    fn check(text: &str, expected: Json) {
        assert_eq!(resolve(&json!(text), &known).unwrap(), expected, "{text}");
    }

    // spec: PL-13
    #[test]
    fn a_whole_reference_keeps_its_type_and_an_embedded_one_is_text() {
        check("{search.n}", json!(1));
        check("{search.hits[0].people}", json!(14_000_000));
        check("{search.hits[0]}", json!({"title": "Tokyo", "people": 14_000_000}));
        check("in {city}: {search.hits[0].people} people, {st-1}", json!("in Paris: 14000000 people, [1,2]"));
        check("{7} and \\d{3}", json!("seven and \\d{3}"));
        let nested = resolve(&json!({"a": ["{st-1[1]}", {"b": "{city}!"}], "c": 3}), &known).unwrap();
        assert_eq!(nested, json!({"a": [2, {"b": "Paris!"}], "c": 3}));
    }

    // spec: PL-13
    #[test]
    fn references_leave_other_braces_unchanged() {
        check("{{city}}", json!("{city}"));
        check("{{{city}}}", json!("{{city}}"));
        check(r#"{"a": {"b": 1}}"#, json!(r#"{"a": {"b": 1}}"#));
        check("fn main() { }", json!("fn main() { }"));
        check("{a b} {} {.x} {a.} {a[x]}", json!("{a b} {} {.x} {a.} {a[x]}"));
    }

    // spec: PL-13
    #[test]
    fn resolve_missing_reference_error_lists_existing_names() {
        let error = |text: &str| resolve(&json!([text]), &known).unwrap_err().to_string();
        assert_eq!(error("{nothing}"), "no value is known for {nothing}");
        assert_eq!(
            error("x {search.title}"),
            "{search.title} refers to a missing part: the value is an object with hits, n"
        );
        assert_eq!(error("{st-1[9]}"), "{st-1[9]} refers to a missing part: the value is an array of 2");
    }

    #[test]
    fn a_result_is_its_json_or_its_text() {
        let value = |text: &str| value_of_result(&ToolResult::success(text));
        assert_eq!(value("30"), json!(30));
        assert_eq!(value(" {\"a\": [1]} \n"), json!({"a": [1]}));
        assert_eq!(value("30 people"), json!("30 people"));
        assert_eq!(value(""), json!(""));
        for text in ["1.10", "12345678901234567890123", "1e3"] {
            assert_eq!(value(text), json!(text), "as a number it would read otherwise");
        }
    }

    proptest! {
        #[test]
        fn references_of_any_text_do_not_panic(text in ".{0,60}", braces in "[{}a.\\[\\]0-9]{0,40}") {
            for text in [text, braces] {
                let resolved = resolve_text(&text, &known);
                if references(&json!(text)).is_empty() && !text.contains("{{") {
                    prop_assert_eq!(resolved, Ok(Json::String(text)));
                }
            }
        }
    }
}
