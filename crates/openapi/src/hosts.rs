//! The servers that calls go to. A document may name any address, so a server that only the document names must have
//! a public address. A server that a person names may have any address.

use std::{
    error::Error as StdError,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use archon_types::Json;
use reqwest::{
    Client, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect,
};

use crate::{OpenApiError, document::Document, text::one_line, text::with_causes};

/// Maximum number of redirects that are followed, all on the same server.
const REDIRECTS: usize = 5;
/// Longest address of a server in a document, in bytes.
const LONGEST: usize = 2_000;

/// The address that a path is appended to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Base {
    /// The address without a slash at its end.
    pub(crate) address: String,
    /// True if a person named the server: in the settings, or as the server that the document was fetched from.
    pub(crate) is_named: bool,
}

impl Base {
    /// Creates the base from the address in the settings.
    pub(crate) fn of_setting(address: &str) -> Result<Self, OpenApiError> {
        let checked = checked(address).map_err(|why| {
            OpenApiError::Setting(format!(
                "the base address '{}' cannot be used: {why}",
                one_line(address, 200)
            ))
        })?;
        Ok(Self { address: trimmed(&checked), is_named: true })
    }

    /// Creates the base from the first of a document's servers.
    ///
    /// # Errors
    /// The reason why the server cannot be used.
    pub(crate) fn of_servers(document: &Document, servers: &Json) -> Result<Self, String> {
        let set = "set the base address (`OpenApiConfig::with_base_url`)";
        let first = &servers[0];
        let written = first["url"].as_str().ok_or_else(|| format!("the document names no server; {set}"))?;
        let written = with_variables(written, &first["variables"])
            .ok_or_else(|| format!("its server has more than {LONGEST} characters; {set}"))?;
        let shown = one_line(&written, 200);
        let absolute = match (&document.url, written.contains("://")) {
            (_, true) => written,
            (Some(url), false) => {
                url.join(&written).map_err(|e| format!("its server '{shown}': {e}"))?.into()
            }
            (None, false) => return Err(format!("its server '{shown}' has no host; {set}")),
        };
        let address =
            checked(&absolute).map_err(|why| format!("its server '{shown}' cannot be used: {why}; {set}"))?;
        let is_named = document.url.as_ref().is_some_and(|url| url.origin() == address.origin());
        if !is_named && address.host_str().is_none_or(is_private) {
            return Err(format!("its server '{shown}' is not on the internet; if it is yours, {set}"));
        }
        Ok(Self { address: trimmed(&address), is_named })
    }

    /// Returns the server: the scheme, the host and the port.
    pub(crate) fn server(&self) -> String {
        Url::parse(&self.address).map(|url| url.origin().ascii_serialization()).unwrap_or_default()
    }

    /// Returns whether the address is one of this machine.
    pub(crate) fn is_this_machine(&self) -> bool {
        Url::parse(&self.address).is_ok_and(|url| url.host_str().is_some_and(archon_types::is_this_machine))
    }

    /// Returns whether the connection is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.address.starts_with("https:")
    }
}

/// Replaces the variables of a server's address by their default values. Variables in a default value are not
/// replaced. Returns `None` if the result is too long.
fn with_variables(address: &str, variables: &Json) -> Option<String> {
    let (mut whole, mut rest) = (String::new(), address);
    while let Some((before, (name, after))) =
        rest.split_once('{').and_then(|(before, after)| Some((before, after.split_once('}')?)))
    {
        whole.push_str(before);
        match variables[name]["default"].as_str() {
            Some(value) => whole.push_str(value),
            None => whole.extend(["{", name, "}"]),
        }
        rest = after;
        if whole.len() > LONGEST {
            return None;
        }
    }
    whole.push_str(rest);
    (whole.len() <= LONGEST).then_some(whole)
}

fn checked(address: &str) -> Result<Url, String> {
    if address.contains(['{', '}']) {
        return Err("a variable of it has no default value".to_owned());
    }
    let url = Url::parse(address).map_err(|e| e.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it is neither https nor http".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it has a user name or a password in it; use credentials instead".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it has a query or a fragment".to_owned());
    }
    Ok(url)
}

fn trimmed(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

/// Returns whether a host is a non-public address, or a name of this machine such as `localhost`.
fn is_private(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    match host.parse::<IpAddr>() {
        Ok(address) => !is_public(address),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Creates an HTTP client: if `is_named` is true, for servers that a person named; otherwise for servers that only a
/// document names, which must have public addresses.
pub(crate) fn client(is_named: bool, timeout: Duration) -> Result<Client, OpenApiError> {
    let same_server = redirect::Policy::custom(|attempt| {
        let is_same = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
        if is_same && attempt.previous().len() <= REDIRECTS { attempt.follow() } else { attempt.stop() }
    });
    let mut builder = Client::builder()
        .redirect(same_server)
        .timeout(timeout)
        .user_agent(concat!("archon/", env!("CARGO_PKG_VERSION")));
    if !is_named {
        // A proxy would resolve names elsewhere.
        builder = builder.no_proxy().dns_resolver(Arc::new(PublicOnly));
    }
    builder
        .build()
        .map_err(|e| OpenApiError::Setting(format!("no HTTP client can be made: {}", with_causes(&e))))
}

/// A resolver that returns only public addresses.
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let public: Vec<SocketAddr> =
                found.into_iter().filter(|address| is_public(address.ip())).collect();
            match public.is_empty() {
                true => Err(Box::<dyn StdError + Send + Sync>::from("the server has no public address")),
                false => Ok(Box::new(public.into_iter()) as Addrs),
            }
        })
    }
}

