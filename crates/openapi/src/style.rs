//! Writes the values of parameters: every style of OpenAPI, each with and without `explode`.
//!
//! | place | styles |
//! |---|---|
//! | path | `simple`, `label`, `matrix` |
//! | query | `form`, `spaceDelimited`, `pipeDelimited`, `deepObject` |
//! | header | `simple` |
//!
//! The specification does not define some forms. They are written as follows. A null is left out. An object or an array
//! inside of another value is written as JSON, except in `deepObject`, which adds further brackets (`a[b][c]=1`) and repeats the name for each
//! item of an array. `spaceDelimited` and `pipeDelimited` with `explode` are written like `form` with `explode`. A
//! value that is not an object is written with `deepObject` like with `form`.

use archon_types::Json;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that are percent-encoded: all but the unreserved characters of RFC 3986.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Like [`STRICT`], but without the reserved characters that mean nothing in a query. `#`, `&`, `+` and brackets stay
/// in the set: `#` would end the query, `&` and `+` would change other parameters and spaces, and brackets are not
/// allowed in a query.
const RESERVED: &AsciiSet = &STRICT
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// The way in which the value of a parameter is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    Space,
    Pipe,
    Deep,
}

impl Style {
    /// Returns the style of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "simple" => Self::Simple,
            "label" => Self::Label,
            "matrix" => Self::Matrix,
            "form" => Self::Form,
            "spaceDelimited" => Self::Space,
            "pipeDelimited" => Self::Pipe,
            "deepObject" => Self::Deep,
            _ => return None,
        })
    }
}

/// The percent-encoding of one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    /// All characters but the unreserved ones are encoded.
    Strict,
    /// Reserved characters and bytes that are already percent-encoded are not encoded (`allowReserved`).
    Reserved,
    /// Nothing is encoded: for headers.
    Nothing,
}

impl Escape {
    pub(crate) fn text(self, text: &str) -> String {
        match self {
            Self::Strict => utf8_percent_encode(text, STRICT).to_string(),
            Self::Nothing => text.to_owned(),
            Self::Reserved => {
                let mut parts = text.split('%');
                let mut escaped = utf8_percent_encode(parts.next().unwrap_or_default(), RESERVED).to_string();
                for part in parts {
                    let is_byte = part.len() >= 2 && part.bytes().take(2).all(|b| b.is_ascii_hexdigit());
                    escaped.push_str(if is_byte { "%" } else { "%25" });
                    escaped.extend(utf8_percent_encode(part, RESERVED));
                }
                escaped
            }
        }
    }
}

/// Returns a value as it is written in a path, without a slash before it.
pub(crate) fn in_path(name: &str, value: &Json, style: Style, explode: bool) -> String {
    let escape = Escape::Strict;
    let name = escape.text(name);
    match style {
        Style::Label => {
            let between = if explode { "." } else { "," };
            format!(".{}", joined(value, escape, explode, between))
        }
        Style::Matrix => match value {
            Json::Array(items) if explode => {
                items.iter().filter_map(|item| Some(format!(";{name}={}", scalar(item, escape)?))).collect()
            }
            Json::Object(_) if explode => {
                pairs(value, escape).map(|(key, value)| format!(";{key}={value}")).collect()
            }
            value => match joined(value, escape, false, ",") {
                empty if empty.is_empty() => format!(";{name}"),
                text => format!(";{name}={text}"),
            },
        },
        _ => joined(value, escape, explode, ","),
    }
}

/// Returns the value of a header.
pub(crate) fn in_header(value: &Json, explode: bool) -> String {
    joined(value, Escape::Nothing, explode, ",")
}

/// Returns the pairs `name=value` that a parameter becomes in a query or in a form.
pub(crate) fn in_query(name: &str, value: &Json, style: Style, explode: bool, escape: Escape) -> Vec<String> {
    let own = Escape::Strict.text(name);
    let between = match style {
        Style::Space => "%20",
        Style::Pipe => "%7C",
        _ => ",",
    };
    match value {
        Json::Null => Vec::new(),
        Json::Object(_) if style == Style::Deep => {
            let mut found = Vec::new();
            deep(&own, value, escape, &mut found);
            found
        }
        Json::Array(items) if explode => {
            items.iter().filter_map(|item| Some(format!("{own}={}", scalar(item, escape)?))).collect()
        }
        Json::Object(_) if explode => {
            pairs(value, escape).map(|(key, value)| format!("{key}={value}")).collect()
        }
        Json::Array(items) if items.is_empty() => Vec::new(),
        Json::Object(fields) if fields.is_empty() => Vec::new(),
        value => vec![format!("{own}={}", joined(value, escape, false, between))],
    }
}

/// Adds the pairs of an object as `name[key]=value`.
fn deep(name: &str, value: &Json, escape: Escape, found: &mut Vec<String>) {
    match value {
        Json::Object(fields) => {
            for (key, value) in fields {
                deep(&format!("{name}%5B{}%5D", Escape::Strict.text(key)), value, escape, found);
            }
        }
        Json::Array(items) => items.iter().for_each(|item| deep(name, item, escape, found)),
        value => found.extend(scalar(value, escape).map(|value| format!("{name}={value}"))),
    }
}

/// Returns the parts of a value with a text between them.
fn joined(value: &Json, escape: Escape, explode: bool, between: &str) -> String {
    let parts: Vec<String> = match value {
        Json::Array(items) => items.iter().filter_map(|item| scalar(item, escape)).collect(),
        Json::Object(_) if explode => {
            pairs(value, escape).map(|(key, value)| format!("{key}={value}")).collect()
        }
        Json::Object(_) => pairs(value, escape).flat_map(|(key, value)| [key, value]).collect(),
        value => scalar(value, escape).into_iter().collect(),
    };
    parts.join(between)
}

