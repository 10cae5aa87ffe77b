//! Machines: the state of a run, folded from its log, which decides what is done next. A machine has no
//! clock, no randomness and no I/O; times and ids come in with the records.

use std::sync::Arc;

use archon_types::{Outcome, OutcomeStatus, Record, RecordBody, RunId, RunKind, RunStarted, Timestamp};

/// The state of a run, which decides what is done next.
pub trait Machine: Send + Sync {
    /// Returns the kind of its runs.
    const KIND: RunKind;

    /// A task that only machines of this kind have.
    type Task: Send;

    /// Applies a record. An answer to something that is not open changes nothing.
    fn apply(&mut self, record: &Record);

    /// Returns what is to be done now. Without a new record it returns the same again.
    fn next(&self) -> Next<Self::Task>;

    /// Returns whether the run is to end: nothing new starts, and tasks in flight are stopped.
    fn is_stopping(&self) -> bool {
        false
    }

    /// Returns whether the log has already what a call reports.
    fn knows(&self, report: &RecordBody) -> bool {
        let _ = report;
        false
    }

    /// Returns the outcome of the suspended run.
    fn outcome_of_suspension(&self, run: RunId) -> Outcome {
        Outcome::new(run, OutcomeStatus::Suspended)
    }
}

/// The next step.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "it is made and carried out at once, never kept")]
#[non_exhaustive]
pub enum Next<T> {
    /// Append this derived record.
    Append(RecordBody),
    /// Do this task.
    Do(T),
    /// Wait for running work, or until a time, then append `ClockRead`.
    Wait(Option<Timestamp>),
    /// Nothing can go on until a person answers.
    Suspend,
    /// Wait for a prompt: the run has none yet.
    AwaitPrompt,
    /// The run has ended.
    Done(Outcome),
}

/// Folds a log into a machine. `new` makes the machine from the first record and its time. Returns none if
/// the log is of another kind.
pub fn fold<M: Machine>(records: &[Arc<Record>], new: impl FnOnce(&RunStarted, Timestamp) -> M) -> Option<M> {
    let started = RunStarted::of(records).filter(|started| started.kind == M::KIND)?;
    let (first, rest) = records.split_first()?;
    let mut machine = new(started, first.at);
    rest.iter().for_each(|record| machine.apply(record));
    Some(machine)
}