/// Returns whether an address is public and not for a special purpose; see IANA's registries of special-purpose
/// addresses.
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
    // Only global unicast, without tunnels, which contain an IPv4 address, and without documentation addresses.
    (0x2000..0x4000).contains(&a)
        && !(a == 0x2001 && (b < 0x0200 || b == 0x0db8) || a == 0x2002 || a == 0x3fff && b < 0x1000)
}

#[cfg(test)]
mod tests {
    use archon_testkit::{MockResponse, MockServer};
    use serde_json::json;

    use super::*;

    fn of_servers(servers: Json, fetched: Option<&str>) -> Result<Base, String> {
        let url = fetched.map(|url| Url::parse(url).unwrap());
        let document = Document::new(json!({ "openapi": "3.1.0" }), "pets", url, String::new()).unwrap();
        Base::of_servers(&document, &servers)
    }

    fn named(address: &str) -> Base {
        Base { address: address.to_owned(), is_named: true }
    }

    // spec: OA-02
    #[test]
    fn base_of_a_setting_has_no_slash_at_its_end() {
        assert_eq!(Base::of_setting("http://127.0.0.1:8080/v1/"), Ok(named("http://127.0.0.1:8080/v1")));
        for address in
            ["ftp://a.example", "a.example", "https://me:secret@a.example", "https://a.example?x=1"]
        {
            let refused = Base::of_setting(address).unwrap_err().to_string();
            assert!(refused.contains("cannot be used"), "{refused}");
        }
    }

    // spec: OA-02
    #[test]
    fn base_of_a_document_is_its_first_server_with_its_variables() {
        let servers = json!([
            { "url": "https://{region}.a.example/v{v}/", "variables": { "region": { "default": "eu" }, "v": { "default": "2" } } },
            { "url": "https://b.example" },
        ]);
        let base = of_servers(servers, None).unwrap();
        assert_eq!((base.address.as_str(), base.is_named), ("https://eu.a.example/v2", false));
        // A value is not read again, so its length does not grow with the number of variables.
        let nested = json!([{ "url": "https://{a}.example", "variables": { "a": { "default": "{a}{a}" } } }]);
        assert!(of_servers(nested, None).unwrap_err().contains("no default"));
        let long = json!([{ "url": "{a}".repeat(99), "variables": { "a": { "default": "a".repeat(99) } } }]);
        assert!(of_servers(long, None).unwrap_err().contains("more than 2000 characters"));
        assert!(of_servers(json!([]), None).unwrap_err().contains("names no server; set the base address"));
        assert!(of_servers(json!([{ "url": "/v1" }]), None).unwrap_err().contains("has no host"));
        assert!(
            of_servers(json!([{ "url": "https://{x}.example" }]), None).unwrap_err().contains("no default")
        );
    }

    #[test]
    fn base_of_a_fetched_document_may_be_on_the_server_that_a_person_named() {
        let own = "http://127.0.0.1:8080/api/openapi.json";
        assert_eq!(of_servers(json!([{ "url": "/v1" }]), Some(own)), Ok(named("http://127.0.0.1:8080/v1")));
        assert!(of_servers(json!([{ "url": "http://127.0.0.1:9090" }]), Some(own)).is_err());
    }

    #[test]
    fn base_that_only_a_document_names_is_on_the_internet() {
        for url in [
            "http://localhost:1/",
            "http://127.1/",
            "http://169.254.169.254/latest",
            "http://[::1]/",
            "http://10.0.0.1/",
            "http://api.localhost./",
            "http://[::ffff:10.0.0.1]/",
        ] {
            let refused = of_servers(json!([{ "url": url }]), None).unwrap_err();
            assert!(refused.contains("is not on the internet"), "{refused}");
        }
    }

    #[tokio::test]
    async fn client_for_servers_of_documents_refuses_a_name_that_leads_to_this_machine() {
        let server = MockServer::answering(|_| MockResponse::new(200)).await;
        let address = server.url().replace("127.0.0.1", "localhost");
        let get = async |is_named| {
            let client = client(is_named, Duration::from_secs(30)).unwrap();
            client.get(&address).send().await.map(|response| response.status().as_u16())
        };
        assert!(with_causes(&get(false).await.unwrap_err()).contains("no public address"));
        assert!(server.requests().is_empty());
        assert_eq!(get(true).await.unwrap(), 200);
    }
}
