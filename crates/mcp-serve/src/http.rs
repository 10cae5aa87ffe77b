//! Clients over HTTP: the protocol's Streamable HTTP at the path `/mcp`, behind checks of `Host`, `Origin` and a
//! token, and limits on bodies, sessions and connections.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use archon_types::{CancellationToken, Secret};
use bytes::Bytes;
use hmac_sha256::Hash;
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use rmcp::{
    ServerHandler,
    model::ProtocolVersion,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

use crate::error::ServeError;

/// The path at which the server speaks the protocol; requests for other paths get the status 404.
const PATH: &str = "/mcp";
/// Maximum time until the headers of a request have arrived.
const HEADERS: Duration = Duration::from_secs(10);
/// Time without a message after which a session is closed.
const IDLE: Duration = Duration::from_secs(60 * 60);
/// The pause after a failed accept, for instance because no file descriptor was left.
const PAUSE: Duration = Duration::from_millis(100);

/// Options of a server over HTTP.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpServerOptions {
    /// The token of all clients, as `Authorization: Bearer TOKEN`. Required for an address beyond loopback.
    pub token: Option<Secret>,
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
            hosts: Vec::new(),
            max_body: 4 << 20,
            max_sessions: 100,
            max_connections: 256,
            grace: Duration::from_secs(5),
        }
    }
}

impl HttpServerOptions {
    /// Sets the token of all clients.
    pub fn with_token(mut self, token: impl Into<Secret>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Sets further hosts by which clients reach the server.
    pub fn with_hosts<T: Into<String>>(mut self, hosts: impl IntoIterator<Item = T>) -> Self {
        self.hosts = hosts.into_iter().map(Into::into).collect();
        self
    }
}

/// Serves clients that connect to `listener`, until `end` fires. Then no new connection is accepted, calls
/// under way get [`HttpServerOptions::grace`], and the remaining calls are cancelled.
///
/// # Errors
/// The address is reachable from other machines and there is no token, or the address means every address of
/// this machine and `options` has no hosts.
pub async fn serve_http<H: ServerHandler + Clone>(
    handler: H,
    listener: TcpListener,
    options: &HttpServerOptions,
    end: CancellationToken,
) -> Result<(), ServeError> {
    let address = listener.local_addr()?;
    let door = Arc::new(Door::new(handler, address, options)?);
    let (connections, graceful) =
        (Arc::new(Semaphore::new(options.max_connections)), GracefulShutdown::new());
    while let Some((stream, permit)) = accept(&listener, &connections, &end).await {
        let door = door.clone();
        let answer = service_fn(move |request| {
            let door = door.clone();
            async move { Ok::<_, Infallible>(door.answer(request).await) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEADERS);
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), answer));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(target: "archon::mcp", %error, "a connection broke off");
            }
            drop(permit);
        });
    }
    drop(listener);
    let closed = graceful.shutdown();
    let _ = tokio::time::timeout(options.grace, closed).await;
    door.end.cancel();
    Ok(())
}

/// Waits until one more connection is allowed, and accepts it; `None` when the server ends.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
    end: &CancellationToken,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let next = async {
        let permit = connections.clone().acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => return Some((stream, permit)),
                Err(error) => {
                    tracing::warn!(target: "archon::mcp", %error, "a connection was not accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        next = next => next,
        () = end.cancelled() => None,
    }
}

type Body = BoxBody<Bytes, Infallible>;

/// The checks of a request before the library `rmcp` handles the request.
struct Door<H> {
    service: StreamableHttpService<H, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    token: Option<[u8; 32]>,
    max_sessions: usize,
    /// Ends all sessions and streams.
    end: CancellationToken,
}

impl<H: ServerHandler + Clone> Door<H> {
    fn new(handler: H, address: SocketAddr, options: &HttpServerOptions) -> Result<Self, ServeError> {
        let is_here = address.ip().is_loopback();
        if !is_here && options.token.is_none() {
            return Err(ServeError::NoToken(address));
        }
        if address.ip().is_unspecified() && options.hosts.is_empty() {
            return Err(ServeError::NoHosts(address));
        }
        let (hosts, end) = (hosts(address, &options.hosts), CancellationToken::new());
        let origins = hosts.iter().flat_map(|host| origins(host)).collect::<Vec<_>>();
        let mut config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts)
            .with_allowed_origins(origins)
            .enforce_origin_validation()
            .with_cancellation_token(end.clone())
            .with_max_request_body_bytes(options.max_body);
        config.legacy_session_mode = true;
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE);
        let sessions = Arc::new(manager);
        Ok(Self {
            service: StreamableHttpService::new(move || Ok(handler.clone()), sessions.clone(), config),
            sessions,
            token: options.token.as_ref().map(|token| Hash::hash(token.expose().as_bytes())),
            max_sessions: options.max_sessions,
            end,
        })
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if request.uri().path() != PATH {
            return refusal(StatusCode::NOT_FOUND, "the protocol is at /mcp");
        }
        if !self.admits(request.headers()) {
            let mut refused =
                refusal(StatusCode::UNAUTHORIZED, "send the token: Authorization: Bearer TOKEN");
            refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return refused;
        }
        if opens_session(&request) && self.sessions.sessions.read().await.len() >= self.max_sessions {
            let mut refused =
                refusal(StatusCode::SERVICE_UNAVAILABLE, "too many sessions are open: close one");
            refused.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("60"));
            return refused;
        }
        self.service.handle(request).await
    }

    /// Returns true if a request has the token; compares the hashes of the tokens, in constant time.
    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let presented = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let presented = presented.and_then(|value| value.split_once(' '));
        presented.is_some_and(|(scheme, presented)| {
            scheme.eq_ignore_ascii_case("bearer") && Hash::verify(presented.trim(), token)
        })
    }
}

/// Returns true for a request that can only open a session: it names no session, and its client is of a
/// revision before 2026-07-28, as later revisions have no sessions.
fn opens_session(request: &Request<Incoming>) -> bool {
    let headers = request.headers();
    let version = headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    let is_stateless = version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str());
    request.method() == Method::POST && !is_stateless && !headers.contains_key("mcp-session-id")
}

/// Returns the hosts for which requests are allowed: those in `named`, and those of the server's address.
fn hosts(address: SocketAddr, named: &[String]) -> Vec<String> {
    let port = address.port();
    let mut hosts = named.to_vec();
    if address.ip().is_loopback() || address.ip().is_unspecified() {
        hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(|host| format!("{host}:{port}")));
    } else {
        hosts.push(address.to_string());
    }
    hosts
}

/// Returns the origins of the web pages of a host.
fn origins(host: &str) -> [String; 2] {
    let ends_with_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = if ends_with_port { "" } else { ":*" };
    ["http", "https"].map(|scheme| format!("{scheme}://{host}{port}"))
}

fn refusal(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_those_of_the_address_and_those_that_were_named() {
        let hosts = |address: &str, named: &[&str]| {
            hosts(address.parse().unwrap(), &named.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(hosts("127.0.0.1:80", &[]), ["localhost:80", "127.0.0.1:80", "[::1]:80"]);
        assert_eq!(hosts("192.0.2.7:80", &["tools.example"]), ["tools.example", "192.0.2.7:80"]);
    }

    #[test]
    fn origins_of_a_host_have_its_port_or_any() {
        assert_eq!(origins("localhost:80"), ["http://localhost:80", "https://localhost:80"]);
        assert_eq!(origins("[::1]:80"), ["http://[::1]:80", "https://[::1]:80"]);
        assert_eq!(origins("tools.example"), ["http://tools.example:*", "https://tools.example:*"]);
    }
}
