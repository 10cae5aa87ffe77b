//! The authorisation of requests to Bedrock: Amazon's credentials, which sign each request, or a key that is
//! sent as a bearer token.

use std::{fmt, sync::Arc};

use archon_types::{BoxFuture, ProviderError, Secret};

use super::BedrockOptions;
use crate::error::SetupError;

/// The authorisation of requests.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum BedrockAuth {
    /// A Bedrock API key: the key of the options, sent as a bearer token. Without a key, only the headers of
    /// the options are sent, for instance to a gateway that signs requests.
    #[default]
    ApiKey,
    /// Each request is signed with these credentials (SigV4).
    Signed(AwsCredentials),
    /// Each request is signed (SigV4) with credentials that this callback returns; for credentials that expire.
    SignedBy(AwsCredentialSource),
}

/// Credentials of an Amazon account or role.
///
/// ```
/// use archon_providers::AwsCredentials;
///
/// let credentials = AwsCredentials::new("AKIDEXAMPLE", "secret").with_session_token("token");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AwsCredentials {
    /// The id of the access key, which is not secret by itself.
    pub access_key_id: String,
    /// The secret access key.
    pub secret_access_key: Secret,
    /// The session token of credentials that expire.
    pub session_token: Option<Secret>,
}

impl AwsCredentials {
    /// Creates credentials without a session token: those of an account, which do not expire.
    pub fn new(access_key_id: impl Into<String>, secret_access_key: impl Into<Secret>) -> Self {
        let (access_key_id, secret_access_key) = (access_key_id.into(), secret_access_key.into());
        Self { access_key_id, secret_access_key, session_token: None }
    }

    /// Sets the session token, which credentials that expire need.
    pub fn with_session_token(mut self, token: impl Into<Secret>) -> Self {
        self.session_token = Some(token.into());
        self
    }
}

/// A callback that returns credentials. The provider calls it before every request, so the callback should
/// cache valid credentials. Its error becomes the error of the request.
pub type AwsCredentialSource =
    Arc<dyn Fn() -> BoxFuture<'static, Result<AwsCredentials, ProviderError>> + Send + Sync>;

/// The environment variable of a Bedrock API key.
const BEARER: &str = "AWS_BEARER_TOKEN_BEDROCK";
const KEY_ID: &str = "AWS_ACCESS_KEY_ID";
const SECRET_KEY: &str = "AWS_SECRET_ACCESS_KEY";
const SESSION_TOKEN: &str = "AWS_SESSION_TOKEN";

impl BedrockOptions {
    /// Reads the authorisation from Amazon's usual environment variables: a Bedrock API key in
    /// `AWS_BEARER_TOKEN_BEDROCK`, or `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and optionally
    /// `AWS_SESSION_TOKEN`. `variable` returns the value of an environment variable.
    ///
    /// # Errors
    /// [`SetupError::MissingKey`] if the variables are incomplete; the error names the variable to set.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SetupError> {
        let set = |name: &str| {
            let value = variable(name)?.trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        if let Some(key) = set(BEARER) {
            return Ok(Self::default().with_api_key(key));
        }
        let missing = |variable| SetupError::MissingKey { profile: "bedrock", variable };
        match (set(KEY_ID), set(SECRET_KEY)) {
            (Some(id), Some(secret)) => {
                let mut credentials = AwsCredentials::new(id, secret);
                credentials.session_token = set(SESSION_TOKEN).map(Secret::from);
                Ok(Self::default().with_auth(BedrockAuth::Signed(credentials)))
            }
            (Some(_), None) => Err(missing(SECRET_KEY)),
            (None, Some(_)) => Err(missing(KEY_ID)),
            (None, None) => Err(missing(BEARER)),
        }
    }
}

impl fmt::Debug for BedrockAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiKey => f.write_str("ApiKey"),
            Self::Signed(credentials) => f.debug_tuple("Signed").field(credentials).finish(),
            Self::SignedBy(_) => f.debug_tuple("SignedBy").finish_non_exhaustive(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: P-28
    #[test]
    fn the_usual_variables_are_read_and_a_missing_one_is_named() {
        let from = |pairs: &[(&str, &str)]| {
            let found = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            let options = match BedrockOptions::from_variables(found) {
                Ok(options) => options,
                Err(e) => return e.to_string(),
            };
            match (options.auth, options.connect.api_key) {
                (BedrockAuth::ApiKey, Some(key)) => format!("bearer {}", key.expose()),
                (BedrockAuth::Signed(c), None) => {
                    let token = c.session_token.map(|t| t.expose().clone());
                    format!("{} {} {token:?}", c.access_key_id, c.secret_access_key.expose())
                }
                other => format!("{other:?}"),
            }
        };
        let keys = [(KEY_ID, "id"), (SECRET_KEY, "secret\n")];
        assert_eq!(from(&[(BEARER, " key\n"), keys[0], keys[1]]), "bearer key");
        assert_eq!(from(&keys), "id secret None");
        assert_eq!(from(&[(BEARER, " "), keys[0], keys[1], (SESSION_TOKEN, "t")]), "id secret Some(\"t\")");
        assert_eq!(from(&keys[..1]), "bedrock needs a key: set AWS_SECRET_ACCESS_KEY");
        assert_eq!(from(&keys[1..]), "bedrock needs a key: set AWS_ACCESS_KEY_ID");
        assert_eq!(from(&[]), "bedrock needs a key: set AWS_BEARER_TOKEN_BEDROCK");
    }
}
