//! The problems that a composite can have, each with advice.

/// A problem of a composite.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompositeProblem {
    /// The composite has no calls.
    #[error("the composite has no calls; add one with `add_node`")]
    Empty,
    /// Two calls have the same id.
    #[error("two calls are named '{node}'; name one of them otherwise")]
    DuplicateNode {
        /// The id.
        node: String,
    },
    /// A name matches no call.
    #[error("{place} names the call '{node}', which is not there; add it or correct the name")]
    UnknownNode {
        /// The name.
        node: String,
        /// The place of the name.
        place: &'static str,
    },
    /// A call's tool is not registered.
    #[error("the call '{node}' needs the tool '{tool}', which is not registered{}", did_you_mean(nearest))]
    UnknownTool {
        /// The call.
        node: String,
        /// The tool.
        tool: String,
        /// A registered tool with a similar name.
        nearest: Option<String>,
    },
    /// Calls wait for each other.
    #[error("these calls wait for each other: {}; take one of the steps away", nodes.join(" → "))]
    Cycle {
        /// The cycle; the first call is also the last.
        nodes: Vec<String>,
    },
    /// Composites call each other in a cycle.
    #[error("these tools call each other: {}; take one of the steps away", tools.join(" → "))]
    Recursion {
        /// The cycle; the first tool is also the last.
        tools: Vec<String>,
    },
    /// Composites are nested too deeply.
    #[error("composites are nested {depth} deep, and at most 10 are allowed: {}", tools.join(" → "))]
    TooDeep {
        /// The depth.
        depth: usize,
        /// The tools from the outermost to the innermost.
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
    /// A required argument has no source.
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
    /// An argument has more than one source.
    #[error("the call '{node}' is given '{argument}' more than once; keep one of them")]
    TwoSources {
        /// The call.
        node: String,
        /// The argument.
        argument: String,
    },
    /// A call has a retry, but its tool may do harm the second time.
    #[error(
        "the call '{node}' may not be retried: a second call of '{tool}' may do harm; let it abort or continue"
    )]
    NotRepeatable {
        /// The call.
        node: String,
        /// Its tool.
        tool: String,
    },
    /// Two different parameters have the same name.
    #[error("two parameters are named '{name}' and are not the same; name one with `ToolNode::parameter`")]
    SameParameter {
        /// The name.
        name: String,
    },
    /// A pointer is not a JSON pointer.
    #[error(
        "'{pointer}' of the call '{node}' is no JSON pointer: it begins with '/', or is empty for the whole"
    )]
    Pointer {
        /// The call.
        node: String,
        /// The invalid pointer.
        pointer: String,
    },
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(". Did you mean '{name}'?")).unwrap_or_default()
}
