//! One call of a composite: which tool, with what, and what becomes of its result.

use std::collections::BTreeMap;

use archon_types::Json;

/// One call of a composite.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolNode {
    /// Its name within the composite.
    pub id: String,
    /// The tool that is called.
    pub tool: String,
    /// Arguments that are always the same.
    pub arguments: serde_json::Map<String, Json>,
    /// What other calls get of its result.
    pub gives: Vec<Mapping>,
    /// What its open parameters are called as the composite's, where that is something else.
    pub parameters: BTreeMap<String, String>,
    /// Set if it is called once for each item of a list.
    pub for_each: Option<ForEach>,
    /// What follows if it fails.
    pub on_failure: OnNodeFailure,
}

/// What one call's result gives another as an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mapping {
    /// Where it stands in the result, as a JSON pointer: `/results/0/url`, or nothing for the whole. A result that is no
    /// JSON is a text.
    pub pointer: String,
    /// The call that gets it.
    pub node: String,
    /// As which argument.
    pub argument: String,
}

/// A call that is made once for each item of a list. Its result is the list of results, in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForEach {
    /// The argument that is given as a list and passed on item by item.
    pub argument: String,
    /// Where in each item the argument's value stands, as a JSON pointer; nothing for the item itself.
    pub pointer: String,
}

/// What follows if a call fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnNodeFailure {
    /// The composite fails, and says what was done until then.
    #[default]
    Abort,
    /// The others go on without its result; those that need it are left out. Of a call for each item of a list, the items
    /// that failed are left out.
    Continue,
    /// It is made again, so many times, and then the composite fails. Only for tools that may be called again; one that
    /// turns out to be none by the time of the call is not, if nobody knows what the call did.
    Retry(u32),
}

impl ToolNode {
    /// A call of `tool`.
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

    /// The same call with an argument that is always the same.
    pub fn constant(mut self, argument: impl Into<String>, value: impl Into<Json>) -> Self {
        self.arguments.insert(argument.into(), value.into());
        self
    }

    /// The same call, which gives part of its result to another call.
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

    /// The same call, one of whose arguments is a parameter of the composite with this name. Calls that name the same
    /// parameter share it.
    pub fn parameter(mut self, argument: impl Into<String>, name: impl Into<String>) -> Self {
        self.parameters.insert(argument.into(), name.into());
        self
    }

    /// The same call, made once for each item of the list that is given as this argument; of each item it gets what
    /// `pointer` says.
    pub fn for_each(mut self, argument: impl Into<String>, pointer: impl Into<String>) -> Self {
        self.for_each = Some(ForEach { argument: argument.into(), pointer: pointer.into() });
        self
    }

    /// The same call with another consequence of a failure.
    pub fn on_failure(mut self, policy: OnNodeFailure) -> Self {
        self.on_failure = policy;
        self
    }
}
