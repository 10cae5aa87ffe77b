//! Tests of reading files: what is wrong is named with its line, and the rest works.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;

fn problems(text: &str) -> (usize, Vec<String>) {
    let (hooks, problems) = parse(Path::new("hooks.json"), text);
    (hooks.len(), problems.iter().map(ToString::to_string).collect())
}

/// Returns a file with this entry on its fourth line, beside one that is right.
fn entry(entry: &str) -> String {
    format!(
        r#"{{ "model": "opus", "hooks": {{
            "PreToolUse": [
                {{ "matcher": "bash", "hooks": [{{ "type": "command", "command": "true" }},
                    {entry}] }} ] }} }}"#
    )
}

#[test]
fn parse_broken_entry_is_left_out_with_its_line() {
    let cases = [
        (r#"{ "command": "true" }"#, "missing field `type`"),
        (r#"{ "type": "command" }"#, "needs the field `command`"),
        (r#"{ "type": "command", "command": " " }"#, "needs the field `command`"),
        (r#"{ "type": "command", "command": 3 }"#, "invalid type: integer `3`"),
        (r#"{ "type": "command", "command": "true", "if": "Bash(rm *)" }"#, "unknown field `if`"),
        (r#"{ "type": "command", "command": "true", "timeout": 0 }"#, "the timeout 0 is not between"),
        (
            r#"{ "type": "command", "command": "true", "timeout": 1e9 }"#,
            "the timeout 1000000000 is not between",
        ),
        (r#"{ "type": "prompt", "command": "Is it good?" }"#, "the type `prompt` is not supported"),
        (r#"{ "type": "http", "url": "hooks" }"#, "`hooks` is no address"),
        (r#"{ "type": "http", "url": "http://example.com/" }"#, "is not encrypted; use https"),
        (r#"{ "type": "http", "url": "file:///etc/passwd" }"#, "`file` is no scheme"),
        (r#"{ "type": "http", "url": "http://127.0.0.1/", "headers": { "a b": "c" } }"#, "the header `a b`"),
        (r#""true""#, "invalid type: string"),
    ];
    for (broken, expected) in cases {
        let (hooks, problems) = problems(&entry(broken));
        assert_eq!((hooks, problems.len()), (1, 1), "{broken}: {problems:?}");
        assert!(problems[0].starts_with("hooks.json:4: "), "{}", problems[0]);
        assert!(problems[0].contains(expected), "{}", problems[0]);
        assert!(!problems[0].contains("at line"), "{}", problems[0]);
    }
}

#[test]
fn parse_error_within_an_entry_has_the_line_of_the_field() {
    let (hooks, problems) = problems(&entry("{ \"type\": \"command\",\n\n\"command\": 3 }"));
    assert_eq!(hooks, 1);
    assert!(problems[0].starts_with("hooks.json:6: "), "{}", problems[0]);
}

#[test]
fn parse_unknown_event_and_broken_matcher_leave_the_rest() {
    let text = r#"{ "hooks": {
        "SessionStart": [],
        "Stop": [{ "hooks": [{ "type": "command", "command": "true" }] }],
        "PreToolUse": [
            { "matcher": "(", "hooks": [{ "type": "command", "command": "true" }] }
        ] } }"#;
    let (hooks, problems) = problems(text);
    assert_eq!((hooks, problems.len()), (1, 2));
    assert!(problems[0].starts_with("hooks.json:2: `SessionStart` is no event"), "{}", problems[0]);
    assert!(problems[1].starts_with("hooks.json:5: the matcher `(`"), "{}", problems[1]);
}

#[test]
fn parse_broken_json_names_the_line() {
    let (hooks, problems) = problems("{ \"hooks\": {\n \"Stop\": [}\n");
    assert_eq!((hooks, problems.len()), (0, 1));
    assert!(problems[0].starts_with("hooks.json:2: "), "{}", problems[0]);
    assert_eq!(self::problems("").0, 0);
    assert_eq!(self::problems(r#"{ "permissions": {} }"#), (0, Vec::new()));
}

#[test]
fn parse_event_that_is_there_twice_counts_twice() {
    let one = r#""Stop": [{ "hooks": [{ "type": "command", "command": "true" }] }]"#;
    assert_eq!(problems(&format!(r#"{{ "hooks": {{ {one}, {one} }} }}"#)), (2, Vec::new()));
}

#[test]
fn parse_of_too_many_hooks_leaves_the_others_out_with_one_problem() {
    let hook = r#"{ "type": "command", "command": "true" }"#;
    let text = format!(r#"{{ "hooks": {{ "Stop": [{{ "hooks": [{}] }}] }} }}"#, [hook; 2_000].join(","));
    let (hooks, problems) = parse(Path::new("hooks.json"), &text);
    assert_eq!((hooks.len(), problems.len()), (MOST_PARTS - 1, 1));
    assert!(problems[0].text.contains("more than 1000 hooks and groups"), "{:?}", problems[0]);
}

#[cfg(not(feature = "tls"))]
#[test]
fn parse_https_address_without_the_feature_tls_is_left_out() {
    let (hooks, problems) =
        problems(&entry(r#"{ "type": "http", "url": "https://example.com/?token=key" }"#));
    assert_eq!((hooks, problems.len()), (1, 1));
    assert!(problems[0].starts_with("hooks.json:4: an https address needs the cargo feature `tls`"));
    assert!(!problems[0].contains("key"), "{}", problems[0]);
}

#[cfg(feature = "tls")]
#[test]
fn parse_https_address_with_the_feature_tls_is_a_hook() {
    assert_eq!(problems(&entry(r#"{ "type": "http", "url": "https://example.com/" }"#)), (2, Vec::new()));
}

#[test]
fn description_of_an_endpoint_has_its_port_and_no_keys() {
    let url = "http://anna:key@127.0.0.1:8443/check?token=key#key";
    let text =
        format!(r#"{{ "hooks": {{ "Stop": [{{ "hooks": [{{ "type": "http", "url": "{url}" }}] }}] }} }}"#);
    let (hooks, _) = parse(Path::new("hooks.json"), &text);
    let description = hooks[0].description(Path::new("/srv/app"));
    assert_eq!(description.to_string(), "Stop *: POST http://127.0.0.1:8443/check");
    assert!(!description.is_command && description.files.is_empty());
}
