//! What could not be delivered, and why.

use archon_types::BusMessage;

/// A message that did not arrive.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The message.
    pub message: BusMessage,
    /// Why it did not arrive.
    pub cause: DeathCause,
}

impl DeadLetter {
    pub(super) fn new(message: BusMessage, cause: DeathCause) -> Self {
        Self { message, cause }
    }
}

/// Why a message did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeathCause {
    /// Nobody listens for whom it is.
    Undeliverable,
    /// It was of no use any more.
    Expired,
    /// It was not confirmed, however often it was delivered.
    Unconfirmed,
    /// There was no room for it.
    Full,
    /// Who was to read it went away.
    Unsubscribed,
    /// It answers a request for which nobody waits any more.
    Late,
}
