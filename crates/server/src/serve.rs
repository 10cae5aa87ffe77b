//! Serves a router at an address or a Unix socket. An address that other machines reach needs TLS, or a proxy with TLS.

use std::{io, net::SocketAddr};

use archon_http_access::{ConnectionOptions, Listener, serve_connections};
#[cfg(feature = "tls")]
use archon_http_access::{TlsIdentity, serve_tls_connections};
use archon_types::CancellationToken;
use axum::{Extension, Router};
use hyper_util::service::TowerToHyperService;

use crate::cookie::Channel;

/// The options of serving.
///
/// ```
/// use std::time::Duration;
///
/// use archon_server::{ConnectionOptions, ServeOptions};
///
/// let connections = ConnectionOptions::default().with_grace(Duration::from_secs(30));
/// let behind_proxy = ServeOptions::default().with_connections(connections).with_proxy();
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ServeOptions {
    /// The limits of the connections; see [`ConnectionOptions`] for the defaults.
    pub connections: ConnectionOptions,
    /// True if other machines reach the server only through a proxy with TLS. Then the server may listen at an
    /// address that other machines reach. Default false.
    pub behind_proxy: bool,
    /// The certificate and the key with which the server encrypts its connections; `None` for connections without TLS,
    /// which is the default.
    #[cfg(feature = "tls")]
    pub tls: Option<TlsIdentity>,
}

impl ServeOptions {
    /// Sets the limits of the connections; see [`ConnectionOptions`] for the defaults.
    pub fn with_connections(mut self, connections: ConnectionOptions) -> Self {
        self.connections = connections;
        self
    }

    /// Allows an address that other machines reach. Use this only if a proxy with TLS is in front of the
    /// server.
    pub fn with_proxy(mut self) -> Self {
        self.behind_proxy = true;
        self
    }

    /// Encrypts the connections with this certificate. This also allows an address that other machines reach,
    /// and gives the cookies of browsers the attribute `Secure`.
    ///
    /// ```
    /// use archon_server::{ServeOptions, TlsError, TlsIdentity};
    ///
    /// fn with_certificate(certificate: &[u8], key: &[u8]) -> Result<ServeOptions, TlsError> {
    ///     Ok(ServeOptions::default().with_tls(TlsIdentity::from_pem(certificate, key)?))
    /// }
    /// ```
    #[cfg(feature = "tls")]
    pub fn with_tls(mut self, identity: TlsIdentity) -> Self {
        self.tls = Some(identity);
        self
    }

    /// Returns true if the server itself encrypts its connections.
    #[cfg(feature = "tls")]
    fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns true if the server itself encrypts its connections.
    #[cfg(not(feature = "tls"))]
    fn has_tls(&self) -> bool {
        false
    }
}

/// The error of a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is reachable from other machines, which would send their tokens unencrypted.
    #[error(
        "the address {0} is reachable from other machines, and the connection is not encrypted: use 127.0.0.1, give the server a certificate (`ServeOptions::with_tls`), or put a proxy with TLS before it and set `ServeOptions::behind_proxy`"
    )]
    BeyondLoopback(SocketAddr),
    /// A token has no secret, so that everybody would have its role.
    #[error("the token {0:?} has a blank secret; set it to a random text of at least 16 bytes")]
    BlankToken(String),
    /// The server has no token with this name, so no link can be made for it.
    #[error("the server has no token with the name {0:?}; use the name of one of its tokens")]
    UnknownToken(String),
    /// The operating system has no random numbers.
    #[error("cannot get random numbers from the operating system: {0}")]
    Random(getrandom::Error),
    /// The operating system does not tell the address of the listener.
    #[error("cannot read the address of the listener: {0}; pass a listener that is open")]
    Address(#[from] io::Error),
}

/// Serves clients that connect to `listener` until `end` fires. Then no new connection is accepted, streams of
/// events end, and open requests get the time [`ConnectionOptions::grace`] to finish. Runs are left as they
/// are: the next start of the program resumes them
/// ([`StartRuns::resume_unfinished`](archon_types::StartRuns::resume_unfinished)).
///
/// Pass the cancellation token [`Server::end`](crate::Server::end) as `end`, so that streams of events end too.
///
/// # Errors
/// The address is reachable from other machines, and neither [`ServeOptions::behind_proxy`] nor a certificate is set.
pub async fn serve<L: Listener>(
    router: Router,
    listener: L,
    options: &ServeOptions,
    end: &CancellationToken,
) -> Result<(), ServeError> {
    let is_encrypted = options.has_tls();
    let beyond = listener.address()?.filter(|address| !address.ip().is_loopback());
    if let Some(address) = beyond.filter(|_| !options.behind_proxy && !is_encrypted) {
        return Err(ServeError::BeyondLoopback(address));
    }
    let service = TowerToHyperService::new(router.layer(Extension(Channel { is_encrypted })));
    #[cfg(feature = "tls")]
    if let Some(identity) = &options.tls {
        serve_tls_connections(listener, identity, service, &options.connections, end).await;
        return Ok(());
    }
    serve_connections(listener, service, &options.connections, end).await;
    Ok(())
}
