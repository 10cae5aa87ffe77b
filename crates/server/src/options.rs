//! The options of a server.

use std::{sync::Arc, time::Duration};

use archon_types::CancellationToken;

use crate::request_log::RequestLog;

/// The options of a server.
///
/// ```
/// use std::time::Duration;
///
/// use archon_server::{RequestLog, ServerOptions};
/// use archon_types::CancellationToken;
///
/// fn options(log: RequestLog, end: CancellationToken) -> ServerOptions {
///     ServerOptions::default()
///         .with_dashboard()
///         .with_home("../chat")
///         .with_secure_cookie()
///         .with_max_body(1 << 20) // bytes
///         .with_heartbeat(Duration::from_secs(10))
///         .with_request_log(log)
///         .with_end(end)
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Maximum size of the body of a request in bytes, including images and PDF files. Default 32 MiB.
    pub max_body: usize,
    /// Maximum time until the body of a request has arrived. Default 30 s.
    pub body_time: Duration,
    /// The time without an event after which a stream of events sends a comment, so that no proxy closes the
    /// connection. Default 15 s.
    pub heartbeat: Duration,
    /// The interval at which the stream of a suspended run checks if another process has resumed the run. If
    /// this server resumes the run, the stream goes on at once. Default 1 s.
    pub poll: Duration,
    /// The time for which a one-time link is valid. Default 10 minutes.
    pub link_time: Duration,
    /// The address of the page to which a one-time link leads, relative to the link. Default `../`.
    pub home: String,
    /// The time for which the cookie of a browser is valid. Default 7 days.
    pub cookie_time: Duration,
    /// True to serve the dashboard: a page at `/`, and its files below `/dashboard/`. Default false.
    pub dashboard: bool,
    /// True if browsers reach the server by `https`: then cookies have the attribute `Secure`. Default false.
    /// If the server itself uses TLS, cookies always have this attribute.
    pub secure_cookie: bool,
    /// The file with a line for each request that changes something, for an audit. Default: none; then these
    /// requests are only in the log of the program (`tracing`).
    pub request_log: Option<Arc<RequestLog>>,
    /// The cancellation token that ends all streams of events. Default: a new token.
    pub end: CancellationToken,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            max_body: 32 << 20,
            body_time: Duration::from_secs(30),
            heartbeat: Duration::from_secs(15),
            poll: Duration::from_secs(1),
            link_time: Duration::from_secs(10 * 60),
            home: "../".to_owned(),
            cookie_time: Duration::from_secs(7 * 24 * 60 * 60),
            dashboard: false,
            secure_cookie: false,
            request_log: None,
            end: CancellationToken::new(),
        }
    }
}

archon_types::setters! {
impl ServerOptions {
    /// Sets the maximum size of the body of a request in bytes. Default 32 MiB.
    pub fn with_max_body(self, bytes: usize) -> Self { self.max_body = bytes }

    /// Sets the time without an event after which a stream of events sends a comment. Default 15 s.
    pub fn with_heartbeat(self, pause: Duration) -> Self { self.heartbeat = pause }

    /// Sets the address of the page to which a one-time link leads, relative to the link. Default `../`.
    pub fn with_home(self, address: impl Into<String>) -> Self { self.home = address.into() }

    /// Sets the cancellation token that ends all streams of events. Default: a new token.
    pub fn with_end(self, end: CancellationToken) -> Self { self.end = end }
}
}

impl ServerOptions {
    /// Serves the dashboard: a page on which people watch runs and answer their questions. The page is at `/`
    /// of the router, to which one-time links lead by default. Its files need no token, since they contain no
    /// data. The page works only if the router is not nested below a path.
    pub fn with_dashboard(mut self) -> Self {
        self.dashboard = true;
        self
    }

    /// Gives the cookie the attribute `Secure`, for a server that browsers reach by `https`. Default: only if
    /// the server itself uses TLS.
    pub fn with_secure_cookie(mut self) -> Self {
        self.secure_cookie = true;
        self
    }

    /// Appends a line for each request that changes something to the file of `log`, for an audit. Default: no
    /// file.
    pub fn with_request_log(mut self, log: RequestLog) -> Self {
        self.request_log = Some(Arc::new(log));
        self
    }
}
