//! The parts that runs of every kind need: loops, parallel loops, plans, teams and calls of agents.
//!
//! A machine decides, a driver does what it decides, a journal keeps it. This crate holds the parts that do
//! not depend on the kind.
//!
//! A [`Machine`] decides what is [`Next`]. The [`RunDriver`] does what all machines have in common, and an
//! [`Executor`] does the tasks of one kind of machine.
//!
//! | question | file |
//! |---|---|
//! | the machine and its commands | `machine.rs` |
//! | the tasks of one kind of machine | `executor.rs` |
//! | driving a run: waits, tasks in flight, draining, panics | `driver.rs` |
//! | appending records | `run_log.rs` |
//! | what was spent, what is lent to calls, what is left? | `ledger.rs`, `budget.rs` |
//! | how does a message reach the log? | `mailbox.rs` |
//! | how does the log learn of what a call has started? | `reports.rs` |
//!
//! *Invariant*: this crate uses no model, no tool, no file and no database, and does not decide what a run does.

mod budget;
mod driver;
mod executor;
mod ledger;
mod machine;
mod mailbox;
mod reports;
mod run_log;

pub use budget::Budget;
pub use driver::RunDriver;
pub use executor::{Executor, Recorded};
pub use ledger::{Ledger, Loan};
pub use machine::{Machine, Next, fold};
pub use mailbox::{Heard, Mailbox, cancelled_alone};
pub use reports::{Report, Reporter, Reports, left_behind};
pub use run_log::RunLog;
