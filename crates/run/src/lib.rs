//! The parts that runs of every kind need: loops, parallel loops, plans, teams and calls of agents.
//!
//! | topic | file |
//! |---|---|
//! | spending, leases of calls, the remaining budget | `ledger.rs`, `budget.rs` |
//! | messages of the inbox that go into the log | `mailbox.rs` |
//! | processes and child runs that calls start | `reports.rs` |
//!
//! *Invariant*: this crate uses no model, no tool, no file and no database, and does not decide what a run does.

mod budget;
mod ledger;
mod mailbox;
mod reports;

pub use budget::Budget;
pub use ledger::{Ledger, Loan};
pub use mailbox::{Heard, Mailbox, cancelled_alone};
pub use reports::{Report, Reporter, Reports, left_behind};
