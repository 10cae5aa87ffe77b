//! The two tools through which a model reaches deferred tools: `tool_search` and `call_tool`.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Arc, OnceLock},
};

use archon_types::{
    BoxFuture, CALL_TOOL, Json, TOOL_SEARCH, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult,
    ToolSpec, metadata,
};
use serde_json::json;

use crate::{ToolIndex, document};

/// Default and maximum number of tools that one search returns.
const FOUND: (usize, usize) = (5, 20);
/// Maximum size in bytes of the definitions in one search result, so that a small context window does not cut
/// them; of further tools the result has only the names. A result with one tool has its whole definition.
const DEFINITIONS: usize = 8_000;
/// Maximum number of bytes of the names of servers in the description of `tool_search`.
const SERVERS: usize = 300;

/// Makes `tool_search` and `call_tool` for the deferred tools, which are given by server.
pub(crate) fn tools(servers: &BTreeMap<&str, Vec<&ToolSpec>>) -> [Arc<dyn Tool>; 2] {
    let tools: Vec<ToolSpec> = servers.values().flatten().map(|tool| ToolSpec::clone(tool)).collect();
    let about = about(servers.keys().copied());
    [
        Arc::new(Search { spec: search_spec(about), index: OnceLock::new(), tools }),
        Arc::new(CallByName { spec: call_spec() }),
    ]
}

/// Returns the description of `tool_search`. It depends on the names of the servers alone, so that it stays the
/// same when a server changes its tools.
fn about<'s>(servers: impl Iterator<Item = &'s str>) -> String {
    let mut names = String::new();
    for server in servers {
        let separator = if names.is_empty() { "" } else { ", " };
        if names.len() + server.len() > SERVERS {
            names += ", and others";
            break;
        }
        names.extend([separator, server]);
    }
    format!(
        "Finds tools that are not listed here, by words of their names and descriptions, or by an exact name. \
         There are tools of: {names}. Returns the definitions; call a tool that it found with `{CALL_TOOL}`."
    )
}

/// Returns the maximum number of tokens of the definitions of the two tools.
pub(crate) fn tokens() -> u64 {
    let longest = about(std::iter::once("0".repeat(SERVERS).as_str()));
    document::tokens(&search_spec(longest)) + document::tokens(&call_spec())
}

fn search_spec(about: String) -> ToolSpec {
    let parameters = json!({
        "type": "object", "additionalProperties": false, "required": ["query"],
        "properties": {
            "query": {
                "type": "string",
                "description": "Words for the task of the tool, or the tool's name",
            },
            "limit": {
                "type": "integer", "minimum": 1, "maximum": FOUND.1,
                "description": format!("Number of tools to return; default {}", FOUND.0),
            },
        },
    });
    ToolSpec::new(TOOL_SEARCH, about, parameters).with_annotations(ToolAnnotations::read_only())
}

fn call_spec() -> ToolSpec {
    let parameters = json!({
        "type": "object", "additionalProperties": false, "required": ["name"],
        "properties": {
            "name": { "type": "string", "description": "The tool's name" },
            "arguments": { "type": "object", "description": "The tool's arguments, as its definition wants them" },
        },
    });
    let about = format!("Calls a tool that `{TOOL_SEARCH}` found.");
    ToolSpec::new(CALL_TOOL, about, parameters)
}

struct Search {
    spec: ToolSpec,
    /// The index, made by the first search.
    index: OnceLock<ToolIndex>,
    /// The deferred tools, in the order of the index.
    tools: Vec<ToolSpec>,
}

impl Search {
    fn search_text(&self, query: &str, limit: usize) -> String {
        let index = self.index.get_or_init(|| ToolIndex::new(&self.tools));
        let found = index.search(query, limit.clamp(1, FOUND.1));
        if found.is_empty() {
            return format!(
                "No tool fits {query:?}. Search again with other words: what the tool does, or what it works on."
            );
        }
        let found: Vec<&ToolSpec> = found.into_iter().filter_map(|place| self.tools.get(place)).collect();
        let names: Vec<&str> = found.iter().map(|tool| tool.name.as_str()).collect();
        let mut text = format!("Found: {}\n", names.join(", "));
        let mut are_all_shown = true;
        let mut room = if found.len() == 1 { usize::MAX } else { DEFINITIONS };
        for tool in found {
            let definition = serde_json::to_string(&tool.definition()).unwrap_or_default();
            are_all_shown &= definition.len() <= room;
            if definition.len() <= room {
                room -= definition.len();
                let _ = writeln!(text, "{definition}");
            }
        }
        if !are_all_shown {
            text += "For a definition that is not shown, search for the tool's name with the limit 1.\n";
        }
        text
    }
}

impl Tool for Search {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        let query = arguments.get("query").and_then(Json::as_str).unwrap_or_default();
        let limit = arguments.get("limit").and_then(Json::as_u64);
        let limit = limit.map_or(FOUND.0, |limit| usize::try_from(limit).unwrap_or(FOUND.1));
        let text = self.search_text(query, limit);
        Box::pin(async move {
            // Servers wrote the definitions, so they are foreign text.
            Ok(ToolResult::success(text).with_metadata(metadata::SOURCE_URL, "mcp://"))
        })
    }
}

/// The definition of `call_tool`. The loop replaces each call of it by the call of the named tool, so that
/// guards, approvals and retries see that tool. Only calls that it cannot replace are executed here.
struct CallByName {
    spec: ToolSpec,
}

impl Tool for CallByName {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, _: Json, _: &'a ToolContext) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        let text =
            "Error: `call_tool` needs the name of another tool, and works only in runs with deferred tools.";
        Box::pin(async move { Ok(ToolResult::error(text)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, about: &str) -> ToolSpec {
        ToolSpec::new(name, about, json!({ "type": "object" }))
    }

    fn search(tools: Vec<ToolSpec>) -> Search {
        Search { spec: search_spec(String::new()), index: OnceLock::new(), tools }
    }

    #[test]
    fn found_gives_definitions_best_first() {
        let search = search(vec![spec("a__mail", "Sends a letter."), spec("b__read", "Reads a file.")]);
        let expected = "Found: b__read\n{\"name\":\"b__read\",\"description\":\"Reads a file.\",\
                        \"parameters\":{\"type\":\"object\"}}\n";
        assert_eq!(search.search_text("read a file", 5), expected);
        assert_eq!(search.search_text("b__read", 5), expected);
        assert!(search.search_text("weather", 5).contains("No tool fits \"weather\""));
    }

    #[test]
    fn found_names_tools_whose_definitions_are_too_large() {
        let about = format!("Reads a file. {}", "x".repeat(20_000));
        let search = search(vec![spec("a__read", &about), spec("b__read", "Reads a file.")]);
        let text = search.search_text("read a file", 5);
        assert!(text.starts_with("Found: a__read, b__read\n{\"name\":\"b__read\""), "{text}");
        assert!(text.contains("with the limit 1") && !text.contains("xxx"), "{text}");
        let text = search.search_text("a__read", 1);
        assert!(text.contains("xxx") && !text.contains("limit"), "{text}");
    }

    #[test]
    fn definitions_of_the_two_tools_with_many_servers_have_at_most_their_tokens() {
        let names: Vec<String> = (0..60).map(|n| format!("a_server_with_a_long_name_{n}")).collect();
        let spec = search_spec(super::about(names.iter().map(String::as_str)));
        assert!(document::tokens(&spec) + document::tokens(&call_spec()) <= tokens());
        assert!(
            spec.description.contains("a_server_with_a_long_name_0, ")
                && spec.description.contains(", and others")
        );
    }
}
