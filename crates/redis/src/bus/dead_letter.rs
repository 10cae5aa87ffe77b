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

/// Why a message did not arrive. What there was no room for is with its sender, and no dead letter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeathCause {
    /// Nobody listens for whom it is.
    Undeliverable,
    /// It was of no use any more.
    Expired,
    /// It was not confirmed, however often it was delivered.
    Unconfirmed,
    /// Who was to read it went away.
    Unsubscribed,
    /// It answers a request for which nobody waits any more.
    Late,
    /// A cause that this version does not know.
    Other,
}

impl DeathCause {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Undeliverable => "undeliverable",
            Self::Expired => "expired",
            Self::Unconfirmed => "unconfirmed",
            Self::Unsubscribed => "unsubscribed",
            Self::Late => "late",
            Self::Other => "other",
        }
    }

    pub(super) fn named(name: &str) -> Self {
        let known = [Self::Undeliverable, Self::Expired, Self::Unconfirmed, Self::Unsubscribed, Self::Late];
        known.into_iter().find(|cause| cause.as_str() == name).unwrap_or(Self::Other)
    }
}
