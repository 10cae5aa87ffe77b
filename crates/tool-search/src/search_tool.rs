//! The two tools through which a model reaches deferred tools: `tool_search` and `call_tool`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::{Arc, Mutex, PoisonError},
};

use archon_types::{
    BoxFuture, CALL_TOOL, Embedder, Json, MemoryError, TOOL_SEARCH, Tool, ToolAnnotations, ToolContext,
    ToolError, ToolResult, ToolSource, ToolSpec, metadata,
};
use futures_util::future::join_all;
use serde_json::json;

use crate::{ToolIndex, ToolVectors, document};

/// Default and maximum number of tools that one search returns.
const FOUND: (usize, usize) = (5, 20);
/// Maximum size in bytes of the definitions in one search result, so that a small context window does not cut them;
/// the tools without room for a definition have only their names in the result. If only one tool is found, its
/// definition is shown at any size.
const DEFINITIONS: usize = 8_000;
/// Maximum number of bytes of the names of servers and groups in the description of `tool_search`.
const SERVERS: usize = 300;
/// The text after the names in the description, if some names do not fit.
const OTHERS: &str = ", and others";

/// Creates `tool_search` and `call_tool`. `servers` has the deferred tools of each server; `sources` has the sources
/// whose tools are not known yet.
pub(crate) fn tools(
    servers: &BTreeMap<&str, Vec<&ToolSpec>>,
    sources: Vec<Arc<dyn Tool>>,
    embedder: Option<Arc<dyn Embedder>>,
) -> [Arc<dyn Tool>; 2] {
    let tools: Vec<ToolSpec> = servers.values().flatten().map(|tool| ToolSpec::clone(tool)).collect();
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (server, tools) in servers {
        let of_tools = tools.iter().flat_map(|tool| tool.groups.iter().map(String::as_str));
        groups.entry(server).or_default().extend(of_tools);
    }
    for source in sources.iter().filter_map(|tool| tool.source()) {
        groups.entry(source.name()).or_default();
    }
    let spec = search_spec(about(&names_of(&groups)));
    let vectors = embedder.map(ToolVectors::new);
    [
        Arc::new(Search { spec, indexed: Mutex::default(), tools, sources, vectors }),
        Arc::new(CallByName { spec: call_spec() }),
    ]
}

/// Returns the description of `tool_search`. It depends on the names of the servers and of the groups alone, so that it
/// stays the same when a server without groups changes its tools.
fn about(names: &str) -> String {
    let names = if names.is_empty() { String::new() } else { format!("There are tools of: {names}. ") };
    format!(
        "Finds tools that are not listed here, by words of their names and descriptions, or by an exact name. \
         {names}Returns the definitions; call a tool that it found with `{CALL_TOOL}`."
    )
}

/// Returns the names of the servers, each with its groups in parentheses. Groups are added only if all servers fit.
fn names_of(groups: &BTreeMap<&str, BTreeSet<&str>>) -> String {
    let mut shown: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for server in groups.keys() {
        let mut more = shown.clone();
        more.insert(server, Vec::new());
        if listed(&more).len() > SERVERS {
            return listed(&shown) + OTHERS;
        }
        shown = more;
    }
    for (server, groups) in groups {
        for group in groups {
            let mut more = shown.clone();
            more.entry(server).or_default().push(group);
            if listed(&more).len() > SERVERS {
                return listed(&shown) + OTHERS;
            }
            shown = more;
        }
    }
    listed(&shown)
}

