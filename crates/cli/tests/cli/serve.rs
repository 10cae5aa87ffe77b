//! `archon serve`: a server of the command, and clients that write their requests themselves.

mod basics;
pub(crate) mod client;
mod kills;
#[cfg(feature = "mcp-serve")]
mod mcp;
mod models;
mod refusals;
