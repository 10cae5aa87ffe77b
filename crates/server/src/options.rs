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
    /// Maximum size of the body of a request in bytes. Default 1 MiB.
    pub max_body: usize,
    /// Maximum time until the body of a request has arrived. Default 30 s.
    pub body_time: Duration,
    /// The pause after which a stream of events without an event sends a comment, so that nothing between takes the
    /// connection for dead. Default 15 s.
    pub heartbeat: Duration,
    /// The interval in which a stream of a suspended run looks whether another process has resumed the run. What this
    /// server resumes, the stream learns at once. Default 1 s.
    pub poll: Duration,
    /// The time for which a one-time link is valid. Default 10 minutes.
    pub link_time: Duration,
    /// The address of the page to which a one-time link leads, relative to the link. Default `../`.
    pub home: String,
    /// The time for which the cookie of a browser is valid. Default 7 days.
    pub cookie_time: Duration,
    /// True to serve the dashboard: a page at `/`, and its files below `/dashboard/`. Default false.
    pub dashboard: bool,
    /// True if browsers reach the server by `https`: then the cookie has the attribute `Secure`. Default false. Over TLS of
    /// the server itself the cookie has it always.
    pub secure_cookie: bool,
    /// The file in which each write of a token is noted, for an audit. Default: none, and then the requests are in the log
    /// of the program (`tracing`) only.
    pub request_log: Option<Arc<RequestLog>>,
    /// Ends all streams of events when it fires. Default: a token that nothing else holds.
    pub end: CancellationToken,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            max_body: 1 << 20,
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
    /// Sets the maximum size of the body of a request in bytes.
    pub fn with_max_body(self, bytes: usize) -> Self { self.max_body = bytes }

    /// Sets the pause after which a stream of events without an event sends a comment.
    pub fn with_heartbeat(self, pause: Duration) -> Self { self.heartbeat = pause }

    /// Sets the address of the page to which a one-time link leads.
    pub fn with_home(self, address: impl Into<String>) -> Self { self.home = address.into() }

    /// Sets the token that ends all streams of events.
    pub fn with_end(self, end: CancellationToken) -> Self { self.end = end }
}
}

impl ServerOptions {
    /// Serves the dashboard: a page on which people watch runs and answer their questions. It is at `/` of the router, where
    /// a one-time link leads to by default; its files need no token, since they hold no data. The page is for a router that
    /// is not nested below a path.
    pub fn with_dashboard(mut self) -> Self {
        self.dashboard = true;
        self
    }

    /// Gives the cookie the attribute `Secure`, for a server that browsers reach by `https`.
    pub fn with_secure_cookie(mut self) -> Self {
        self.secure_cookie = true;
        self
    }

    /// Notes each write of a token in a file.
    pub fn with_request_log(mut self, log: RequestLog) -> Self {
        self.request_log = Some(Arc::new(log));
        self
    }
}
