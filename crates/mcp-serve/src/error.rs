//! The reasons why a server does not begin to serve, or stops.

use std::{io, net::SocketAddr};

/// The error of serving clients.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The client's first message is none that opens a connection.
    #[error(
        "the client does not speak the Model Context Protocol: {0}; start it with this server as an MCP server"
    )]
    Handshake(String),
    /// The address is reachable from other machines, and there is no token.
    #[error("{0} is reachable from other machines, so a token is needed: set one, or use 127.0.0.1")]
    NoToken(SocketAddr),
    /// The address stands for all addresses of this machine, and the names that clients use are not known.
    #[error("{0} stands for every address of this machine: name the hosts by which clients reach it")]
    NoHosts(SocketAddr),
    /// The listener failed.
    #[error("cannot listen: {0}; choose another address or port")]
    Listen(#[from] io::Error),
}
