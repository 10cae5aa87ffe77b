//! What a model without tool calling meant: an action, a final answer, or something else.
//!
//! Models are sloppy about the format, so the parser takes what is well meant: any case, one line or
//! many, fenced code, single quotes, trailing commas, unquoted keys, brackets left open, and several
//! spellings of the keys. It never invents a name or an argument.

use archon_types::Json;
use serde_json::Map;

/// What an answer in text mode asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Run a tool.
    Call {
        /// The tool's name as the model wrote it.
        tool: String,
        /// The arguments; an empty object if there were none.
        arguments: Json,
    },
    /// The task is done.
    Final(String),
}

/// Why an answer was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseFailure {
    /// Neither an action nor a final answer is there.
    #[error("no \"Action:\" and no \"Final Answer:\" was found")]
    Nothing,
    /// `Action:` is not followed by a JSON object.
    #[error("\"Action:\" is not followed by a JSON object")]
    NoObject,
    /// The object is not JSON, however kindly it is read.
    #[error("the action is not valid JSON")]
    BadJson,
    /// The object names no tool.
    #[error("the action has no \"tool\"")]
    NoTool,
}

/// Understands one answer. When it holds both an action and a final answer, the earlier one counts.
///
/// # Errors
/// [`ParseFailure`] says what is missing, in words that the model can act on.
pub fn parse_action(text: &str) -> Result<Action, ParseFailure> {
    let lower = text.to_ascii_lowercase();
    let action = find_marker(&lower, "action:");
    let last = find_marker(&lower, "final answer:");
    match (action, last) {
        (Some(a), Some(f)) if f < a => Ok(final_answer(text, f)),
        (Some(a), _) => {
            let end = section_end(&lower, a);
            parse_object(&text[a..end])
        }
        (None, Some(f)) => Ok(final_answer(text, f)),
        // Some models leave the marker out and send the object alone.
        (None, None) => match parse_object(text) {
            Err(ParseFailure::NoObject | ParseFailure::NoTool | ParseFailure::BadJson) => {
                Err(ParseFailure::Nothing)
            }
            other => other,
        },
    }
}

/// Where the text after `marker` begins. `Action:` must not be the end of another word.
fn find_marker(lower: &str, marker: &str) -> Option<usize> {
    lower.match_indices(marker).find_map(|(at, _)| {
        let before = lower[..at].chars().next_back();
        (!before.is_some_and(char::is_alphanumeric)).then_some(at + marker.len())
    })
}

fn section_end(lower: &str, from: usize) -> usize {
    ["\nthought:", "final answer:", "\nobservation:"]
        .iter()
        .filter_map(|marker| lower[from..].find(marker))
        .min()
        .map_or(lower.len(), |at| from + at)
}

fn final_answer(text: &str, from: usize) -> Action {
    Action::Final(text[from..].trim().to_owned())
}

fn parse_object(section: &str) -> Result<Action, ParseFailure> {
    let start = section.find('{').ok_or(ParseFailure::NoObject)?;
    let object = balanced(&section[start..]);
    let fields = read_json(&object).ok_or(ParseFailure::BadJson)?;
    meaning(fields)
}

/// The first balanced object; what is left open at the end of the text is closed.
fn balanced(text: &str) -> String {
    let mut open = Vec::new();
    let mut quote: Option<char> = None;
    let mut escaped = false;
    let mut previous = ' ';
    for (at, c) in text.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(q) if c == q => quote = None,
            Some(_) => {}
            None => match c {
                '"' => quote = Some(c),
                // An apostrophe inside a bare word is not a quote.
                '\'' if !previous.is_alphanumeric() => quote = Some(c),
                '{' => open.push('}'),
                '[' => open.push(']'),
                '}' | ']' => {
                    open.pop();
                    if open.is_empty() {
                        return text[..at + c.len_utf8()].to_owned();
                    }
                }
                _ => {}
            },
        }
        previous = c;
    }
    let mut closed = text.trim_end().to_owned();
    closed.extend(quote);
    closed.extend(open.iter().rev());
    closed
}

fn read_json(text: &str) -> Option<Map<String, Json>> {
    let value: Json = serde_json::from_str(text).ok().or_else(|| json5::from_str(text).ok())?;
    match value {
        Json::Object(fields) => Some(fields),
        _ => None,
    }
}

