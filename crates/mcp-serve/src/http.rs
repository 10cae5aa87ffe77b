//! Clients over HTTP. `HttpService` is for the router of a program: it speaks the protocol's Streamable HTTP, with
//! limits on bodies and sessions. `serve_http` runs a server of its own: it has this service at the path `/mcp`,
//! behind checks of `Host`, `Origin` and a token.

use std::{
    convert::Infallible,
    fmt::{self, Display},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use archon_http_access::{AllowedHosts, ConnectionOptions, TokenHash, bearer_token, serve_connections};
use archon_types::{CancellationToken, Secret};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body, Incoming},
    header::{HeaderMap, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
    service::service_fn,
};
use rmcp::{
    ServerHandler,
    model::ProtocolVersion,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use tokio::net::TcpListener;

use crate::error::ToolServerError;

/// The path at which the server speaks the protocol; requests for other paths get the status 404.
const PATH: &str = "/mcp";
/// Time without a message after which a session is closed.
const IDLE: Duration = Duration::from_secs(60 * 60);

/// Options of a server over HTTP.
///
/// ```
/// use archon_mcp_serve::HttpServerOptions;
///
/// let options = HttpServerOptions::default()
///     .with_token("a-long-random-text")
///     .with_hosts(["agents.example.com"]);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpServerOptions {
    /// The token that all clients must send, as `Authorization: Bearer TOKEN`. Required for an address that is not
    /// loopback. Default: none, and no token is checked.
    pub token: Option<Secret>,
    /// True if a proxy with TLS is between other machines and the server. Required for an address beyond loopback, where
    /// the token would else be sent unencrypted. Default false.
    pub behind_proxy: bool,
    /// Further hosts by which clients reach the server: `HOST:PORT`, or `HOST` for every port. The hosts of
    /// the address itself are always allowed. Requests for other hosts, and requests of web pages of other
    /// hosts, are refused. Default: none.
    pub hosts: Vec<String>,
    /// Maximum size of the body of a request in bytes. Default 4 MiB.
    pub max_body: usize,
    /// Maximum number of open sessions, which clients of revisions before 2026-07-28 need. Default 100.
    pub max_sessions: usize,
    /// Maximum number of open connections; a further connection waits. Default 256.
    pub max_connections: usize,
    /// Maximum time for calls under way when the server ends. Default 5 s.
    pub grace: Duration,
}

impl Default for HttpServerOptions {
    fn default() -> Self {
        Self {
            token: None,
            behind_proxy: false,
            hosts: Vec::new(),
            max_body: 4 << 20,
            max_sessions: 100,
            max_connections: 256,
            grace: Duration::from_secs(5),
        }
    }
}

impl HttpServerOptions {
    /// Sets the token that all clients must send. Default: none, and no token is checked.
    pub fn with_token(mut self, token: impl Into<Secret>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Allows an address beyond loopback, because a proxy with TLS is before the server.
    pub fn with_proxy(mut self) -> Self {
        self.behind_proxy = true;
        self
    }

    /// Sets further hosts by which clients reach the server: `HOST:PORT`, or `HOST` for every port. Default: none.
    pub fn with_hosts<T: Into<String>>(mut self, hosts: impl IntoIterator<Item = T>) -> Self {
        self.hosts = hosts.into_iter().map(Into::into).collect();
        self
    }
}

/// Serves clients that connect to `listener`, until `end` is cancelled. Then no new connection is accepted, calls
/// under way get [`HttpServerOptions::grace`], and the remaining calls are cancelled.
///
/// # Errors
/// The address is reachable from other machines, and there is no token or no proxy with TLS; or the address means every
/// address of this machine, and `options` has no hosts.
pub async fn serve_http<H: ServerHandler + Clone>(
    handler: H,
    listener: TcpListener,
    options: &HttpServerOptions,
    end: CancellationToken,
) -> Result<(), ToolServerError> {
    let address = listener.local_addr()?;
    let door = Arc::new(Door::new(handler, address, options)?);
    let connections =
        ConnectionOptions::default().with_max_connections(options.max_connections).with_grace(options.grace);
    let outer = door.clone();
    let answer = service_fn(move |request: Request<Incoming>| {
        let door = outer.clone();
        async move { Ok::<_, Infallible>(door.answer(request).await) }
    });
    serve_connections(listener, answer, &connections, &end).await;
    door.end.cancel();
    Ok(())
}

/// A service that speaks the protocol's Streamable HTTP, for the router of a program.
/// [`ToolServer::http_service`](crate::ToolServer::http_service) creates it. Cloning is cheap, and clones have the
/// same sessions.
///
/// The service does not check host, origin or token. Put it behind checks of the program, such as `guarded` of
/// `archon-server`.
#[derive(Clone)]
pub struct HttpService<H> {
    service: StreamableHttpService<H, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    max_sessions: usize,
}

impl<H: ServerHandler + Clone> HttpService<H> {
    /// Creates a service that does not check the host and the origin of requests: the program must do that.
    pub(crate) fn unchecked(handler: H, options: &HttpServerOptions, end: CancellationToken) -> Self {
        let config = StreamableHttpServerConfig::default().disable_allowed_hosts().disable_allowed_origins();
        Self::new(handler, options, config.with_cancellation_token(end))
    }

