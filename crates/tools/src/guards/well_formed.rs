//! Guard: the arguments must be valid JSON, so that a truncated answer is not run with fewer arguments.

use archon_types::MalformedArguments;

use crate::{
    arguments::clip,
    guard::{Guard, Inspection, Verdict},
    log,
};

/// Number of characters of malformed arguments that are quoted before and after the place of the error.
const QUOTED: usize = 40;

pub(crate) struct WellFormed;

impl Guard for WellFormed {
    fn before(&self, inspection: &mut Inspection<'_>) -> Verdict {
        match (&inspection.call.malformed, &inspection.edited) {
            // A person's edit replaces the model's text.
            (None, _) | (Some(_), Some(_)) => Verdict::Pass,
            (Some(malformed), None) => {
                log::malformed(inspection.call, inspection.run.run.as_str(), &malformed.error);
                Verdict::refuse("malformed_arguments", broken_at(&inspection.call.name, malformed))
            }
        }
    }
}

fn broken_at(tool: &str, malformed: &MalformedArguments) -> String {
    let place = match position(&malformed.error) {
        // Without a position the error is not from the parser.
        None => return format!("'{tool}' was not run: {}. {AGAIN}", clip(&malformed.error, 200)),
        Some(at) => split(&malformed.text, at),
    };
    let place = match place {
        Some((before, "")) => format!(", after the end of `{before}`"),
        Some((before, after)) => format!(", here: `{before}` ⟪here⟫ `{after}`"),
        None => String::new(),
    };
    format!(
        "The arguments for '{tool}' are not valid JSON: {}{place}. The tool was not run. {AGAIN}",
        clip(&malformed.error, 200)
    )
}

const AGAIN: &str = "Call it again with the complete arguments as one JSON object.";

/// Parses line and column, both from 1, at the end of serde's message.
fn position(error: &str) -> Option<(usize, usize)> {
    let (_, at) = error.rsplit_once(" at line ")?;
    let (line, column) = at.split_once(" column ")?;
    Some((line.parse().ok()?, column.parse().ok()?))
}

/// Returns the text before and after a position.
fn split(text: &str, (line, column): (usize, usize)) -> Option<(&str, &str)> {
    let line_start: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    // Columns count bytes, and point at the last byte that was read.
    let at = text.ceil_char_boundary(line_start.saturating_add(column).min(text.len()));
    let (before, after) = text.split_at(at);
    let start = before.char_indices().rev().nth(QUOTED - 1).map_or(0, |(start, _)| start);
    let end = after.char_indices().nth(QUOTED).map_or(after.len(), |(end, _)| end);
    Some((&before[start..], &after[..end]))
}

#[cfg(test)]
mod tests {
    use archon_types::ToolCall;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Expect) {
        let malformed = ToolCall::from_json_text("1", "write_file", text).malformed.unwrap();
        let said = broken_at("write_file", &malformed);
        let (said, advice) = said.split_once(". The tool was not run.").unwrap();
        assert_eq!(advice, " Call it again with the complete arguments as one JSON object.");
        expected.assert_eq(said);
    }

    // spec: TE-09
    #[test]
    fn the_text_quotes_where_the_json_breaks() {
        check(
            r#"{"path": "notes.txt", "content": "hello wor"#,
            expect![[
                r#"The arguments for 'write_file' are not valid JSON: EOF while parsing a string at line 1 column 43, after the end of `ath": "notes.txt", "content": "hello wor`"#
            ]],
        );
        check(
            "{\"path\":\n 'notes.txt'}",
            expect![[r#"
                The arguments for 'write_file' are not valid JSON: expected value at line 2 column 2, here: `{"path":
                 '` ⟪here⟫ `notes.txt'}`"#]],
        );
        check(
            "{",
            expect![
                "The arguments for 'write_file' are not valid JSON: EOF while parsing an object at line 1 column 1, after the end of `{`"
            ],
        );
        check(
            r#"{"a": 1} {"b": 2}"#,
            expect![[
                r#"The arguments for 'write_file' are not valid JSON: trailing characters at line 1 column 10, here: `{"a": 1} {` ⟪here⟫ `"b": 2}`"#
            ]],
        );
    }

    // spec: TE-09
    #[test]
    fn a_call_that_is_refused_for_another_reason_reads_that_reason() {
        let mut call = ToolCall::new("1", "write_file", serde_json::json!({"path": "a"}));
        call.refuse("the answer was cut off");
        let malformed = call.malformed.unwrap();
        assert_eq!(malformed.text, r#"{"path":"a"}"#);
        let said = broken_at("write_file", &malformed);
        assert_eq!(said, format!("'write_file' was not run: the answer was cut off. {AGAIN}"));
    }

    proptest! {
        // spec: TE-09
        #[test]
        fn any_text_and_any_message_can_be_quoted(text in "\\PC{0,200}|(\\{\"|ä|\n){0,60}", line in 0_usize..9, column in 0_usize..300) {
            let error = format!("expected value at line {line} column {column}");
            let said = broken_at("t", &MalformedArguments { text: text.clone(), error });
            prop_assert!(said.chars().count() < 500);
            let real = ToolCall::from_json_text("1", "t", &text);
            if let Some(malformed) = real.malformed {
                prop_assert!(broken_at("t", &malformed).starts_with("The arguments for 't' are not valid JSON: "));
            }
        }
    }
}
