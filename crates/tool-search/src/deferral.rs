//! Chooses the deferred tools: a budget of tokens for definitions, spent server by server.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

#[cfg(doc)]
use archon_types::TokenEstimate;
use archon_types::{Embedder, Tool, ToolSpec};

use crate::{document::tokens, search_tool};

/// Default for the budget of [`Deferral::new`], in tokens. Tools are deferred if the definitions of the deferrable
/// tools have more tokens.
pub const DEFINITION_TOKENS: u64 = 2_000;

/// The deferred tools of an agent, whose definitions are not sent to the model, and the two tools through
/// which the model finds and calls them.
///
/// ```
/// use archon_tool_search::Deferral;
/// use archon_types::ToolSpec;
/// use serde_json::json;
///
/// let mut tools = ["clock", "files__read", "files__write", "mail__send"]
///     .map(|name| ToolSpec::new(name, "Looks something up. ".repeat(40), json!({ "type": "object" })));
/// for tool in &mut tools[1..] {
///     tool.annotations.deferrable = true;
/// }
/// // The definitions fit.
/// let always = Default::default();
/// assert!(Deferral::new(&tools, Vec::new(), &always, 2_000, None).is_none());
/// // They do not, but those of `mail` do.
/// let deferral = Deferral::new(&tools, Vec::new(), &always, 600, None).unwrap();
/// assert!(deferral.names.iter().eq(["files__read", "files__write"]));
/// ```
pub struct Deferral {
    /// Names of the deferred tools. Requests do not define these tools.
    pub names: BTreeSet<String>,
    /// The tools `tool_search` and `call_tool`.
    pub tools: [Arc<dyn Tool>; 2],
}

impl Deferral {
    /// Chooses which tools are deferred, so that the definitions of the deferrable tools and of the search have at
    /// most `budget` tokens in a request, as [`TokenEstimate`] counts them. Returns `None` if nothing is deferred.
    ///
    /// A tool is deferrable if it is [marked](archon_types::ToolAnnotations::deferrable), and its name is not in
    /// `always`. The tools of one server, whose names have the same part before `__`, are deferred together. The
    /// servers are tried in the order of their names: the tools of a server are not deferred if they fit into the
    /// rest of the budget. Tools without `__` in their names count as one more server, which is tried first.
    ///
    /// The tools of `sources`, which are not known yet ([`Tool::source`]), are always deferred. They are searched
    /// once they are known.
    ///
    /// The description of `tool_search` names the servers of deferred tools, with the [groups](ToolSpec::groups) of
    /// their tools as far as there is room.
    ///
    /// The search finds tools by words, and with an `embedder` also by meaning. The embedder's vectors must have the
    /// length 1.
    pub fn new<'s>(
        tools: impl IntoIterator<Item = &'s ToolSpec>,
        sources: Vec<Arc<dyn Tool>>,
        always: &BTreeSet<String>,
        budget: u64,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Option<Self> {
        let mut servers: BTreeMap<&str, (u64, Vec<&ToolSpec>)> = BTreeMap::new();
        let is_deferrable = |tool: &&ToolSpec| tool.annotations.deferrable && !always.contains(&tool.name);
        for tool in tools.into_iter().filter(is_deferrable) {
            let (tokens_of_server, tools) = servers.entry(server(&tool.name)).or_default();
            *tokens_of_server += tokens(tool);
            tools.push(tool);
        }
        let needed = servers.values().map(|(tokens, _)| tokens).sum::<u64>();
        if needed <= budget && sources.is_empty() {
            return None;
        }
        let mut left = budget.saturating_sub(search_tool::tokens());
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
        Some(Self { names, tools: search_tool::tools(&servers, sources, embedder) })
    }
}

/// Returns the name of the tool's server, which is the part before `__`. Tools without such a part have the server
/// with the empty name.
fn server(tool: &str) -> &str {
    tool.split_once("__").map_or("", |(server, _)| server)
}

archon_types::debug_fields!(Deferral: names);
