//! MCP servers of the settings and of a project's `.mcp.json`: their tools are tools of this command's
//! agents.
//!
//! Without the feature `mcp` the program only explains that it must be built with the feature.

#[cfg(not(all(unix, feature = "mcp")))]
mod absent;
#[cfg(all(unix, feature = "mcp"))]
mod connect;
#[cfg(all(unix, feature = "mcp"))]
mod entry;
#[cfg(all(unix, feature = "mcp"))]
mod listing;
#[cfg(all(unix, feature = "mcp"))]
mod pins;
#[cfg(all(unix, feature = "mcp"))]
mod project;
#[cfg(all(unix, feature = "mcp"))]
mod server;
#[cfg(all(unix, feature = "mcp"))]
mod standing;

use crate::failure::Failure;

#[cfg(not(all(unix, feature = "mcp")))]
pub(crate) use absent::{
    close, file_problems, findings, missing, named, retain_callable, settle, settle_all, tools,
};
#[cfg(all(unix, feature = "mcp-sign-in"))]
pub(crate) use connect::sign_in;
#[cfg(all(unix, feature = "mcp"))]
pub(crate) use connect::{
    alone, close, findings, missing, named, retain_callable, settle, settle_all, survey, tools,
};
#[cfg(all(unix, feature = "mcp"))]
pub(crate) use entry::find;
#[cfg(all(unix, feature = "mcp"))]
pub(crate) use listing::list;
#[cfg(all(unix, feature = "mcp", feature = "setup"))]
pub(crate) use pins::forget;
#[cfg(all(unix, feature = "mcp"))]
pub(crate) use project::problems as file_problems;
#[cfg(all(unix, feature = "mcp-sign-in"))]
pub(crate) use standing::failed;
#[cfg(all(unix, feature = "mcp"))]
pub(crate) use standing::{Standing, unreadable_pins};

/// The name of a project's file with servers, which other programs also use.
pub(crate) const FILE: &str = ".mcp.json";

/// The tools that list and read the resources of all servers; an agent has them if a server offers resources.
pub(crate) const RESOURCE_TOOLS: [&str; 2] = ["list_mcp_resources", "read_mcp_resource"];

/// Returns true if `name` selects the tool `tool`: as the tool's own name, or as `SERVER__*` with the tool's server or
/// API. The stand-in for the tools of a server that has not answered is never selected.
pub(crate) fn is_meant(name: &str, tool: &str) -> bool {
    match name.strip_suffix('*').filter(|server| server.ends_with("__")) {
        Some(server) => tool.starts_with(server) && !tool.ends_with('*'),
        None => tool == name,
    }
}

/// Returns the error for servers, if this build does not support them.
pub(crate) fn not_built() -> Option<Failure> {
    match cfg!(all(unix, feature = "mcp")) {
        true => None,
        false => Some(Failure::usage("MCP is not in this build", "build with `--features mcp`")),
    }
}
