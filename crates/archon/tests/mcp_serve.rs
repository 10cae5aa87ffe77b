//! Tools and agents offered to MCP clients: over a pair of streams, as with stdio, and over HTTP.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "mcp_serve/agents.rs"]
mod agents;
#[path = "mcp_serve/frames.rs"]
mod frames;
#[path = "mcp_serve/http.rs"]
mod http;
#[path = "mcp_serve/tools.rs"]
mod tools;
#[path = "mcp_serve/world.rs"]
mod world;
