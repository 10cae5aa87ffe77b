//! MCP: the tools of other programs, as tools of an agent.
//!
//! Use this crate without the facade to give the tools of MCP servers to a toolbox of your own.
//!
//! A server of the Model Context Protocol offers tools. [`McpServers`] starts the configured servers in the
//! background, watches them, and offers their tools as [`McpTool`]s, which pass the guards like any other tool.
//!
//! The protocol itself is the library `rmcp`: revision 2026-07-28, and the older ones of servers that only
//! speak those.
//!
//! *Invariants*
//!
//! - Nothing waits for a server longer than the time limit of the phase ([`McpTimeouts`]), and a slow server
//!   delays no other.
//! - No process of a server outlives this process or its connection, unless it runs as another user.
//! - A server's description of its tools never lowers a guard: each call of a tool may destroy something,
//!   unless a person's settings declare less ([`McpServer::read_only`], [`McpServer::reversible`]).
//! - A tool runs only with the definition that was pinned. A changed, new or renamed tool is held back
//!   until a person agrees to the difference.
//! - A token is sent to the server that it was issued for, and is renewed at the authorization server that
//!   issued it. Neither tokens nor codes are written to a log.
//! - Descriptions and errors of a server are untrusted text. They are bounded, cleared of invisible
//!   characters, and marked with the server's name. Results are untrusted text, too, but may be the contents
//!   of files: only tag characters and overrides of the direction of writing are removed from them.
//!
//! Unix only: elsewhere the crate is empty.
//!
//! # Example
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use archon_mcp::{FilePins, McpOptions, McpServer, McpServers};
//! use archon_types::Clock;
//!
//! # fn start(clock: Arc<dyn Clock>) -> Result<(), Box<dyn std::error::Error>> {
//! let files = McpServer::stdio("npx", ["-y", "@modelcontextprotocol/server-filesystem", "notes"]);
//! let options = McpOptions::new(clock, Arc::new(FilePins::new("settings/mcp-pins")));
//! let servers = McpServers::start([("files".to_owned(), files)], &options)?;
//! # drop(servers);
//! # Ok(())
//! # }
//! ```

// | concept | file |
// |---|---|
// | `McpServer`, the settings of a server | `server.rs` |
// | `McpServers`, the servers of a program, supervised | `servers.rs` |
// | connecting, watching, backing off, for one server | `supervise.rs` |
// | one connection: start, initialize, list, call, close | `connection.rs` |
// | the handshake, also with a late first answer | `handshake.rs`, `late_probe.rs` |
// | the server's process and its pipes, its web address | `stdio.rs`, `http.rs` |
// | `SignIn`, the settings of a sign-in | `sign_in.rs` |
// | `TokenStore`, the tokens of people's logins | `tokens.rs` |
// | `Login`, a person's login (feature `sign-in`), and the browser's answer | `login.rs`, `redirect.rs` |
// | requests with a token that is renewed | `access.rs` |
// | requests and notifications of the server | `handler.rs` |
// | a request for input as a question to a person, and its form | `input.rs`, `form.rs` |
// | a call that waits for a person: in the result, or while it is open | `round.rs`, `talk.rs` |
// | `McpTool`, a tool of a server | `tool.rs` |
// | the tools of a server that is not connected yet | `unknown_tools.rs` |
// | `Resource`s and `Prompt`s, for programs | `resources.rs`, `resource_access.rs` |
// | the tools that list and read resources | `resource_tools.rs` |
// | a server's answer as a tool result | `result.rs` |
// | `model_name`, names that every model service accepts | `names.rs` |
// | `Definition`, the description of a tool, and its hash | `definition.rs` |
// | `Pins`, what a person agreed to | `pins.rs` |
// | `Held`, a tool that is held back, and the difference | `held.rs` |
// | `McpError`: server, phase, problem, advice | `error.rs` |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg(unix)]

#[cfg(feature = "sign-in")]
mod access;
#[cfg(feature = "http")]
mod address;
mod connection;
mod definition;
mod error;
mod form;
mod handler;
mod handshake;
mod held;
mod http;
mod input;
mod known_tools;
mod late_probe;
#[cfg(feature = "sign-in")]
mod login;
mod names;
mod options;
mod person_time;
mod pins;
#[cfg(feature = "sign-in")]
mod redirect;
mod resource_access;
mod resource_tools;
mod resources;
mod result;
mod round;
mod server;
mod servers;
mod sign_in;
mod stdio;
mod supervise;
mod talk;
mod text;
mod tokens;
mod tool;
mod unknown_tools;

pub use definition::Definition;
pub use error::{McpError, McpProblem, Phase};
pub use held::{Held, HeldDifference, HeldKind};
#[cfg(feature = "sign-in")]
pub use login::Login;
pub use names::{model_name, server_name_problem};
pub use options::McpOptions;
pub use pins::{FilePins, InMemoryPins, Pin, PinError, Pins, ServerPins};
pub use resources::{
    Prompt, PromptArgument, PromptMessage, PromptRole, Resource, ResourceContent, ResourceData,
};
pub use server::{FirstUse, HttpServer, McpServer, McpTimeouts, StdioServer, Transport};
pub use servers::{McpServers, ServerState, ServerStatus};
pub use sign_in::{SignIn, SignInBy};
pub use supervise::Took;
pub use tokens::TokenStore;
pub use tool::McpTool;
