//! How a bus over Redis works.

use std::time::Duration;

use archon_types::{BusMessage, Echo};

/// How a [`RedisBus`](super::RedisBus) works. All processes of a bus should say the same.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RedisBusOptions {
    /// The bus among others on the same Redis. Default `archon`.
    pub name: String,
    /// Messages that wait in one part of an inbox, those being read included. Default 1,024; 0 counts as 1.
    pub capacity: usize,
    /// How long a sender waits for room before it is told that the queue is full. Default 30 s.
    pub patience: Duration,
    /// How long a message is kept that says nothing of it. Default 5 minutes.
    pub ttl: Duration,
    /// How often a message is delivered again to who did not confirm it. Default 3.
    pub retries: u32,
    /// Whether what an agent says to everybody comes back to itself. Default not.
    pub echo: Echo,
    /// Dead letters that are kept; the oldest go first. Default 1,024.
    pub dead_letters: usize,
    /// Parts of an inbox that processes share, each with one owner at a time. An inbox keeps the number with which it was
    /// made. Default 1: all messages of an agent are in one order.
    pub partitions: u32,
    /// What decides the part: messages of one key are in one order. Default the sender.
    pub key: PartitionKey,
    /// How long a part stays with an owner that is not heard of. Default 10 s.
    pub lease: Duration,
    /// Messages that an owner reads ahead in each part. Default 64.
    pub batch: usize,
}

/// What messages have in common that stay in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartitionKey {
    /// Their sender.
    #[default]
    Sender,
    /// A field of their content; those without it go by their sender.
    Field(String),
}

impl Default for RedisBusOptions {
    fn default() -> Self {
        Self {
            name: "archon".to_owned(),
            capacity: 1_024,
            patience: Duration::from_secs(30),
            ttl: Duration::from_secs(300),
            retries: 3,
            echo: Echo::default(),
            dead_letters: 1_024,
            partitions: 1,
            key: PartitionKey::default(),
            lease: Duration::from_secs(10),
            batch: 64,
        }
    }
}

impl PartitionKey {
    /// A number that is the same for messages of one key, in every process.
    pub(super) fn hash(&self, message: &BusMessage) -> u32 {
        let value = match self {
            Self::Sender => None,
            Self::Field(field) => message.content.get(field),
        };
        match value {
            Some(value) => fnv1a(value.to_string().as_bytes()),
            None => fnv1a(message.sender_id.as_str().as_bytes()),
        }
    }
}

/// FNV-1a with 32 bits, <https://www.rfc-editor.org/rfc/rfc9923>.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
