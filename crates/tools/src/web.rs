//! Fetches web pages from public addresses, and from the private servers that the options name: whatever a
//! model or page requests, nothing else on this machine or its network is reached.
//!
//! Addresses are checked when they are used: the resolved addresses of a name before a connection is made
//! to them, and an address in a URL, also after each redirect. No proxy is used, because it would resolve
//! names elsewhere. Public addresses count as private if they belong to this machine or its network.

use std::{
    error::Error as StdError,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use archon_types::ToolError;
use reqwest::{
    Client, Method, Response, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{HeaderMap, LOCATION},
    redirect,
};

use crate::{
    arguments::clip,
    own_networks::{Network, Networks, is_near, networks},
};

/// Options of the tools that fetch web pages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebOptions {
    /// Servers that may be reached although their address is not public, as `host:port`, for instance
    /// `localhost:3000`. Default none.
    pub private_servers: Vec<String>,
    /// Maximum number of bytes of a response that are read; the rest is cut off. Default 5 MB.
    pub max_bytes: usize,
    /// Maximum number of redirects within the same server that are followed. Default 5. A redirect to another
    /// server is never followed.
    pub max_redirects: usize,
    /// Maximum time to connect, and maximum time to wait for each chunk of a response. Default 20 s.
    pub timeout: Duration,
    /// The value of the header `User-Agent`. Default `archon/VERSION`.
    pub user_agent: String,
}

