//! What a bus could not deliver, and why.

use crate::BusMessage;

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
    /// A message that did not arrive.
    pub fn new(message: BusMessage, cause: DeathCause) -> Self {
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
    /// There was no room for it. A bus that is shared by processes leaves such a message with its sender.
    Full,
    /// Who was to read it went away.
    Unsubscribed,
    /// It answers a request for which nobody waits any more.
    Late,
    /// A cause that this version does not know.
    Other,
}

impl DeathCause {
    const KNOWN: [Self; 6] =
        [Self::Undeliverable, Self::Expired, Self::Unconfirmed, Self::Full, Self::Unsubscribed, Self::Late];

    /// The name under which a bus keeps it, for instance `undeliverable`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Undeliverable => "undeliverable",
            Self::Expired => "expired",
            Self::Unconfirmed => "unconfirmed",
            Self::Full => "full",
            Self::Unsubscribed => "unsubscribed",
            Self::Late => "late",
            Self::Other => "other",
        }
    }

    /// The cause that was kept under `name`.
    pub fn named(name: &str) -> Self {
        Self::KNOWN.into_iter().find(|cause| cause.as_str() == name).unwrap_or(Self::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_found_again_by_its_name() {
        for cause in DeathCause::KNOWN {
            assert_eq!(DeathCause::named(cause.as_str()), cause);
        }
        assert_eq!(DeathCause::named("of_old_age"), DeathCause::Other);
    }
}
