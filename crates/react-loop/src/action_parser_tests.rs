//! Tests of the parser for text mode: it accepts sloppy answers, refuses cut-off ones, and invents nothing.

use StopReason::{Length, Stop};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn check_call(text: &str, tool: &str, arguments: Json) {
    let expected = Written::Calls(vec![WrittenCall::new(tool, arguments)]);
    assert_eq!(parse_answer(text, Stop), Ok(expected), "{text}");
}

/// Returns the calls in one line: names, arguments, and marks for refused ones.
fn calls(text: &str) -> String {
    let Ok(Written::Calls(calls)) = parse_answer(text, Stop) else { return "none".to_owned() };
    let line = |call: &WrittenCall| {
        let refused = call.refused.map(|why| format!(" ({})", why.split(';').next().unwrap_or(why)));
        format!("{} {}{}", call.tool, call.arguments, refused.unwrap_or_default())
    };
    calls.iter().map(line).collect::<Vec<_>>().join(", ")
}

// spec: R-20, R-21, A-02
#[test]
fn parse_answer_accepts_common_variants_of_an_action() {
    for text in [
        "Thought: I need it. Action: {'tool': 'calculator', 'arguments': {'expression': '15 * 3'}}",
        "Thought: x\nAction: {\"tool\": \"calculator\", \"arguments\": {\"expression\": \"15 * 3\"}}\n",
        "ACTION:\n```json\n{\"tool_name\": \"calculator\", \"args\": {\"expression\": \"15 * 3\"}}\n```",
        "Action: {tool: calculator, arguments: {expression: '15 * 3'}}",
        "Action: {action: 'calculator', action_input: {expression: '15 * 3',},}",
        "Action: {\"name\": \"calculator\", \"arguments\": {\"expression\": \"15 * 3\"}} Observation: 45",
        "Action: {\"tool\": \"calculator\", \"arguments\": {\"expression\": \"15 * 3\"",
        "{\"tool\": \"calculator\", \"arguments\": {\"expression\": \"15 * 3\"}}",
        "action: {\"tool\": \"calculator\", \"args\": {\"expression\": \"15 * 3\"}}\nThought: {next}",
        // Curly quotes, a bracket too few in a code block or a tag, brackets in prose.
        "Action: {“tool”: “calculator”, “arguments”: {“expression”: “15 * 3”}}",
        "Action:\n```json\n{\"tool\": \"calculator\", \"arguments\": {\"expression\": \"15 * 3\"}\n```\n",
        "<tool_call>\n{\"name\": \"calculator\", \"arguments\": {\"expression\": \"15 * 3\"\n</tool_call>",
        "Action: I use {the tool} now: {\"tool\": \"calculator\", \"arguments\": {\"expression\": \"15 * 3\"}}",
        // The word in a sentence before the action itself.
        "My next action: multiply.\n\nAction: {\"tool\": \"calculator\", \"arguments\": {\"expression\": \"15 * 3\"}}",
        "I need one action: a {product}.\nThought: x\nAction: calculator\nAction Input: {\"expression\": \"15 * 3\"}",
        "With {braces} I write {\"tool\": \"calculator\", \"arguments\": {\"expression\": \"15 * 3\"}}",
        // Call formats of other systems.
        "Thought: x\nAction: calculator\nAction Input: {\"expression\": \"15 * 3\"}\nObservation: 45",
        "Action: `calculator`\nAction Input:\n```json\n{\"expression\": \"15 * 3\"}\n```",
        "<tool_call>{\"name\": \"calculator\", \"arguments\": {\"expression\": \"15 * 3\"}}</tool_call>",
        "[TOOL_CALLS] [{\"name\": \"calculator\", \"arguments\": {\"expression\": \"15 * 3\"}}]",
        "[TOOL_CALLS]calculator{\"expression\": \"15 * 3\"}",
        "[TOOL_CALLS]calculator[ARGS]{\"expression\": \"15 * 3\"}",
        "<function=calculator>{\"expression\": \"15 * 3\"}</function>",
        "[calculator(expression='15 * 3')]",
        "{\"function\": {\"name\": \"calculator\", \"arguments\": \"{\\\"expression\\\": \\\"15 * 3\\\"}\"}}",
    ] {
        check_call(text, "calculator", json!({"expression": "15 * 3"}));
    }
    check_call(
        "Action: {'tool': 't', 'arguments': {'a': True, 'b': None}}",
        "t",
        json!({"a": true, "b": null}),
    );
    check_call("Action: {\"tool\": \"t\", \"arguments\": null}", "t", json!({}));
}

