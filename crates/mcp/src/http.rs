//! A server at a web address: checks of the address and the headers before anything is sent.

use crate::{HttpServer, McpProblem};

#[cfg(feature = "http")]
pub(crate) use with_http::transport;

/// Returns the problem of a build without HTTP.
#[cfg(not(feature = "http"))]
pub(crate) fn transport(_: &HttpServer, _: usize) -> Result<NoTransport, McpProblem> {
    let why = "this program was built without HTTP for MCP servers (feature `http` of archon-mcp)";
    Err(McpProblem::Invalid(why.to_owned()))
}

/// Stands for a transport in a build that has none.
#[cfg(not(feature = "http"))]
pub(crate) type NoTransport = (tokio::io::Empty, tokio::io::Sink);

#[cfg(feature = "http")]
mod with_http {
    use std::collections::HashMap;

    use reqwest::{
        Url,
        header::{HeaderName, HeaderValue},
    };
    use rmcp::transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    };

    use super::{HttpServer, McpProblem};

    /// Makes the transport. Redirects are followed within the same server only, so headers go nowhere else.
    pub(crate) fn transport(
        server: &HttpServer,
        max_message: usize,
    ) -> Result<StreamableHttpClientTransport<reqwest::Client>, McpProblem> {
        let url = checked(&server.url)?;
        let mut headers = HashMap::new();
        for (name, value) in &server.headers {
            // The texts of these errors would show the value.
            let header = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value.expose()).ok());
            let Some((name, mut value)) = header else {
                return Err(McpProblem::Invalid(format!(
                    "its header '{name}' has characters that are not allowed"
                )));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let config = StreamableHttpClientTransportConfig::with_uri(String::from(url))
            .custom_headers(headers)
            .max_sse_event_size(max_message)
            .max_json_response_size(max_message);
        Ok(StreamableHttpClientTransport::from_config(config))
    }

    /// Checks an address. Without TLS only this machine is reached: everybody on the way could read the headers,
    /// and change what tools say.
    fn checked(url: &str) -> Result<Url, McpProblem> {
        let refused = |why: &str| Err(McpProblem::Invalid(format!("its address '{url}' {why}")));
        let Ok(parsed) = Url::parse(url) else { return refused("is no URL") };
        let is_here = matches!(parsed.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        match parsed.scheme() {
            _ if !parsed.username().is_empty() || parsed.password().is_some() => {
                Err(McpProblem::Invalid("its address contains a password; give a header instead".to_owned()))
            }
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
                assert!(checked(url).is_ok(), "{url}");
            }
            for (url, why) in [
                ("http://example.com/mcp", "is not encrypted"),
                ("http://localhost.example.com", "is not encrypted"),
                ("ftp://example.com", "neither https nor http"),
                ("example.com", "is no URL"),
                ("https://me:secret@example.com", "contains a password"),
            ] {
                let refused = checked(url).err().map(|problem| problem.to_string()).unwrap_or_default();
                assert!(refused.contains(why) && !refused.contains("secret"), "{refused}");
            }
        }
    }
}
