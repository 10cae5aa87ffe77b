//! Archon across processes, over one Redis (6.2 or newer): a message bus whose messages outlive the
//! processes that read them, and the index of suspended runs.
//!
//! | item | stands in for |
//! |---|---|
//! | [`RedisBus`] | the bus inside one process |
//! | [`RedisIndex`] | the pool's index in SQLite |
//!
//! All keys begin with the name of the bus or index in braces, so that a cluster keeps them on one node.
//! Changes that must be atomic are one script on the server (`src/scripts`); nothing else changes a key.

mod bus;
mod pool_index;
mod server;

pub use bus::{Delivery, PartitionKey, Receiver, RedisBus, RedisBusOptions};
pub use pool_index::RedisIndex;