// spec: R-20
#[test]
fn braces_quotes_and_words_of_the_format_inside_texts_do_not_end_the_object() {
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
    check_call(
        "Action: {\"tool\": \"write\", \"arguments\": {\"text\": \"The Final Answer: 42\"}}",
        "write",
        json!({"text": "The Final Answer: 42"}),
    );
    check_call(
        "Action: {'tool': 'write', 'arguments': {'text': 'x\nThought: y\nAction: z'}}",
        "write",
        json!({"text": "x\nThought: y\nAction: z"}),
    );
}

// spec: R-20, R-22
#[test]
fn parse_answer_never_returns_a_truncated_action() {
    let whole = r#"Action: {"tool": "write", "arguments": {"path": "a", "text": "hello", "n": 12}}"#;
    for at in "Action: {\"".len()..whole.len() {
        let cut = &whole[..at];
        assert!(!matches!(parse_answer(cut, Length), Ok(Written::Calls(_))), "{cut}");
        // Only brackets are added when the answer was not reported as cut off.
        if let Ok(Written::Calls(calls)) = parse_answer(cut, Stop) {
            assert!(cut.ends_with(['"', '}']), "{cut}: {calls:?}");
        }
    }
    assert!(matches!(parse_answer(whole, Length), Ok(Written::Calls(_))));
    for torn in [
        r#"Action: {"tool": "write", "arguments": {"text": "hel"#,
        r#"Action: {"tool": "write", "arguments": {"tool": "rm", "x": {"tool": "rm"}, "text": "hel"#,
        r#"{"tool": "write", "arguments": {"tool": "rm"}, "text": "hel"#,
        "[TOOL_CALLS]write{\"text\": \"hel",
        "<tool_call>{\"name\": \"write\", \"arguments\": {\"n\": 1",
    ] {
        assert_eq!(parse_answer(torn, Stop), Err(ParseFailure::Torn), "{torn}");
    }
    assert_eq!(parse_answer("Let me think about", Length), Err(ParseFailure::CutOff));
}

// spec: R-20
#[test]
fn object_in_a_thought_that_goes_on_in_the_same_line_is_no_call() {
    let text =
        "Action: none. Thought: I could send {\"tool\": \"delete_file\"} but need not.\nFinal Answer: done";
    assert_eq!(calls(text), "none");
    assert_eq!(calls("Action:\n  **Thought:** {\"tool\": \"delete_file\"}\nFinal Answer: done"), "none");
    assert_eq!(calls("Action: none. Observation: {\"tool\": \"delete_file\"}"), "none");
}

// spec: R-20, R-25
#[test]
fn action_in_a_sentence_is_passed_over_and_never_hides_a_bad_call() {
    let parse = |text: &str| parse_answer(text, Stop);
    assert_eq!(parse("No action: I know it.\nFinal Answer: 45"), Ok(Written::Final("45".to_owned())));
    assert_eq!(
        calls("Action: {\"tool\": \"a\"}\nThe next action: b.\nAction: {\"tool\": \"b\"}"),
        "a {}, b {}"
    );
    for bad in [
        // A call of a known format, and one with an invented result, were meant as calls.
        "Action: a\nAction Input: 15 * 3\nAction: {\"tool\": \"b\"}",
        "Action: a\nObservation: 3\nAction: {\"tool\": \"b\"}",
        "Action: a\nObservation: 3\nFinal Answer: 3",
        "<tool_call>a</tool_call>\nAction: {\"tool\": \"b\"}",
    ] {
        assert_eq!(parse(bad), Err(ParseFailure::NoObject), "{bad}");
    }
    let torn = "The action: b.\nAction: {\"tool\": \"a\", \"arguments\": {\"x\": \"hel";
    assert_eq!(parse(torn), Err(ParseFailure::Torn));
    let many = "action: x\n".repeat(100) + "Action: {\"tool\": \"a\"}";
    assert_eq!(parse(&many), Err(ParseFailure::NoObject));
}

