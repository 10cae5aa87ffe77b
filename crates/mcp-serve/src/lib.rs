//! MCP, the server half: tools and agents of a program for clients of the Model Context Protocol.
//!
//! A [`ToolServer`] offers tools, and agents as tools with a prompt. Each call is a run of the program's
//! [`RunService`](archon_types::RunService): it is in the journal, passes the guards of its agent, and can be
//! looked at, answered and resumed like every other run.
//!
//! Use this crate without the facade to offer the runs of a service of your own to MCP clients.
//!
//! The library `rmcp` implements the protocol: the revisions 2026-07-28 and 2025-11-25, and older revisions for
//! clients that speak no newer one.
//!
//! *Invariants*
//!
//! - A tool runs only in a run of the service, so no call bypasses guards, permission rules or the journal.
//! - A client reads, answers and cancels only runs of the agents that the server offers.
//! - A call that needs approval does not run without the answer of a person: asked through the client, or
//!   later ([`Questions`]).
//! - A server over HTTP refuses a request with a foreign `Host` or `Origin`, and does not start without a token on an
//!   address that is not loopback. If the service is in the router of a program, the program must do these checks.
//! - A message, the number of sessions and the number of connections have limits.
//!
//! Tools come from a [`Toolbox`](archon_types::Toolbox). Their calls run as an agent that has the same tools and the
//! provider [`ClientCalls`]; the page `docs/mcp.md` shows a whole program.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use archon_mcp_serve::{OfferedAgent, ToolServer, ToolServerError};
//! use archon_types::{CancellationToken, Ids, RunService, Toolbox};
//!
//! # async fn serve(runs: Arc<dyn RunService>, toolbox: Arc<dyn Toolbox>, ids: Arc<dyn Ids>) -> Result<(), ToolServerError> {
//! let server = ToolServer::new(runs, ids)
//!     .with_tools("mcp-tools", toolbox)
//!     .with_agent(OfferedAgent::new("reviewer", "Reviews a change.", "mcp-reviewer"));
//! server.serve_stdio(CancellationToken::new()).await
//! # }
//! ```

// | concept | file |
// |---|---|
// | `ToolServer`, and the tools and agents that it offers | `server.rs`, `offer.rs` |
// | `ClientCalls`, the provider that makes a client's call the turn of a run | `client_calls.rs` |
// | requests of the protocol | `handler.rs` |
// | a call: start its run, follow it, return its result | `call.rs` |
// | progress notifications | `progress.rs` |
// | questions to a person, as elicitation | `question.rs` |
// | tasks of the extension `io.modelcontextprotocol/tasks` | `task.rs` |
// | results of runs and tools, as the protocol has them | `result.rs` |
// | files that clients have read, for tools that change them | `read_files.rs` |
// | `serve_stream`, stdio | `stream.rs` |
// | `serve_http` and `HttpService`, Streamable HTTP, with the feature `http` | `http.rs` |
// | `ToolServerError` | `error.rs` |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod call;
mod client_calls;
mod error;
mod handler;
#[cfg(feature = "http")]
mod http;
mod offer;
mod progress;
mod question;
mod read_files;
mod result;
mod server;
mod stream;
mod task;

pub use client_calls::ClientCalls;
pub use error::ToolServerError;
#[cfg(feature = "http")]
pub use http::{HttpServerOptions, HttpService, serve_http};
pub use offer::OfferedAgent;
/// The library that implements the protocol, for programs that put a handler of their own around a [`ToolServer`].
pub use rmcp;
pub use server::{Questions, ToolServer};
pub use stream::{MAX_MESSAGE, serve_stream};
