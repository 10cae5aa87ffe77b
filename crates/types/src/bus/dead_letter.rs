//! Messages that a bus could not deliver.

use super::message_bus::BusMessage;

/// A message that a bus could not deliver.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The message.
    pub message: BusMessage,
    /// The cause of the failed delivery.
    pub cause: DeathCause,
}

impl DeadLetter {
    /// Creates a dead letter: `message` could not be delivered because of `cause`.
    pub fn new(message: BusMessage, cause: DeathCause) -> Self {
        Self { message, cause }
    }
}

/// The cause of the failed delivery of a [`DeadLetter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeathCause {
    /// The receiver has no subscription.
    Undeliverable,
    /// The time to live of the message ended before the receiver read the message.
    Expired,
    /// The bus delivered the message as often as its options allow, but the receiver never confirmed it.
    Unconfirmed,
    /// The queue of the receiver was full. A bus that several processes share makes no dead letter of such a
    /// message, and only returns an error to the sender.
    Full,
    /// The receiver ended its subscription before it read the message.
    Unsubscribed,
    /// The message is an answer that came after the deadline of its request.
    Late,
    /// A cause that this version of Archon does not know.
    Other,
}

crate::values::named! { DeathCause:
    Undeliverable = "undeliverable",
    Expired = "expired",
    Unconfirmed = "unconfirmed",
    Full = "full",
    Unsubscribed = "unsubscribed",
    Late = "late",
    Other = "other",
}

impl DeathCause {
    /// Returns the cause with this name; [`Other`](Self::Other) for an unknown name.
    pub fn named(name: &str) -> Self {
        Self::of_name(name).unwrap_or(Self::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_found_again_by_its_name() {
        for cause in DeathCause::ALL {
            assert_eq!(DeathCause::named(cause.as_str()), cause);
        }
        assert_eq!(DeathCause::named("of_old_age"), DeathCause::Other);
    }
}
