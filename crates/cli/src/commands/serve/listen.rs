//! The place at which the server listens: an address, or a Unix socket.

use std::{
    io::{self, ErrorKind},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use archon::{
    server::{AllowedHosts, ServeError, ServeOptions, axum::Router, serve},
    types::CancellationToken,
};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};

use crate::{config::ServeSettings, failure::Failure};

/// The address if neither the settings nor a flag has one.
const DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7420);

/// The address or the Unix socket at which a server will listen.
pub(super) enum Place {
    Address(SocketAddr),
    Socket(PathBuf),
}

/// The address or the Unix socket at which a server listens now.
pub(super) enum Bound {
    Address(TcpListener),
    #[cfg(unix)]
    Socket(UnixListener, SocketFile),
}

/// The file of a socket, which is removed at the end.
#[cfg(unix)]
pub(super) struct SocketFile(PathBuf);

#[cfg(unix)]
impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Place {
    /// Returns the place at which a server with these settings listens.
    ///
    /// # Errors
    /// [`Failure`] if other machines could reach the place without encryption, or if a name of the server is wrong or
    /// missing.
    pub(super) fn of(settings: &ServeSettings) -> Result<Self, Failure> {
        if let Some(host) = settings.hosts.iter().find(|host| host.is_empty() || host.contains('/')) {
            let what = format!("the host {host:?} is not a name");
            return Err(Failure::usage(what, "write the name alone, or with a port, as in agents.example"));
        }
        if let Some(url) = &settings.url {
            check_url(url)?;
        }
        if settings.behind_proxy && settings.hosts.is_empty() && settings.url.is_none() {
            return Err(nameless("the server is behind a proxy"));
        }
        match (settings.listen, &settings.socket) {
            (Some(_), Some(_)) => Err(Failure::usage(
                "[serve] has a `listen` and a `socket`",
                "remove one of them from your settings",
            )),
            (None, Some(path)) => Ok(Self::Socket(path.clone())),
            (address, None) => {
                let address = address.unwrap_or(DEFAULT);
                let is_encrypted = settings.behind_proxy || settings.tls_cert.is_some();
                if !address.ip().is_loopback() && !is_encrypted {
                    let what = format!(
                        "other machines reach {address}, and the connection is not encrypted, so tokens could be read"
                    );
                    let advice = "listen at 127.0.0.1; or add --tls-cert FILE --tls-key FILE; or put a proxy with TLS before the server, and add --behind-proxy --host NAME";
                    return Err(Failure::usage(what, advice));
                }
                if address.ip().is_unspecified() && settings.hosts.is_empty() && settings.url.is_none() {
                    return Err(nameless(&format!("the server listens at every address ({address})")));
                }
                Ok(Self::Address(address))
            }
        }
    }

    /// Begins to listen.
    ///
    /// # Errors
    /// [`Failure`] if the place is in use, or the operating system refuses it.
    pub(super) async fn bind(self) -> Result<Bound, Failure> {
        match self {
            Self::Address(address) => match TcpListener::bind(address).await {
                Ok(listener) => Ok(Bound::Address(listener)),
                Err(e) => Err(address_refused(address, &e)),
            },
            #[cfg(unix)]
            Self::Socket(path) => Ok(Bound::Socket(bind_socket(&path).await?, SocketFile(path))),
            #[cfg(not(unix))]
            Self::Socket(path) => Err(Failure::usage(
                format!("there is no Unix socket {} on this system", path.display()),
                "listen at an address: --listen 127.0.0.1:7420",
            )),
        }
    }
}

/// Refuses a text that is no address, and an address that would send the permission of a link unencrypted.
fn check_url(url: &str) -> Result<(), Failure> {
    let is_here =
        |host: &str| archon::types::is_this_machine(host.rsplit_once(':').map_or(host, |(name, _)| name));
    let wrong = |problem: &str, advice: &str| {
        Err(Failure::usage(format!("[serve] `url` is {url:?}, {problem}"), advice))
    };
    match host_of(url) {
        None => wrong("which is no address of a server", "write it as in https://agents.example"),
        Some(host) if url.starts_with("http://") && !is_here(host) => {
            wrong("which is not encrypted: anyone who reads a link can answer", "write https://")
        }
        Some(_) => Ok(()),
    }
}

/// Returns the host of the address of a server, with its port.
fn host_of(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let host = rest.trim_end_matches('/');
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    (!host.is_empty() && host.chars().all(is_host)).then_some(host)
}

fn nameless(why: &str) -> Failure {
    let what = format!("{why}, and no name is set by which clients reach it");
    Failure::usage(what, "name it: --host agents.example, or `hosts` under [serve]")
}

