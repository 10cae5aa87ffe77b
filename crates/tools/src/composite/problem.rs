//! The problems that a composite can have, each with advice.

/// A problem that prevents a composite from becoming a tool.
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
    /// The composite refers to a call that does not exist.
    #[error("{place} refers to the call '{node}', which does not exist; add the call or correct the id")]
    UnknownNode {
        /// The unknown id.
        node: String,
        /// The part of the composite that refers to the id, for instance `an edge`.
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
    /// Calls wait for each other, so that none can begin.
    #[error("these calls wait for each other: {}; remove one of these dependencies", nodes.join(" → "))]
    Cycle {
        /// The ids of the calls in the cycle; the first one is repeated at the end.
        nodes: Vec<String>,
    },
    /// Composites call each other in a cycle.
    #[error("these tools call each other: {}; remove one of these calls", tools.join(" → "))]
    Recursion {
        /// The names of the tools in the cycle; the first one is repeated at the end.
        tools: Vec<String>,
    },
    /// Composites call other composites in more than 10 levels.
    #[error(
        "composites are nested in {depth} levels, but the maximum is 10: {}; remove one of these levels",
        tools.join(" → ")
    )]
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
    /// A required argument has no source: no constant, no result of another call, no parameter of the composite.
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
    /// An argument has more than one source, for instance a constant and a result of another call.
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
    /// Two different parameters of the composite would get the same name; for instance, their schemas differ.
    #[error("two different parameters are named '{name}'; rename one of them with `ToolNode::parameter`")]
    SameParameter {
        /// The name of both parameters.
        name: String,
    },
    /// A text that must be a JSON pointer is not one.
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
