//! Who asks: a key of the resource, or a token of Microsoft Entra, which expires.

use std::fmt;

use archon_types::Secret;

use crate::{error::SetupError, http::Transport, token_source::TokenSource};

/// How requests are authorised.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum AzureAuth {
    /// By nothing but the headers of the options.
    #[default]
    Headers,
    /// By a key of the resource, in the header `api-key`.
    ApiKey(Secret),
    /// By a token that does not expire while it is used.
    Bearer(Secret),
    /// By a token that is asked for before each request.
    BearerFrom(TokenSource),
}

impl AzureAuth {
    /// Adds what is known from the start.
    pub(super) fn prepare(&self, transport: &mut Transport) -> Result<(), SetupError> {
        match self {
            // Keys are often read from files, with their line ends.
            Self::ApiKey(key) => transport.set_header("api-key", &Secret::from(key.expose().trim())),
            Self::Bearer(token) => transport.set_bearer(token),
            Self::Headers | Self::BearerFrom(_) => Ok(()),
        }
    }
}

impl fmt::Debug for AzureAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Headers => f.write_str("Headers"),
            Self::ApiKey(key) => f.debug_tuple("ApiKey").field(key).finish(),
            Self::Bearer(token) => f.debug_tuple("Bearer").field(token).finish(),
            Self::BearerFrom(_) => f.debug_tuple("BearerFrom").finish_non_exhaustive(),
        }
    }
}
