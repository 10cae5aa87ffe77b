//! A server: its tokens, its router, and its one-time links.

use std::sync::Arc;

use archon_http_access::AllowedHosts;
use archon_types::{CancellationToken, Clock};
use axum::Router;
use tokio::sync::watch;

use crate::{
    access::{AccessToken, Scope, Token},
    cookie, dispatch,
    frames::Frames,
    options::ServerOptions,
    role::Right,
    serve::ServeError,
    sign_in::Codes,
    state::State,
};

/// Runs over HTTP. Cloning is cheap, and clones share everything.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_server::{AccessToken, AllowedHosts, Server, ServerOptions};
/// use archon_types::Clock;
///
/// fn server(tokens: Vec<AccessToken>, clock: Arc<dyn Clock>) -> Server {
///     let hosts = AllowedHosts::new(["agents.example.com"]);
///     Server::new(hosts, tokens, clock, ServerOptions::default().with_dashboard())
/// }
/// ```
#[derive(Clone)]
pub struct Server {
    state: Arc<State>,
}

impl Server {
    /// Creates a server for the holders of `tokens`. The host of each request must be one of `hosts`. Requests
    /// without a token are refused.
    pub fn new(
        hosts: AllowedHosts,
        tokens: impl IntoIterator<Item = AccessToken>,
        clock: Arc<dyn Clock>,
        options: ServerOptions,
    ) -> Self {
        let tokens: Vec<_> = tokens.into_iter().map(|token| Arc::new(Token::new(token, &clock))).collect();
        let cookie_name = cookie::name(tokens.first().map(|token| &token.hash));
        let (changes, _) = watch::channel(0);
        let (codes, frames) = (Codes::default(), Frames::default());
        let state = State { hosts, tokens, cookie_name, codes, clock, options, frames, changes };
        Self { state: Arc::new(state) }
    }

    /// Returns the router. Mount it in another router with `nest`, because the returned router has a fallback
    /// that answers every unknown path. The other router needs no checks for the nested paths. Behind a proxy,
    /// the proxy must pass on the header `Host`.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use archon_server::{AllowedHosts, Server, ServerOptions, axum::{Router, routing::get}};
    /// use archon_types::Clock;
    ///
    /// fn app(server: &Server) -> Router {
    ///     Router::new().route("/", get(|| async { "my own page" })).nest("/agents", server.router())
    /// }
    ///
    /// # let clock: Arc<dyn Clock> = Arc::new(archon_testkit::VirtualClock::new());
    /// let server = Server::new(AllowedHosts::new(["localhost:8080"]), [], clock, ServerOptions::default());
    /// let app = app(&server);
    /// ```
    pub fn router(&self) -> Router {
        dispatch::router(&self.state)
    }

    /// Puts the checks of this server before another router, so that the router uses the same tokens. The
    /// checks are: host, origin, a token with `right`, the token's limit of requests, its limit of open
    /// streams, and the content type of a write with a body. Each request counts as an open stream until its
    /// response has ended.
    ///
    /// An admitted request has the extension [`Caller`](crate::Caller). Its response gets the security headers
    /// of [`router`](Self::router) that it does not set itself.
    ///
    /// ```
    /// use archon_server::{Caller, Right, Server, axum::{Extension, Router, routing::get}};
    ///
    /// async fn greet(Extension(caller): Extension<Caller>) -> String {
    ///     format!("Hello, {}.", caller.name())
    /// }
    ///
    /// fn app(server: &Server) -> Router {
    ///     let own = Router::new().route("/hello", get(greet));
    ///     server.router().merge(server.guarded(own, Right::Monitor))
    /// }
    /// ```
    pub fn guarded(&self, router: Router, right: Right) -> Router {
        dispatch::guarded(&self.state, router, right)
    }

    /// Returns the scope of the first token with this name; `None` if there is no such token. This is for a
    /// router behind [`guarded`](Self::guarded) that needs a scope before the first request. Each start of a
    /// run in this scope counts for the limit of the token, as in the scope of a [`Caller`](crate::Caller).
    pub fn scope(&self, name: &str) -> Option<&Scope> {
        self.state.tokens.iter().find(|token| token.name == name).map(|token| &token.scope)
    }

    /// Creates a link that signs a browser in once, with a cookie for the first token with this name. Returns
    /// the path and query of the link. If the router is nested below a path, put that path before them. The
    /// holder of a token can also get a link with `POST /v1/links`.
    ///
    /// # Errors
    /// There is no token of this name, or the operating system has no random numbers.
    pub fn one_time_link(&self, name: &str) -> Result<String, ServeError> {
        let token = self.state.tokens.iter().position(|token| token.name == name);
        let token = token.ok_or_else(|| ServeError::UnknownToken(name.to_owned()))?;
        self.state.create_link(token).map(|(link, _)| link).map_err(ServeError::Random)
    }

    /// Returns the cancellation token that ends the streams of events; see [`ServerOptions::end`].
    pub fn end(&self) -> &CancellationToken {
        &self.state.options.end
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("hosts", &self.state.hosts).finish_non_exhaustive()
    }
}
