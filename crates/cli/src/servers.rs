//! The MCP servers of a command, and their tools.

#[cfg(all(unix, feature = "mcp"))]
mod started;

use std::sync::Arc;

use archon::types::Tool;

#[cfg(all(unix, feature = "mcp"))]
pub(crate) use started::{Connected, Entry, LeftOut, Place, Running};

/// The tools that are ready for calls.
pub(crate) type Tools = Vec<Arc<dyn Tool>>;

/// The MCP servers of a command in a build without the feature `mcp`: there are none.
#[cfg(not(all(unix, feature = "mcp")))]
#[derive(Default)]
pub(crate) struct Connected;
