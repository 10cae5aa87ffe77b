//! The built-in tools, one file each. [`builtin_tools`] and [`file_tools`] return the tools of a workspace.

/// Implements the methods of [`Tool`](archon_types::Tool) that are alike in tools with a field `spec`. `$run`
/// is the name of the method that executes a call: an async method, or an ordinary one if `at once` or `in
/// workspace` follows the name. `in workspace` is for tools that have a field `workspace` and work on its
/// files. All of them implement `recall`, also tools that read no files: `recall` does nothing with a result
/// that has no [`SEEN`](archon_types::metadata::SEEN) in its metadata.
macro_rules! tool_methods {
    ($run:ident in workspace) => {
        tool_methods!($run at once);

        fn subject(&self, arguments: &archon_types::Json) -> archon_types::Subject {
            self.workspace.subject(arguments)
        }

        fn recall(&self, session: &archon_types::SessionId, result: &archon_types::ToolResult) {
            self.workspace.recall(session, result);
        }
    };
    ($run:ident at once) => {
        tool_methods!(@ |tool, arguments, context| async move { tool.$run(arguments, context) });
    };
    ($run:ident) => {
        tool_methods!(@ |tool, arguments, context| tool.$run(arguments, context));
    };
    (@ |$tool:ident, $arguments:ident, $context:ident| $work:expr) => {
        fn spec(&self) -> &archon_types::ToolSpec {
            &self.spec
        }

        fn call<'a>(
            &'a self,
            $arguments: archon_types::Json,
            $context: &'a archon_types::ToolContext,
        ) -> archon_types::BoxFuture<'a, Result<archon_types::ToolResult, archon_types::ToolError>> {
            let $tool = self;
            Box::pin($work)
        }
    };
}

#[cfg(feature = "composite")]
pub(crate) use tool_methods;

/// Implements `Default` for tools: `default` calls the tool's `new`.
macro_rules! default_is_new {
    ($($tool:ident),+) => {
        $(impl Default for $tool {
            fn default() -> Self {
                Self::new()
            }
        })+
    };
}

#[cfg(all(unix, feature = "bash"))]
mod background_commands;
#[cfg(all(unix, feature = "bash"))]
mod background_tools;
#[cfg(all(unix, feature = "bash"))]
mod bash;
mod calculator;
mod cleanup_tool_call;
#[cfg(feature = "files")]
mod edit_file;
mod expression;
#[cfg(feature = "files")]
mod file_pattern;
mod finish_plan;
#[cfg(all(unix, feature = "git"))]
mod git;
#[cfg(all(unix, feature = "git"))]
mod git_diff;
#[cfg(all(unix, feature = "git"))]
mod git_log;
#[cfg(all(unix, feature = "git"))]
mod git_status;
#[cfg(feature = "files")]
mod glob;
mod human;
#[cfg(feature = "files")]
mod list_files;
mod rational;
#[cfg(feature = "files")]
mod read_file;
#[cfg(feature = "files")]
mod search;
mod update_plan;
#[cfg(feature = "web")]
mod web_fetch;
#[cfg(feature = "web")]
mod web_search;
#[cfg(feature = "files")]
mod write_file;

#[cfg(all(unix, feature = "bash"))]
pub use background_commands::BackgroundCommands;
#[cfg(all(unix, feature = "bash"))]
pub use background_tools::background_tools;
#[cfg(all(unix, feature = "bash"))]
pub use bash::{Bash, BashOptions};
pub use calculator::Calculator;
pub use cleanup_tool_call::CleanupToolCall;
#[cfg(feature = "files")]
pub use edit_file::EditFile;
pub use expression::evaluate;
#[cfg(feature = "files")]
use file_pattern::FilePattern;
pub use finish_plan::FinishPlan;
#[cfg(all(unix, feature = "git"))]
pub use git_diff::GitDiff;
#[cfg(all(unix, feature = "git"))]
pub use git_log::GitLog;
#[cfg(all(unix, feature = "git"))]
pub use git_status::GitStatus;
#[cfg(feature = "files")]
pub use glob::Glob;
pub use human::{HumanApproval, HumanGuidance};
#[cfg(feature = "files")]
pub use list_files::ListFiles;
pub use rational::Number;
#[cfg(feature = "files")]
pub use read_file::ReadFile;
#[cfg(feature = "files")]
pub use search::Search;
pub use update_plan::UpdatePlan;
#[cfg(feature = "web")]
pub use web_fetch::WebFetch;
#[cfg(feature = "web")]
pub use web_search::{BraveSearch, OfflineSearch, SearchBackend, SearchHit, WebSearch};
#[cfg(feature = "files")]
pub use write_file::WriteFile;

