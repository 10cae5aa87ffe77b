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
    /// The id of the call, unique within the composite.
    pub id: String,
    /// The name of the tool.
    pub tool: String,
    /// Arguments with constant values, by name.
    pub arguments: serde_json::Map<String, Json>,
    /// Parts of the call's result that become arguments of other calls.
    pub gives: Vec<Mapping>,
    /// Maps an argument of the call to the name of the composite's parameter that gives its value. An argument that is
    /// not listed uses its own name or, if several calls have this name, `ID_NAME` with the call's id.
    pub parameters: BTreeMap<String, String>,
    /// Makes the call once for each item of a list; `None`, the default, for a single call.
    pub for_each: Option<ForEachItem>,
    /// Decides what happens if the call fails. Default [`OnNodeFailure::Abort`].
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

/// Makes a call once for each item of a list. The result of the call is the list of all results, in the order
/// of the items.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForEachItem {
    /// The argument whose value is a list. The tool gets one item of the list at a time.
    pub argument: String,
    /// A JSON pointer to the argument's value in each item; empty for the item itself.
    pub pointer: String,
}

/// Decides what happens if a call of a composite fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnNodeFailure {
    /// The composite fails and reports the results of the earlier calls.
    #[default]
    Abort,
    /// The other calls go on; calls that need the failed call's result are skipped. If the call is made for
    /// each item of a list, failed items are left out.
    Continue,
    /// The call is repeated up to this many times; if it still fails, the composite fails. Only for tools that may run
    /// twice: [`Composite::validate`](crate::Composite::validate) reports a problem for any other tool. If the tool was
    /// replaced later by one that may not run twice, a call with unknown effect is not repeated.
    Retry(u32),
}

impl ToolNode {
    /// Creates a call of the tool with the name `tool`. `id` must be unique within the composite.
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

    /// Sets an argument to a constant value.
    pub fn constant(mut self, argument: impl Into<String>, value: impl Into<Json>) -> Self {
        self.arguments.insert(argument.into(), value.into());
        self
    }

    /// Passes a part of this call's result to the call `node` as its `argument`. `pointer` is the JSON
    /// pointer of the part, such as `/results/0/url`; empty for the whole result.
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

    /// Makes an argument of this call a parameter of the composite with the name `name`. Calls that use the
    /// same name share the parameter.
    pub fn parameter(mut self, argument: impl Into<String>, name: impl Into<String>) -> Self {
        self.parameters.insert(argument.into(), name.into());
        self
    }

    /// Makes the call once for each item of a list: the value of `argument` is the list, and each call gets
    /// one item. `pointer` is the JSON pointer of the value in each item; empty for the item itself.
    pub fn for_each(mut self, argument: impl Into<String>, pointer: impl Into<String>) -> Self {
        self.for_each = Some(ForEachItem { argument: argument.into(), pointer: pointer.into() });
        self
    }

    /// Sets what happens if the call fails. Default [`OnNodeFailure::Abort`].
    pub fn on_failure(mut self, policy: OnNodeFailure) -> Self {
        self.on_failure = policy;
        self
    }
}
