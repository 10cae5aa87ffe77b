//! The HTTP transport that all protocols share: pooled clients, timeouts, and prepared addresses and
//! headers.

pub(crate) mod body;
mod client;
pub(crate) mod events;
pub(crate) mod retry_after;
pub(crate) mod sse;
pub(crate) mod watch;
pub(crate) mod whole;

use std::{fmt, future::Future, net::IpAddr, pin::Pin, sync::Arc, time::Duration};

use archon_types::{ProviderError, Redactor, Secret};
use reqwest::{
    Method, Request, Response, Url,
    header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};

use client::ClientPool;

use crate::{answer_limits::AnswerLimits, error::SetupError};

/// HTTP options of a provider. Providers that get clones of one value share one pool of connections.
///
/// ```
/// use std::time::Duration;
///
/// use archon_providers::{AnswerLimits, HttpOptions, Timeouts};
///
/// fn of_company(certificates: &[u8]) -> HttpOptions {
///     let mut timeouts = Timeouts::default();
///     timeouts.first_byte = Duration::from_secs(300);
///     let mut limits = AnswerLimits::default();
///     limits.text_bytes = 1 << 20;
///     HttpOptions::default()
///         .with_timeouts(timeouts)
///         .with_limits(limits)
///         .with_plain_http()
///         .with_proxy("http://proxy.example:3128")
///         .with_ca_certificates(certificates)
/// }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HttpOptions {
    /// The timeouts of each request.
    pub timeouts: Timeouts,
    /// The maximum size of one answer of a model.
    pub limits: AnswerLimits,
    /// Allows keys, tokens and headers to be sent over `http://` to other machines, for a private network;
    /// anyone on the network path can read them. If false, they are sent over `http://` only to this
    /// machine. Default false.
    pub allow_plain_http: bool,
    /// A proxy for all requests, for instance `http://user:password@proxy:3128`. Without one, the variables
    /// `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` are used; a server on this machine is then always reached
    /// without a proxy.
    pub proxy: Option<Secret>,
    /// Certificates in PEM form that are trusted in addition to the system's, for instance a company's.
    pub ca_certificates: Option<Arc<[u8]>>,
    /// The pool of clients, which clones share.
    pub(crate) clients: ClientPool,
}

impl HttpOptions {
    /// Sets the timeouts of each request.
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets the maximum size of one answer of a model.
    pub fn with_limits(mut self, limits: AnswerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Allows keys, tokens and headers to be sent over `http://` to other machines, where anyone on the
    /// network path can read them.
    pub fn with_plain_http(mut self) -> Self {
        self.allow_plain_http = true;
        self
    }

    /// Sets a proxy for all requests, for instance `http://user:password@proxy:3128`. Default: the proxy in
    /// `HTTPS_PROXY` or `HTTP_PROXY`.
    pub fn with_proxy(mut self, proxy: impl Into<Secret>) -> Self {
        self.proxy = Some(proxy.into());
        self
    }

    /// Sets certificates in PEM form that are trusted in addition to the system's.
    pub fn with_ca_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.ca_certificates = Some(pem.as_ref().into());
        self
    }
}

/// The timeouts of a request. A request that exceeds one fails with a timeout error, which may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// The maximum time to make a connection. Default 10 s.
    pub connect: Duration,
    /// The maximum time until the first byte of the answer. Default 2 minutes, because a local server
    /// processes the prompt first. For this timeout and for [`idle`](Self::idle), lines that a service
    /// sends only to keep the connection alive do not count.
    pub first_byte: Duration,
    /// The maximum time between two chunks of the answer. Default 60 s.
    pub idle: Duration,
    /// The maximum time of the whole answer; `None` sets no limit. Default 10 minutes.
    pub total: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(60),
            total: Some(Duration::from_secs(600)),
        }
    }
}

/// A boxed future.
pub(crate) type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A body that is shared, and sent without a copy.
pub(crate) struct SharedText(pub(crate) Arc<String>);

impl AsRef<[u8]> for SharedText {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// One address with its headers and HTTP options.
pub(crate) struct Transport {
    url: Url,
    headers: HeaderMap,
    pub(crate) options: HttpOptions,
    pub(crate) redactor: Redactor,
}

impl Transport {
    /// Creates a transport to `base`, with `path` appended unless the path of `base` ends with `path`.
    pub(crate) fn new(base: &str, path: &str, options: HttpOptions) -> Result<Self, SetupError> {
        let mut url = base_url(base)?;
        let start = url.path().trim_end_matches('/');
        if !start.ends_with(path) {
            let joined = format!("{start}{path}");
            url.set_path(&joined);
        }
        let redactor = Redactor::default();
        if let Some(proxy) = &options.proxy {
            redactor.add(proxy);
            // Some proxies repeat the credentials that they refuse.
            if let Ok(url) = Url::parse(proxy.expose().trim())
                && let Some(password) = url.password()
            {
                redactor.add(&Secret::from(password));
                redactor.add(&Secret::new(format!("{}:{password}", url.username())));
            }
        }
        let in_query = query_secrets(&url);
        in_query.iter().for_each(|secret| redactor.add(secret));
        client::check(&options, &url, |name| std::env::var(name).ok())?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let transport = Self { url, headers, options, redactor };
        if !in_query.is_empty() {
            transport.check_way("a key in its query")?;
        }
        Ok(transport)
    }