fn meaning(mut fields: Map<String, Json>) -> Result<Action, ParseFailure> {
    let name = ["tool", "tool_name", "action", "name"].iter().find_map(|key| match fields.get(*key) {
        Some(Json::String(name)) => Some(name.clone()),
        _ => None,
    });
    let Some(tool) = name else {
        return match fields.remove("answer") {
            Some(answer) => Ok(Action::Final(plain(answer))),
            None => Err(ParseFailure::NoTool),
        };
    };
    if tool.eq_ignore_ascii_case("final") && !fields.contains_key("arguments") {
        return Ok(Action::Final(fields.remove("answer").map(plain).unwrap_or_default()));
    }
    let arguments = ["arguments", "args", "action_input", "parameters", "input"]
        .iter()
        .find_map(|key| fields.remove(*key))
        .unwrap_or_else(|| Json::Object(Map::new()));
    Ok(Action::Call { tool, arguments })
}

fn plain(value: Json) -> String {
    match value {
        Json::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check_call(text: &str, tool: &str, arguments: Json) {
        let expected = Action::Call { tool: tool.to_owned(), arguments };
        assert_eq!(parse_action(text), Ok(expected), "{text}");
    }

    // spec: R-20, R-21, A-02
    #[test]
    fn well_meant_actions_are_understood() {
        let args = || json!({"expression": "15 * 3"});
        for text in [
            "Thought: I need it. Action: {'tool': 'calculator', 'arguments': {'expression': '15 * 3'}}",
            "Thought: x\nAction: {\"tool\": \"calculator\", \"arguments\": {\"expression\": \"15 * 3\"}}\n",
            "ACTION:\n```json\n{\"tool_name\": \"calculator\", \"args\": {\"expression\": \"15 * 3\"}}\n```",
            "Action: {action: 'calculator', action_input: {expression: '15 * 3',},}",
            "Action: {\"name\": \"calculator\", \"arguments\": {\"expression\": \"15 * 3\"}} Observation: 45",
            "Action: {\"tool\": \"calculator\", \"arguments\": {\"expression\": \"15 * 3\"",
            "{\"tool\": \"calculator\", \"arguments\": {\"expression\": \"15 * 3\"}}",
            "action: {\"tool\": \"calculator\", \"args\": {\"expression\": \"15 * 3\"}}\nThought: {next}",
        ] {
            check_call(text, "calculator", args());
        }
    }

    // spec: R-20
    #[test]
    fn braces_and_quotes_inside_strings_do_not_end_the_object() {
        check_call(
            r#"Action: {"tool": "write", "arguments": {"text": "a } b \" { it's"}} trailing }"#,
            "write",
            json!({"text": "a } b \" { it's"}),
        );
        check_call(
            r#"Action: {'tool': 'say', 'arguments': {'text': "it's {here}"}}"#,
            "say",
            json!({"text": "it's {here}"}),
        );
    }

    // spec: R-25
    #[test]
    fn the_earlier_of_action_and_final_answer_counts() {
        let last = |text: &str| Ok(Action::Final(text.to_owned()));
        assert_eq!(parse_action("Thought: The result is 45. Final Answer: 45"), last("45"));
        assert_eq!(parse_action("final answer:\n two\nlines "), last("two\nlines"));
        assert_eq!(
            parse_action("Final Answer: 1\nAction: {\"tool\": \"x\"}"),
            last("1\nAction: {\"tool\": \"x\"}")
        );
        check_call("Action: {\"tool\": \"x\"}\nFinal Answer: 1", "x", json!({}));
        assert_eq!(parse_action(r#"Action: {"action": "final", "answer": "done"}"#), last("done"));
        assert_eq!(parse_action(r#"{"thought": "t", "action": "final", "answer": 30}"#), last("30"));
    }

    // spec: R-22
    #[test]
    fn what_cannot_be_understood_says_what_is_missing() {
        for (text, failure) in [
            ("I think it is 45.", ParseFailure::Nothing),
            ("", ParseFailure::Nothing),
            ("Action: calculator", ParseFailure::NoObject),
            ("Action: {\"tool\": }", ParseFailure::BadJson),
            ("Action: {\"arguments\": {}}", ParseFailure::NoTool),
        ] {
            assert_eq!(parse_action(text), Err(failure), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_without_a_panic(text in "(Action:|Final Answer:|[\\PC{}\\[\\]\"'\\\\:,\n]){0,40}") {
            let _ = parse_action(&text);
        }

        // Whatever arguments a model sends as JSON arrive unchanged.
        #[test]
        fn json_arguments_arrive_unchanged(value in "\\PC{0,30}", number in any::<i64>()) {
            let arguments = json!({"text": value, "list": [number, null, {"deep": true}]});
            let text = format!("Thought: t\nAction: {}", json!({"tool": "t", "arguments": arguments}));
            prop_assert_eq!(parse_action(&text), Ok(Action::Call { tool: "t".into(), arguments }));
        }
    }
}