/// Returns the names of servers and groups as a text. An empty name of a server stands for tools without a server;
/// only their groups are in the text.
fn listed(servers: &BTreeMap<&str, Vec<&str>>) -> String {
    let names = servers.iter().map(|(server, groups)| match (*server, groups.join(", ")) {
        ("", groups) => groups,
        (server, groups) if groups.is_empty() => server.to_owned(),
        (server, groups) => format!("{server} ({groups})"),
    });
    names.filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Returns the maximum number of tokens of the definitions of the two tools.
pub(crate) fn tokens() -> u64 {
    let longest = about(&("0".repeat(SERVERS) + OTHERS));
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
    /// The index, made by the first search, and again when the tools of a source have changed.
    indexed: Mutex<Option<Arc<Indexed>>>,
    /// The deferred tools that were known at the start.
    tools: Vec<ToolSpec>,
    /// Sources of further tools.
    sources: Vec<Arc<dyn Tool>>,
    /// Vectors of the definitions, if there is an embedder.
    vectors: Option<ToolVectors>,
}

/// Tools and their index.
struct Indexed {
    index: ToolIndex,
    /// The tools, in the order of the index: first those that were known at the start.
    tools: Vec<ToolSpec>,
}

impl Search {
    /// Searches the known tools. Waits for a source only if the query names the source, or if no tool fits, so that
    /// a slow source does not delay a search for others.
    async fn search(&self, query: &str, limit: usize) -> String {
        let limit = limit.clamp(1, FOUND.1);
        let open = self.sources.iter().filter_map(|tool| tool.source());
        let (named, others): (Vec<_>, Vec<_>) = open.partition(|source| is_named(query, source.name()));
        join_all(named.iter().map(|source| source.settled())).await;
        let mut indexed = self.indexed();
        let (mut found, mut problem) = self.positions(&indexed, query, limit).await;
        if found.is_empty() && !others.is_empty() {
            join_all(others.iter().map(|source| source.settled())).await;
            indexed = self.indexed();
            (found, problem) = self.positions(&indexed, query, limit).await;
        }
        let found: Vec<&ToolSpec> = found.into_iter().filter_map(|place| indexed.tools.get(place)).collect();
        let mut text = match found.is_empty() {
            true => format!(
                "No tool fits {query:?}. Search again with other words: what the tool does, or what it works on.\n"
            ),
            false => definitions_of(&found),
        };
        if let Some(problem) = problem {
            let _ = writeln!(text, "Searched by words only: {problem}.");
        }
        text += &not_searched(named.iter().chain(&others).copied());
        text
    }

    /// Returns the positions of the tools that fit, and the problem if the embedder failed.
    async fn positions(
        &self,
        indexed: &Indexed,
        query: &str,
        limit: usize,
    ) -> (Vec<usize>, Option<MemoryError>) {
        let by_words = || indexed.index.search(query, limit);
        let Some(vectors) = &self.vectors else { return (by_words(), None) };
        match vectors.search(&indexed.index, &indexed.tools, query, limit).await {
            Ok(found) => (found, None),
            Err(problem) => (by_words(), Some(problem)),
        }
    }

    /// Returns the index of the tools that are known now.
    fn indexed(&self) -> Arc<Indexed> {
        let sourced = self.sources.iter().filter_map(|tool| tool.source()?.tools().ok()).flatten();
        let sourced: Vec<Arc<dyn Tool>> = sourced.collect();
        let mut indexed = self.indexed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = |indexed: &&Arc<Indexed>| {
            let earlier = indexed.tools.iter().skip(self.tools.len());
            earlier.eq(sourced.iter().map(|tool| tool.spec()))
        };
        if let Some(current) = indexed.as_ref().filter(is_current) {
            return current.clone();
        }
        let sourced = sourced.iter().map(|tool| tool.spec());
        let tools: Vec<ToolSpec> = self.tools.iter().chain(sourced).cloned().collect();
        indexed.insert(Arc::new(Indexed { index: ToolIndex::new(&tools), tools })).clone()
    }
}

/// Returns a line for each source whose tools are not known now, and what to do about them.
fn not_searched<'s>(sources: impl Iterator<Item = &'s dyn ToolSource>) -> String {
    let mut text = String::new();
    for source in sources {
        if let Err(why) = source.tools() {
            let _ = writeln!(text, "Not searched: {}: {why}.", source.name());
        }
    }
    if !text.is_empty() {
        text += "Go on without their tools, or search for one of these names later.\n";
    }
    text
}

/// Returns true if a word of the query is the name of a source, or begins with the name and `__`.
fn is_named(query: &str, source: &str) -> bool {
    let words = query.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-')));
    words
        .map(|word| word.split_once("__").map_or(word, |(server, _)| server))
        .any(|word| word.eq_ignore_ascii_case(source))
}

