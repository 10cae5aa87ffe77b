//! Teams.
mod bus;
pub use bus::{
    BusAudit, BusOptions, DeadLetter, DeathCause, Delivery, Echo, Fate, LocalBus, MemoryAudit, Receiver,
};
