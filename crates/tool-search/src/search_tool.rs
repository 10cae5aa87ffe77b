//! The two tools through which a model reaches deferred tools: `tool_search` and `call_tool`.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use archon_types::{
    BoxFuture, CALL_TOOL, Json, TOOL_SEARCH, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult,
    ToolSpec,
};
use serde_json::json;

use crate::{ToolIndex, document};

/// Default and maximum number of tools that one search returns.
const FOUND: (usize, usize) = (5, 20);
/// Maximum size in bytes of the definitions in one search result; for further tools the result has only the
/// names.
const DEFINITIONS: usize = 24_000;
/// Maximum number of servers that the description of `tool_search` names.
const SERVERS: usize = 40;

/// Makes `tool_search` and `call_tool` for the deferred tools, which are given by server.
pub(crate) fn tools(servers: &BTreeMap<&str, Vec<&ToolSpec>>) -> [Arc<dyn Tool>; 2] {
    let tools: Vec<ToolSpec> = servers.values().flatten().map(|tool| ToolSpec::clone(tool)).collect();
    let mut names: Vec<&str> = servers.keys().copied().take(SERVERS).collect();
    if names.len() < servers.len() {
        names.push("and others");
    }
    let about = format!(
        "Finds tools that are not listed here, by words of their names and descriptions, or by an exact name. \
         There are {} more tools: {}. Returns the definitions; call a tool that it found with `{CALL_TOOL}`.",
        tools.len(),
        names.join(", ")
    );
    let index = ToolIndex::new(&tools);
    [Arc::new(Search { spec: search_spec(about), index, tools }), Arc::new(CallByName { spec: call_spec() })]
}

/// Returns the tokens of the definitions of the two tools, without the names of servers.
pub(crate) fn tokens() -> u64 {
    document::tokens(&search_spec("0".repeat(300))) + document::tokens(&call_spec())
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
    index: ToolIndex,
    /// The deferred tools, in the order of the index.
    tools: Vec<ToolSpec>,
}

impl Search {
    fn search_text(&self, query: &str, limit: usize) -> String {
        let found = self.index.search(query, limit.clamp(1, FOUND.1));
        if found.is_empty() {
            return format!(
                "No tool fits {query:?}. Search again with other words: what the tool does, or what it works on."
            );
        }
        let mut text = String::new();
        let mut further = Vec::new();
        for tool in found.into_iter().filter_map(|place| self.tools.get(place)) {
            let definition = serde_json::to_string(&tool.definition()).unwrap_or_default();
            if text.is_empty() || text.len() + definition.len() <= DEFINITIONS {
                let _ = writeln!(text, "{definition}");
            } else {
                further.push(tool.name.as_str());
            }
        }
        if !further.is_empty() {
            let _ = writeln!(
                text,
                "Also found, too large to show here: {}. Search for one of these names to see its definition.",
                further.join(", ")
            );
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
        Box::pin(async move { Ok(ToolResult::success(text)) })
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
        Search { spec: search_spec(String::new()), index: ToolIndex::new(&tools), tools }
    }

    #[test]
    fn found_gives_definitions_best_first() {
        let search = search(vec![spec("a__mail", "Sends a letter."), spec("b__read", "Reads a file.")]);
        let expected = "{\"name\":\"b__read\",\"description\":\"Reads a file.\",\
                        \"parameters\":{\"type\":\"object\"}}\n";
        assert_eq!(search.search_text("read a file", 5), expected);
        assert_eq!(search.search_text("b__read", 5), expected);
        assert!(search.search_text("weather", 5).contains("No tool fits \"weather\""));
    }

    #[test]
    fn found_names_tools_whose_definitions_are_too_large() {
        let about = format!("Reads a file. {}", "x".repeat(20_000));
        let search = search(vec![spec("a__read", &about), spec("b__read", &about)]);
        let text = search.search_text("read a file", 5);
        assert!(text.starts_with("{\"name\":\"a__read\""));
        assert!(text.contains("Also found, too large to show here: b__read."), "{text}");
    }
}
