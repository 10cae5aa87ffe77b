//! Writes JSON in the form that all prompts use: one line, with a space after each comma and colon.
//!
//! The worked examples, the history and the grammar all use this form. So the grammar allows only one
//! spelling of a document, and the model need not compute bytes without an alternative.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::Formatter;

/// Returns the document as JSON text, in the form that all prompts use.
pub(crate) fn json_text(value: &Value) -> String {
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, Spaced);
    // Writing into memory cannot fail; if it did, the compact form would be used.
    match value.serialize(&mut serializer) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(_) => value.to_string(),
    }
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_and_colons_are_followed_by_a_space() {
        let value = serde_json::json!({"a": [1, "b, c:d", {}], "e": null});
        assert_eq!(json_text(&value), r#"{"a": [1, "b, c:d", {}], "e": null}"#);
    }
}
