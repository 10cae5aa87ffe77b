//! Checks of a server's address, before anything is sent to it.

use reqwest::Url;

use crate::McpProblem;

/// Checks an address. Without TLS only addresses of this machine are allowed, because others on the network
/// could read the headers and change the results of tools.
pub(crate) fn checked(what: &str, url: &str) -> Result<Url, McpProblem> {
    let refused = |why: &str| Err(McpProblem::Invalid(format!("{what} '{url}' {why}")));
    let Ok(parsed) = Url::parse(url) else { return refused("is not a URL") };
    let is_here = parsed.host_str().is_some_and(archon_types::is_this_machine);
    match parsed.scheme() {
        _ if !parsed.username().is_empty() || parsed.password().is_some() => Err(McpProblem::Invalid(
            format!("{what} contains a user name or a password; use a header instead"),
        )),
        "https" => Ok(parsed),
        "http" if is_here => Ok(parsed),
        "http" => refused("is not encrypted; use https"),
        _ => refused("is neither https nor http"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checked_addresses_are_encrypted_or_on_this_machine_and_have_no_password() {
        for url in
            ["https://example.com/mcp", "http://localhost:1/mcp", "http://127.0.0.1:1", "http://[::1]:1/"]
        {
            assert!(checked("the server's address", url).is_ok(), "{url}");
        }
        for (url, why) in [
            ("http://example.com/mcp", "is not encrypted"),
            ("http://localhost.example.com", "is not encrypted"),
            ("ftp://example.com", "neither https nor http"),
            ("example.com", "is not a URL"),
            ("https://me:secret@example.com", "contains a user name or a password"),
        ] {
            let refused = checked("the server's address", url)
                .err()
                .map(|problem| problem.to_string())
                .unwrap_or_default();
            assert!(refused.contains(why) && !refused.contains("secret"), "{refused}");
        }
    }
}
