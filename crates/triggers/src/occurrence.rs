//! Occurrences: the times and events for which a task starts a run.

use archon_types::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::TriggerEvent;

/// A time or an event for which a task starts one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Occurrence {
    /// A time of the schedule.
    Time(Timestamp),
    /// An event that passed the filter.
    Event(TriggerEvent),
    /// The condition became true. The number is 0 for the first time, 1 for the second, and so on.
    Edge(u64),
    /// A person started the task. The text is the name of this start, unique for the task.
    Person(String),
}
