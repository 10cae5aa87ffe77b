//! The rules of a person for when notifications arrive: quiet hours, digests, and escalation to the next person.

use std::time::Duration;

use archon_types::Timestamp;
use jiff::{
    Timestamp as Instant, Zoned,
    civil::Time,
    tz::{TimeZone, db},
};

/// A rule cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeliveryError {
    /// The time of the day cannot be read.
    #[error("{0:?} is no time of the day: write HH:MM, such as 08:00")]
    Time(String),
    /// No zone has this name.
    #[error("there is no time zone {zone:?}: {problem}; use a name such as Europe/Berlin or UTC")]
    Zone {
        /// The name.
        zone: String,
        /// The error of the database of zones.
        problem: String,
    },
}

/// The hours of each day in which no notification arrives, at the clock of a time zone. At the end time itself,
/// notifications arrive again. If the clocks of the zone skip the end, such as 02:30 when they go from 2:00 to 3:00,
/// the quiet hours end that much later, at 3:30.
///
/// ```
/// use archon_notify::{DeliveryError, QuietHours};
///
/// # fn main() -> Result<(), DeliveryError> {
/// let night = QuietHours::new("22:00", "07:30", "Asia/Shanghai")?;
/// let at = |text: &str| text.parse().expect("a time");
/// // 23:00 in Shanghai.
/// assert_eq!(night.end_after(at("2026-03-27T15:00:00Z")), Some(at("2026-03-27T23:30:00Z")));
/// assert_eq!(night.end_after(at("2026-03-27T23:30:00Z")), None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct QuietHours {
    from: Time,
    until: Time,
    zone: TimeZone,
}

/// The times of each day at which collected results arrive, at the clock of a time zone.
///
/// ```
/// use archon_notify::{DeliveryError, DigestTimes};
///
/// # fn main() -> Result<(), DeliveryError> {
/// let digest = DigestTimes::new(&["08:00", "18:00"], "Europe/Berlin")?;
/// let at = |text: &str| text.parse().expect("a time");
/// assert_eq!(digest.next_after(at("2026-03-27T07:00:00Z")), Some(at("2026-03-27T17:00:00Z")));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DigestTimes {
    times: Vec<Time>,
    zone: TimeZone,
}

/// The rules for the notifications of one channel, which reaches one person.
///
/// ```
/// use std::time::Duration;
///
/// use archon_notify::{DeliveryError, DeliveryRules, DigestTimes, QuietHours};
///
/// fn of_anna() -> Result<DeliveryRules, DeliveryError> {
///     Ok(DeliveryRules::new()
///         .quiet(QuietHours::new("22:00", "07:00", "Europe/Berlin")?)
///         .digest(DigestTimes::new(&["08:00"], "Europe/Berlin")?)
///         .escalate(Duration::from_secs(10 * 60), "ben"))
/// }
/// # of_anna().unwrap();
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeliveryRules {
    pub(crate) quiet: Option<QuietHours>,
    pub(crate) digest: Option<DigestTimes>,
    pub(crate) escalation: Option<(Duration, String)>,
}

impl DeliveryRules {
    /// Creates rules with which everything arrives at once.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the quiet hours. A notification waits for their end, but a question that would expire before their end
    /// arrives at once. Default: none.
    #[must_use]
    pub fn quiet(mut self, hours: QuietHours) -> Self {
        self.quiet = Some(hours);
        self
    }

    /// Collects results, and sends them as one notification at these times. Questions and failures do not wait for
    /// these times. Default: each result arrives by itself.
    #[must_use]
    pub fn digest(mut self, times: DigestTimes) -> Self {
        self.digest = Some(times);
        self
    }

    /// Sends a question also to `channel`, another channel of the outbox, if the question is still open when the time
    /// `after` has passed since it was sent. The rules of the other channel apply there, also its own escalation. If
    /// this channel fails, the time counts from the moment at which the question should have been sent; after that,
    /// only the other channel gets it.
    #[must_use]
    pub fn escalate(mut self, after: Duration, channel: impl Into<String>) -> Self {
        self.escalation = Some((after, channel.into()));
        self
    }
}

impl QuietHours {
    /// Creates quiet hours from and until a time, as `HH:MM`, in a time zone, such as `Europe/Berlin`. They may last
    /// over midnight. If both times are the same, there are no quiet hours.
    ///
    /// # Errors
    /// A time or the zone cannot be read.
    pub fn new(from: &str, until: &str, zone: &str) -> Result<Self, DeliveryError> {
        Ok(Self { from: read_time(from)?, until: read_time(until)?, zone: read_zone(zone)? })
    }

