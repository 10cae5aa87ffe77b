//! The HTTP clients of providers: built on first use, kept, and shared by all clones of one [`HttpOptions`].
//!
//! A client pools its connections, so a program that gives clones of one `HttpOptions` to all its providers
//! has one pool. There are up to three kinds of clients, by address. Clients without TLS do not read the
//! platform's root certificates, which takes longer than everything else in a short run. A server on this
//! machine is never reached through the proxy of the environment.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use archon_types::Secret;
use reqwest::{Client, Proxy, Url, redirect};

use super::{HttpOptions, is_this_machine, setting, with_causes};
use crate::error::SetupError;

/// The time for which an idle connection to this machine is kept. Some local servers announce that they keep
/// connections and then close them, and a request on a closed connection fails. A new local connection takes
/// almost no time.
const KEPT_ON_THIS_MACHINE: Duration = Duration::from_secs(1);

/// The clients of one [`HttpOptions`] and of its clones.
#[derive(Clone, Default)]
pub(crate) struct ClientPool(Arc<Mutex<Vec<(Kind, Client)>>>);

/// The properties that distinguish the clients of one pool: the kind of the address, and options that may differ
/// between clones of one [`HttpOptions`], because clones share the pool.
#[derive(Clone, PartialEq)]
struct Kind {
    connect_timeout: Duration,
    proxy: Option<Secret>,
    ca: Option<Arc<[u8]>>,
    is_encrypted: bool,
    is_this_machine: bool,
}

impl ClientPool {
    /// Returns the client for this address; builds it if there is none.
    pub(super) fn client(&self, options: &HttpOptions, url: &Url) -> Result<Client, String> {
        let kind = Kind {
            connect_timeout: options.timeouts.connect,
            proxy: options.proxy.clone(),
            ca: options.ca_certificates.clone(),
            is_encrypted: url.scheme() == "https",
            // With an explicit proxy it makes no difference.
            is_this_machine: options.proxy.is_none() && is_this_machine(url),
        };
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(known, _)| *known == kind) {
            return Ok(client.clone());
        }
        let client = build(&kind)?;
        clients.push((kind, client.clone()));
        Ok(client)
    }
}

archon_types::debug_fields!(ClientPool);

