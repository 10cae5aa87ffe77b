//! Tests of the index over small sets of tools.

use archon_tool_search::ToolIndex;
use archon_types::{Json, ToolSpec};
use serde_json::json;

fn tool(name: &str, description: &str, properties: Json) -> ToolSpec {
    ToolSpec::new(name, description, json!({ "type": "object", "properties": properties }))
}

fn tools() -> Vec<ToolSpec> {
    vec![
        tool("calendar__create_event", "Adds an appointment.", json!({ "title": { "type": "string" } })),
        tool(
            "files__read",
            "Returns the text of a file.",
            json!({ "path": { "description": "Where it is." } }),
        ),
        tool("files__write", "Stores a text in a file.", json!({ "path": {}, "text": {} })),
        tool("weather__now", "Current conditions.", json!({ "unit": { "enum": ["celsius", "fahrenheit"] } })),
    ]
}

fn check(query: &str, expected: &[&str]) {
    let tools = tools();
    let found = ToolIndex::new(&tools).search(query, 10);
    let found: Vec<&str> = found.into_iter().map(|place| tools[place].name.as_str()).collect();
    assert_eq!(found, expected, "{query}");
}

#[test]
fn search_finds_words_of_names_descriptions_parameters_and_values() {
    check("new event", &["calendar__create_event"]);
    check("appointments", &["calendar__create_event"]);
    check("where", &[]);
    check("title", &["calendar__create_event"]);
    check("temperature in Fahrenheit", &["weather__now"]);
    check("quantum chromodynamics", &[]);
    check("", &[]);
}

#[test]
fn search_puts_the_name_before_the_description() {
    check("read the text", &["files__read", "files__write"]);
    check("write the text", &["files__write", "files__read"]);
}

#[test]
fn search_by_an_exact_name_ranks_it_first() {
    let mut tools = tools();
    tools.push(tool("z__stuffed", &"files read ".repeat(50), json!({})));
    let index = ToolIndex::new(&tools);
    for (place, tool) in tools.iter().enumerate() {
        assert_eq!(index.search(&tool.name, 1), [place], "{}", tool.name);
        let sentence = format!("I want to call `{}` now", tool.name);
        assert_eq!(index.search(&sentence, 1), [place], "{sentence}");
    }
}

#[test]
fn search_returns_at_most_the_limit_and_of_equals_the_first() {
    let same: Vec<_> = (0..9).map(|n| tool(&format!("t{n}"), "Sends mail.", json!({}))).collect();
    let index = ToolIndex::new(&same);
    assert_eq!(index.search("mail", 3), [0, 1, 2]);
    assert_eq!(index.search("mail", 0), [0; 0]);
    assert_eq!(ToolIndex::new(&[]).search("mail", 3), [0; 0]);
}