fn scheme(settings: &ServeSettings) -> &'static str {
    if settings.tls_cert.is_some() { "https" } else { "http" }
}

/// Returns the host with this port, unless the host has a port.
fn with_port(host: &str, port: u16) -> String {
    if host.contains(':') { host.to_owned() } else { format!("{host}:{port}") }
}

fn address_refused(address: SocketAddr, e: &io::Error) -> Failure {
    let advice = match e.kind() {
        ErrorKind::AddrInUse => {
            "another program listens there, perhaps another `archon serve`: end it, or choose another port: --listen 127.0.0.1:PORT"
        }
        ErrorKind::PermissionDenied => "choose a port from 1024 on: --listen 127.0.0.1:PORT",
        _ => "choose an address of this machine: --listen 127.0.0.1:PORT",
    };
    Failure::usage(format!("cannot listen at {address}: {e}"), advice)
}

/// Listens at a socket. A server that was killed leaves its socket behind; such a socket is replaced.
#[cfg(unix)]
async fn bind_socket(path: &std::path::Path) -> Result<UnixListener, Failure> {
    use std::os::unix::fs::FileTypeExt as _;

    let other = "choose another path: --socket PATH";
    let refused = |e: io::Error| Failure::usage(format!("cannot listen at {}: {e}", path.display()), other);
    match UnixListener::bind(path) {
        Err(e) if e.kind() == ErrorKind::AddrInUse => {}
        bound => return bound.map_err(refused),
    }
    if !std::fs::symlink_metadata(path).is_ok_and(|there| there.file_type().is_socket()) {
        let what = format!("{} exists, and is not a socket", path.display());
        return Err(Failure::usage(what, other));
    }
    match UnixStream::connect(path).await {
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).and_then(|()| UnixListener::bind(path)).map_err(refused)
        }
        _ => {
            let what = format!("another program listens at the socket {}", path.display());
            Err(Failure::usage(what, format!("end it, perhaps another `archon serve`, or {other}")))
        }
    }
}

impl Bound {
    /// Returns the hosts that requests may name: those of the address, of `hosts` and of `url`.
    ///
    /// # Errors
    /// [`Failure`] if the operating system does not tell the address.
    pub(super) fn hosts(&self, settings: &ServeSettings) -> Result<AllowedHosts, Failure> {
        let of_url = settings.url.as_deref().and_then(host_of);
        let named: Vec<String> = settings.hosts.iter().cloned().chain(of_url.map(str::to_owned)).collect();
        match self {
            Self::Address(listener) => {
                let address = listener.local_addr().map_err(|e| {
                    Failure::failed(format!("the address of the server is not known: {e}"), "try again")
                })?;
                Ok(AllowedHosts::of_address(address, named))
            }
            #[cfg(unix)]
            Self::Socket(..) => {
                let own = AllowedHosts::of_socket();
                Ok(AllowedHosts::new(own.names().iter().cloned().chain(named)))
            }
        }
    }

    /// Returns the address or the path of the socket, for people.
    pub(super) fn place(&self, settings: &ServeSettings) -> String {
        match self {
            Self::Address(listener) => match listener.local_addr() {
                Ok(address) => format!("{}://{address}", scheme(settings)),
                Err(_) => "an address that is not known".to_owned(),
            },
            #[cfg(unix)]
            Self::Socket(_, file) => format!("the socket {}", file.0.display()),
        }
    }

    /// Returns the address that a browser opens, without a slash at the end; `None` if there is none.
    pub(super) fn url(&self, settings: &ServeSettings) -> Option<String> {
        if let Some(url) = &settings.url {
            return Some(url.trim_end_matches('/').to_owned());
        }
        if let (true, Some(host)) = (settings.behind_proxy, settings.hosts.first()) {
            return Some(format!("https://{host}"));
        }
        match self {
            Self::Address(listener) => {
                let address = listener.local_addr().ok()?;
                // A certificate is for a name, and not for an address.
                let host = settings.hosts.first().filter(|_| settings.tls_cert.is_some());
                let host = host.map_or(address.to_string(), |host| with_port(host, address.port()));
                Some(format!("{}://{host}", scheme(settings)))
            }
            #[cfg(unix)]
            Self::Socket(..) => None,
        }
    }

    /// Serves until `end` is cancelled.
    ///
    /// # Errors
    /// See [`serve`].
    pub(super) async fn serve(
        self,
        router: Router,
        options: &ServeOptions,
        end: &CancellationToken,
    ) -> Result<(), ServeError> {
        match self {
            Self::Address(listener) => serve(router, listener, options, end).await,
            #[cfg(unix)]
            Self::Socket(listener, _file) => serve(router, listener, options, end).await,
        }
    }
}