    /// Returns the time at which the quiet hours around `now` end; `None` if `now` is not in quiet hours.
    pub fn end_after(&self, now: Timestamp) -> Option<Timestamp> {
        let now = local(now, &self.zone)?;
        let time = now.time();
        let (is_quiet, is_tomorrow) = match self.from <= self.until {
            true => (self.from <= time && time < self.until, false),
            false => (self.from <= time || time < self.until, self.from <= time),
        };
        if !is_quiet {
            return None;
        }
        let day = if is_tomorrow { now.date().tomorrow().ok()? } else { now.date() };
        instant(&day.to_datetime(self.until).to_zoned(self.zone.clone()).ok()?)
    }
}

impl DigestTimes {
    /// Creates the times of a digest, each as `HH:MM`, in a time zone, such as `Europe/Berlin`.
    ///
    /// # Errors
    /// A time or the zone cannot be read.
    pub fn new(times: &[&str], zone: &str) -> Result<Self, DeliveryError> {
        let times = times.iter().map(|time| read_time(time)).collect::<Result<_, _>>()?;
        Ok(Self { times, zone: read_zone(zone)? })
    }

    /// Returns the first of the digest times after `now`; `None` if there are no digest times.
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        let today = local(now, &self.zone)?.date();
        let days = [today, today.tomorrow().ok()?];
        let all = days.into_iter().flat_map(|day| self.times.iter().map(move |time| day.to_datetime(*time)));
        let all = all.filter_map(|at| instant(&at.to_zoned(self.zone.clone()).ok()?));
        all.filter(|at| *at > now).min()
    }
}

fn read_time(text: &str) -> Result<Time, DeliveryError> {
    Time::strptime("%H:%M", text).map_err(|_| DeliveryError::Time(text.to_owned()))
}

fn read_zone(zone: &str) -> Result<TimeZone, DeliveryError> {
    db().get(zone).map_err(|error| DeliveryError::Zone { zone: zone.to_owned(), problem: error.to_string() })
}

fn local(at: Timestamp, zone: &TimeZone) -> Option<Zoned> {
    let millis = i64::try_from(at.as_millis()).ok()?;
    Some(Instant::from_millisecond(millis).ok()?.to_zoned(zone.clone()))
}

fn instant(at: &Zoned) -> Option<Timestamp> {
    u64::try_from(at.timestamp().as_millisecond()).ok().map(Timestamp::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    // spec: TR-09
    #[test]
    fn end_after_is_that_of_the_local_clock_also_when_clocks_change() {
        let check = |hours: (&str, &str), now: &str, end: Option<&str>| {
            let hours = QuietHours::new(hours.0, hours.1, "Europe/Berlin").unwrap();
            assert_eq!(hours.end_after(at(now)), end.map(at), "{now}");
        };
        let night = ("22:00", "07:00");
        check(night, "2026-03-27T20:59:59Z", None);
        check(night, "2026-03-27T21:00:00Z", Some("2026-03-28T06:00:00Z"));
        check(night, "2026-03-28T05:59:59Z", Some("2026-03-28T06:00:00Z"));
        check(night, "2026-03-28T06:00:00Z", None);
        // In this night the clocks of Berlin go from 2:00 to 3:00.
        check(night, "2026-03-28T22:00:00Z", Some("2026-03-29T05:00:00Z"));
        check(("01:00", "02:30"), "2026-03-29T00:30:00Z", Some("2026-03-29T01:30:00Z"));
        check(("12:00", "13:00"), "2026-06-01T10:30:00Z", Some("2026-06-01T11:00:00Z"));
        check(("12:00", "12:00"), "2026-06-01T10:00:00Z", None);
    }

    #[test]
    fn next_after_is_the_first_of_the_times_after_now() {
        let digest = DigestTimes::new(&["18:00", "08:00"], "Asia/Shanghai").unwrap();
        assert_eq!(digest.next_after(at("2026-01-31T23:59:59Z")), Some(at("2026-02-01T00:00:00Z")));
        assert_eq!(digest.next_after(at("2026-02-01T00:00:00Z")), Some(at("2026-02-01T10:00:00Z")));
        assert_eq!(digest.next_after(at("2026-02-01T10:00:00Z")), Some(at("2026-02-02T00:00:00Z")));
        assert_eq!(DigestTimes::new(&[], "UTC").unwrap().next_after(at("2026-02-01T10:00:00Z")), None);
    }

    #[test]
    fn time_or_zone_that_cannot_be_read_is_an_error() {
        assert_eq!(
            QuietHours::new("25:00", "07:00", "UTC").err(),
            Some(DeliveryError::Time("25:00".to_owned()))
        );
        assert_eq!(DigestTimes::new(&["8"], "UTC").err(), Some(DeliveryError::Time("8".to_owned())));
        let error = QuietHours::new("22:00", "07:00", "Mars/Olympus").err().unwrap();
        assert!(error.to_string().contains("there is no time zone \"Mars/Olympus\""), "{error}");
    }
}
