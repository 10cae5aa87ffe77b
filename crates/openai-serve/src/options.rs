//! The options of a server.

use std::time::Duration;

use archon_types::CancellationToken;

/// The options of a [`ModelServer`](crate::ModelServer).
///
/// ```
/// use std::time::Duration;
///
/// use archon_openai_serve::ModelServerOptions;
/// use archon_types::CancellationToken;
///
/// let options = ModelServerOptions::default()
///     .with_max_body(1 << 20) // bytes
///     .with_heartbeat(Duration::from_secs(10))
///     .with_end(CancellationToken::new());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModelServerOptions {
    /// Maximum size of the body of a request in bytes, including images and PDF files. The body must arrive within 30 s.
    /// Default 32 MiB.
    pub max_body: usize,
    /// The time without an event after which a stream sends a comment, so that no proxy or client takes the
    /// connection for dead. Default 15 s.
    pub heartbeat: Duration,
    /// The token that says that the server ends: when it is cancelled, all requests that wait for a run end, and the
    /// runs go on. Default: a token that is never cancelled.
    pub end: CancellationToken,
}

impl Default for ModelServerOptions {
    fn default() -> Self {
        Self { max_body: 32 << 20, heartbeat: Duration::from_secs(15), end: CancellationToken::new() }
    }
}

archon_types::setters! {
impl ModelServerOptions {
    /// Sets the maximum size of the body of a request in bytes. Default 32 MiB.
    pub fn with_max_body(self, bytes: usize) -> Self { self.max_body = bytes }

    /// Sets the time without an event after which a stream sends a comment. Default 15 s.
    pub fn with_heartbeat(self, pause: Duration) -> Self { self.heartbeat = pause }

    /// Sets the token that ends all requests that wait for a run. Default: a token that is never cancelled.
    pub fn with_end(self, end: CancellationToken) -> Self { self.end = end }
}
}
