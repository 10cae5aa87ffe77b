//! The tools that come with the crate: all of them read-only so far. One file each, one line in
//! [`builtin_tools`].

mod calculator;
mod expression;
#[cfg(feature = "files")]
mod file_pattern;
#[cfg(feature = "files")]
mod list_files;
mod rational;
#[cfg(feature = "files")]
mod read_file;
#[cfg(feature = "files")]
mod search;

pub use calculator::Calculator;
pub use expression::evaluate;
#[cfg(feature = "files")]
use file_pattern::FilePattern;
#[cfg(feature = "files")]
pub use list_files::ListFiles;
pub use rational::Number;
#[cfg(feature = "files")]
pub use read_file::ReadFile;
#[cfg(feature = "files")]
pub use search::Search;

#[cfg(feature = "files")]
use {
    crate::Workspace,
    archon_types::{Effect, Tool, ToolAnnotations},
    std::sync::Arc,
};

/// Every tool that comes with the crate, for one workspace.
///
/// ```
/// use archon_tools::{ToolRegistry, Workspace, builtin};
///
/// let registry = ToolRegistry::new();
/// registry.register_all(builtin::builtin_tools(&Workspace::new(".")?))?;
/// assert_eq!(registry.names(), ["calculator", "list_files", "read_file", "search"]);
/// # Ok::<(), archon_tools::Error>(())
/// ```
#[cfg(feature = "files")]
pub fn builtin_tools(workspace: &Workspace) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(Calculator::new()),
        Arc::new(ListFiles::new(workspace.clone())),
        Arc::new(ReadFile::new(workspace.clone())),
        Arc::new(Search::new(workspace.clone())),
    ]
}

/// The tools that an agent gets unless it is given others: those of [`builtin_tools`] that change
/// nothing.
#[cfg(feature = "files")]
pub fn default_tools(workspace: &Workspace) -> Vec<Arc<dyn Tool>> {
    let mut tools = builtin_tools(workspace);
    tools.retain(|tool| tool.spec().annotations.effect == Effect::ReadOnly);
    tools
}

/// Files are read with calls that block.
#[cfg(feature = "files")]
fn file_tool() -> ToolAnnotations {
    let mut annotations = ToolAnnotations::read_only();
    annotations.blocking = true;
    annotations
}