/// Returns the names of the tools, and their definitions as far as there is room.
fn definitions_of(found: &[&ToolSpec]) -> String {
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

impl Tool for Search {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let query = arguments.get("query").and_then(Json::as_str).unwrap_or_default();
            let limit = arguments.get("limit").and_then(Json::as_u64);
            let limit = limit.map_or(FOUND.0, |limit| usize::try_from(limit).unwrap_or(FOUND.1));
            let text = self.search(query, limit).await;
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
    use archon_testkit::LateTools;

    use super::*;

    fn spec(name: &str, about: &str) -> ToolSpec {
        ToolSpec::new(name, about, json!({ "type": "object" }))
    }

    fn search(tools: Vec<ToolSpec>) -> Search {
        Search {
            spec: search_spec(String::new()),
            indexed: Mutex::default(),
            tools,
            sources: Vec::new(),
            vectors: None,
        }
    }

    #[tokio::test]
    async fn found_gives_definitions_best_first() {
        let search = search(vec![spec("a__mail", "Sends a letter."), spec("b__read", "Reads a file.")]);
        let expected = "Found: b__read\n{\"name\":\"b__read\",\"description\":\"Reads a file.\",\
                        \"parameters\":{\"type\":\"object\"}}\n";
        assert_eq!(search.search("read a file", 5).await, expected);
        assert_eq!(search.search("b__read", 5).await, expected);
        assert!(search.search("weather", 5).await.contains("No tool fits \"weather\""));
    }

    #[tokio::test]
    async fn found_names_tools_whose_definitions_are_too_large() {
        let about = format!("Reads a file. {}", "x".repeat(20_000));
        let search = search(vec![spec("a__read", &about), spec("b__read", "Reads a file.")]);
        let text = search.search("read a file", 5).await;
        assert!(text.starts_with("Found: a__read, b__read\n{\"name\":\"b__read\""), "{text}");
        assert!(text.contains("with the limit 1") && !text.contains("xxx"), "{text}");
        let text = search.search("a__read", 1).await;
        assert!(text.contains("xxx") && !text.contains("limit"), "{text}");
    }

    #[tokio::test]
    async fn search_waits_for_a_source_only_if_it_is_named_or_nothing_else_fits() {
        let about = "Finds the weather of a town.";
        let weather = Search { spec: spec("late__weather", about), ..search(Vec::new()) };
        let late = LateTools::new("late", vec![Arc::new(weather)]);
        let lost = LateTools::silent("lost", Vec::new());
        let mut search = search(vec![spec("b__read", "Reads a file.")]);
        search.sources = vec![late.clone(), lost.clone()];
        let text = search.search("read a file", 5).await;
        assert!(text.starts_with("Found: b__read\n"), "{text}");
        let advice = "\nNot searched: late: it has not answered yet.\n\
                      Not searched: lost: it has not answered yet.\n\
                      Go on without their tools, or search for one of these names later.\n";
        assert!(text.ends_with(advice), "{text}");
        assert_eq!(late.waits(), 0);
        let text = search.search("weather of a town", 5).await;
        assert!(
            text.starts_with("Found: late__weather\n") && text.contains("Not searched: lost: "),
            "{text}"
        );
        assert!(search.search("what was LOST", 5).await.starts_with("No tool fits"));
        assert!(search.search("lost__read of the file", 5).await.starts_with("Found: b__read"));
        assert!(search.search("a lost-file in lostness", 5).await.starts_with("Found: b__read"));
        assert_eq!(lost.waits(), 3);
        lost.answer();
        assert!(!search.search("read a file", 5).await.contains("Go on without"));
    }

    #[test]
    fn definitions_of_the_two_tools_with_many_servers_have_at_most_their_tokens() {
        let names: Vec<String> = (0..60).map(|n| format!("a_server_with_a_long_name_{n:02}")).collect();
        let groups = || names.iter().map(String::as_str).collect::<BTreeSet<_>>();
        for servers in [
            names.iter().map(|name| (name.as_str(), BTreeSet::new())).collect(),
            BTreeMap::from([("a_server_with_a_long_name_00", groups()), ("b", groups())]),
        ] {
            let spec = search_spec(super::about(&names_of(&servers)));
            assert!(document::tokens(&spec) + document::tokens(&call_spec()) <= tokens());
            let text = &spec.description;
            assert!(
                text.contains("a_server_with_a_long_name_00") && text.contains(", and others. Returns"),
                "{text}"
            );
        }
    }

    #[test]
    fn names_of_servers_have_their_groups_in_parentheses() {
        let servers = [("", vec!["admin"]), ("files", vec![]), ("shop", vec!["orders", "pets"])];
        let servers = servers.map(|(server, groups)| (server, groups.into_iter().collect()));
        assert_eq!(names_of(&BTreeMap::from(servers)), "admin, files, shop (orders, pets)");
        assert_eq!(names_of(&BTreeMap::from([("", BTreeSet::new())])), "");
    }

    #[tokio::test]
    async fn search_for_a_group_finds_its_tools_before_others() {
        let mut refund = spec("shop__refund", "Pays money back.");
        refund.groups = vec!["orders".to_owned()];
        let other =
            spec("shop__listCarts", "Lists carts that may become orders, by the orders of a customer.");
        let search = search(vec![other, refund]);
        let text = search.search("orders", 5).await;
        assert!(text.starts_with("Found: shop__refund, shop__listCarts\n"), "{text}");
    }
}
