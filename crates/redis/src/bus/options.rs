//! Options of the bus over Redis.

use std::time::Duration;

use archon_types::{BusMessage, Echo};

/// Options of a [`RedisBus`](super::RedisBus). All processes of one bus should use the same options.
///
/// ```
/// use std::time::Duration;
///
/// use archon_redis::{PartitionKey, RedisBusOptions};
///
/// let mut options = RedisBusOptions::default();
/// options.name = "shop".to_owned();
/// options.partitions = 8;
/// options.key = PartitionKey::Field("customer".to_owned());
/// options.ttl = Duration::from_secs(60);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RedisBusOptions {
    /// The name of the bus, which distinguishes it from other buses on the same Redis. Default `archon`.
    pub name: String,
    /// The maximum number of messages that wait in one partition of an inbox, including messages that are
    /// being read. Default 1,024; 0 counts as 1.
    pub capacity: usize,
    /// The maximum time that a sender waits for room before the error that the queue is full. Default 30 s.
    pub patience: Duration,
    /// The time to live of messages that set none. Default 5 minutes.
    pub ttl: Duration,
    /// The maximum number of times that an unconfirmed message is delivered again. Default 3.
    pub retries: u32,
    /// Says if an agent also gets its own broadcasts. Default [`Echo::Others`]: no.
    pub echo: Echo,
    /// The maximum number of dead letters that are kept; the oldest are dropped first. Default 1,024.
    pub dead_letters: usize,
    /// The number of partitions of an inbox that processes share; each partition has one owner at a time. An
    /// inbox keeps the number with which it was created. Default 1: all messages of an agent stay in one
    /// order.
    pub partitions: u32,
    /// The key that selects the partition: messages with the same key stay in order. Default: the sender.
    pub key: PartitionKey,
    /// The time after which a partition is taken from an owner that no longer renews its lease. Default 10
    /// s.
    pub lease: Duration,
    /// The maximum number of messages that an owner reads in advance from each of its partitions. Default 64.
    pub batch: usize,
}

/// The key by which messages are assigned to partitions. Messages with the same key stay in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartitionKey {
    /// The sender of the message.
    #[default]
    Sender,
    /// A field of the content; a message without this field is assigned by its sender.
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
    /// Returns a hash that is the same, in every process, for messages with the same key.
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

/// Hashes with FNV-1a, 32 bits, <https://www.rfc-editor.org/rfc/rfc9923>.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
