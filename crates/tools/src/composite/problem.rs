//! The problems that a composite can have, each with advice.

/// A problem of a composite.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompositeProblem {
    /// The composite has no calls.
    #[error("the composite has no calls; add one with `add_node`")]
    Empty,
    /// Two calls have the same id.
    #[error("two calls have the id '{node}'; give one of them another id")]
    DuplicateNode {
        /// The id of both calls.
        node: String,
    },
    /// An id belongs to no call.
    #[error("{place} refers to the call '{node}', which does not exist; add the call or correct the id")]
    UnknownNode {
        /// The unknown id.
        node: String,
        /// The part of the composite that refers to the id.
        place: &'static str,
    },
    /// A call's tool is not registered.
    #[error("the call '{node}' needs the tool '{tool}', which is not registered{}", did_you_mean(nearest))]
    UnknownTool {
        /// The id of the call.
        node: String,
        /// The name of the tool.
        tool: String,
        /// A registered tool with a similar name, if there is one.
        nearest: Option<String>,
    },
    /// Calls wait for each other.
    #[error("these calls wait for each other: {}; remove one of these dependencies", nodes.join(" → "))]
    Cycle {
        /// The cycle; the first call is also the last.
        nodes: Vec<String>,
    },
    /// Composites call each other in a cycle.
    #[error("these tools call each other: {}; remove one of these calls", tools.join(" → "))]
    Recursion {
        /// The cycle; the first tool is also the last.
        tools: Vec<String>,
    },
    /// Composites are nested too deeply.
    #[error("composites are nested in {depth} levels, but the maximum is 10: {}", tools.join(" → "))]
    TooDeep {
        /// The number of levels.
        depth: usize,
        /// The tools from the outermost to the innermost.
        tools: Vec<String>,
    },
    /// A call has an argument that is not a parameter of its tool.
    #[error(
        "the call '{node}' has the argument '{argument}', but the tool '{tool}' has no such parameter; correct or \
         remove the argument"
    )]
    UnknownArgument {
        /// The id of the call.
        node: String,
        /// The name of the call's tool.
        tool: String,
        /// The name of the argument.
        argument: String,
    },
    /// A required argument has no source.
    #[error(
        "the call '{node}' has no value for the argument '{argument}': set a constant, map a result to it, or make the \
         call an input of the composite"
    )]
    MissingArgument {
        /// The id of the call.
        node: String,
        /// The name of the argument.
        argument: String,
    },
    /// An argument has more than one source.
    #[error("the argument '{argument}' of the call '{node}' has more than one source; keep one of them")]
    TwoSources {
        /// The id of the call.
        node: String,
        /// The name of the argument.
        argument: String,
    },
    /// A call is set to retry, but its tool may not run twice.
    #[error(
        "the call '{node}' cannot be retried, because the tool '{tool}' may not run twice; set it to abort or continue"
    )]
    NotRepeatable {
        /// The id of the call.
        node: String,
        /// The name of the call's tool.
        tool: String,
    },
    /// Two different parameters have the same name.
    #[error("two different parameters are named '{name}'; rename one of them with `ToolNode::parameter`")]
    SameParameter {
        /// The name of both parameters.
        name: String,
    },
    /// A pointer is not a JSON pointer.
    #[error(
        "'{pointer}' of the call '{node}' is not a JSON pointer: begin it with '/', or leave it empty for the whole \
         value"
    )]
    Pointer {
        /// The id of the call.
        node: String,
        /// The invalid pointer.
        pointer: String,
    },
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(". Did you mean '{name}'?")).unwrap_or_default()
}