    /// Returns an error if requests to this address would be unencrypted and must not contain a secret;
    /// `what` describes the secret.
    pub(crate) fn check_way(&self, what: &str) -> Result<(), SetupError> {
        let open = self.url.scheme() == "http" && !is_this_machine(&self.url);
        if !open || self.options.allow_plain_http {
            return Ok(());
        }
        let reason = format!(
            "{what} would be sent unencrypted to another machine; use https, or for a private network allow it with \
             `allow_plain_http` (a setting of the command, a field of `HttpOptions`)"
        );
        Err(SetupError::BaseUrl { url: self.display_url(), reason })
    }

    /// Adds the header that declares the bodies as JSON.
    pub(crate) fn send_json(&mut self) {
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }

    /// Sends the key as a bearer token with every request.
    pub(crate) fn set_bearer(&mut self, key: &Secret) -> Result<(), SetupError> {
        self.check_way("the key")?;
        // Keys are often read from files, with their line ends.
        let key = Secret::from(key.expose().trim());
        let bearer = Secret::new(format!("Bearer {}", key.expose()));
        let bearer = sensitive(&bearer)
            .ok_or_else(|| setting("the key", "contains characters that cannot be sent in a header"))?;
        self.headers.insert(AUTHORIZATION, bearer);
        self.redactor.add(&key);
        Ok(())
    }

    /// Adds a header with a value that is not secret to every request.
    pub(crate) fn set_open_header(&mut self, name: &'static str, value: &str) -> Result<(), SetupError> {
        let value = HeaderValue::from_str(value).map_err(|_| {
            setting(&format!("header {name:?}"), "has a value with characters that cannot be sent")
        })?;
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(())
    }

    /// Adds a header to every request. The value is treated as a secret.
    pub(crate) fn set_header(&mut self, name: &str, value: &Secret) -> Result<(), SetupError> {
        let what = |name: &dyn fmt::Debug| format!("header {name:?}");
        let name: HeaderName =
            name.parse().map_err(|_| setting(&what(&name), "is not a valid header name"))?;
        let sent = sensitive(value)
            .ok_or_else(|| setting(&what(&name), "has a value with characters that cannot be sent"))?;
        self.check_way(&what(&name))?;
        self.headers.insert(name, sent);
        self.redactor.add(value);
        // A service may repeat the key of `Bearer KEY` alone.
        if let Some((_, key)) = value.expose().trim().split_once(' ') {
            self.redactor.add(&Secret::from(key));
        }
        Ok(())
    }

    /// Returns the address without parts that may be secret.
    pub(crate) fn display_url(&self) -> String {
        let Self { url, .. } = self;
        let port = url.port().map(|p| format!(":{p}")).unwrap_or_default();
        format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
    }

    /// Returns a request that posts `body`.
    pub(crate) fn post(&self, body: impl Into<reqwest::Body>) -> Request {
        let mut request = self.request(Method::POST, self.url.clone());
        *request.body_mut() = Some(body.into());
        request
    }

    /// Returns a request that posts `body` below the transport's address: `path`, already percent-encoded,
    /// is appended to its path, and `query` is put before its query.
    pub(crate) fn post_below(
        &self,
        path: &str,
        query: Option<&str>,
        body: impl Into<reqwest::Body>,
    ) -> Request {
        let mut request = self.post(body);
        let url = request.url_mut();
        let path = format!("{}/{}", url.path().trim_end_matches('/'), path.trim_start_matches('/'));
        url.set_path(&path);
        let query = [query, self.url.query()].into_iter().flatten().collect::<Vec<_>>().join("&");
        url.set_query((!query.is_empty()).then_some(&query));
        request
    }

    /// Returns a GET request for the address.
    pub(crate) fn get(&self) -> Request {
        self.request(Method::GET, self.url.clone())
    }

