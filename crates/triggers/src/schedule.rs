//! Schedules: the times at which a task is due.

use std::time::Duration;

use archon_types::Timestamp;
use serde::{Deserialize, Serialize};

mod cron;

pub use cron::Cron;

/// The shortest interval.
const SHORTEST: Duration = Duration::from_secs(1);

/// The times at which a task is due.
///
/// In JSON and TOML a schedule has one of these forms: `{"cron": "0 8 * * *", "zone": "Asia/Shanghai"}` (by default
/// `"zone": "UTC"`), `{"every": 300, "from": "2026-01-31T08:00:00Z"}` (seconds) or `{"at": "2026-01-31T08:00:00Z"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ScheduleForm", into = "ScheduleForm")]
#[non_exhaustive]
pub enum Schedule {
    /// At the local times of a cron pattern.
    Cron(Cron),
    /// At `from`, and again each time that `every` has passed.
    Every {
        /// The interval: whole seconds, at least one.
        every: Duration,
        /// The first time.
        from: Timestamp,
    },
    /// Once, at this time.
    Once(Timestamp),
}

/// An error of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The cron pattern cannot be read, or names no time.
    #[error("the cron pattern {pattern:?} cannot be used: {problem}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The problem.
        problem: String,
    },
    /// No zone has this name.
    #[error("there is no time zone {zone:?}: {problem}; use a name such as Europe/Berlin or UTC")]
    Zone {
        /// The name.
        zone: String,
        /// The error of the database of zones.
        problem: String,
    },
    /// The interval is not a whole number of seconds.
    #[error("an interval of {0:?} cannot be used: use whole seconds, at least one")]
    Interval(Duration),
}

impl Schedule {
    /// Creates the schedule of a cron pattern in a zone; see [`Cron`].
    ///
    /// # Errors
    /// As [`Cron::new`].
    pub fn cron(pattern: &str, zone: &str) -> Result<Self, ScheduleError> {
        Cron::new(pattern, zone).map(Self::Cron)
    }

    /// Creates a schedule that is due at `from`, and then again each time that `every` has passed.
    ///
    /// # Errors
    /// [`ScheduleError::Interval`] for an interval of 0, or with a part of a second.
    pub fn every(every: Duration, from: Timestamp) -> Result<Self, ScheduleError> {
        if every < SHORTEST || every.subsec_nanos() > 0 {
            return Err(ScheduleError::Interval(every));
        }
        Ok(Self::Every { every, from })
    }

    /// Returns the first time of the schedule after a time, or `None` after the last.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use archon_triggers::Schedule;
    /// use archon_types::Timestamp;
    ///
    /// # fn main() -> Result<(), archon_triggers::ScheduleError> {
    /// let noon = Timestamp::from_millis(43_200_000);
    /// let hourly = Schedule::every(Duration::from_secs(3600), noon)?;
    /// assert_eq!(hourly.next_after(Timestamp::default()), Some(noon));
    /// assert_eq!(hourly.next_after(noon), Some(noon + Duration::from_secs(3600)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron(cron) => cron.next_after(after),
            Self::Every { from, .. } if after < *from => Some(*from),
            Self::Every { every, from } => {
                let every = u64::try_from(every.as_millis()).ok()?.max(1);
                let passed = after.millis_since(*from) / every;
                let millis = passed.checked_add(1)?.checked_mul(every)?.checked_add(from.as_millis())?;
                Some(Timestamp::from_millis(millis))
            }
            Self::Once(at) => Some(*at).filter(|at| after < *at),
        }
    }

    /// Returns the last time of the schedule that is after `after` and not after `now`.
    pub(crate) fn last_until(&self, after: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let is_due = |at: &Timestamp| *at <= now;
        let first = self.next_after(after).filter(is_due)?;
        // Looks back from `now` in steps that grow, since a dense schedule has many times after a long pause.
        let mut back = Duration::from_secs(1);
        loop {
            let from = Timestamp::from_millis(now.as_millis().saturating_sub(millis(back)));
            if from <= first {
                break std::iter::successors(Some(first), |at| self.next_after(*at).filter(is_due)).last();
            }
            if let Some(next) = self.next_after(from).filter(is_due) {
                break std::iter::successors(Some(next), |at| self.next_after(*at).filter(is_due)).last();
            }
            back *= 4;
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The forms of a schedule in files.
#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum ScheduleForm {
    Cron {
        cron: String,
        #[serde(default = "utc")]
        zone: String,
    },
    Every {
        every: u64,
        #[serde(default, with = "archon_types::iso8601")]
        from: Timestamp,
    },
    Once {
        #[serde(with = "archon_types::iso8601")]
        at: Timestamp,
    },
}

fn utc() -> String {
    "UTC".to_owned()
}

impl TryFrom<ScheduleForm> for Schedule {
    type Error = ScheduleError;

    fn try_from(form: ScheduleForm) -> Result<Self, ScheduleError> {
        match form {
            ScheduleForm::Cron { cron, zone } => Self::cron(&cron, &zone),
            ScheduleForm::Every { every, from } => Self::every(Duration::from_secs(every), from),
            ScheduleForm::Once { at } => Ok(Self::Once(at)),
        }
    }
}

impl From<Schedule> for ScheduleForm {
    fn from(schedule: Schedule) -> Self {
        match schedule {
            Schedule::Cron(cron) => {
                Self::Cron { cron: cron.pattern().to_owned(), zone: cron.zone().to_owned() }
            }
            Schedule::Every { every, from } => Self::Every { every: every.as_secs(), from },
            Schedule::Once(at) => Self::Once { at },
        }
    }
}
