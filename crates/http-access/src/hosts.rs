//! Checks `Host` and `Origin`: the names by which clients may reach the server, and the origins of its own web pages.

use std::net::SocketAddr;

/// The hosts by which clients reach a server: `HOST:PORT`, or `HOST` for every port. Clients leave out the ports 80
/// and 443, so `HOST:80` and `HOST:443` also admit `HOST` without a port. Refuse requests for other hosts: a web page
/// can point its own name to this machine, to send requests to the server (DNS rebinding).
///
/// ```
/// use archon_http_access::AllowedHosts;
///
/// let hosts = AllowedHosts::new(["agents.example.com", "localhost:8080"]);
/// assert!(hosts.admits("localhost:8080"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHosts(Vec<String>);

impl AllowedHosts {
    /// Creates the list of these hosts.
    pub fn new<T: Into<String>>(hosts: impl IntoIterator<Item = T>) -> Self {
        Self(hosts.into_iter().map(|host| host.into().to_ascii_lowercase()).collect())
    }

    /// Creates the list for a server that listens at `address`: the hosts of the address, and the hosts in `named`.
    /// For a loopback address, and for an address such as `0.0.0.0` that means all addresses of this machine, the
    /// hosts of the address are `localhost`, `127.0.0.1` and `[::1]`.
    pub fn of_address(address: SocketAddr, named: impl IntoIterator<Item = String>) -> Self {
        let mut hosts = Self::new(named);
        let port = address.port();
        if address.ip().is_loopback() || address.ip().is_unspecified() {
            hosts.0.extend(["localhost", "127.0.0.1", "[::1]"].map(|host| format!("{host}:{port}")));
        } else {
            hosts.0.push(address.to_string());
        }
        hosts
    }

    /// Creates the list for a server at a Unix socket: its clients use the host `localhost`.
    pub fn of_socket() -> Self {
        Self::new(["localhost"])
    }

    /// Returns true if the value of a header `Host` is in the list.
    pub fn admits(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let name = without_port(&host);
        self.0.iter().any(|allowed| {
            let own = without_port(allowed);
            let is_left_out = || allowed.ends_with(":80") || allowed.ends_with(":443");
            match own == allowed {
                true => own == name,
                false => *allowed == host || (own == host && is_left_out()),
            }
        })
    }

    /// Returns the hosts, in lower case.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// Returns the origins of the web pages of the hosts, as `http://HOST:PORT`, with the port `*` for every port.
    pub fn origins(&self) -> Vec<String> {
        self.0.iter().flat_map(|host| origins(host)).collect()
    }
}

/// Returns a host without its port. The colons of an address in brackets begin no port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

fn origins(host: &str) -> [String; 2] {
    let port = if without_port(host) == host { ":*" } else { "" };
    ["http", "https"].map(|scheme| format!("{scheme}://{host}{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_address_gives_the_hosts_of_the_address_and_those_that_were_named() {
        let hosts = |address: &str, named: &[&str]| {
            let named = named.iter().map(|&name| name.to_owned());
            AllowedHosts::of_address(address.parse().unwrap(), named).names().to_vec()
        };
        assert_eq!(hosts("127.0.0.1:80", &[]), ["localhost:80", "127.0.0.1:80", "[::1]:80"]);
        assert_eq!(hosts("192.0.2.7:80", &["Tools.example"]), ["tools.example", "192.0.2.7:80"]);
    }

    #[test]
    fn admits_only_a_listed_host_at_its_port() {
        let hosts = AllowedHosts::of_address(([127, 0, 0, 1], 80).into(), ["tools.example".to_owned()]);
        for (host, is_admitted) in [
            ("localhost:80", true),
            ("LOCALHOST:80", true),
            ("[::1]:80", true),
            ("tools.example", true),
            ("tools.example:8443", true),
            ("localhost", true),
            ("[::1]", true),
            ("localhost:81", false),
            ("localhost:443", false),
            ("localhost.:80", false),
            ("localhost.evil.example:80", false),
            ("evil.example", false),
            ("tools.example.evil.example", false),
            ("localhost:80:80", false),
            ("tools.example:x", false),
            ("tools.example:+80", false),
            ("user@tools.example", false),
            ("", false),
        ] {
            assert_eq!(hosts.admits(host), is_admitted, "{host:?}");
        }
    }

    #[test]
    fn admits_a_host_without_its_port_only_for_the_ports_that_clients_leave_out() {
        for (port, is_admitted) in [(80, true), (443, true), (8080, false), (8443, false)] {
            let hosts = AllowedHosts::of_address(([192, 0, 2, 7], port).into(), []);
            assert_eq!(hosts.admits("192.0.2.7"), is_admitted, "{port}");
        }
    }

    #[test]
    fn origins_of_a_host_have_its_port_or_any() {
        let of = |host: &str| AllowedHosts::new([host]).origins();
        assert_eq!(of("localhost:80"), ["http://localhost:80", "https://localhost:80"]);
        assert_eq!(of("[::1]:80"), ["http://[::1]:80", "https://[::1]:80"]);
        assert_eq!(of("tools.example"), ["http://tools.example:*", "https://tools.example:*"]);
    }
}
