//! The name and the argument of a call, as one line each.

use archon_types::{Json, ToolCall, one_line};

/// The maximum number of characters of a line of an output that are kept, and of the argument.
pub(super) const CHARACTERS: usize = 400;

/// Returns the name of the tool that a call is for, as one line.
pub(super) fn name_of(call: &ToolCall) -> String {
    one_line(&call.target().name, CHARACTERS)
}

/// Returns the argument of a call that says the most, as one line.
pub(super) fn argument_of(call: &ToolCall) -> String {
    let call = call.target();
    match &call.malformed {
        Some(malformed) => one_line(&malformed.text, CHARACTERS),
        None => one_line(&argument(&call.arguments), CHARACTERS),
    }
}

/// Names of arguments that say what a call is about; models send arguments in any order.
const TELLING: [&str; 8] = ["command", "path", "file", "pattern", "query", "url", "task", "name"];

/// Returns the argument that says the most: one with a telling name, or the first that is a text, or all.
fn argument(arguments: &Json) -> String {
    let Some(named) = arguments.as_object() else { return arguments.to_string() };
    let telling = TELLING.iter().filter_map(|name| named.get(*name)).find_map(Json::as_str);
    if let Some(text) = telling.or_else(|| named.values().find_map(Json::as_str)) {
        return text.to_owned();
    }
    if named.is_empty() { String::new() } else { arguments.to_string() }
}
