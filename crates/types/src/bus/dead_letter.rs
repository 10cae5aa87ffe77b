//! Messages that a bus could not deliver.

use super::message_bus::BusMessage;

/// A message that was not delivered.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The message.
    pub message: BusMessage,
    /// The cause.
    pub cause: DeathCause,
}

impl DeadLetter {
    /// Creates a dead letter.
    pub fn new(message: BusMessage, cause: DeathCause) -> Self {
        Self { message, cause }
    }
}

/// The cause for which a message was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeathCause {
    /// The receiver has no subscription.
    Undeliverable,
    /// Its time to live was over.
    Expired,
    /// It was never acknowledged, after all deliveries.
    Unconfirmed,
    /// The queue was full. A bus that several processes share leaves such a message with its sender.
    Full,
    /// The receiver ended its subscription before it read the message.
    Unsubscribed,
    /// It answers a request whose deadline was over.
    Late,
    /// A cause that this version does not know.
    Other,
}

impl DeathCause {
    const KNOWN: [Self; 6] =
        [Self::Undeliverable, Self::Expired, Self::Unconfirmed, Self::Full, Self::Unsubscribed, Self::Late];

    /// Returns the name under which a bus stores it, for instance `undeliverable`.
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

    /// Returns the cause with this name.
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
