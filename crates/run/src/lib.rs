//! The parts that runs of every kind need. The kinds are loops, parallel loops, plans, teams and calls of agents.
//!
//! Use this crate to write a new kind of run, with log, inbox, questions, budget and resume.
//!
//! A [`Machine`] decides what is [`Next`]. The [`RunDriver`] does what all machines have in common, an
//! [`Executor`] does the tasks of one kind of machine, and a journal stores the records.
//!
//! *Invariant*: this crate uses no model, no tool, no file and no database, and makes no decision for a run.
//!
//! # Example
//!
//! A machine that asks for a hint and ends once its log has one, and the executor that appends the hint:
//!
//! ```
//! use archon_run::{Executor, Machine, Next, Recorded, RunDriver};
//! use archon_types::{Outcome, OutcomeStatus, Record, RecordBody, RunKind};
//!
//! struct UntilNoted(bool);
//! struct Hints;
//!
//! impl Machine for UntilNoted {
//!     const KIND: RunKind = RunKind::AgentCall;
//!     type Task = String;
//!
//!     fn apply(&mut self, record: &Record) {
//!         self.0 |= matches!(record.body, RecordBody::HintAdded { .. });
//!     }
//!
//!     fn next(&self) -> Next<String> {
//!         if !self.0 { return Next::Do("Look again.".to_owned()) };
//!         Next::Done(Outcome::new("run_1".into(), OutcomeStatus::Finished))
//!     }
//! }
//!
//! impl Executor<UntilNoted> for Hints {
//!     type Done = ();
//!     const GRACE: Option<std::time::Duration> = None;
//!
//!     async fn start(&mut self, text: String, run: &mut RunDriver<UntilNoted, ()>) -> Recorded {
//!         run.record(vec![RecordBody::HintAdded { text }]).await
//!     }
//!
//!     async fn done(&mut self, _: (), _: &mut RunDriver<UntilNoted, ()>) -> Recorded {
//!         Ok(())
//!     }
//! }
//!
//! assert_eq!(UntilNoted(false).next(), Next::Do("Look again.".to_owned()));
//! ```

// | question | file |
// |---|---|
// | the machine and its commands, and the executor of its tasks | `machine.rs`, `executor.rs` |
// | driving a run: its tasks in flight, steps, waits, draining, panics | `driver.rs`, `drive.rs` |
// | appending records, and moving inbox messages into the log | `run_log.rs`, `mailbox.rs` |
// | cancel and deadline during a wait | `watch.rs` |
// | spending, leases of calls, remaining budget | `ledger.rs`, `budget.rs` |
// | logging the processes and child runs that a call starts | `reports.rs` |

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
pub use watch::{Interrupt, InterruptWatch};
