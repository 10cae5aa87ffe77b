//! JSON as models write it: one line, with a space behind each comma and colon.
//!
//! The worked examples, the history and the grammar agree on this one form. The grammar then leaves no
//! choice between two spellings of the same document, and what leaves no choice need not be computed.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::Formatter;

/// The document in that form.
pub(crate) fn json_text(value: &Value) -> String {
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, Spaced);
    // Writing a value into memory cannot fail; the compact form stands in for the impossible.
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
