//! The outer part of every HTTP server of Archon: limits for connections, the hosts by which clients reach the
//! server, and the tokens of requests.
//!
//! Use this crate alone to put a hyper server of your own behind limits, allowed hosts and tokens.
//!
//! *Invariants*
//!
//! - A host is allowed only if it is in a list. It is not enough that the request arrives at the address of the
//!   server, because a web page can point its own name to this machine.
//! - A token is compared by its hash, in constant time.
//! - The number of connections, the time for a handshake, and the time for the headers of a request have limits.
//!
//! ```
//! use archon_http_access::{AllowedHosts, TokenHash};
//! use archon_types::Secret;
//!
//! let hosts = AllowedHosts::of_address(([127, 0, 0, 1], 8080).into(), []);
//! assert!(hosts.admits("localhost:8080") && !hosts.admits("localhost.evil.example:8080"));
//!
//! let token = TokenHash::of(&Secret::from("token-1"));
//! assert!(token.is_of("token-1") && !token.is_of("token-2"));
//! ```

// | concept | file |
// |---|---|
// | `AllowedHosts`: the allowed values of `Host` and `Origin` | `hosts.rs` |
// | `TokenHash`, `bearer_token` | `token.rs` |
// | `serve_connections`, `Listener`, `ConnectionOptions`, `HeldConnection` | `connections.rs` |
// | `serve_tls_connections`, `TlsIdentity`, with the feature `tls` | `tls.rs` |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod connections;
mod hosts;
#[cfg(feature = "tls")]
mod tls;
mod token;

pub use connections::{ConnectionOptions, HeldConnection, Listener, serve_connections};
pub use hosts::AllowedHosts;
#[cfg(feature = "tls")]
pub use tls::{TlsError, TlsIdentity, serve_tls_connections};
pub use token::{TokenHash, bearer_token};
