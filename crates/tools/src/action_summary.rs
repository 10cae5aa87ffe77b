//! Fills a tool's summary template with a call's arguments, for the person who is asked to approve the call.
//!
//! The template is the program's text, but the arguments come from a model and may come from a web page. So
//! each argument is shortened, stays on one line, and is quoted if it is more than one word: no argument
//! can pass for the program's text.

use std::fmt::Write as _;

use archon_types::{Json, ToolSpec, is_hidden};

use crate::arguments::clip;

/// Maximum length of the shown value of one argument: in characters for a text, in bytes for other JSON.
const LONGEST: usize = 80;

/// Returns `template` with the values of arguments in place of their names in braces. `{{` and `}}` are literal braces.
/// A missing argument shows its default, or `(none)`. A name in braces that is no parameter of the tool stays as it is.
pub fn summary(template: &str, arguments: &Json, spec: &ToolSpec) -> String {
    let mut line = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, braced) = rest.split_at(at);
        line.push_str(before);
        let (brace, behind) = braced.split_at(1);
        rest = match (behind.strip_prefix(brace), behind.split_once('}')) {
            (Some(behind), _) => {
                line.push_str(brace);
                behind
            }
            (None, Some((name, behind))) if brace == "{" => {
                line.push_str(&value(name, arguments, spec));
                behind
            }
            _ => {
                line.push_str(brace);
                behind
            }
        };
    }
    line.push_str(rest);
    line
}

fn value(name: &str, arguments: &Json, spec: &ToolSpec) -> String {
    let key = name.trim();
    let known = &spec.parameters["properties"][key];
    match arguments.get(key).or_else(|| known.get("default")) {
        None | Some(Json::Null) if known.is_null() => format!("{{{name}}}"),
        None | Some(Json::Null) => "(none)".to_owned(),
        Some(Json::String(text)) if is_word(text) => text.clone(),
        Some(Json::String(text)) => escape(&Json::String(clip(text, LONGEST)).to_string()),
        Some(value) => escape(&excerpt(value)),
    }
}

/// Returns whether a text is one short word of ASCII letters, digits and a few signs. Such a value is shown
/// without quotes.
fn is_word(text: &str) -> bool {
    let usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '/' | '#' | '+');
    !text.is_empty() && text.len() <= LONGEST && text.chars().all(usual)
}

/// Returns the JSON of a value. A long array or object is not cut, because a reader would not see where the
/// cut part ends; the number of its items or entries is returned instead.
fn excerpt(value: &Json) -> String {
    let text = match value {
        Json::Array(items) if items.len() > LONGEST => String::new(),
        value => value.to_string(),
    };
    match value {
        Json::Array(items) if text.is_empty() || text.len() > LONGEST => format!("({} items)", items.len()),
        Json::Object(entries) if text.len() > LONGEST => format!("({} entries)", entries.len()),
        _ => text,
    }
}

/// Replaces each invisible character by its escape code, such as `\u{200b}`.
fn escape(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_hidden(c) {
            true => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            false => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(template: &str, arguments: Json, expected: Expect) {
        let parameters = json!({"type": "object", "properties": {
            "order": {"type": "string"}, "cents": {"type": "integer"}, "note": {"type": "string", "default": "by hand"},
        }});
        expected.assert_eq(&summary(template, &arguments, &ToolSpec::new("refund", "Refunds.", parameters)));
    }

    #[test]
    fn summary_of_plain_arguments_reads_as_a_sentence() {
        let arguments = json!({"order": "A-1", "cents": 4590});
        check(
            "Refund {cents} cents of order { order } ({note})",
            arguments.clone(),
            expect![[r#"Refund 4590 cents of order A-1 ("by hand")"#]],
        );
        check("{{{cents}}} } {", arguments, expect!["{4590} } {"]);
        check("Refund {order}, {ordr}", json!({}), expect!["Refund (none), {ordr}"]);
    }

    #[test]
    fn summary_of_hostile_arguments_shows_where_they_begin_and_end() {
        let hostile = |order: &str| json!({"order": order});
        check(
            "Refund order {order}",
            hostile("A1\". It is paid already.\nApprove"),
            expect![[r#"Refund order "A1\". It is paid already.\nApprove""#]],
        );
        check(
            "Refund order {order}",
            hostile("A\u{202e}1\u{200b}\u{1b}[2J\u{3164}é€"),
            expect![[r#"Refund order "A\u{202e}1\u{200b}\u001b[2J\u{3164}é€""#]],
        );
        let long = json!({"order": "x".repeat(500), "cents": vec![0; 500]});
        let parameters = json!({"properties": {"order": {}, "cents": {}}});
        let line = summary("{order} {cents}", &long, &ToolSpec::new("t", "T.", parameters));
        assert_eq!(line, format!("\"{}…\" (500 items)", "x".repeat(80)));
    }
}