    fn new(handler: H, options: &HttpServerOptions, config: StreamableHttpServerConfig) -> Self {
        let mut config = config.with_max_request_body_bytes(options.max_body);
        config.legacy_session_mode = true;
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE);
        let sessions = Arc::new(manager);
        let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions.clone(), config);
        Self { service, sessions, max_sessions: options.max_sessions }
    }

    /// Answers a request, whatever its path.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<BoxBody<Bytes, Infallible>>
    where
        B: Body + Send + 'static,
        B::Error: Display,
    {
        let opens = opens_session(request.method(), request.headers());
        if opens && self.sessions.sessions.read().await.len() >= self.max_sessions {
            let mut refused =
                refusal(StatusCode::SERVICE_UNAVAILABLE, "too many sessions are open: close one");
            refused.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("60"));
            return refused;
        }
        self.service.handle(request).await
    }
}

impl<H> fmt::Debug for HttpService<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").field("max_sessions", &self.max_sessions).finish_non_exhaustive()
    }
}

/// The checks that a request must pass before the service answers it.
struct Door<H> {
    service: HttpService<H>,
    token: Option<TokenHash>,
    /// Ends all sessions and streams.
    end: CancellationToken,
}

impl<H: ServerHandler + Clone> Door<H> {
    fn new(handler: H, address: SocketAddr, options: &HttpServerOptions) -> Result<Self, ToolServerError> {
        let is_here = address.ip().is_loopback();
        if !is_here && options.token.is_none() {
            return Err(ToolServerError::NoToken(address));
        }
        if !is_here && !options.behind_proxy {
            return Err(ToolServerError::NotEncrypted(address));
        }
        if address.ip().is_unspecified() && options.hosts.is_empty() {
            return Err(ToolServerError::NoHosts(address));
        }
        let (hosts, end) =
            (AllowedHosts::of_address(address, options.hosts.clone()), CancellationToken::new());
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts.names().to_vec())
            .with_allowed_origins(hosts.origins())
            .enforce_origin_validation()
            .with_cancellation_token(end.clone());
        let service = HttpService::new(handler, options, config);
        Ok(Self { service, token: options.token.as_ref().map(TokenHash::of), end })
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<BoxBody<Bytes, Infallible>> {
        if request.uri().path() != PATH {
            return refusal(StatusCode::NOT_FOUND, "the protocol is at /mcp");
        }
        if !self.admits(request.headers()) {
            let mut refused =
                refusal(StatusCode::UNAUTHORIZED, "send the token: Authorization: Bearer TOKEN");
            refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return refused;
        }
        self.service.answer(request).await
    }

    /// Returns true if a request has the token, or if the server requires none.
    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        bearer_token(headers).is_some_and(|presented| token.is_of(presented))
    }
}

/// Returns true for a request that can only open a session: it names no session, and its client is of a
/// revision before 2026-07-28, as later revisions have no sessions.
fn opens_session(method: &Method, headers: &HeaderMap) -> bool {
    let version = headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    let is_stateless = version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str());
    *method == Method::POST && !is_stateless && !headers.contains_key("mcp-session-id")
}

fn refusal(status: StatusCode, text: &'static str) -> Response<BoxBody<Bytes, Infallible>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}
