//! A lenient parser for almost valid JSON, as models write it: single and curly quotes, Python's literals,
//! unquoted keys, line breaks in strings, trailing commas, missing closing brackets, an unquoted word as a
//! value. The parser never changes the content of a string, and never closes an unterminated string.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::Map;

use crate::Json;

/// A JSON object that was parsed at the start of a text.
#[derive(Debug, PartialEq)]
pub struct ParsedObject {
    /// The entries of the object.
    pub fields: Map<String, Json>,
    /// The position in the text directly behind the object, in bytes.
    pub end: usize,
}

/// The reason why no object could be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoObject {
    /// The opening bracket belongs to prose, not to JSON.
    Prose,
    /// The object has no end; the text may have been cut off.
    Torn,
    /// The object has an end but cannot be parsed, even leniently.
    Bad,
}

/// The treatment of an object whose closing brackets are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenEnd {
    /// Adds the missing brackets if the model had clearly finished the object: at the end of the text after a
    /// string or a bracket, at the end of a code block or of a tag, or before a keyword such as
    /// `Observation:`.
    Close,
    /// Refuses the object, because the text may have been cut off.
    Refuse,
}

/// Parses the object at the start of `text`, which must begin with `{`.
///
/// # Errors
/// The reason why there is no object.
pub fn object_at(text: &str, open_end: OpenEnd) -> Result<ParsedObject, NoObject> {
    let mut strict = serde_json::Deserializer::from_str(text).into_iter::<Map<String, Json>>();
    if let Some(Ok(fields)) = strict.next() {
        return Ok(ParsedObject { fields, end: strict.byte_offset() });
    }
    if !begins_like_an_object(text) {
        return Err(NoObject::Prose);
    }
    let mut plain = Plain::of(text);
    if plain.is_deep {
        return Err(NoObject::Bad);
    }
    if let Some(last) = plain.open.last() {
        let may_close = open_end == OpenEnd::Close && *last != Open::Text && plain.may_end_here();
        if !may_close {
            return Err(NoObject::Torn);
        }
        plain.close();
    }
    match json5::from_str(&plain.text) {
        Ok(Json::Object(fields)) => Ok(ParsedObject { fields, end: plain.end }),
        _ => Err(NoObject::Bad),
    }
}

/// Returns true if the opening bracket is followed by a quote, a closing bracket, a word with a colon, or the
/// end of the text.
fn begins_like_an_object(text: &str) -> bool {
    let inside = text.strip_prefix('{').unwrap_or(text).trim_start();
    let word = inside.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let has_key = word.len() < inside.len() && word.trim_start().starts_with(':');
    inside.is_empty() || inside.starts_with(['"', '\'', '}', '“', '”', '‘', '’']) || has_key
}

/// A bracket or a quote that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Object,
    List,
    Text,
}

/// A copy of a text up to the end of the text's first object or list. The copy has straight quotes and the
/// literals of JSON.
struct Plain<'a> {
    source: &'a str,
    text: String,
    open: Vec<Open>,
    end: usize,
    /// True if one of the [`ENDS`] came before the last closing bracket.
    is_ended: bool,
    /// True if the value has more nested levels than [`DEEPEST`].
    is_deep: bool,
}

/// Words that are JSON values without quotes.
const LITERALS: [&str; 8] = ["true", "false", "null", "True", "False", "None", "NaN", "Infinity"];

/// The maximum number of nested levels; the parser recurses once per level.
const DEEPEST: usize = 128;

/// Texts outside of strings that end an object without its closing brackets: the end of a code block or a
/// tag, or a keyword of the format in which models write tool calls as text.
const ENDS: [&str; 8] = [
    "```",
    "</tool_call>",
    "</function>",
    "</action>",
    "\nthought:",
    "\naction:",
    "\nobservation:",
    "\nfinal answer:",
];

impl<'a> Plain<'a> {
    fn of(source: &'a str) -> Self {
        let mut plain = Self {
            source,
            text: String::new(),
            open: Vec::new(),
            end: source.len(),
            is_ended: false,
            is_deep: false,
        };
        plain.read();
        plain
    }

