//! A tool that is made of others: a graph of calls that itself is a tool.
//!
//! | concept | file |
//! |---|---|
//! | [`Composite`], what is put together | here |
//! | [`ToolNode`], one call of it | `node.rs` |
//! | which calls wait for which | `graph.rs` |
//! | what is wrong with one, all at once | `problem.rs`, `validate.rs` |
//! | its parameters, those of the calls that it begins with | `parameters.rs` |
//! | [`CompositeTool`], the tool | `tool.rs` |
//! | one run of it | `run.rs` |

mod graph;
mod node;
mod parameters;
mod problem;
mod run;
mod tool;
mod validate;

pub use node::{ForEach, Mapping, OnNodeFailure, ToolNode};
pub use problem::CompositeProblem;
pub use tool::CompositeTool;

use crate::{ToolEngine, ToolRegistry};
use graph::Graph;

/// Calls of tools and what flows between them. [`into_tool`](Self::into_tool) makes a tool of it.
///
/// The arguments of a call are its constants, what other calls' results give it, and, for the calls that it begins
/// with, what the caller of the composite says: their open parameters are its own.
///
/// ```
/// use archon_tools::{Composite, FnTool, ToolEngine, ToolNode, ToolRegistry};
/// use archon_types::ToolSpec;
/// use serde_json::json;
///
/// let text = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
/// let registry = ToolRegistry::new();
/// registry.register(FnTool::new(
///     ToolSpec::new("web_search", "Finds pages about a query.", text("query")),
///     |_, _| async { Ok(json!({"results": [{"url": "a"}, {"url": "b"}]}).to_string().into()) },
/// ))?;
/// registry.register(FnTool::new(
///     ToolSpec::new("summarize", "Says what a page says.", text("url")),
///     |page, _| async move { Ok(format!("about {}", page["url"]).into()) },
/// ))?;
///
/// let mut research = Composite::new("research", "Finds pages about a topic and sums each of them up.");
/// research.add_node(ToolNode::new("search", "web_search").parameter("query", "topic").gives("/results", "read", "url"))?;
/// research.add_node(ToolNode::new("read", "summarize").for_each("url", "/url"))?;
/// let tool = research.into_tool(ToolEngine::new(registry)).expect("nothing is wrong with it");
/// assert_eq!(archon_types::Tool::spec(&tool).parameters["required"], json!(["topic"]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Composite {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) nodes: Vec<ToolNode>,
    pub(crate) edges: Vec<(String, String)>,
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
}

impl Composite {
    /// A composite without calls.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            nodes: Vec::new(),
            edges: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }

    /// Its name as a tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a call.
    ///
    /// # Errors
    /// [`CompositeProblem::DuplicateNode`].
    pub fn add_node(&mut self, node: ToolNode) -> Result<&mut Self, CompositeProblem> {
        if self.node(&node.id).is_some() {
            return Err(CompositeProblem::DuplicateNode { node: node.id });
        }
        self.nodes.push(node);
        Ok(self)
    }

    /// Lets `to` wait for `from` although nothing flows between them.
    ///
    /// # Errors
    /// [`CompositeProblem::UnknownNode`], and [`CompositeProblem::Cycle`] if `from` waits for `to` already.
    pub fn add_edge(&mut self, from: &str, to: &str) -> Result<&mut Self, CompositeProblem> {
        for node in [from, to] {
            if self.node(node).is_none() {
                return Err(CompositeProblem::UnknownNode { node: node.to_owned(), place: "an edge" });
            }
        }
        if let Some(mut way) = Graph::new(self).way(to, from) {
            way.insert(0, from.to_owned());
            return Err(CompositeProblem::Cycle { nodes: way });
        }
        self.edges.push((from.to_owned(), to.to_owned()));
        Ok(self)
    }

    /// The calls whose open parameters are the composite's. By default those that wait for nothing.
    pub fn with_inputs<T: Into<String>>(mut self, nodes: impl IntoIterator<Item = T>) -> Self {
        self.inputs = nodes.into_iter().map(Into::into).collect();
        self
    }

    /// The calls whose results are the composite's. By default those that nothing waits for.
    pub fn with_outputs<T: Into<String>>(mut self, nodes: impl IntoIterator<Item = T>) -> Self {
        self.outputs = nodes.into_iter().map(Into::into).collect();
        self
    }

    /// Everything that is wrong with it, given the tools that there are.
    pub fn validate(&self, registry: &ToolRegistry) -> Vec<CompositeProblem> {
        validate::problems(self, registry)
    }

    /// A tool whose calls pass the guards of `engine`, and whatever the engine that runs the composite does not allow
    /// is not done by way of it. If a step needs consent, a person is asked about the whole before it begins, and that
    /// question can wait as any other. It shows the arguments, the steps with their constants, and which step gets the result
    /// of which: what those results will be nobody knows yet. A yes holds for this graph and these tools. A step that a rule
    /// asks about, or whose tool was replaced, is asked about by itself, and is made if the engine's approver agrees at once.
    ///
    /// A registry that holds a composite over itself lives as long as the composite is in it.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn into_tool(self, engine: ToolEngine) -> Result<CompositeTool, Vec<CompositeProblem>> {
        CompositeTool::new(self, engine)
    }

    fn node(&self, id: &str) -> Option<&ToolNode> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// The ids of the calls that it begins with.
    fn input_ids(&self) -> Vec<&str> {
        let waits = |node: &&ToolNode| {
            self.edges.iter().any(|(_, to)| *to == node.id)
                || self.nodes.iter().any(|other| other.gives.iter().any(|mapping| mapping.node == node.id))
        };
        match self.inputs.is_empty() {
            true => self.nodes.iter().filter(|node| !waits(node)).map(|node| &*node.id).collect(),
            false => self.inputs.iter().map(String::as_str).collect(),
        }
    }

    /// The ids of the calls that it ends with.
    fn output_ids(&self) -> Vec<&str> {
        let is_last =
            |node: &&ToolNode| node.gives.is_empty() && !self.edges.iter().any(|(from, _)| *from == node.id);
        match self.outputs.is_empty() {
            true => self.nodes.iter().filter(is_last).map(|node| &*node.id).collect(),
            false => self.outputs.iter().map(String::as_str).collect(),
        }
    }
}
