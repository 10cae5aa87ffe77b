//! Composites: tools that are a graph of tool calls.
//!
//! | concept | file |
//! |---|---|
//! | [`Composite`], the graph | here |
//! | [`ToolNode`], one call of the graph | `node.rs` |
//! | dependencies between calls | `graph.rs` |
//! | validation, with all problems at once | `problem.rs`, `validate.rs` |
//! | the composite's parameters | `parameters.rs` |
//! | [`CompositeTool`], the tool | `tool.rs` |
//! | one run of it | `run.rs` |

mod graph;
mod node;
mod parameters;
mod problem;
mod run;
mod tool;
mod validate;

pub use node::{ForEachItem, Mapping, OnNodeFailure, ToolNode};
pub use problem::CompositeProblem;
pub use tool::CompositeTool;

use crate::{ToolEngine, ToolRegistry};
use graph::Graph;

/// A graph of tool calls; each call can use the results of other calls. [`into_tool`](Self::into_tool) makes
/// one tool of the graph.
///
/// The arguments of a call come from constants and from results of other calls. The calls with which the
/// composite begins can also get arguments of the composite: each of their parameters without another source
/// becomes a parameter of the composite.
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
    /// Creates a composite without calls. `name` and `description` are those of the tool that the model sees.
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

    /// Returns the name that the composite has as a tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a call to the graph.
    ///
    /// # Errors
    /// [`CompositeProblem::DuplicateNode`] if there is a call with this id.
    pub fn add_node(&mut self, node: ToolNode) -> Result<&mut Self, CompositeProblem> {
        if self.node(&node.id).is_some() {
            return Err(CompositeProblem::DuplicateNode { node: node.id });
        }
        self.nodes.push(node);
        Ok(self)
    }

    /// Makes the call `to` wait for the call `from` without passing a result.
    ///
    /// # Errors
    /// [`CompositeProblem::UnknownNode`] if a call does not exist. [`CompositeProblem::Cycle`] if `from`
    /// already waits for `to`, directly or through other calls.
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

    /// Sets the ids of the calls with which the composite begins. Their parameters that have no other source
    /// become the composite's parameters. Default: the calls that wait for no other call.
    ///
    /// ```
    /// use archon_tools::Composite;
    /// let research = Composite::new("research", "Finds pages and sums them up.").with_inputs(["search"]);
    /// ```
    pub fn with_inputs<T: Into<String>>(mut self, nodes: impl IntoIterator<Item = T>) -> Self {
        self.inputs = nodes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the ids of the calls whose results become the composite's result. Default: the calls for which no
    /// other call waits.
    ///
    /// ```
    /// use archon_tools::Composite;
    /// let research = Composite::new("research", "Finds pages and sums them up.").with_outputs(["read"]);
    /// ```
    pub fn with_outputs<T: Into<String>>(mut self, nodes: impl IntoIterator<Item = T>) -> Self {
        self.outputs = nodes.into_iter().map(Into::into).collect();
        self
    }

    /// Checks the composite against the tools of this registry. Returns all problems; empty if there are none.
    pub fn validate(&self, registry: &ToolRegistry) -> Vec<CompositeProblem> {
        validate::problems(self, registry)
    }

    /// Makes a tool of the composite. Its calls run through `engine` and its guards, and can do no more than
    /// the engine that runs the tool allows.
    ///
    /// If one of its calls needs approval, a person is asked about the whole composite before it begins; the run can
    /// be suspended until the person answers. The question shows the composite's arguments, and the calls with their
    /// constants and data flow, but no results, because they do not exist yet. The approval is bound to this graph and
    /// these tools. A call that a rule asks about, or whose tool was replaced, needs an approval of its own, and is
    /// made only if the engine's approver gives it at once.
    ///
    /// If the tool is added to the registry of `engine`, the two refer to each other, and the memory of the registry is
    /// not freed until the tool is removed from it.
    ///
    /// # Errors
    /// All problems of the composite, as [`validate`](Self::validate) returns them.
    pub fn into_tool(self, engine: ToolEngine) -> Result<CompositeTool, Vec<CompositeProblem>> {
        CompositeTool::new(self, engine)
    }

    fn node(&self, id: &str) -> Option<&ToolNode> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// Returns the ids of the calls that the composite begins with.
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

    /// Returns the ids of the calls that the composite ends with.
    fn output_ids(&self) -> Vec<&str> {
        let is_last =
            |node: &&ToolNode| node.gives.is_empty() && !self.edges.iter().any(|(from, _)| *from == node.id);
        match self.outputs.is_empty() {
            true => self.nodes.iter().filter(is_last).map(|node| &*node.id).collect(),
            false => self.outputs.iter().map(String::as_str).collect(),
        }
    }
}
