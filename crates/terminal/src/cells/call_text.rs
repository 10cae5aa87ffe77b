//! The name and the argument of a call, as one line each.

use archon_types::{Json, ToolCall, one_line};

/// The maximum number of characters of a tool's name, of an argument, and of a kept line of an output.
pub(super) const CHARACTERS: usize = 400;

/// Returns the name of the tool that a call is for, as one line.
pub(super) fn name_of(call: &ToolCall) -> String {
    one_line(&call.target().name, CHARACTERS)
}

/// Returns the argument that tells most about a call, as one line; for malformed arguments, their text.
pub(super) fn argument_of(call: &ToolCall) -> String {
    let call = call.target();
    match &call.malformed {
        Some(malformed) => one_line(&malformed.text, CHARACTERS),
        None => one_line(&argument(&call.arguments), CHARACTERS),
    }
}

/// Names of arguments that say what a call is about; models send arguments in any order.
const TELLING: [&str; 8] = ["command", "path", "file", "pattern", "query", "url", "task", "name"];

/// Returns the first argument with a name in [`TELLING`] that is a text; without one, the first argument that is a
/// text; otherwise all arguments as JSON.
fn argument(arguments: &Json) -> String {
    let Some(named) = arguments.as_object() else { return arguments.to_string() };
    let telling = TELLING.iter().filter_map(|name| named.get(*name)).find_map(Json::as_str);
    if let Some(text) = telling.or_else(|| named.values().find_map(Json::as_str)) {
        return text.to_owned();
    }
    if named.is_empty() { String::new() } else { arguments.to_string() }
}
