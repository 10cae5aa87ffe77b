//! Archon across processes, over one Redis (6.2 or newer): a message bus whose messages outlive the
//! processes that read them, and the index of suspended runs.
//!
//! Use this crate where agents of several processes or machines exchange messages.
//!
//! | item | replaces |
//! |---|---|
//! | [`RedisBus`] | the bus inside one process |
//! | [`RedisPoolIndex`] | the pool's index in SQLite |
//!
//! All keys begin with the name of the bus or index in braces, so that a cluster keeps them on one node. Each change
//! of several keys that must be atomic is one script on the server (`src/scripts`).
//!
//! # Example
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use archon_redis::{RedisBus, RedisBusOptions};
//! use archon_types::{AgentId, BusError, Clock};
//!
//! async fn read_inbox(clock: Arc<dyn Clock>) -> Result<(), BusError> {
//!     let bus = RedisBus::connect("redis://127.0.0.1:6379", clock, RedisBusOptions::default()).await?;
//!     let mut inbox = bus.receiver(&AgentId::new("ann"), &[]).await?;
//!     loop {
//!         let delivery = inbox.next().await?;
//!         println!("{:?}", delivery.message().content);
//!         delivery.ack().await?;
//!     }
//! }
//! ```

mod bus;
mod pool_index;
mod server;

pub use bus::{PartitionKey, RedisBus, RedisBusOptions, RedisDelivery, RedisReceiver};
pub use pool_index::RedisPoolIndex;
