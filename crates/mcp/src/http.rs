//! A server at a web address: checks of the headers before anything is sent, and the handshake.

#[cfg(feature = "sign-in")]
pub(crate) use crate::access::{Access, sign_in};
#[cfg(feature = "http")]
pub(crate) use with_http::{handshake, sign_in_problem};
#[cfg(not(feature = "http"))]
pub(crate) use without_http::{handshake, sign_in_problem};
#[cfg(not(feature = "sign-in"))]
pub(crate) use without_sign_in::{Access, sign_in};

#[cfg(not(feature = "http"))]
mod without_http {
    use std::error::Error;

    use crate::{
        HttpServer, McpProblem,
        handshake::{Handshake, Shake},
        http::Access,
    };

    /// Fails, because this program was built without HTTP.
    pub(crate) fn handshake(
        _: &HttpServer,
        _: usize,
        _: Option<Access>,
        _: Shake,
    ) -> Result<Handshake, McpProblem> {
        let why = "this program was built without HTTP for MCP servers (feature `http` of archon-mcp)";
        Err(McpProblem::Invalid(why.to_owned()))
    }

    /// Returns `None`, because without HTTP there are no sign-ins.
    pub(crate) fn sign_in_problem(_: &(dyn Error + 'static)) -> Option<McpProblem> {
        None
    }
}

#[cfg(not(feature = "sign-in"))]
mod without_sign_in {
    use archon_types::Redactor;

    use crate::{McpProblem, McpServer, TokenStore};

    /// The access to a server in a build without sign-in; it has no values.
    pub(crate) enum Access {}

    /// Fails if the settings of the server have a sign-in, because this program was built without sign-in.
    pub(crate) async fn sign_in(
        server: &McpServer,
        _: Option<&TokenStore>,
        _: &Redactor,
    ) -> Result<Option<Access>, McpProblem> {
        if server.sign_in.is_none() {
            return Ok(None);
        }
        server.signed_in_address()?;
        let why = "this program was built without sign-in for MCP servers (feature `sign-in` of archon-mcp)";
        Err(McpProblem::Invalid(why.to_owned()))
    }
}

#[cfg(feature = "http")]
mod with_http {
    use std::{collections::HashMap, error::Error};

    use reqwest::header::{HeaderName, HeaderValue};
    use rmcp::transport::{
        StreamableHttpClientTransport,
        streamable_http_client::{
            AuthRequiredError, InsufficientScopeError, StreamableHttpClientTransportConfig,
        },
    };

    use crate::{
        HttpServer, McpProblem,
        address::checked,
        handshake::{Handshake, Shake},
        http::Access,
        text::{MESSAGE, plain},
    };

    /// Performs the handshake. Redirects are followed within the same server only, so headers are sent to
    /// no other server.
    pub(crate) fn handshake(
        server: &HttpServer,
        max_message: usize,
        access: Option<Access>,
        shake: Shake,
    ) -> Result<Handshake, McpProblem> {
        let config = config(server, max_message)?;
        Ok(match access {
            // With the first `initialize` the library speaks the older revisions to the server.
            None => shake.over(StreamableHttpClientTransport::from_config(config), true),
            #[cfg(feature = "sign-in")]
            Some(access) => shake.over(StreamableHttpClientTransport::with_client(access, config), true),
            #[cfg(not(feature = "sign-in"))]
            Some(access) => match access {},
        })
    }

    /// Returns the problem of the sign-in if one of the causes of an error is a failed sign-in.
    pub(crate) fn sign_in_problem(error: &(dyn Error + 'static)) -> Option<McpProblem> {
        let mut causes = std::iter::successors(Some(error), |&cause| cause.source());
        causes.find_map(|cause| {
            #[cfg(feature = "sign-in")]
            if let Some(error) = cause.downcast_ref() {
                return Some(crate::access::problem(error));
            }
            if let Some(error) = cause.downcast_ref::<InsufficientScopeError>() {
                return Some(McpProblem::Scope(plain(
                    error.get_required_scope().unwrap_or_default(),
                    MESSAGE,
                )));
            }
            cause.is::<AuthRequiredError>().then_some(McpProblem::SignIn)
        })
    }

    fn config(
        server: &HttpServer,
        max_message: usize,
    ) -> Result<StreamableHttpClientTransportConfig, McpProblem> {
        let url = checked("its address", &server.url)?;
        let mut headers = HashMap::new();
        for (name, value) in &server.headers {
            // The texts of these errors would show the value.
            let header = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value.expose()).ok());
            let Some((name, mut value)) = header else {
                return Err(McpProblem::Invalid(format!(
                    "the header '{name}' in the server's settings has characters that are not allowed"
                )));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(StreamableHttpClientTransportConfig::with_uri(String::from(url))
            .custom_headers(headers)
            .max_sse_event_size(max_message)
            .max_json_response_size(max_message))
    }
}
