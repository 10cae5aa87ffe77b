//! One call of a composite: its tool, its arguments, and the use of its result.

use std::collections::BTreeMap;

use archon_types::Json;

/// One call of a composite.
///
/// ```
/// use archon_tools::{OnNodeFailure, ToolNode};
///
/// let search = ToolNode::new("search", "web_search")
///     .constant("num_results", 3)
///     .parameter("query", "topic")
///     .gives("/results", "read", "url");
/// let read = ToolNode::new("read", "web_fetch").for_each("url", "/url").on_failure(OnNodeFailure::Continue);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolNode {
    /// The id of the call within the composite.
    pub id: String,
    /// The name of the tool.
    pub tool: String,
    /// Constant arguments.
    pub arguments: serde_json::Map<String, Json>,
    /// Parts of the call's result that become arguments of other calls.
    pub gives: Vec<Mapping>,
    /// For arguments of the call, the name of the composite's parameter that gives the value. Default: the argument's
    /// own name.
    pub parameters: BTreeMap<String, String>,
    /// The list for whose items the call is made, once for each item; `None` for a single call.
    pub for_each: Option<ForEachItem>,
    /// The reaction to a failure of the call.
    pub on_failure: OnNodeFailure,
}

/// Passes a part of a call's result to another call as an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mapping {
    /// A JSON pointer into the result: `/results/0/url`, or empty for the whole result. A result that is not
    /// JSON counts as a JSON string.
    pub pointer: String,
    /// The id of the receiving call.
    pub node: String,
    /// The name of the receiving argument.
    pub argument: String,
}

/// Makes a call once for each item of a list. The result is the list of the single results, in the same
/// order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForEachItem {
    /// The argument whose value is a list. The tool gets one item of the list at a time.
    pub argument: String,
    /// A JSON pointer to the argument's value in each item; empty for the item itself.
    pub pointer: String,
}

/// The reaction to a failed call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnNodeFailure {
    /// The composite fails and reports the results of the earlier calls.
    #[default]
    Abort,
    /// The other calls go on; calls that need the failed call's result are skipped. If the call is made for
    /// each item of a list, failed items are left out.
    Continue,
    /// The call is repeated up to this many times, then the composite fails. Only for tools that may run twice. If the
    /// tool was replaced by a tool that may not run twice, a call with unknown effect is not repeated.
    Retry(u32),
}

impl ToolNode {
    /// Creates a call of `tool`.
    pub fn new(id: impl Into<String>, tool: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            tool: tool.into(),
            arguments: serde_json::Map::new(),
            gives: Vec::new(),
            parameters: BTreeMap::new(),
            for_each: None,
            on_failure: OnNodeFailure::default(),
        }
    }

    /// Adds a constant argument.
    pub fn constant(mut self, argument: impl Into<String>, value: impl Into<Json>) -> Self {
        self.arguments.insert(argument.into(), value.into());
        self
    }

    /// Passes the part of the result at `pointer` to the call `node` as its `argument`.
    pub fn gives(
        mut self,
        pointer: impl Into<String>,
        node: impl Into<String>,
        argument: impl Into<String>,
    ) -> Self {
        let (pointer, node, argument) = (pointer.into(), node.into(), argument.into());
        self.gives.push(Mapping { pointer, node, argument });
        self
    }

    /// Makes an argument a parameter of the composite with this name. Calls that use the same name share the
    /// parameter.
    pub fn parameter(mut self, argument: impl Into<String>, name: impl Into<String>) -> Self {
        self.parameters.insert(argument.into(), name.into());
        self
    }

    /// Makes the call once for each item of the list in this argument; `pointer` selects the value in each
    /// item.
    pub fn for_each(mut self, argument: impl Into<String>, pointer: impl Into<String>) -> Self {
        self.for_each = Some(ForEachItem { argument: argument.into(), pointer: pointer.into() });
        self
    }

    /// Sets the reaction to a failure.
    pub fn on_failure(mut self, policy: OnNodeFailure) -> Self {
        self.on_failure = policy;
        self
    }
}