fn build(kind: &Kind) -> Result<Client, String> {
    let mut builder = Client::builder()
        .user_agent(concat!("archon/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(kind.connect_timeout)
        // A redirected POST would silently become a GET; the error names the target instead.
        .redirect(redirect::Policy::none())
        // By default reqwest sends a request again if the service did not process it, and no log would show
        // that.
        .retry(reqwest::retry::never());
    if kind.is_this_machine {
        builder = builder.pool_idle_timeout(KEPT_ON_THIS_MACHINE);
    }
    if let Some(proxy) = &kind.proxy {
        let proxy = Proxy::all(proxy.expose()).map_err(|_| "the proxy is not a URL".to_owned())?;
        builder = builder.proxy(proxy);
    } else if kind.is_this_machine {
        builder = builder.no_proxy();
    }
    #[cfg(feature = "tls")]
    {
        // Without encryption no certificate is ever checked, so none is read. An https proxy before an http
        // address needs them.
        let proxy_is_encrypted = kind.proxy.as_ref().is_some_and(|p| p.expose().starts_with("https:"));
        if !kind.is_encrypted && !proxy_is_encrypted {
            builder = builder.tls_certs_only([]);
        } else if let Some(pem) = &kind.ca {
            builder = builder.tls_certs_merge(certificates(pem)?);
        }
    }
    builder
        .build()
        .map_err(|e| format!("the HTTP client cannot be created: {}", with_causes(&e.without_url())))
}

#[cfg(feature = "tls")]
fn certificates(pem: &[u8]) -> Result<Vec<reqwest::Certificate>, String> {
    let wrong = || "contain no valid certificate in PEM form".to_owned();
    let certificates = reqwest::Certificate::from_pem_bundle(pem).map_err(|_| wrong())?;
    if certificates.is_empty() { Err(wrong()) } else { Ok(certificates) }
}

/// Checks the proxy and the certificates before anything is sent.
pub(super) fn check(
    options: &HttpOptions,
    url: &Url,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(), SetupError> {
    match &options.proxy {
        Some(proxy) => check_proxy("proxy", proxy.expose().trim())?,
        None if is_this_machine(url) => {}
        None => check_environment(url, variable)?,
    }
    #[cfg(feature = "tls")]
    if let Some(pem) = &options.ca_certificates {
        certificates(pem).map_err(|reason| setting("the CA certificates", &reason))?;
    }
    Ok(())
}

fn check_proxy(what: &str, text: &str) -> Result<(), SetupError> {
    if !text.contains("://") {
        return Err(setting(what, "has no scheme; write http://HOST:PORT"));
    }
    let scheme = text.split("://").next().unwrap_or_default();
    if !matches!(scheme, "http" | "https") {
        return Err(setting(what, "only http and https proxies work"));
    }
    let has_host = Url::parse(text).is_ok_and(|url| url.has_host());
    let is_url = has_host && Proxy::all(text).is_ok();
    if is_url { Ok(()) } else { Err(setting(what, "is not a URL; write http://HOST:PORT")) }
}

/// Checks the proxy that the environment sets for this address. The client would silently ignore an invalid
/// proxy and connect directly.
fn check_environment(url: &Url, variable: impl Fn(&str) -> Option<String>) -> Result<(), SetupError> {
    let own =
        if url.scheme() == "https" { ["HTTPS_PROXY", "https_proxy"] } else { ["HTTP_PROXY", "http_proxy"] };
    let named = own.into_iter().chain(["ALL_PROXY", "all_proxy"]);
    let set = named.filter_map(|name| Some((name, variable(name).filter(|value| !value.trim().is_empty())?)));
    match set.into_iter().next() {
        // The environment may omit the scheme.
        Some((name, proxy)) if !proxy.contains("://") => {
            check_proxy(name, &format!("http://{}", proxy.trim()))
        }
        Some((name, proxy)) => check_proxy(name, proxy.trim()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(options: &HttpOptions) -> Result<(), SetupError> {
        super::check(options, &Url::parse("http://h").unwrap(), |_| None)
    }

    fn clients(options: &HttpOptions) -> usize {
        options.clients.0.lock().unwrap().len()
    }

    fn client(options: &HttpOptions, url: &str) {
        options.clients.client(options, &Url::parse(url).unwrap()).unwrap();
    }

    #[test]
    fn http_clients_are_shared_by_clones_and_separate_for_other_options() {
        let options = HttpOptions::default();
        let clone = options.clone();
        client(&options, "http://a/v1");
        client(&clone, "http://b/v1");
        assert_eq!(clients(&options), 1);
        client(&clone, "http://127.0.0.1:1/v1");
        assert_eq!(clients(&options), 2);
        let mut changed = options.clone();
        changed.proxy = Some("http://proxy:3128".into());
        client(&changed, "http://a/v1");
        client(&changed, "http://127.0.0.1:1/v1");
        assert_eq!(clients(&options), 3);
        client(&HttpOptions::default(), "http://a/v1");
        assert_eq!(clients(&options), 3);
    }

    #[test]
    fn proxies_and_certificates_that_make_no_sense_are_refused_without_being_shown() {
        let with_proxy = |proxy: &str| HttpOptions { proxy: Some(proxy.into()), ..HttpOptions::default() };
        for (proxy, error) in [
            ("::hunter2", "proxy: has no scheme; write http://HOST:PORT"),
            ("hunter2:3128", "proxy: has no scheme; write http://HOST:PORT"),
            ("ftp://hunter2", "proxy: only http and https proxies work"),
            ("http://hunter2:x", "proxy: is not a URL; write http://HOST:PORT"),
        ] {
            assert_eq!(check(&with_proxy(proxy)).unwrap_err().to_string(), error, "{proxy}");
        }
        check(&with_proxy("http://me:hunter2@proxy:3128")).unwrap();
    }

    // spec: P-15
    #[test]
    fn a_proxy_of_the_environment_that_would_be_passed_over_is_refused() {
        let of = |url: &str, set: &[(&str, &str)]| {
            let variable = |name: &str| Some(set.iter().find(|(set, _)| *set == name)?.1.to_owned());
            let checked = super::check(&HttpOptions::default(), &Url::parse(url).unwrap(), variable);
            checked.map_err(|error| error.to_string())
        };
        for (variable, value) in
            [("HTTPS_PROXY", "me:hunter2@proxy:3128"), ("all_proxy", "http://proxy"), ("https_proxy", "")]
        {
            assert_eq!(of("https://h/v1", &[(variable, value)]), Ok(()), "{value}");
        }
        for (variable, value, reason) in [
            ("HTTPS_PROXY", "hunter2:x", "is not a URL; write http://HOST:PORT"),
            ("https_proxy", "http://", "is not a URL; write http://HOST:PORT"),
            ("ALL_PROXY", "socks5://hunter2", "only http and https proxies work"),
        ] {
            assert_eq!(of("https://h/v1", &[(variable, value)]), Err(format!("{variable}: {reason}")));
            // The variable is for another scheme, or the address is on this machine.
            assert_eq!(of("http://127.0.0.1:1/v1", &[(variable, value)]), Ok(()));
        }
        assert_eq!(of("http://h/v1", &[("HTTPS_PROXY", "hunter2:x")]), Ok(()));
    }

    #[cfg(feature = "tls")]
    #[test]
    fn certificates_are_read_when_the_provider_is_built() {
        for pem in ["", "hunter2", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"] {
            let options = HttpOptions::default().with_ca_certificates(pem);
            let error = check(&options).unwrap_err().to_string();
            assert_eq!(error, "the CA certificates: contain no valid certificate in PEM form", "{pem}");
        }
    }
}
