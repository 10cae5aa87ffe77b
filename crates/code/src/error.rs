//! What can be wrong with the tools that are to be functions.

/// Tools cannot be the functions that they were to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The toolbox has no tool of this name.
    #[error("there is no tool '{tool}' in the toolbox; it has: {known}")]
    UnknownTool {
        /// The name.
        tool: String,
        /// Those that there are.
        known: String,
    },
    /// Two tools would be functions of one name.
    #[error(
        "the tools '{first}' and '{second}' would both be the function '{function}'; give one of them another name"
    )]
    SameFunction {
        /// A tool.
        first: String,
        /// Another.
        second: String,
        /// The name of both.
        function: String,
    },
    /// A tool's name is a word of the language.
    #[error(
        "the tool '{tool}' cannot be a function: '{function}' is a word of {language}; give it another name"
    )]
    Reserved {
        /// The tool.
        tool: String,
        /// What it would be called.
        function: String,
        /// Where that is a word.
        language: &'static str,
    },
}
