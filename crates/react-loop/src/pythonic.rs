//! Parses calls in Python syntax, as some models write them: `[weather(city="Paris", days=3), now()]`.

use archon_types::{
    Json,
    almost_json::{OpenEnd, object_at},
};
use serde_json::Map;

use crate::written_call::WrittenCall;

/// Returns the calls of a text that is only a list of calls with named arguments. Otherwise `None`,
/// because program code in prose is no tool call.
pub(crate) fn calls(text: &str) -> Option<Vec<WrittenCall>> {
    let mut rest = text.trim().strip_prefix('[')?.strip_suffix(']')?.trim();
    let mut calls = Vec::new();
    while !rest.is_empty() {
        let (tool, behind) = name(rest)?;
        let (arguments, behind) = arguments(behind.trim_start().strip_prefix('(')?)?;
        calls.push(WrittenCall::new(tool, Json::Object(arguments)));
        rest = behind.trim_start();
        rest = match rest.strip_prefix(',') {
            Some(more) => more.trim_start(),
            None if rest.is_empty() => rest,
            None => return None,
        };
    }
    (!calls.is_empty()).then_some(calls)
}

/// Words without quotes that are values; any other such word is a variable.
const LITERALS: [&str; 6] = ["True", "False", "None", "true", "false", "null"];

fn name(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.')).unwrap_or(text.len());
    (end > 0 && !text.starts_with(|c: char| c.is_numeric())).then(|| text.split_at(end))
}

/// Returns the arguments of a call up to its closing bracket, and the text after the bracket.
fn arguments(mut text: &str) -> Option<(Map<String, Json>, &str)> {
    let mut all = Map::new();
    loop {
        text = text.trim_start();
        if let Some(behind) = text.strip_prefix(')') {
            return Some((all, behind));
        }
        let (key, behind) = name(text)?;
        let behind = behind.trim_start().strip_prefix('=')?;
        let end = end_of_value(behind)?;
        let value = behind[..end].trim();
        // A word without quotes is a text in JSON that a model writes, and a variable in Python.
        if value.starts_with(char::is_alphabetic) && !LITERALS.contains(&value) {
            return None;
        }
        let object = format!("{{\"value\":{value}}}");
        let mut fields =
            object_at(&object, OpenEnd::Refuse).ok().filter(|found| found.end == object.len())?.fields;
        if fields.len() != 1 || all.insert(key.to_owned(), fields.remove("value")?).is_some() {
            return None;
        }
        text = behind[end..].strip_prefix(',').unwrap_or(&behind[end..]);
    }
}

/// Returns the index of the end of a value: of the next comma or closing bracket that is not a part of the value.
fn end_of_value(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut is_escaped) = (0_u32, None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, ',' | ')') if depth == 0 => return Some(at),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.checked_sub(1)?,
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Json {
        let calls = calls(text).unwrap_or_default();
        calls.into_iter().map(|call| json!([call.tool, call.arguments])).collect()
    }

    // spec: R-21
    #[test]
    fn calls_are_read_from_a_list_of_calls_and_from_nothing_else() {
        assert_eq!(
            read("[weather(city='Paris, (F)', days=3, all=True), now()]"),
            json!([["weather", {"city": "Paris, (F)", "days": 3, "all": true}], ["now", {}]])
        );
        assert_eq!(
            read("[a.b(x={'k': [1, None]}, y=\"it's\")]"),
            json!([["a.b", {"x": {"k": [1, null]}, "y": "it's"}]])
        );
        for other in [
            "weather(city='Paris')",
            "[weather('Paris')]",
            "[weather(city=paris)]",
            "[weather(city='Paris']",
            "[weather(city='Paris'",
            "[weather(city=1, city=2)]",
            "[weather(city=1) and now()]",
            "[1, 2]",
            "[]",
            "Use [now()].",
        ] {
            assert_eq!(calls(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "\\[([a-z]|\\PC|[()=,'\"{}\\[\\]\\\\]){0,30}\\]") {
            let _ = calls(&text);
        }
    }
}
