//! The error of a sign-in.

use archon_types::CredentialError;

/// A sign-in or a refresh failed. The text has no token, no code and no secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// An address of the service is missing or cannot be used.
    #[error("the {what} of the service {service} cannot be used: {problem}")]
    Address {
        /// The name of the service.
        service: String,
        /// The address, such as "token address".
        what: &'static str,
        /// The problem, with what to do.
        problem: String,
    },
    /// The service refused.
    #[error("the service {service} refused the sign-in: {problem}; sign in again")]
    Refused {
        /// The name of the service.
        service: String,
        /// The reason of the service, such as `access_denied`.
        problem: String,
    },
    /// The service cannot be reached, its answer cannot be read, or the HTTP client cannot be created.
    #[error("cannot get a usable OAuth answer from the service {service}: {problem}; try again")]
    Unavailable {
        /// The name of the service.
        service: String,
        /// The problem.
        problem: String,
    },
    /// The answer belongs to another sign-in.
    #[error("the answer of the service {service} belongs to another sign-in; sign in again")]
    OtherSignIn {
        /// The name of the service.
        service: String,
    },
    /// The credential store failed.
    #[error(transparent)]
    Store(#[from] CredentialError),
}
