//! Parses JSON without rounding its integers.

use archon_types::Json;

/// Parses JSON with exact integers. An integer that does not fit into 64 bits is an error; it is not rounded.
pub(crate) fn exact_json(text: &str) -> Result<Json, String> {
    if let Some(number) = numbers(text).find(|number| is_too_large(number)) {
        let shown: String = number.chars().take(40).collect();
        return Err(format!("the number {shown} does not fit into 64 bits; pass it as a text"));
    }
    serde_json::from_str(text).map_err(|e| e.to_string())
}

fn is_too_large(number: &str) -> bool {
    let is_whole = !number.contains(['.', 'e', 'E']);
    is_whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
}

/// Returns the numbers of a JSON text, without those inside of strings.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let at = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit())?;
            rest = &rest[at..];
            if let Some(inside) = rest.strip_prefix('"') {
                rest = after_text(inside);
                continue;
            }
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
            let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
            let (number, after) = rest.split_at(end);
            rest = after;
            return Some(number);
        }
    })
}

/// Returns the JSON text after the end of a string; `text` begins after the string's opening quote.
fn after_text(text: &str) -> &str {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_numbers_are_exact_or_refused() {
        let text = r#"{"1\"2": [9007199254740993, -9223372036854775808, 18446744073709551615, 1e30, 1.5]}"#;
        let value = exact_json(text).unwrap();
        assert_eq!(value["1\"2"][0], json!(9_007_199_254_740_993_u64));
        assert_eq!(value["1\"2"][2], json!(u64::MAX));
        assert_eq!(value["1\"2"][3], json!(1e30));
        for large in ["18446744073709551616", "[-9223372036854775809]", r#"{"a": 1000000000000000000000}"#] {
            assert!(exact_json(large).unwrap_err().contains("64 bits"), "{large}");
        }
        assert_eq!(
            exact_json(r#""99999999999999999999999 \" 1""#),
            Ok(json!("99999999999999999999999 \" 1"))
        );
        for broken in ["", "\"", "\"\\", "-", "1 2", "[1", "NaN"] {
            assert!(exact_json(broken).is_err(), "{broken}");
        }
    }
}