    fn request(&self, method: Method, url: Url) -> Request {
        let mut request = Request::new(method, url);
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// Sends a request once, without a retry: the run's loop retries model calls and records each attempt.
    pub(crate) fn send(&self, request: Request) -> Result<Pending<reqwest::Result<Response>>, ProviderError> {
        #[cfg(test)]
        if let Some(response) = crate::wire_fixture::answer(&request) {
            return Ok(Box::pin(std::future::ready(Ok(response))));
        }
        let client = self
            .options
            .clients
            .client(&self.options, &self.url)
            .map_err(|why| ProviderError::Other(why.into()))?;
        Ok(Box::pin(client.execute(request)))
    }

    /// Returns the error for a failed exchange. The text does not contain the query of the address, which may be
    /// secret.
    pub(crate) fn failure(&self, error: reqwest::Error) -> ProviderError {
        let (timeout, connect) = (error.is_timeout(), error.is_connect());
        let is_refused = connect && is_this_machine(&self.url) && is_connection_refused(&error);
        let causes = with_causes(&error.without_url());
        // The words of rustls for an answer that is no TLS handshake.
        let is_plain = connect && causes.contains("InvalidContentType");
        let text = self.redactor.clean(causes);
        let text = if connect { format!("{} is not reached: {text}", self.display_url()) } else { text };
        match (timeout, is_refused) {
            (true, _) => ProviderError::Timeout(text.into()),
            // A server that does not run on this machine will not start within the few seconds of a retry.
            (_, true) => ProviderError::Unreachable(text.into()),
            _ if is_plain => {
                let text =
                    format!("{text}; the server answers without TLS: its address may begin with http://");
                ProviderError::Unreachable(text.into())
            }
            _ => ProviderError::Network(text.into()),
        }
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("url", &self.display_url()).finish_non_exhaustive()
    }
}

/// Returns a header value that debug output does not show; `None` if the value cannot be sent.
pub(crate) fn sensitive(value: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value.expose()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn setting(what: &str, reason: &str) -> SetupError {
    SetupError::Setting { what: what.to_owned(), reason: reason.to_owned() }
}

/// Returns the name of a model as one segment of a path: everything is encoded except unreserved characters
/// (RFC 3986, 2.3). Names may contain colons and slashes.
pub(crate) fn percent_encoded(model: &str) -> String {
    let mut path = String::with_capacity(model.len() + 16);
    for byte in model.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
    path
}

/// Parses a base URL, or returns an error with its problem.
fn base_url(base: &str) -> Result<Url, SetupError> {
    let base = base.trim();
    let wrong = |reason: String| SetupError::BaseUrl { url: without_secrets(base), reason };
    if !base.contains("://") {
        return Err(wrong(format!("has no scheme; write http://{base} or https://{base}")));
    }
    let url = Url::parse(base).map_err(|e| wrong(e.to_string()))?;
    match url.scheme() {
        "http" => {}
        "https" if cfg!(feature = "tls") => {}
        "https" => return Err(wrong("https needs the feature `tls`, which is off in this build".to_owned())),
        other => return Err(wrong(format!("the scheme is {other}; only http and https work"))),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("contains a user name or a password; send them in a header".to_owned()));
    }
    Ok(url)
}

/// Returns the values in the query of an address, both raw and decoded: some gateways expect the key there.
fn query_secrets(url: &Url) -> Vec<Secret> {
    let open = |name: &str| matches!(name, "api-version" | "alt");
    let raw = url.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let raw = raw.filter(|(name, _)| !open(name)).map(|(_, value)| Secret::from(value));
    let meant = url.query_pairs().filter(|(name, _)| !open(name)).map(|(_, value)| Secret::from(&*value));
    raw.chain(meant).collect()
}

/// Returns an address without its query, and without user name and password.
pub(crate) fn without_secrets(address: &str) -> String {
    let end = address.find('?').unwrap_or(address.len());
    let start = address.find("://").map_or(0, |at| at + "://".len());
    let host = start.min(end);
    // The password comes before the last `@`.
    let visible = address[host..end].rsplit('@').next().unwrap_or_default();
    format!("{}{visible}", &address[..host])
}

/// Returns true if the text is a URL whose host is `localhost` or a loopback address such as `127.0.0.1`.
pub fn is_local_address(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| is_this_machine(&url))
}

fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Returns true if no program listens at the port.
fn is_connection_refused(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let refused = |e: &std::io::Error| e.kind() == std::io::ErrorKind::ConnectionRefused;
    causes.filter_map(|cause| cause.downcast_ref()).any(refused)
}

/// Returns the error's text with its causes, which usually contain the reason.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: P-15, P-35
    #[test]
    fn http_options_hide_secrets_of_addresses_and_headers() {
        let base = "http://localhost/v1?key=hunter%2F2&api-version=2024-10-21";
        let mut transport = Transport::new(base, "/chat", HttpOptions::default()).unwrap();
        transport.set_header("authorization", &Secret::from("Bearer swordfish")).unwrap();
        let said = "redirects to /v2?key=hunter%2F2; hunter/2 and swordfish are wrong for 2024-10-21";
        let shown = transport.redactor.clean(said.to_owned());
        assert_eq!(shown, "redirects to /v2?key=****; **** and **** are wrong for 2024-10-21");
        assert_eq!(without_secrets("https://me:hunter2@h/v1?key=x"), "https://h/v1");
        assert_eq!(without_secrets("me:hunter2@h"), "h");
    }

