//! The authorisation of requests to Azure: a key of the resource, or a token of Microsoft Entra, which
//! expires.

use std::fmt;

use crate::{connect::SentAs, token_source::TokenSource};

/// The authorisation of requests.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum AzureAuth {
    /// A key of the resource, sent in the header `api-key`; without a key, only the headers of the options
    /// are sent.
    #[default]
    ApiKey,
    /// The key of the options, sent as a bearer token. The token must stay valid as long as the provider is used.
    Bearer,
    /// A bearer token that is fetched before each request.
    BearerFrom(TokenSource),
}

impl AzureAuth {
    /// Returns the form in which the key of the options is sent.
    pub(super) fn key(&self) -> SentAs {
        match self {
            Self::ApiKey => SentAs::Header("api-key"),
            Self::Bearer => SentAs::Bearer,
            Self::BearerFrom(_) => SentAs::Later,
        }
    }
}

impl fmt::Debug for AzureAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ApiKey => "ApiKey",
            Self::Bearer => "Bearer",
            Self::BearerFrom(_) => "BearerFrom(..)",
        })
    }
}
