//! Archon across processes, over one Redis (6.2 or newer): a bus whose messages outlive the processes that read them, and
//! the pool's index.
//!
//! | what | stands in for |
//! |---|---|
//! | [`RedisBus`] | the bus inside one process |
//! | [`RedisIndex`] | the pool's index in SQLite |
//!
//! All keys begin with the bus's or the index's name in braces, so that a cluster keeps them on one node. What has to
//! happen at once is one script on the server (`src/scripts`); nothing else changes a key.

mod bus;
mod pool_index;
mod server;

pub use bus::{Delivery, PartitionKey, Receiver, RedisBus, RedisBusOptions};
pub use pool_index::RedisIndex;
