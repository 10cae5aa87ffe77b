//! Which tools are deferred: a budget of tokens for definitions, spent server by server.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use archon_types::{TokenCounter as _, TokenEstimate, Tool, ToolSpec};

use crate::search_tool;

/// Default of the tokens that all definitions of a request may have before tools are deferred.
pub const DEFINITION_TOKENS: u64 = 2_000;

/// The deferred tools of an agent, and the two tools through which a model reaches them.
///
/// ```
/// use archon_tool_search::Deferral;
/// use archon_types::ToolSpec;
/// use serde_json::json;
///
/// let mut tools = ["clock", "files__read", "files__write", "mail__send"]
///     .map(|name| ToolSpec::new(name, "Looks something up. ".repeat(60), json!({ "type": "object" })));
/// for tool in &mut tools[1..] {
///     tool.annotations.deferrable = true;
/// }
/// // The definitions fit.
/// let always = Default::default();
/// assert!(Deferral::new(&tools, &always, 2_000).is_none());
/// // They do not, but those of `mail` do.
/// let deferral = Deferral::new(&tools, &always, 1_200).unwrap();
/// assert!(deferral.names.iter().eq(["files__read", "files__write"]));
/// ```
pub struct Deferral {
    /// Names of the deferred tools. Requests have no definitions of them.
    pub names: BTreeSet<String>,
    /// The tools `tool_search` and `call_tool`.
    pub tools: [Arc<dyn Tool>; 2],
}

impl Deferral {
    /// Chooses which of the tools are deferred, so that all definitions of a request have at most `budget`
    /// tokens, as [`TokenEstimate`] counts them. Returns `None` if all of them fit.
    ///
    /// Only tools that are marked as [deferrable](archon_types::ToolAnnotations::deferrable), and whose names
    /// are not in `always`, are deferred; the others count first. Those of one server (with the same part of the name before `__`) are deferred
    /// together: in the order of their names, a server whose tools fit into the rest of the budget is not.
    pub fn new<'s>(
        tools: impl IntoIterator<Item = &'s ToolSpec>,
        always: &BTreeSet<String>,
        budget: u64,
    ) -> Option<Self> {
        let mut taken = 0;
        let mut servers: BTreeMap<&str, (u64, Vec<&ToolSpec>)> = BTreeMap::new();
        for tool in tools {
            let tokens = tokens(tool);
            if tool.annotations.deferrable && !always.contains(&tool.name) {
                let of_server = servers.entry(server(&tool.name)).or_default();
                of_server.0 += tokens;
                of_server.1.push(tool);
            } else {
                taken += tokens;
            }
        }
        if taken + servers.values().map(|(tokens, _)| tokens).sum::<u64>() <= budget || servers.is_empty() {
            return None;
        }
        let mut left = budget.saturating_sub(taken + search_tool::tokens());
        servers.retain(|_, (tokens, _)| {
            let is_deferred = *tokens > left;
            if !is_deferred {
                left -= *tokens;
            }
            is_deferred
        });
        let servers: BTreeMap<_, _> =
            servers.into_iter().map(|(server, (_, tools))| (server, tools)).collect();
        let names = servers.values().flatten().map(|tool| tool.name.clone()).collect();
        Some(Self { names, tools: search_tool::tools(&servers) })
    }
}

/// Returns the tokens of a definition.
pub(crate) fn tokens(spec: &ToolSpec) -> u64 {
    TokenEstimate.count(&serde_json::to_string(&spec.definition()).unwrap_or_default())
}

/// Returns the server of a tool, or the tool's name if it is of no server.
fn server(tool: &str) -> &str {
    tool.split_once("__").map_or(tool, |(server, _)| server)
}

archon_types::debug_fields!(Deferral: names);
