//! JSON as models write it by hand: single and curly quotes, Python's literals, bare keys, line ends in texts, commas too
//! many, a bracket too few. What a text says is never changed, and no text is ended that its writer did not end.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::Map;

use crate::Json;

/// An object that begins a text.
#[derive(Debug, PartialEq)]
pub struct Found {
    /// What it holds.
    pub fields: Map<String, Json>,
    /// Where it ends.
    pub end: usize,
}

/// Why there is no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoObject {
    /// A bracket that is none of JSON's: prose.
    Prose,
    /// It has no end.
    Torn,
    /// It has an end and is not JSON, however kindly it is read.
    Bad,
}

/// What may be done about an object without an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenEnd {
    /// Brackets are closed where something shows that the writer was done: the end of the text, of a code block or of a
    /// tag, or the next word of the format.
    Close,
    /// Nothing: the text may have been cut off.
    Refuse,
}

/// The object that begins at the start of `text`, which is a `{`.
pub fn object_at(text: &str, open_end: OpenEnd) -> Result<Found, NoObject> {
    let mut strict = serde_json::Deserializer::from_str(text).into_iter::<Map<String, Json>>();
    if let Some(Ok(fields)) = strict.next() {
        return Ok(Found { fields, end: strict.byte_offset() });
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
        Ok(Json::Object(fields)) => Ok(Found { fields, end: plain.end }),
        _ => Err(NoObject::Bad),
    }
}

/// A quote, the end, or a word with a colon.
fn begins_like_an_object(text: &str) -> bool {
    let inside = text.strip_prefix('{').unwrap_or(text).trim_start();
    let word = inside.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let has_key = word.len() < inside.len() && word.trim_start().starts_with(':');
    inside.is_empty() || inside.starts_with(['"', '\'', '}', '“', '”', '‘', '’']) || has_key
}

/// What is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Object,
    List,
    Text,
}

/// The beginning of a text, up to the end of its first object, with plain quotes and JSON's literals.
struct Plain<'a> {
    source: &'a str,
    text: String,
    open: Vec<Open>,
    end: usize,
    /// Something other than the end of the source ended it.
    is_ended: bool,
    /// There are more levels than JSON is read with.
    is_deep: bool,
}

/// The parser calls itself for each level.
const DEEPEST: usize = 128;

/// What ends an object that is not closed, outside of texts: a code block's end, a tag's, the next word of the format.
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

    /// A bare word; those of Python are spelled as JSON's. Returns its length.
    fn word(&mut self, rest: &str) -> usize {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.text.push_str(match &rest[..end] {
            "True" => "true",
            "False" => "false",
            "None" => "null",
            word => word,
        });
        end
    }

    /// A text that begins with the quote at `from`; returns where its last quote is. One without is left open.
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
                    // Behind a backslash stands what has to be escaped, or a quote that had to be where it was written.
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

    /// Whether the last thing is whole: a number or a word might go on, and something has to follow a comma.
    fn may_end_here(&self) -> bool {
        self.is_ended || self.text.trim_end().ends_with(['"', '}', ']'])
    }

    fn close(&mut self) {
        while let Some(open) = self.open.pop() {
            self.text.push(if open == Open::List { ']' } else { '}' });
        }
    }
}

/// Whether what comes behind a quote shows that it was the last of its text, and no apostrophe.
fn ends_a_text(behind: &str) -> bool {
    let behind = behind.trim_start();
    behind.is_empty() || behind.starts_with([',', ':', '}', ']', ')']) || behind.starts_with("```")
}

/// Whether a text begins with a word in any case.
pub fn starts_with(text: &str, lower: &str) -> bool {
    text.get(..lower.len()).is_some_and(|start| start.eq_ignore_ascii_case(lower))
}

/// A whole text as a value, read kindly, unless it is plain JSON or no JSON at all.
pub fn mended(text: &str) -> Option<Json> {
    let is_nested = text.starts_with(['{', '[']);
    if !is_nested {
        return None;
    }
    let plain = Plain::of(text);
    let is_whole = plain.open.is_empty() && !plain.is_deep && text[plain.end..].trim().is_empty();
    is_whole.then(|| json5::from_str(&plain.text).ok()).flatten()
}

/// The JSON in a text: the whole of it, what stands in a fence, or what stands between the first and the last
/// bracket; and if none of these is JSON, the first that is almost JSON, mended. Where there is none, the text.
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
            // What is almost JSON is mended; what has no end is not.
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
            (r#"{"a": "a } b \" { c", x: 1}"#, json!({"a": "a } b \" { c", "x": 1})),
            // Brackets too few, where somebody went on or was done.
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
        for text in [r#"{"a": }"#, r#"{"a" 1}"#, "{'a': [1}]"] {
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