impl Default for WebOptions {
    fn default() -> Self {
        Self {
            private_servers: Vec::new(),
            max_bytes: 5_000_000,
            max_redirects: 5,
            timeout: Duration::from_secs(20),
            user_agent: concat!("archon/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// A client that reaches only public addresses, and the allowed private servers.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    client: Client,
    options: WebOptions,
    networks: Networks,
}

/// A fetched page.
pub(crate) struct Page {
    pub(crate) url: Url,
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
    pub(crate) truncated: bool,
}

impl Web {
    /// Creates a client.
    ///
    /// # Errors
    /// TLS is not available on this system.
    pub(crate) fn new(options: WebOptions) -> Result<Self, ToolError> {
        Self::among(options, networks)
    }

    /// Creates a client with a given source of this machine's networks.
    fn among(options: WebOptions, networks: Networks) -> Result<Self, ToolError> {
        let resolver = PublicOnly { private_servers: options.private_servers.clone(), networks };
        let client = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .dns_resolver(Arc::new(resolver))
            .connect_timeout(options.timeout)
            .read_timeout(options.timeout)
            .user_agent(&options.user_agent)
            .build()
            .map_err(|e| ToolError::Resource(format!("The HTTP client cannot be created: {}", chain(&e))))?;
        Ok(Self { client, options, networks })
    }

    /// Fetches a page. Redirects are followed within the same server only: another server needs another
    /// call through the guards, and must not get this server's key.
    pub(crate) async fn get(&self, url: &str, headers: HeaderMap) -> Result<Page, ToolError> {
        let mut url = Url::parse(url).map_err(|e| {
            ToolError::InvalidArgs(format!(
                "'{}' is not a URL: {e}. Example: https://example.com/page",
                clip(url, 200)
            ))
        })?;
        for _ in 0..=self.options.max_redirects {
            self.check(&url)?;
            let request = self.client.request(Method::GET, url.clone()).headers(headers.clone());
            let response = request.send().await.map_err(|e| failure(&url, &e))?;
            match redirected(&response, &url) {
                Some(next) => {
                    let next = next?;
                    self.check(&next)?;
                    if next.origin() != url.origin() && !is_upgrade(&url, &next) {
                        return Err(elsewhere(&url, &next));
                    }
                    url = next;
                }
                None => return self.read(response, url).await,
            }
        }
        Err(ToolError::Failed(format!(
            "{} redirects more than {} times.",
            url.host_str().unwrap_or_default(),
            self.options.max_redirects
        )))
    }

    async fn read(&self, mut response: Response, url: Url) -> Result<Page, ToolError> {
        let header = response.headers().get(reqwest::header::CONTENT_TYPE);
        let content_type = header.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let status = response.status().as_u16();
        let (mut body, mut truncated) = (Vec::new(), false);
        while let Some(piece) = response.chunk().await.map_err(|e| failure(&url, &e))? {
            let room = self.options.max_bytes - body.len();
            body.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.len() > room {
                truncated = true;
                break;
            }
        }
        Ok(Page { url, status, content_type, body, truncated })
    }

    /// Checks that a URL may be requested. Host names are checked again when they are resolved.
    fn check(&self, url: &Url) -> Result<(), ToolError> {
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = clip(url.scheme(), 40);
            return Err(ToolError::InvalidArgs(format!(
                "Only http and https can be fetched, not {scheme}:."
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ToolError::InvalidArgs("A URL with a password in it is not fetched.".to_owned()));
        }
        let host = url.host_str().unwrap_or_default();
        let server = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
        if self.options.private_servers.contains(&server) {
            return Ok(());
        }
        let named = |server: &String| server.rsplit_once(':').is_some_and(|(name, _)| name == host);
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match address {
            Ok(address) if !is_elsewhere(address, &(self.networks)()) => Err(private(host)),
            // Another port of a server that is allowed by name.
            Err(_) if self.options.private_servers.iter().any(named) => Err(private(host)),
            _ => Ok(()),
        }
    }
}

/// A resolver that returns only public addresses, except for the allowed private servers.
struct PublicOnly {
    private_servers: Vec<String>,
    networks: Networks,
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let named = |server: &String| server.rsplit_once(':').is_some_and(|(host, _)| host == name);
        let any = self.private_servers.iter().any(named);
        let networks = self.networks;
        Box::pin(async move {
            let all: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let there = !all.is_empty();
            let networks = networks();
            let may = |address: &SocketAddr| any || is_elsewhere(address.ip(), &networks);
            let usable: Vec<_> = all.into_iter().filter(may).collect();
            if usable.is_empty() && there {
                return Err(Box::new(PrivateAddress) as Box<dyn StdError + Send + Sync>);
            }
            Ok(Box::new(usable.into_iter()) as Addrs)
        })
    }
}

/// The error for a host name without a public address.
#[derive(Debug, thiserror::Error)]
#[error("the server has no public address")]
struct PrivateAddress;

fn private(host: &str) -> ToolError {
    ToolError::PermissionDenied(format!(
        "{} is not a public address, or is one of this machine or its network, so nothing was fetched. Only servers \
         on the internet can be fetched, and those that the person allows by name.",
        clip(host, 200)
    ))
}

fn redirected(response: &Response, from: &Url) -> Option<Result<Url, ToolError>> {
    if !response.status().is_redirection() {
        return None;
    }
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let wrong = |e| ToolError::Failed(format!("The page redirects to '{}': {e}", clip(location, 200)));
    Some(from.join(location).map_err(wrong))
}

/// Returns whether a redirect only upgrades the same server to https.
fn is_upgrade(from: &Url, to: &Url) -> bool {
    let are_usual = from.port().is_none() && to.port().is_none();
    from.scheme() == "http" && to.scheme() == "https" && from.host_str() == to.host_str() && are_usual
}

fn elsewhere(from: &Url, to: &Url) -> ToolError {
    let host = from.host_str().unwrap_or_default();
    ToolError::Failed(format!(
        "{host} redirects to another server, and the redirect was not followed: {}. Fetch this address if you need its page.",
        clip(to.as_str(), 500)
    ))
}

fn failure(url: &Url, e: &reqwest::Error) -> ToolError {
    let host = url.host_str().unwrap_or_default();
    let mut cause: Option<&(dyn StdError + 'static)> = Some(e);
    while let Some(error) = cause {
        if error.is::<PrivateAddress>() {
            return private(host);
        }
        cause = error.source();
    }
    let text = format!("{host} cannot be fetched: {}", chain(e));
    if e.is_timeout() || e.is_connect() { ToolError::Resource(text) } else { ToolError::Failed(text) }
}

/// Returns the innermost cause of an error, without URLs: they may be long, and the model knows them.
fn chain(e: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut cause = e.source();
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    match causes.last() {
        Some(last) => clip(last, 300),
        None => "the connection failed".to_owned(),
    }
}

/// Returns whether an address is public and not of this machine or its network.
fn is_elsewhere(address: IpAddr, networks: &[Network]) -> bool {
    is_public(address) && !is_near(address, networks)
}

/// Returns whether an address is public and not for a special purpose; see IANA's registries of
/// special-purpose addresses.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(matches!(a, 0 | 10 | 127 | 224..)
        || a == 100 && (64..128).contains(&b)
        || a == 169 && b == 254
        || a == 172 && (16..32).contains(&b)
        || a == 192 && (b == 168 || b == 0 && (c == 0 || c == 2) || b == 88 && c == 99)
        || a == 198 && (b == 18 || b == 19 || b == 51 && c == 100)
        || a == 203 && b == 0 && c == 113)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    // Only global unicast, without tunnels, which contain an IPv4 address, and without documentation
    // addresses.
    (0x2000..0x4000).contains(&a)
        && !(a == 0x2001 && (b < 0x0200 || b == 0x0db8) || a == 0x2002 || a == 0x3fff && b < 0x1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: TE-48
    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "127.0.0.1",
            "127.9.9.9",
            "100.64.0.1",
            "100.127.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.0.8",
            "192.0.2.1",
            "198.18.0.1",
            "198.19.1.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:8.8.8.8",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "2002:7f00:1::",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "3fff::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "8.8.8.8",
            "1.1.1.1",
            "100.63.0.1",
            "100.128.0.1",
            "172.32.0.1",
            "192.1.1.1",
            "2606:4700::1111",
            "2a00:1450::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    // spec: TE-48
    #[test]
    fn check_address_normalises_every_spelling() {
        let web = Web::new(WebOptions::default()).unwrap();
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[0:0::1]:8080/",
            "http://169.254.169.254/latest/meta-data",
            "http://１２７.0.0.1/",
            "file:///etc/passwd",
            "ftp://example.com/",
            "gopher://example.com/",
            "http://user:password@example.com/",
        ] {
            let url = Url::parse(url).unwrap();
            assert!(web.check(&url).is_err(), "{url}");
        }
        assert!(web.check(&Url::parse("https://example.com/a?b#c").unwrap()).is_ok());
    }

    /// A machine with addresses of the internet.
    fn with_public_addresses() -> Vec<Network> {
        vec![("8.8.8.8".parse().unwrap(), 24), ("2600:1::1".parse().unwrap(), 64)]
    }

    // spec: TE-48
    #[tokio::test]
    async fn addresses_of_the_internet_are_refused_where_they_are_of_this_machine_or_its_network() {
        let resolves = async |networks, name: &str| {
            let resolver = PublicOnly { private_servers: Vec::new(), networks };
            match resolver.resolve(name.parse().unwrap()).await {
                Ok(found) => Ok(found.count()),
                Err(error) => Err(error.is::<PrivateAddress>()),
            }
        };
        let private_servers = vec!["8.8.8.8:8080".to_owned()];
        let options = WebOptions { private_servers, ..WebOptions::default() };
        let own = Web::among(options.clone(), with_public_addresses).unwrap();
        let other = Web::among(options, Vec::new).unwrap();
        for (host, name) in [("8.8.8.8", "8.8.8.8"), ("8.8.8.77", "8.8.8.77"), ("[2600:1::1]", "2600:1::1")] {
            let url = Url::parse(&format!("http://{host}/")).unwrap();
            let refused = own.check(&url).unwrap_err().to_string();
            assert!(refused.contains("of this machine or its network"), "{refused}");
            assert!(other.check(&url).is_ok(), "{host}");
            // A name that leads there, at the moment of connecting.
            assert_eq!(resolves(with_public_addresses, name).await, Err(true), "{name}");
            assert_eq!(resolves(Vec::new, name).await, Ok(1), "{name}");
        }
        for url in ["http://8.8.9.8/", "http://[2600:1:0:1::1]/", "http://8.8.8.8:8080/"] {
            assert!(own.check(&Url::parse(url).unwrap()).is_ok(), "{url}");
        }
    }
}