    fn read(&mut self) {
        let mut at = 0;
        while let Some(c) = self.source[at..].chars().next() {
            let rest = &self.source[at..];
            if ENDS.iter().any(|end| starts_with(rest, end)) {
                (self.end, self.is_ended) = (at, true);
                return;
            }
            let after_word = self.text.ends_with(|last: char| last.is_alphanumeric() || last == '_');
            match c {
                '{' => self.begin(Open::Object, c),
                '[' => self.begin(Open::List, c),
                '}' | ']' => {
                    self.text.push(c);
                    self.open.pop();
                    if self.open.is_empty() {
                        self.end = at + c.len_utf8();
                        return;
                    }
                }
                '"' | '“' | '”' | '„' => at = self.quoted(at, c),
                // An apostrophe inside a bare word is not a quote.
                '\'' | '‘' | '’' if !after_word => at = self.quoted(at, c),
                _ if c.is_alphabetic() && !after_word => {
                    at += self.word(rest);
                    continue;
                }
                _ => self.text.push(c),
            }
            if self.open.last() == Some(&Open::Text) {
                return;
            }
            at += self.source[at..].chars().next().map_or(1, char::len_utf8);
        }
    }

    fn begin(&mut self, open: Open, c: char) {
        self.open.push(open);
        self.text.push(c);
        self.is_deep |= self.open.len() > DEEPEST;
    }