use archon_types::{Json, ToolAnnotations, ToolSpec};
#[cfg(feature = "files")]
use {
    crate::Workspace,
    archon_types::{Effect, Tool},
    std::sync::Arc,
};

/// Returns the calculator and the tools that read, list and search the files of `workspace`. They need no
/// permission, because none of them changes anything.
///
/// ```
/// use archon_tools::{ToolRegistry, Workspace, builtin};
///
/// let registry = ToolRegistry::new();
/// registry.register_all(builtin::builtin_tools(&Workspace::new(".")?))?;
/// assert_eq!(registry.names(), ["calculator", "list_files", "read_file", "search"]);
/// # Ok::<(), archon_tools::ToolSetupError>(())
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

/// Returns the default tools of an agent: the read-only tools among [`builtin_tools`].
#[cfg(feature = "files")]
pub fn default_tools(workspace: &Workspace) -> Vec<Arc<dyn Tool>> {
    let mut tools = builtin_tools(workspace);
    tools.retain(|tool| tool.spec().annotations.effect == Effect::ReadOnly);
    tools
}

/// Returns the tools that read, list, search and change the files of a workspace. Those that change files
/// need the permission `fs_write`. They refuse to change a file that the session has not read with
/// `read_file` of the same workspace.
///
/// ```
/// use archon_tools::{EngineOptions, ToolEngine, ToolRegistry, Workspace, builtin};
///
/// let registry = ToolRegistry::new();
/// registry.register_all(builtin::file_tools(&Workspace::new(".")?))?;
/// let engine = ToolEngine::new(registry).with_options(EngineOptions::default().granting(["fs_write"]));
/// # Ok::<(), archon_tools::ToolSetupError>(())
/// ```
#[cfg(feature = "files")]
pub fn file_tools(workspace: &Workspace) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(EditFile::new(workspace.clone())),
        Arc::new(Glob::new(workspace.clone())),
        Arc::new(ListFiles::new(workspace.clone())),
        Arc::new(ReadFile::new(workspace.clone())),
        Arc::new(Search::new(workspace.clone())),
        Arc::new(WriteFile::new(workspace.clone())),
    ]
}

/// Makes the spec of a tool whose arguments are `A`; `names` are its name and its label.
fn spec<A: schemars::JsonSchema>(
    names: [&str; 2],
    description: &str,
    annotations: ToolAnnotations,
    example: Json,
) -> ToolSpec {
    let [name, label] = names;
    let mut spec = crate::macro_support::spec::<A>(name, description).with_annotations(annotations);
    spec.label = label.to_owned();
    spec.examples.push(example);
    spec
}

/// Returns an argument that is a text; empty if there is none.
#[cfg(all(unix, feature = "bash"))]
fn text<'a>(arguments: &'a Json, name: &str) -> &'a str {
    arguments.get(name).and_then(Json::as_str).unwrap_or_default()
}

/// Appends a note for the model to a result, in brackets.
#[cfg(any(feature = "files", feature = "web"))]
fn add_note(result: &mut archon_types::ToolResult, note: impl std::fmt::Display) {
    result.content.push(format!("({note})").into());
}

/// Annotations of tools that read files: read-only, and blocking because of file I/O.
#[cfg(feature = "files")]
fn reads_files() -> ToolAnnotations {
    let mut annotations = ToolAnnotations::read_only();
    annotations.blocking = true;
    annotations
}

/// Annotations of tools that change files.
#[cfg(feature = "files")]
fn changes_files() -> ToolAnnotations {
    let mut annotations = ToolAnnotations::destructive();
    annotations.blocking = true;
    annotations.permissions = vec!["fs_write".to_owned()];
    annotations
}

/// Annotations of tools that read from the network.
#[cfg(feature = "web")]
fn reads_network() -> ToolAnnotations {
    let mut annotations = ToolAnnotations::read_only();
    annotations.network = true;
    annotations.permissions = vec!["network".to_owned()];
    annotations
}
