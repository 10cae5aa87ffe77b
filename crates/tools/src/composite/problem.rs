//! What can be wrong with a composite, each with what to do about it.

/// What is wrong with a composite.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompositeProblem {
    /// There is nothing to do.
    #[error("the composite has no calls; add one with `add_node`")]
    Empty,
    /// Two calls have one id.
    #[error("two calls are named '{node}'; name one of them otherwise")]
    DuplicateNode {
        /// The id.
        node: String,
    },
    /// A name leads to no call.
    #[error("{place} names the call '{node}', which is not there; add it or correct the name")]
    UnknownNode {
        /// The name.
        node: String,
        /// Where it stands.
        place: &'static str,
    },
    /// A call's tool is not registered.
    #[error("the call '{node}' needs the tool '{tool}', which is not registered{}", did_you_mean(nearest))]
    UnknownTool {
        /// The call.
        node: String,
        /// The tool.
        tool: String,
        /// A tool with a name like it.
        nearest: Option<String>,
    },
    /// Calls wait for each other.
    #[error("these calls wait for each other: {}; take one of the steps away", nodes.join(" → "))]
    Cycle {
        /// The way round; the first is also the last.
        nodes: Vec<String>,
    },
    /// Tools call each other in a circle.
    #[error("these tools call each other: {}; take one of the steps away", tools.join(" → "))]
    Recursion {
        /// The way round; the first is also the last.
        tools: Vec<String>,
    },
    /// There are too many composites inside of each other.
    #[error("composites are {depth} deep in each other, 10 is the most: {}", tools.join(" → "))]
    TooDeep {
        /// How deep.
        depth: usize,
        /// The way down.
        tools: Vec<String>,
    },
    /// A tool has no such argument.
    #[error("the call '{node}' is given '{argument}', which the tool '{tool}' does not take")]
    UnknownArgument {
        /// The call.
        node: String,
        /// Its tool.
        tool: String,
        /// The argument.
        argument: String,
    },
    /// A required argument comes from nowhere.
    #[error(
        "the call '{node}' lacks '{argument}': give it a constant, map a result to it, or let the composite begin with \
         the call"
    )]
    MissingArgument {
        /// The call.
        node: String,
        /// The argument.
        argument: String,
    },
    /// An argument comes from more than one place.
    #[error("the call '{node}' is given '{argument}' more than once; keep one of them")]
    TwoSources {
        /// The call.
        node: String,
        /// The argument.
        argument: String,
    },
    /// A call is to be made again whose tool may do harm the second time.
    #[error(
        "the call '{node}' may not be retried: a second call of '{tool}' may do harm; let it abort or continue"
    )]
    NotRepeatable {
        /// The call.
        node: String,
        /// Its tool.
        tool: String,
    },
    /// Two parameters have one name.
    #[error("two parameters are named '{name}' and are not the same; name one with `ToolNode::parameter`")]
    SameParameter {
        /// The name.
        name: String,
    },
    /// A name leads into JSON and does not begin so.
    #[error(
        "'{pointer}' of the call '{node}' is no JSON pointer: it begins with '/', or is empty for the whole"
    )]
    Pointer {
        /// The call.
        node: String,
        /// What should be one.
        pointer: String,
    },
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(". Did you mean '{name}'?")).unwrap_or_default()
}
