//! The error of a channel that cannot be created.

/// A channel cannot be created. The text names the channel, says what is wrong and what to do, and has no secret.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_notify::{ChannelError, WebhookChannel, WebhookOptions};
/// use archon_types::{Clock, Secret};
///
/// fn push(key: Secret, clock: Arc<dyn Clock>) -> Result<WebhookChannel, String> {
///     let options = WebhookOptions::new("http://127.0.0.1:8080/push").header("authorization", key);
///     WebhookChannel::new("push", options, clock).map_err(|error| match error {
///         ChannelError::Header { header, .. } => format!("the variable for the header {header} is not set right"),
///         error => error.to_string(),
///     })
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// The address of the service or of the mail server cannot be used.
    #[error("the channel {channel} cannot be used: {problem}")]
    Address {
        /// The name of the channel.
        channel: String,
        /// The problem, and what to do. It has no key.
        problem: String,
    },
    /// The secret for signatures is not base64.
    #[error("the channel {channel} cannot be used: its secret is not base64; copy it from the service again")]
    Secret {
        /// The name of the channel.
        channel: String,
    },
    /// A header cannot be sent.
    #[error(
        "the channel {channel} cannot be used: the header {header:?} has a name or a value that HTTP does not \
         allow; use letters, digits and `-` in the name, and no line end in the value"
    )]
    Header {
        /// The name of the channel.
        channel: String,
        /// The name of the header.
        header: String,
    },
    /// The mail address of a person cannot be read.
    #[error(
        "the channel {channel} cannot be used: the address {address:?} is wrong: {problem}; write \
         name@example.com or NAME <name@example.com>"
    )]
    Mailbox {
        /// The name of the channel.
        channel: String,
        /// The address.
        address: String,
        /// The problem.
        problem: String,
    },
    /// The client for HTTP or the TLS connection cannot be created.
    #[error(
        "the channel {channel} cannot be used: its HTTP or mail client cannot be created: {problem}; check the \
         certificates of this machine"
    )]
    Client {
        /// The name of the channel.
        channel: String,
        /// The problem.
        problem: String,
    },
}