    #[test]
    fn base_urls_are_joined_or_refused_with_a_reason() {
        let join = |base: &str| {
            Transport::new(base, "/chat/completions", HttpOptions::default())
                .map(|t| t.url.to_string())
                .map_err(|e| e.to_string())
        };
        for (base, url) in [
            ("http://h/v1", "http://h/v1/chat/completions"),
            (" http://h:8/v1/ ", "http://h:8/v1/chat/completions"),
            ("http://h", "http://h/chat/completions"),
            ("http://h/v1/chat/completions", "http://h/v1/chat/completions"),
            ("http://h/v1?api-version=1", "http://h/v1/chat/completions?api-version=1"),
        ] {
            assert_eq!(join(base).unwrap(), url);
        }
        for (base, reason) in [
            ("localhost:8000/v1", "has no scheme; write http://localhost:8000/v1 or https://"),
            ("ftp://h/v1", "the scheme is ftp"),
            ("http://", "empty host"),
            ("http://me:hunter2@h/v1", "contains a user name or a password"),
            ("me:hunter2@h/v1?key=hunter2", "has no scheme"),
        ] {
            let error = join(base).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        let error = join("http://me:hunter2@h/v1").unwrap_err();
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn addresses_are_shown_without_their_query() {
        let options = HttpOptions::default();
        let transport = Transport::new("http://localhost:8/v1?key=hunter2", "/models", options).unwrap();
        assert_eq!(transport.display_url(), "http://localhost:8/v1/models");
        assert!(!format!("{transport:?}").contains("hunter2"));
    }

    #[test]
    fn settings_that_cannot_be_sent_are_refused_without_being_shown() {
        let mut transport = Transport::new("http://h", "/x", HttpOptions::default()).unwrap();
        for (name, value) in [("a b", "hunter2"), ("ok", "hunter2\n")] {
            let error = transport.set_header(name, &value.into()).unwrap_err().to_string();
            assert!(error.contains(name) && !error.contains("hunter2"), "{error}");
        }
        let options = HttpOptions { proxy: Some("::hunter2".into()), ..HttpOptions::default() };
        let error = Transport::new("http://h", "/x", options).unwrap_err().to_string();
        assert_eq!(error, "proxy: has no scheme; write http://HOST:PORT");
    }

    // spec: P-05
    #[test]
    fn http_check_refuses_secrets_over_plain_http_except_to_loopback() {
        let refused = |base: &str, options: HttpOptions| {
            let key = Secret::from("swordfish");
            let transport = || Transport::new(base, "/chat", options.clone());
            let ways: [Result<(), SetupError>; 5] = [
                transport().map(|_| ()),
                transport().and_then(|mut transport| transport.set_bearer(&key)),
                transport().and_then(|mut transport| transport.set_header("x-api-key", &key)),
                transport().and_then(|transport| transport.check_way("a key or a token")),
                Transport::new(&format!("{base}?key=swordfish"), "/chat", options.clone()).map(|_| ()),
            ];
            ways.map(|way| way.map_err(|e| e.to_string()))
        };
        for base in ["http://localhost:8/v1", "http://127.0.0.2/v1", "http://[::1]/v1"] {
            assert!(refused(base, HttpOptions::default()).iter().all(Result::is_ok), "{base}");
        }
        assert!(refused("http://gpu/v1", HttpOptions::default().with_plain_http()).iter().all(Result::is_ok));
        for base in ["http://gpu:8000/v1", "http://10.0.0.7/v1", "http://localhost.example.com"] {
            let ways = refused(base, HttpOptions::default());
            assert_eq!(ways[0], Ok(()), "without anything secret");
            for way in &ways[1..] {
                let error = way.as_ref().unwrap_err();
                let advice = "use https, or for a private network allow it with `allow_plain_http`";
                assert!(
                    error.contains("unencrypted to another machine") && error.contains(advice),
                    "{error}"
                );
                assert!(!error.contains("swordfish"), "{error}");
            }
        }
    }

    #[test]
    fn is_loopback_for_local_addresses_only() {
        let cases = [
            ("http://localhost:1", true),
            ("http://127.0.0.9", true),
            ("http://[::1]:8", true),
            ("http://h", false),
        ];
        for (url, expected) in cases {
            assert_eq!(is_this_machine(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
