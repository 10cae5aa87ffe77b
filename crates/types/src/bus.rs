//! The bus between agents, its messages, and the messages that it could not deliver.
//!
//! Imports only `values` and `messages`.

mod dead_letter;
mod message_bus;

pub use dead_letter::{DeadLetter, DeathCause};
pub use message_bus::{BROADCAST, Bus, BusError, BusMessage, Echo, MessageType, REQUEST_WAIT};
