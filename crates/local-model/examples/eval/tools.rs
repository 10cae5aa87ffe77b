//! The four tools as the model sees them: specs and result formats of the real ones, which a crate of
//! this layer may not depend on.

use std::fs;
use std::path::Path;

use archon_types::{ToolCall, ToolResult, ToolSpec};
use serde_json::{Value, json};

use crate::expression;

pub(crate) fn specs() -> Vec<ToolSpec> {
    let spec = |name: &str, about: &str, properties: Value, required: Value, example: Value| {
        let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if required != json!([]) {
            schema["required"] = required;
        }
        let mut spec = ToolSpec::new(name, about, schema);
        spec.examples.push(example);
        spec
    };
    vec![
        spec(
            "calculator",
            "Evaluates arithmetic and returns the number. Use it for every calculation.",
            json!({
                "expression": { "type": "string", "description": "Arithmetic, for example 12 * (3 + 4) or 15% of 200" },
                "operation": { "type": "string", "enum": ["add", "subtract", "multiply", "divide", "power", "percentage"] },
                "a": { "type": "number" }, "b": { "type": "number" },
                "value": { "type": "number" }, "percentage": { "type": "number" },
            }),
            json!([]),
            json!({ "expression": "12 * (3 + 4)" }),
        ),
        spec(
            "read_file",
            "Reads a file and returns its text, or its picture. Use it to see what a file contains.",
            json!({
                "path": { "type": "string", "description": "File path" },
                "start_line": { "type": ["integer", "null"], "minimum": 1 },
                "end_line": { "type": ["integer", "null"], "minimum": 1 },
            }),
            json!(["path"]),
            json!({ "path": "notes.txt" }),
        ),
        spec(
            "list_files",
            "Lists the files in a directory. Use it to find out which files there are.",
            json!({
                "path": { "type": ["string", "null"], "description": "Directory to list; the current one if left out" },
                "pattern": { "type": ["string", "null"] },
                "recursive": { "type": ["boolean", "null"] },
            }),
            json!([]),
            json!({ "path": "." }),
        ),
        spec(
            "search",
            "Searches the text of all files and returns the lines that match, each with its file. Use it to find where \
             something is.",
            json!({
                "pattern": { "type": "string", "description": "Search pattern (regex)" },
                "path": { "type": ["string", "null"] },
            }),
            json!(["pattern"]),
            json!({ "pattern": "TODO" }),
        ),
    ]
}

pub(crate) fn is_valid(call: &ToolCall, specs: &[ToolSpec]) -> bool {
    let spec = specs.iter().find(|spec| spec.name == call.name);
    call.malformed.is_none()
        && spec.is_some_and(|spec| jsonschema::is_valid(&spec.parameters, &call.arguments))
}

pub(crate) fn call(call: &ToolCall, workspace: &Path) -> ToolResult {
    let text = |name: &str| call.arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    match call.name.as_str() {
        "calculator" => match expression::evaluate(text("expression")) {
            Some(value) => ToolResult::success(value.to_string()),
            None => ToolResult::error(format!("'{}' is not arithmetic.", text("expression"))),
        },
        "read_file" => match fs::read_to_string(workspace.join(text("path"))) {
            Ok(content) => ToolResult::success(content),
            Err(e) => ToolResult::error(format!("'{}' cannot be read: {e}", text("path"))),
        },
        "list_files" => list(workspace, text("path")),
        "search" => search(workspace, text("pattern")),
        other => ToolResult::error(format!("There is no tool '{other}'.")),
    }
}

fn list(workspace: &Path, path: &str) -> ToolResult {
    let Ok(entries) = fs::read_dir(workspace.join(path)) else {
        return ToolResult::error(format!("'{path}' is not a directory."));
    };
    let mut names: Vec<_> = entries.flatten().map(|entry| shown(workspace, &entry.path())).collect();
    names.sort();
    ToolResult::success(names.join("\n"))
}

/// A plain search is enough here: the patterns of the tasks are words.
fn search(workspace: &Path, pattern: &str) -> ToolResult {
    let mut lines = Vec::new();
    let mut files = 0;
    visit(workspace, &mut |path| {
        files += 1;
        let text = fs::read_to_string(path).unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            if line.to_lowercase().contains(&pattern.to_lowercase()) {
                lines.push(format!("{}:{}: {}", shown(workspace, path), number + 1, line.trim()));
            }
        }
    });
    match lines.len() {
        0 => ToolResult::success(format!("No matches for '{pattern}' in {files} files.")),
        _ => ToolResult::success(lines.join("\n")),
    }
}

fn visit(folder: &Path, seen: &mut dyn FnMut(&Path)) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { visit(&path, seen) } else { seen(&path) }
    }
}

fn shown(workspace: &Path, path: &Path) -> String {
    let name = path.strip_prefix(workspace).unwrap_or(path).display().to_string();
    if path.is_dir() { name + "/" } else { name }
}
