//! The parts that runs of every kind need: loops, parallel loops, plans, teams and calls of agents.
//!
//! Use this crate to write a new kind of run, with log, inbox, questions, budget and resume.
//!
//! A machine decides, a driver does what the machine decides, and a journal stores the records. This crate
//! has the parts that do not depend on the kind of the run.
//!
//! A [`Machine`] decides what is [`Next`]. The [`RunDriver`] does what all machines have in common, and an
//! [`Executor`] does the tasks of one kind of machine.
//!
//! | question | file |
//! |---|---|
//! | the machine and its commands | `machine.rs` |
//! | the tasks of one kind of machine | `executor.rs` |
//! | a run that is being driven: its log, its tasks in flight, panics | `driver.rs` |
//! | driving a run: steps, waits, draining | `drive.rs` |
//! | appending records | `run_log.rs` |
//! | cancel and deadline during a wait | `watch.rs` |
//! | spending, leases of calls, remaining budget | `ledger.rs`, `budget.rs` |
//! | moving inbox messages into the log | `mailbox.rs` |
//! | logging the processes and child runs that a call starts | `reports.rs` |
//!
//! *Invariant*: this crate uses no model, no tool, no file and no database, and makes no decision for a run.
//!
//! # Example
//!
//! A machine that waits until its log has a hint:
//!
//! ```
//! use archon_run::{Machine, Next};
//! use archon_types::{Outcome, OutcomeStatus, Record, RecordBody, RunKind};
//!
//! #[derive(Default)]
//! struct UntilNoted(Option<String>);
//!
//! impl Machine for UntilNoted {
//!     const KIND: RunKind = RunKind::AgentCall;
//!     type Task = ();
//!
//!     fn apply(&mut self, record: &Record) {
//!         if let RecordBody::HintAdded { text } = &record.body {
//!             self.0 = Some(text.clone());
//!         }
//!     }
//!
//!     fn next(&self) -> Next<()> {
//!         let Some(text) = &self.0 else { return Next::Wait(None) };
//!         let mut outcome = Outcome::new("run_1".into(), OutcomeStatus::Finished);
//!         outcome.set_answer(text.clone());
//!         Next::Done(outcome)
//!     }
//! }
//!
//! assert_eq!(UntilNoted::default().next(), Next::Wait(None));
//! ```

mod budget;
mod drive;
mod driver;
mod executor;
mod ledger;
mod machine;
mod mailbox;
mod reports;
mod run_log;
mod watch;

pub use budget::Budget;
pub use driver::{Recorded, RunDriver};
pub use executor::Executor;
pub use ledger::{GrantedLease, Ledger};
pub use machine::{Machine, Next, fold};
pub use mailbox::{InboxEffect, Mailbox, cancelled_alone};
pub use reports::{Reporter, surviving_groups};
pub use run_log::RunLog;
pub use watch::{Interrupt, Watch};
