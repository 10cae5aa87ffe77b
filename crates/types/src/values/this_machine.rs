//! Recognizes the addresses to which nothing needs to be encrypted.

/// Returns true if `host`, the host of a URL or the name of a server, is surely this machine: `localhost`,
/// `127.0.0.1` or `::1`, with or without brackets. Connections to any other host need TLS, because they carry
/// secrets and prompts.
///
/// ```
/// use archon_types::is_this_machine;
///
/// assert!(is_this_machine("localhost") && is_this_machine("[::1]"));
/// assert!(!is_this_machine("localhost.example.com"));
/// ```
pub fn is_this_machine(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "::1" | "[::1]")
}
