//! The message bus of one process, through which agents exchange messages by topic.
//!
//! Use this crate alone to exchange messages between your own agents. A team of `archon-orchestrator`
//! publishes on any [`Bus`](archon_types::Bus); `archon-redis` has a bus across processes.
//!
//! *Invariants*
//!
//! - Each subscription gets each of its messages once, in the order in which the bus accepted them.
//! - A message that cannot be delivered becomes a dead letter.
//!
//! # Example
//!
//! Messages between the agents of one process:
//!
//! ```
//! use std::sync::Arc;
//!
//! use archon_bus::InMemoryBus;
//! use archon_testkit::VirtualClock;
//! use archon_types::{AgentId, Bus, BusMessage, MessageType, Timestamp};
//! use futures_util::StreamExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), archon_types::BusError> {
//! let bus = InMemoryBus::new(Arc::new(VirtualClock::new()));
//! let mut to_bob = bus.subscribe(&AgentId::new("bob"), &[]).await?;
//! let content = serde_json::json!({ "done": 3 }).as_object().cloned().unwrap_or_default();
//! bus.publish(BusMessage::new("ann", "bob", MessageType::StatusUpdate, content, Timestamp::default())).await?;
//!
//! let message = to_bob.next().await.expect("a message");
//! assert_eq!(message.content["done"], 3);
//! # Ok(())
//! # }
//! ```

// | concept | file |
// |---|---|
// | `InMemoryBus`, its topics and its options | `bus.rs` |
// | queues, order, lifetimes, dead letters | `bus/state.rs` |
// | a subscription as a stream | `bus/subscription.rs` |
// | a subscription whose reader confirms each message | `bus/receiver.rs` |
// | `BusAudit`, which records each message | `bus/audit.rs` |

mod bus;

pub use bus::{BusAudit, BusOptions, Delivery, Fate, InMemoryAudit, InMemoryBus, Receiver};
