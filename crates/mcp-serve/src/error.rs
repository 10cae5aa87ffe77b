//! The reasons why a server does not begin to serve, or stops.

use std::{io, net::SocketAddr};

/// The error of serving clients.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolServerError {
    /// No connection was opened with the client, for instance because its first message is not an MCP message.
    #[error(
        "no MCP connection was opened with the client: {0}; set this server up as an MCP server of the client"
    )]
    Handshake(String),
    /// The address is reachable from other machines, and there is no token.
    #[error(
        "the address {0} is reachable from other machines, so a token is required: set a token, or use 127.0.0.1"
    )]
    NoToken(SocketAddr),
    /// The address is reachable from other machines, which would send the token unencrypted.
    #[error(
        "the address {0} is reachable from other machines, and the connection is not encrypted: use 127.0.0.1, or put a proxy with TLS before it and set `behind_proxy`"
    )]
    NotEncrypted(SocketAddr),
    /// The address means every address of this machine, such as `0.0.0.0`, and the options have no hosts by which
    /// clients reach the server.
    #[error(
        "the address {0} means every address of this machine: set the host names by which clients reach the server"
    )]
    NoHosts(SocketAddr),
    /// The server cannot listen at the address.
    #[error("the server cannot listen: {0}; choose another address or port")]
    Listen(#[from] io::Error),
}