fn pairs(value: &Json, escape: Escape) -> impl Iterator<Item = (String, String)> {
    let fields = value.as_object().into_iter().flatten();
    // A reserved character in a name would be taken for one between names.
    let name =
        move |key: &str| if escape == Escape::Nothing { key.to_owned() } else { Escape::Strict.text(key) };
    fields.filter_map(move |(key, value)| Some((name(key), scalar(value, escape)?)))
}

/// Returns the text of a value, with an array or an object as JSON; `None` for null.
fn scalar(value: &Json, escape: Escape) -> Option<String> {
    Some(match value {
        Json::Null => return None,
        Json::String(text) => escape.text(text),
        value => escape.text(&value.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The examples of the specification's table of styles.
    fn examples() -> [Json; 4] {
        [json!(""), json!("blue"), json!(["blue", "black", "brown"]), json!({ "R": 100, "G": 200, "B": 150 })]
    }

    // spec: OA-05
    #[test]
    fn in_path_writes_the_cells_of_the_specifications_table() {
        for (style, explode, cells) in [
            (Style::Simple, false, ["", "blue", "blue,black,brown", "R,100,G,200,B,150"]),
            (Style::Simple, true, ["", "blue", "blue,black,brown", "R=100,G=200,B=150"]),
            (Style::Label, false, [".", ".blue", ".blue,black,brown", ".R,100,G,200,B,150"]),
            (Style::Label, true, [".", ".blue", ".blue.black.brown", ".R=100.G=200.B=150"]),
            (
                Style::Matrix,
                false,
                [";color", ";color=blue", ";color=blue,black,brown", ";color=R,100,G,200,B,150"],
            ),
            (
                Style::Matrix,
                true,
                [";color", ";color=blue", ";color=blue;color=black;color=brown", ";R=100;G=200;B=150"],
            ),
        ] {
            let written = examples().map(|value| in_path("color", &value, style, explode));
            assert_eq!(written, cells, "{style:?} {explode}");
        }
    }

    // spec: OA-05
    #[test]
    fn in_query_writes_the_cells_of_the_specifications_table() {
        for (style, explode, cells) in [
            (
                Style::Form,
                false,
                ["color=", "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"],
            ),
            (
                Style::Form,
                true,
                ["color=", "color=blue", "color=blue&color=black&color=brown", "R=100&G=200&B=150"],
            ),
            (
                Style::Space,
                false,
                ["color=", "color=blue", "color=blue%20black%20brown", "color=R%20100%20G%20200%20B%20150"],
            ),
            (
                Style::Pipe,
                false,
                ["color=", "color=blue", "color=blue%7Cblack%7Cbrown", "color=R%7C100%7CG%7C200%7CB%7C150"],
            ),
            (
                Style::Deep,
                true,
                [
                    "color=",
                    "color=blue",
                    "color=blue&color=black&color=brown",
                    "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150",
                ],
            ),
        ] {
            let written =
                examples().map(|value| in_query("color", &value, style, explode, Escape::Strict).join("&"));
            assert_eq!(written, cells, "{style:?} {explode}");
        }
        let header = examples().map(|value| in_header(&value, true));
        assert_eq!(header, ["", "blue", "blue,black,brown", "R=100,G=200,B=150"]);
    }

    // spec: OA-05
    #[test]
    fn text_in_a_value_never_looks_like_what_is_between_values() {
        let hostile = json!(["a,b", "c&d=e", "f/g?h#i", "é +%"]);
        let written = in_query("x", &hostile, Style::Form, false, Escape::Strict);
        assert_eq!(written, ["x=a%2Cb,c%26d%3De,f%2Fg%3Fh%23i,%C3%A9%20%2B%25"]);
        assert_eq!(in_path("x", &json!("a/../b"), Style::Simple, false), "a%2F..%2Fb");
        assert_eq!(in_query("a[]", &json!(1), Style::Form, true, Escape::Strict), ["a%5B%5D=1"]);
    }

    #[test]
    fn reserved_characters_stay_where_the_document_allows_them_and_harm_nothing() {
        let reserved = |text: &str| Escape::Reserved.text(text);
        assert_eq!(reserved("a/b?c=d:e@f"), "a/b?c=d:e@f");
        assert_eq!(reserved("a&b#c+d[e] f"), "a%26b%23c%2Bd%5Be%5D%20f");
        assert_eq!(reserved("100%, %2F %zz"), "100%25,%20%2F%20%25zz");
    }

    #[test]
    fn nulls_are_left_out_and_inner_values_are_json_or_brackets() {
        let query =
            |value: Json, style, explode| in_query("a", &value, style, explode, Escape::Strict).join("&");
        assert_eq!(query(json!([null, 1, [2]]), Style::Form, true), "a=1&a=%5B2%5D");
        assert_eq!(
            query(json!({ "b": { "c": [1, 2] }, "d": null }), Style::Deep, true),
            "a%5Bb%5D%5Bc%5D=1&a%5Bb%5D%5Bc%5D=2"
        );
        assert_eq!(query(json!([]), Style::Form, false), "");
        assert_eq!(query(json!(null), Style::Form, true), "");
        assert_eq!(query(json!([1, 2]), Style::Space, true), "a=1&a=2");
    }
}
