//! Teams.
mod board;
mod budget;
mod bus;
mod claims;
mod machine;
mod response;
pub use board::{Board, Stale};
pub use bus::{
    BusAudit, BusOptions, DeadLetter, DeathCause, Delivery, Echo, Fate, LocalBus, MemoryAudit, Receiver,
};
pub use claims::contradict;
pub use machine::{
    Hand, HandState, Job, JobState, MACHINE_VERSION, Match, MemberState, Purpose, TeamCommand, TeamMachine,
};
pub use response::{Response, ResponseStatus};
