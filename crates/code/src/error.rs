//! Errors of choosing the tools that a program can call as functions.

/// An error of [`CodeExecutor::with_tools`](crate::CodeExecutor::with_tools).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeSetupError {
    /// The toolbox has no tool of this name.
    #[error("the toolbox has no tool '{tool}'; its tools are: {known}")]
    UnknownTool {
        /// The name that was asked for.
        tool: String,
        /// The names of the tools in the toolbox.
        known: String,
    },
    /// Two tools would become functions with the same name.
    #[error(
        "the tools '{first}' and '{second}' would both become the function '{function}'; give one of them another name"
    )]
    SameFunction {
        /// One of the tools.
        first: String,
        /// The other tool.
        second: String,
        /// The name of both functions.
        function: String,
    },
    /// The name of the function is reserved in a language.
    #[error(
        "the tool '{tool}' cannot become a function: '{function}' is reserved in {language}; give the tool another name"
    )]
    Reserved {
        /// The tool's name.
        tool: String,
        /// The name that the function would have.
        function: String,
        /// The name of the language.
        language: &'static str,
    },
}
