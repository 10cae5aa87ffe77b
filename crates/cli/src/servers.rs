//! The MCP servers of a command, and the tools that they have.

#[cfg(all(unix, feature = "mcp"))]
mod started;

use std::sync::Arc;

use archon::types::Tool;

#[cfg(all(unix, feature = "mcp"))]
pub(crate) use started::{Connected, Entry, LeftOut, Place, Running};

/// Tools that are ready for calls.
pub(crate) type Tools = Vec<Arc<dyn Tool>>;

/// The servers of a command, which there are none of.
#[cfg(not(all(unix, feature = "mcp")))]
#[derive(Default)]
pub(crate) struct Connected;
