//! MCP servers of the settings and of a project's `.mcp.json`: their tools are tools of this command's agents.
//!
//! Without the feature `mcp` the program only explains how to build it with them.

#[cfg(not(all(unix, feature = "mcp")))]
mod absent;
#[cfg(all(unix, feature = "mcp"))]
mod connect;
#[cfg(all(unix, feature = "mcp"))]
mod entry;
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
pub(crate) use absent::{Connected, close, file_problems, findings, missing, tools};
#[cfg(all(unix, feature = "mcp"))]
pub(crate) use connect::{Connected, alone, close, missing, survey, tools};
#[cfg(all(unix, feature = "mcp"))]
pub(crate) use entry::{Entry, LeftOut, find};
#[cfg(all(unix, feature = "mcp", feature = "setup"))]
pub(crate) use pins::forget;
#[cfg(all(unix, feature = "mcp"))]
pub(crate) use project::problems as file_problems;
#[cfg(all(unix, feature = "mcp"))]
pub(crate) use standing::{Standing, findings};

/// Name of a project's file with servers; other programs use it, too.
pub(crate) const FILE: &str = ".mcp.json";

/// Returns the error for servers, if this build has none.
pub(crate) fn not_built() -> Option<Failure> {
    match cfg!(all(unix, feature = "mcp")) {
        true => None,
        false => Some(Failure::usage("MCP is not in this build", "build with `--features mcp`")),
    }
}

/// Returns the problem with the name of a server, if it has one and this build has servers.
pub(crate) fn name_problem(name: &str) -> Option<&'static str> {
    #[cfg(all(unix, feature = "mcp"))]
    return archon::mcp::server_name_problem(name);
    #[cfg(not(all(unix, feature = "mcp")))]
    {
        let _ = name;
        None
    }
}
