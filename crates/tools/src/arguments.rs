//! Measures the size and the nesting depth of arguments before anything else reads them.

use std::io;

use archon_types::Json;

/// Returns whether arrays and objects are nested deeper than `max` levels. A flat object is one level.
///
/// The function reads at most `max + 1` levels, so hostile nesting cannot overflow the stack.
pub(crate) fn is_deeper_than(value: &Json, max: usize) -> bool {
    let deeper = |inner: &Json| match max.checked_sub(1) {
        Some(rest) => is_deeper_than(inner, rest),
        None => true,
    };
    match value {
        Json::Array(items) => max == 0 || items.iter().any(deeper),
        Json::Object(entries) => max == 0 || entries.values().any(deeper),
        _ => false,
    }
}

/// Returns the size of the value's JSON in bytes, or `None` if the size is more than `max`.
///
/// The value must not be nested deeply, because the serializer is recursive.
pub(crate) fn size_within(value: &Json, max: usize) -> Option<usize> {
    let mut counter = Counter { bytes: 0, max };
    serde_json::to_writer(&mut counter, value).ok()?;
    Some(counter.bytes)
}

/// A writer that counts bytes and fails beyond `max`.
struct Counter {
    bytes: usize,
    max: usize,
}

impl io::Write for Counter {
    fn write(&mut self, written: &[u8]) -> io::Result<usize> {
        self.bytes = self.bytes.saturating_add(written.len());
        if self.bytes > self.max { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(written.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the value's JSON, cut after `max` characters, or the number of items or entries of a very long
/// array or object.
pub(crate) fn excerpt(value: &Json, max: usize) -> String {
    let text = match value {
        // Cut long values before they are serialized.
        Json::String(s) if s.chars().nth(max).is_some() => {
            Json::String(s.chars().take(max).collect()).to_string()
        }
        Json::Array(items) if items.len() > max => return format!("an array of {} items", items.len()),
        Json::Object(entries) if entries.len() > max => {
            return format!("an object of {} entries", entries.len());
        }
        other => other.to_string(),
    };
    clip(&text, max)
}

/// Returns the beginning of a text in quotes, for a question to a person, with a note on how much is missing.
/// `quote` is the quotation mark; it may be empty.
pub(crate) fn beginning(text: &str, max: usize, quote: &str) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => {
            let (shown, more) = (&text[..end], text[end..].chars().count());
            format!("{quote}{shown}{quote} ... {more} more characters in the arguments")
        }
        None => format!("{quote}{text}{quote}"),
    }
}

/// Returns the beginning of a call's arguments, for the first line of a question.
pub(crate) fn call_beginning(arguments: &Json) -> String {
    beginning(&arguments.to_string(), 80, "")
}

/// Returns the first `max` characters of a text, with `…` if more were left out.
pub(crate) fn clip(text: &str, max: usize) -> String {
    archon_types::shorten(text, max, "…")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Json {
        (0..levels).fold(
            json!(1),
            |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({ "a": inner }) },
        )
    }

    // spec: TE-22
    #[test]
    fn nesting_is_counted_in_levels() {
        for levels in 0..20 {
            for max in 0..20 {
                assert_eq!(
                    is_deeper_than(&nested(levels), max),
                    levels > max,
                    "{levels} levels, at most {max}"
                );
            }
        }
    }

    proptest! {
        // spec: TE-22
        #[test]
        fn the_size_is_that_of_the_text(strings in prop::collection::vec(".*", 0..8), max in 0_usize..200) {
            let value = json!({ "strings": strings, "n": -1.5e300 });
            let size = value.to_string().len();
            prop_assert_eq!(size_within(&value, max), (size <= max).then_some(size));
            prop_assert_eq!(size_within(&value, size), Some(size));
        }
    }

    #[test]
    fn excerpt_of_any_value_is_short() {
        for value in
            [json!("ä".repeat(9999)), json!(vec![0; 9999]), nested(99), json!({ "k": "v".repeat(9999) })]
        {
            assert!(excerpt(&value, 40).chars().count() <= 42, "{}", excerpt(&value, 40));
        }
        assert_eq!(excerpt(&json!({ "a": [1, "x"] }), 40), r#"{"a":[1,"x"]}"#);
    }
}
