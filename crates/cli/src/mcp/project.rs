//! A project's `.mcp.json`: servers that come with another person's code.
//!
//! Other programs read the same format: `{"mcpServers": {NAME: {command, args, env, cwd, url, headers,
//! type}}}`. Other parts of an entry are ignored. An entry cannot declare tools as read-only: a project does
//! not decide when you are asked.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use archon::types::Json;
use serde::Deserialize;

use super::FILE;
use crate::{
    app::App,
    config::{Problem, ServerSettings, line_at},
    failure::Failure,
    own_file,
};

pub(super) struct Written {
    pub(super) name: String,
    pub(super) text: String,
    /// The settings, or the problem with the entry.
    pub(super) settings: Result<ServerSettings, String>,
}

/// The parts of an entry that this program uses.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Parts {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
}

/// Returns the path of the file, beside the project's settings. It may not exist.
pub(super) fn path(app: &App) -> Option<PathBuf> {
    app.sources.project.as_ref().map(|settings| settings.with_file_name(FILE))
}

/// Reads the file; returns no entries if the file does not exist.
pub(super) fn read(path: &Path) -> Result<Vec<Written>, Failure> {
    let Some(text) = own_file::read_settings(path)? else { return Ok(Vec::new()) };
    parse(&text)
        .map_err(|(line, problem)| Failure::usage(format!("{}:{line}: {problem}", path.display()), CORRECT))
}

const CORRECT: &str = "correct the file, or move it away";

/// Returns all problems of a file with this text.
pub(crate) fn problems(text: &str) -> Vec<Problem> {
    let entries = match parse(text) {
        Ok(entries) => entries,
        Err((line, problem)) => return vec![Problem { line, problem, advice: CORRECT.to_owned() }],
    };
    let wrong = entries.into_iter().filter_map(|entry| Some((entry.name, entry.settings.err()?)));
    let mut problems: Vec<_> = wrong
        .map(|(name, problem)| Problem {
            line: line_of(text, &name),
            problem: format!("the MCP server {name:?}: {problem}"),
            advice: "correct the entry, or remove it".to_owned(),
        })
        .collect();
    problems.sort();
    problems
}

/// Returns the entries, or the first problem with the whole file and its line.
fn parse(text: &str) -> Result<Vec<Written>, (usize, String)> {
    let file: Json = serde_json::from_str(text).map_err(|e| (e.line(), format!("it is not JSON: {e}")))?;
    let Some(servers) = file["mcpServers"].as_object() else {
        return Err((1, "it has no object `mcpServers`".to_owned()));
    };
    let written = |(name, entry): (&String, &Json)| Written {
        name: name.clone(),
        text: serde_json::to_string_pretty(entry).unwrap_or_default(),
        settings: settings(name, entry),
    };
    Ok(servers.iter().map(written).collect())
}

fn settings(name: &str, entry: &Json) -> Result<ServerSettings, String> {
    let Parts { kind, command, args, env, cwd, url, headers } =
        serde_json::from_value(entry.clone()).map_err(|e| e.to_string())?;
    match kind.as_deref() {
        None | Some("stdio" | "http" | "streamable-http" | "streamableHttp") => {}
        Some("sse") => {
            return Err("the transport `sse` is outdated; use `http`, if the server has it".to_owned());
        }
        Some(other) => {
            return Err(format!("there is no transport {other:?}; the transports are `stdio` and `http`"));
        }
    }
    let settings = ServerSettings { command, args, env, cwd, url, headers, ..ServerSettings::default() };
    settings.problem(name).map_or(Ok(settings), Err)
}

/// Returns the line of an entry, counted from 1.
fn line_of(text: &str, name: &str) -> usize {
    let quoted = serde_json::to_string(name).unwrap_or_default();
    let servers = text.find("\"mcpServers\"").unwrap_or_default();
    let place = text[servers..].find(&quoted).map_or(servers, |at| servers + at);
    line_at(text, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_in_the_form_of_other_programs() {
        let text = r#"{"mcpServers": {
            "files": {"command": "npx", "args": ["-y", "files"], "env": {"A": "${A}"}, "autoApprove": ["*"]},
            "web": {"type": "http", "url": "https://example.com/mcp", "headers": {"X": "y"}}
        }}"#;
        let entries = parse(text).unwrap_or_default();
        let settings: Vec<_> = entries.into_iter().filter_map(|entry| entry.settings.ok()).collect();
        assert_eq!(settings[0].command.as_deref(), Some("npx"));
        assert_eq!(settings[0].read_only, [""; 0], "a project does not lower a guard");
        assert_eq!(settings[1].url.as_deref(), Some("https://example.com/mcp"));
    }

    #[test]
    fn problems_of_a_file_are_those_of_all_its_entries() {
        let found = |text: &str| -> Vec<(usize, String)> {
            problems(text).into_iter().map(|p| (p.line, p.problem)).collect()
        };
        let of = |name: &str, problem: &str| format!("the MCP server {name:?}: {problem}");
        let text = "{\"mcpServers\": {\n\"a\": {},\n\"b\": {\"command\": 1},\n\"c\": {\"command\": \"x\"},\n\
                    \"d\": {\"type\": \"sse\", \"url\": \"https://x\"},\n\"e__f\": {\"command\": \"x\"}}}";
        assert_eq!(
            found(text),
            [
                (2, of("a", "it has neither a `command` nor a `url`")),
                (3, of("b", "invalid type: integer `1`, expected a string")),
                (5, of("d", "the transport `sse` is outdated; use `http`, if the server has it")),
                (
                    6,
                    of(
                        "e__f",
                        "a server cannot have this name: it contains '__', which separates the server from the tool"
                    )
                ),
            ]
        );
        assert_eq!(found("{}"), [(1, "it has no object `mcpServers`".to_owned())]);
        assert!(found("{\n")[0].1.starts_with("it is not JSON"));
    }
}
