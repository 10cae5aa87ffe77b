//! Time as an input: the timestamp type and the clock of a run.

use std::{
    fmt,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// A point in time: milliseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Creates a timestamp from milliseconds since the Unix epoch.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }

    /// Returns the number of milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the time since `earlier`; zero if `earlier` is later, because clocks may step back.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.millis_since(earlier))
    }

    /// Returns the milliseconds since `earlier`; 0 if `earlier` is later.
    pub const fn millis_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(d.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// Writes ISO-8601 in UTC with milliseconds, as in `2026-01-31T08:00:00.123Z`. A time after the year 9999 has
/// no such form; it is written as its milliseconds, as in `+253402300800000ms`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match i64::try_from(self.0).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok()) {
            Some(t) => write!(f, "{t:.3}"),
            None => write!(f, "+{}ms", self.0),
        }
    }
}

/// Parses the output of `Display` and other ISO-8601 forms, by default in UTC. Times before 1970 become 1970.
impl std::str::FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(s: &str) -> Result<Self, jiff::Error> {
        let far = s.strip_prefix('+').and_then(|s| s.strip_suffix("ms")).and_then(|ms| ms.parse().ok());
        if let Some(ms) = far {
            return Ok(Self(ms));
        }
        let t = s.parse::<jiff::Timestamp>().or_else(|e| {
            let civil = s.parse::<jiff::civil::DateTime>().map_err(|_| e)?;
            Ok::<_, jiff::Error>(civil.to_zoned(jiff::tz::TimeZone::UTC)?.timestamp())
        })?;
        Ok(Self(u64::try_from(t.as_millisecond()).unwrap_or(0)))
    }
}

/// Serde adapter that writes a [`Timestamp`] as ISO-8601 text, for `#[serde(with = "iso8601")]`.
pub mod iso8601 {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::Timestamp;

    /// Writes the timestamp in ISO-8601 form.
    pub fn serialize<S: Serializer>(t: &Timestamp, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(t)
    }

    /// Parses every form that [`Timestamp`]'s `FromStr` parses.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Timestamp, D::Error> {
        String::deserialize(d)?.parse().map_err(D::Error::custom)
    }
}

/// The source of the time: the system's clock in production, a virtual one in tests.
///
/// ```
/// use archon_types::{BoxFuture, Clock, Timestamp};
///
/// /// A clock for tests that stands still.
/// struct Noon;
///
/// impl Clock for Noon {
///     fn now(&self) -> Timestamp {
///         Timestamp::from_millis(1_700_000_000_000)
///     }
///
///     fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
///         if deadline <= self.now() {
///             return Box::pin(std::future::ready(()));
///         }
///         Box::pin(std::future::pending())
///     }
/// }
/// ```
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Returns a future that completes when the clock reads `deadline` or later.
    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()>;

    /// Returns the current time for deadlines that other processes see, such as the deadline of a question:
    /// [`now`](Self::now), or the time of the machine's clock if that is later. The clock of a run falls
    /// behind the machine's clock while the machine sleeps.
    fn now_for_others(&self) -> Timestamp {
        self.now()
    }

    /// Returns a clock for one run, which starts at the current time and never jumps; `None` if this clock
    /// itself never jumps.
    fn for_run(&self) -> Option<Arc<dyn Clock>> {
        None
    }
}

/// Returns `clock` if its time is `at` or later, otherwise a clock that is ahead of `clock` and starts at
/// `at`. A resumed run uses this clock so that its time does not go back before the end of its log.
pub fn not_before(at: Timestamp, clock: Arc<dyn Clock>) -> Arc<dyn Clock> {
    match at.since(clock.now()) {
        Duration::ZERO => clock,
        lead => Arc::new(Ahead { clock, lead }),
    }
}

struct Ahead {
    clock: Arc<dyn Clock>,
    lead: Duration,
}

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        self.clock.now() + self.lead
    }

    fn now_for_others(&self) -> Timestamp {
        self.now().max(self.clock.now_for_others())
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        let lead = u64::try_from(self.lead.as_millis()).unwrap_or(u64::MAX);
        self.clock.sleep_until(Timestamp(deadline.0.saturating_sub(lead)))
    }
}

impl dyn Clock + '_ {
    /// Polls `poll` until it is ready or `deadline` has passed. Returns `None` after the deadline.
    pub async fn before<T>(
        &self,
        deadline: Timestamp,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T> + Send,
    ) -> Option<T> {
        let mut alarm = self.sleep_until(deadline);
        poll_fn(|task| match poll(task) {
            Poll::Ready(ready) => Poll::Ready(Some(ready)),
            Poll::Pending => alarm.as_mut().poll(task).map(|()| None),
        })
        .await
    }
}