    /// Copies an unquoted word and returns its length in bytes. Python's literals become JSON's literals, and
    /// a word that is a string value gets quotes.
    fn word(&mut self, rest: &str) -> usize {
        if let Some(end) = self.bare_text(rest) {
            self.text.extend(["\"", &rest[..end], "\""]);
            return end;
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.text.push_str(match &rest[..end] {
            "True" => "true",
            "False" => "false",
            "None" => "null",
            word => word,
        });
        end
    }

    /// Returns the length in bytes of a string without quotes: one word between a colon and the end of the
    /// value. `None` for a literal, and for a word that was cut off or is followed by other text.
    fn bare_text(&self, rest: &str) -> Option<usize> {
        if !self.text.trim_end().ends_with(':') {
            return None;
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.'))?;
        let is_end = rest[end..].trim_start().starts_with([',', '}', ']']);
        (is_end && !LITERALS.contains(&&rest[..end])).then_some(end)
    }

    /// Copies a string that begins with the quote at `from`. Returns the position of its closing quote; a
    /// string without a closing quote is left open.
    fn quoted(&mut self, from: usize, quote: char) -> usize {
        let is_end = |c: char, behind: &str| match quote {
            '"' => c == '"',
            '\'' => c == '\'' && ends_a_text(behind),
            '‘' | '’' => matches!(c, '‘' | '’') && ends_a_text(behind),
            _ => matches!(c, '“' | '”' | '"') && ends_a_text(behind),
        };
        self.text.push('"');
        let mut is_escaped = false;
        let begin = from + quote.len_utf8();
        for (offset, c) in self.source[begin..].char_indices() {
            let at = begin + offset;
            match c {
                _ if is_escaped => {
                    // The backslash before a single quote is dropped, because JSON does not escape it.
                    if c == '\'' {
                        self.text.pop();
                    }
                    self.text.push(c);
                    is_escaped = false;
                }
                '\\' => {
                    self.text.push(c);
                    is_escaped = true;
                }
                c if is_end(c, &self.source[at + c.len_utf8()..]) => {
                    self.text.push('"');
                    return at;
                }
                '"' => self.text.push_str("\\\""),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\t' => self.text.push_str("\\t"),
                c => self.text.push(c),
            }
        }
        self.open.push(Open::Text);
        self.source.len()
    }

    /// Returns true if missing brackets may be added at the end: after one of the [`ENDS`], a string or a
    /// bracket. A number or a word might go on, and a comma needs a successor.
    fn may_end_here(&self) -> bool {
        self.is_ended || self.text.trim_end().ends_with(['"', '}', ']'])
    }

    fn close(&mut self) {
        while let Some(open) = self.open.pop() {
            self.text.push(if open == Open::List { ']' } else { '}' });
        }
    }
}

/// Returns true if the text behind a quote shows that the quote ends a string and is not an apostrophe.
fn ends_a_text(behind: &str) -> bool {
    let behind = behind.trim_start();
    behind.is_empty() || behind.starts_with([',', ':', '}', ']', ')']) || behind.starts_with("```")
}

/// Returns true if `text` begins with `lower`, ignoring the case of ASCII letters.
pub fn starts_with(text: &str, lower: &str) -> bool {
    text.get(..lower.len()).is_some_and(|start| start.eq_ignore_ascii_case(lower))
}

/// Parses a whole text leniently. `None` if the text does not begin with `{` or `[`, has other text after the
/// object or list, or cannot be parsed.
pub fn mended(text: &str) -> Option<Json> {
    let is_nested = text.starts_with(['{', '[']);
    if !is_nested {
        return None;
    }
    let plain = Plain::of(text);
    let is_whole = plain.open.is_empty() && !plain.is_deep && text[plain.end..].trim().is_empty();
    is_whole.then(|| json5::from_str(&plain.text).ok()).flatten()
}

/// Returns the JSON in a text: the whole text, the content of a code block, or the part between the first and
/// the last bracket. If none of these is valid JSON, the first that can be parsed leniently is returned in
/// repaired form. A text without JSON is returned unchanged.
pub fn json_in(text: &str) -> Cow<'_, str> {
    let whole = text.trim();
    let fenced = || {
        let (_, behind) = whole.split_once("```")?;
        let (_, behind) = behind.split_once('\n')?;
        Some(behind[..behind.find("```")?].trim())
    };
    let bracketed = || whole.get(whole.find(['{', '['])?..=whole.rfind(['}', ']'])?);
    let places = [Some(whole), fenced(), bracketed()];
    let places = || places.into_iter().flatten();
    if let Some(json) = places().find(|text| is_json(text)) {
        return json.into();
    }
    places().find_map(mended).map_or(text.into(), |value| value.to_string().into())
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Json, NoObject> {
        object_at(text, OpenEnd::Close).map(|found| Json::Object(found.fields))
    }

    // spec: R-20
    #[test]
    fn the_json_of_an_answer_is_found() {
        let table = [
            (r#" {"a": 1} "#, r#"{"a": 1}"#),
            ("42", "42"),
            ("Here it is:\n```json\n{\"a\": 1}\n```\nBye.", r#"{"a": 1}"#),
            ("```\n[1]\n```", "[1]"),
            (r#"Sure! {"a": {"b": 2}} Anything else?"#, r#"{"a": {"b": 2}}"#),
            (r#"{"a": 1} and {"a": 2}"#, r#"{"a": 1} and {"a": 2}"#),
            // Almost valid JSON is repaired; text without an end is not.
            ("{'a': True, b: \"x\",} // done", r#"{"a":true,"b":"x"}"#),
            ("```json\n{“a”: [1, 2,]}\n```", r#"{"a":[1,2]}"#),
            (r#"{"a": [1, 2"#, r#"{"a": [1, 2"#),
            (r#"{"a": "b}"#, r#"{"a": "b}"#),
            ("] no [", "] no ["),
            ("It is warm.", "It is warm."),
            ("", ""),
        ];
        for (text, json) in table {
            assert_eq!(json_in(text), json, "{text:?}");
        }
    }

    #[test]
    fn object_at_reads_what_models_write_by_hand() {
        let table = [
            (r#"{"a": 1} more"#, json!({"a": 1})),
            ("{'a': 'it's \"b\"'}", json!({"a": "it's \"b\""})),
            (r"{'a': 'it\'s'}", json!({"a": "it's"})),
            ("{“a”: “b ‘c’ \"d” e”}", json!({"a": "b ‘c’ \"d” e"})),
            ("{‘a’: ‘it’s’}", json!({"a": "it’s"})),
            ("{“a”: “it’s”, “b”: [“c”]}", json!({"a": "it’s", "b": ["c"]})),
            (
                "{'a': True, 'b': [None, False], 'True': 'None'}",
                json!({"a": true, "b": [null, false], "True": "None"}),
            ),
            ("{\"a\": \"two\nlines\t\"}", json!({"a": "two\nlines\t"})),
            ("{a: 1, b: [2, 3,],}", json!({"a": 1, "b": [2, 3]})),
            (
                "{tool: web-search, a: {b: x.y}, 'c': [true, None]}",
                json!({"tool": "web-search", "a": {"b": "x.y"}, "c": [true, null]}),
            ),
            (r#"{"a": "a } b \" { c", x: 1}"#, json!({"a": "a } b \" { c", "x": 1})),
            // Missing brackets, where the writer went on or was done.
            (r#"{"a": {"b": 1```"#, json!({"a": {"b": 1}})),
            (r#"{"a": [1, 2</tool_call>"#, json!({"a": [1, 2]})),
            ("{\"a\": {\"b\": 1\nObservation: 3", json!({"a": {"b": 1}})),
            (r#"{"a": {"b": "c""#, json!({"a": {"b": "c"}})),
            (r#"{"a": {"b": "x\nFinal Answer: y"}"#, json!({"a": {"b": "x\nFinal Answer: y"}})),
        ];
        for (text, expected) in table {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    // spec: R-20
    #[test]
    fn object_at_ends_no_text_and_no_number_and_nothing_that_was_cut_off() {
        for text in [r#"{"a": "b"#, "{'a': 'b", "{“a”: “b", r#"{"a": 1"#, r#"{"a": tru"#, r#"{"a": -"#]
        {
            assert_eq!(read(text), Err(NoObject::Torn), "{text}");
        }
        for text in [r#"{"a": {"b": "c""#, r#"{"a": {"b": 1```"#, "{"] {
            assert_eq!(object_at(text, OpenEnd::Refuse), Err(NoObject::Torn), "{text}");
        }
        for text in ["{the tool}", "{1}", "{ hm, well: }"] {
            assert_eq!(read(text), Err(NoObject::Prose), "{text}");
        }
        let deep = format!("{}{}", "{'a':".repeat(50_000), "}".repeat(50_000));
        assert_eq!(read(&deep), Err(NoObject::Bad));
        for text in [r#"{"a": }"#, r#"{"a" 1}"#, "{'a': [1}]", "{a: two words}"] {
            assert_eq!(read(text), Err(NoObject::Bad), "{text}");
        }
    }

    fn value() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            "[\\PC\n\"'“”‘’{}\\[\\]\\\\`:,]{0,12}".prop_map(Json::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                prop::collection::btree_map("[\\PC\"'“”]{0,6}", inner, 0..4).prop_map(|fields| json!(fields)),
            ]
        })
    }

    proptest! {
        // spec: R-20
        #[test]
        fn a_value_that_is_cut_anywhere_is_read_as_nothing_else(value in value(), cut in any::<prop::sample::Index>()) {
            let text = json!({"tool": "t", "arguments": value}).to_string();
            let found = object_at(&text, OpenEnd::Refuse).unwrap();
            prop_assert_eq!(&Json::Object(found.fields), &serde_json::from_str::<Json>(&text).unwrap());
            let at = cut.index(text.len());
            let at = text.floor_char_boundary(at);
            if at > 0 {
                prop_assert!(object_at(&text[..at], OpenEnd::Refuse).is_err(), "{}", &text[..at]);
            }
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "\\{([\\PC{}\\[\\]\"'“”‘’\\\\:,\n]|```|None){0,30}") {
            let _ = object_at(&text, OpenEnd::Close);
            let _ = object_at(&text, OpenEnd::Refuse);
            let _ = mended(&text);
        }
    }
}
