//! Functions for texts about plans: lists of ids, marks of tools.

use archon_types::{Json, SubTask, SubTaskId};

/// Returns a text unchanged, and any other value as JSON.
pub(crate) fn text_of(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns ids with `between` between them.
pub(crate) fn join(ids: &[SubTaskId], between: &str) -> String {
    ids.iter().map(SubTaskId::as_str).collect::<Vec<_>>().join(between)
}

/// Returns ` [tool]` for a subtask with a tool, and an empty text otherwise.
pub(crate) fn tool_mark(subtask: &SubTask) -> String {
    subtask.tool_name().map(|tool| format!(" [{tool}]")).unwrap_or_default()
}

/// Returns the text in one line, with one space between words.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
