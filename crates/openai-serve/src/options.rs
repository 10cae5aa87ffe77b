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
    /// Maximum size of the body of a request in bytes; images are part of it. It has 30 s to arrive. Default 8 MiB.
    pub max_body: usize,
    /// The pause after which a stream without an event sends a comment, so that nothing between takes the connection
    /// for dead. Default 15 s.
    pub heartbeat: Duration,
    /// Ends all requests that wait for a run when it is cancelled; the runs go on. Default: a token that nothing else holds.
    pub end: CancellationToken,
}

impl Default for ModelServerOptions {
    fn default() -> Self {
        Self { max_body: 8 << 20, heartbeat: Duration::from_secs(15), end: CancellationToken::new() }
    }
}

archon_types::setters! {
impl ModelServerOptions {
    /// Sets the maximum size of the body of a request in bytes.
    pub fn with_max_body(self, bytes: usize) -> Self { self.max_body = bytes }

    /// Sets the pause after which a stream without an event sends a comment.
    pub fn with_heartbeat(self, pause: Duration) -> Self { self.heartbeat = pause }

    /// Sets the token that ends all requests that wait for a run.
    pub fn with_end(self, end: CancellationToken) -> Self { self.end = end }
}
}