// spec: R-20
#[test]
fn all_calls_of_an_answer_are_taken_in_order() {
    assert_eq!(
        calls(
            "Action: {\"tool\": \"a\"}\nThought: and\nAction: {\"tool\": \"b\", \"arguments\": {\"x\": 1}}"
        ),
        "a {}, b {\"x\":1}"
    );
    assert_eq!(calls("Action: [{\"tool\": \"a\"}, {\"tool\": \"b\"}]"), "a {}, b {}");
    assert_eq!(calls("Action: {\"tool\": \"a\"}\n{\"tool\": \"b\"}\nFinal Answer: 1"), "a {}, b {}");
    assert_eq!(
        calls("<tool_call>{\"name\": \"a\"}</tool_call>\n<tool_call>{\"name\": \"b\"}</tool_call>"),
        "a {}, b {}"
    );
    assert_eq!(calls("[a(x=1), b()]"), "a {\"x\":1}, b {}");
    // Calls after an invented result are refused, and so are unreadable calls.
    assert_eq!(
        calls("Action: {\"tool\": \"a\"}\nObservation: 3\nAction: {\"tool\": \"b\"}"),
        "a {}, b {} (it stands behind an observation that you wrote yourself)"
    );
    assert_eq!(
        calls("Action: {\"tool\": \"a\"}\nAction: {\"tool\": \"b\", \"arguments\": {\"x\": \"hel"),
        "a {}, b {} (it could not be read as one whole JSON object, and nothing behind it was run)"
    );
}

// spec: R-25
#[test]
fn the_earlier_of_action_and_final_answer_counts() {
    let last = |text: &str| Ok(Written::Final(text.to_owned()));
    let parse = |text: &str| parse_answer(text, Stop);
    assert_eq!(parse("Thought: The result is 45. Final Answer: 45"), last("45"));
    assert_eq!(parse("final answer:\n two\nlines "), last("two\nlines"));
    assert_eq!(parse("Final Answer: 1\nAction: {\"tool\": \"x\"}"), last("1\nAction: {\"tool\": \"x\"}"));
    check_call("Action: {\"tool\": \"x\"}\nFinal Answer: 1", "x", json!({}));
    assert_eq!(parse(r#"Action: {"action": "final", "answer": "done"}"#), last("done"));
    assert_eq!(parse(r#"{"thought": "t", "action": "final", "answer": 30}"#), last("30"));
}

// spec: R-22
#[test]
fn parse_answer_failure_names_the_missing_part() {
    for (text, failure) in [
        ("I think it is 45.", ParseFailure::Nothing),
        ("", ParseFailure::Nothing),
        ("The user is {\"name\": \"Bob\", \"age\": 3}.", ParseFailure::Nothing),
        ("Action: calculator", ParseFailure::NoObject),
        ("Action: calculator\nAction Input: 15 * 3", ParseFailure::NoObject),
        ("Action: {\"tool\": }", ParseFailure::BadJson),
        ("Action: {\"arguments\": {}}", ParseFailure::NoTool),
    ] {
        assert_eq!(parse_answer(text, Stop), Err(failure), "{text:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_without_a_panic(
        text in "(Action:|Action Input:|Final Answer:|Observation:|<tool_call>|\\[TOOL_CALLS\\]|<function=|```|[\\PC{}\\[\\]\"'“’\\\\:,\n]){0,40}",
    ) {
        let _ = parse_answer(&text, Stop);
        let _ = parse_answer(&text, Length);
    }

    // Property: arguments in valid JSON arrive unchanged.
    #[test]
    fn json_arguments_arrive_unchanged(value in "\\PC{0,30}", number in any::<i64>()) {
        let arguments = json!({"text": value, "list": [number, null, {"deep": true}]});
        let object = json!({"name": "t", "arguments": arguments});
        for text in [
            format!("Thought: t\nAction: {object}"),
            format!("<tool_call>\n{object}\n</tool_call>"),
            format!("[TOOL_CALLS] [{object}]"),
            format!("Action: t\nAction Input: {arguments}"),
            format!("<function=t>{arguments}</function>"),
        ] {
            let expected = Written::Calls(vec![WrittenCall::new("t", arguments.clone())]);
            prop_assert_eq!(parse_answer(&text, Length), Ok(expected));
        }
    }

    // Property: a cut-off answer has no call that the whole answer does not have.
    #[test]
    fn parse_answer_of_any_prefix_returns_no_other_call(
        first in "\\PC{0,20}", second in "[\\PC\"{}\n]{0,20}", cut in any::<prop::sample::Index>(),
    ) {
        let call = |text: &str| json!({"tool": "t", "arguments": {"text": text}});
        let text = format!("Thought: t\nAction: {}\nAction: {}\n", call(&first), call(&second));
        let Ok(Written::Calls(whole)) = parse_answer(&text, Stop) else { panic!("{text}") };
        let at = text.floor_char_boundary(cut.index(text.len() + 1));
        if let Ok(Written::Calls(calls)) = parse_answer(&text[..at], Length) {
            for (call, expected) in calls.iter().zip(&whole) {
                prop_assert!(call.refused.is_some() || call == expected, "{call:?}");
            }
        }
    }
}
