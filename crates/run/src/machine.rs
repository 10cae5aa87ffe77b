//! Machines: the state of a run, folded from its log, which decides the next step. A machine has no clock, no
//! randomness and no I/O; times and ids come from the records.

use std::sync::Arc;

use archon_types::{Outcome, OutcomeStatus, Record, RecordBody, RunId, RunKind, RunStarted, Timestamp};

/// The state of a run, which decides the next step. The page of the [crate] has an example.
pub trait Machine: Send + Sync {
    /// The kind of the runs of this machine.
    const KIND: RunKind;

    /// The work that an executor does for a run of this kind, such as a model call.
    type Task: Send;

    /// Applies a record to the state. An answer to a command or a question that is not open changes nothing.
    fn apply(&mut self, record: &Record);

    /// Returns the next step. Without a new record the same step is returned again.
    fn next(&self) -> Next<Self::Task>;

    /// Returns true if the run must end: nothing new starts, and tasks in flight are stopped. Default: false.
    fn is_stopping(&self) -> bool {
        false
    }

    /// Returns true if the log already has `report`, a record that a running call sent. Default: false.
    fn knows(&self, report: &RecordBody) -> bool {
        let _ = report;
        false
    }

    /// Returns the outcome of the run `run` if it is suspended. Default: only the status.
    fn outcome_of_suspension(&self, run: RunId) -> Outcome {
        Outcome::new(run, OutcomeStatus::Suspended)
    }
}

/// The next step of a run.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "it is made and carried out at once, never kept")]
#[non_exhaustive]
pub enum Next<T> {
    /// Append this record, which the machine derived from earlier records.
    Append(RecordBody),
    /// Let the executor do this task.
    Do(T),
    /// Wait for an event (the result of a task, a message, a cancel), at most until this time; `None`: without a time
    /// limit. At this time, [`Executor::tick`](crate::Executor::tick) is called.
    Wait(Option<Timestamp>),
    /// Suspend the run: it cannot go on until a person or a timer answers.
    Suspend,
    /// Wait for a prompt, because the run has none.
    AwaitPrompt,
    /// The run has ended.
    Done(Outcome),
}

/// Folds a log into a machine. `new` creates the machine from the first record and its time. Returns `None`
/// if the log is of another kind of run.
pub fn fold<M: Machine>(records: &[Arc<Record>], new: impl FnOnce(&RunStarted, Timestamp) -> M) -> Option<M> {
    let started = RunStarted::of(records).filter(|started| started.kind == M::KIND)?;
    let (first, rest) = records.split_first()?;
    let mut machine = new(started, first.at);
    rest.iter().for_each(|record| machine.apply(record));
    Some(machine)
}
