//! Cron patterns in the local time of a zone.
//!
//! `cronexpr` reads the fields and finds the next local time. This file adds seconds, and the times at which a zone
//! moves its clocks.

use jiff::{
    SignedDuration, Timestamp,
    tz::{Offset, TimeZone},
};

use super::ScheduleError;

/// A cron pattern in a time zone.
///
/// The pattern has five fields: minute, hour, day of the month, month, day of the week. With six fields, the first is the
/// second. Fields have names (`MON`, `JAN`), ranges, steps, lists, and the extensions `L`, `W` and `#`. If neither of the
/// two fields for days begins with `*`, a day that one of them names is enough, as in Vixie's cron.
///
/// *When the clocks of the zone change*
///
/// - If the field of the hour begins with `*`, the pattern follows the time that passes: a local time that the clocks skip
///   does not occur, and a local time that they show twice occurs twice.
/// - Otherwise each local time occurs once a day: one that the clocks skip occurs at the moment of the change, one that they
///   show twice occurs at the first time. Several skipped times are one occurrence.
#[derive(Clone, Debug)]
pub struct Cron {
    pattern: String,
    zone: TimeZone,
    /// The pattern without seconds, in UTC: local times are computed as if they were UTC.
    minutes: cronexpr::Crontab,
    /// The seconds of a minute that the pattern names, in order.
    seconds: Vec<i8>,
    /// True if the field of the hour begins with `*`.
    is_each_hour: bool,
}

/// A local time, as if it were UTC.
type Local = Timestamp;

impl Cron {
    /// Parses a pattern. `zone` is the name of a time zone in the IANA database, such as `Europe/Berlin`.
    ///
    /// ```
    /// use archon_triggers::Cron;
    ///
    /// # fn main() -> Result<(), archon_triggers::ScheduleError> {
    /// let morning = Cron::new("0 8 * * *", "Asia/Shanghai")?;
    /// let next = morning.next_after("2026-01-31T12:00:00Z".parse().expect("a time"));
    /// assert_eq!(next.map(|at| at.to_string()).as_deref(), Some("2026-02-01T00:00:00.000Z"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The pattern has an error, the zone is unknown, or the pattern names no time within four years.
    pub fn new(pattern: &str, zone: &str) -> Result<Self, ScheduleError> {
        let wrong = |problem: String| ScheduleError::Pattern { pattern: pattern.to_owned(), problem };
        let fields: Vec<&str> = pattern.split_ascii_whitespace().collect();
        let (seconds, fields) = match fields.len() {
            5 => ("0", &fields[..]),
            6 => (fields[0], &fields[1..]),
            n => return Err(wrong(format!("it has {n} fields instead of 5, or of 6 with seconds"))),
        };
        let parse = |fields: &str| {
            cronexpr::parse_crontab(&format!("{fields} UTC"))
                .map_err(|error| wrong(one_line(&error.to_string())))
        };
        let (minutes, seconds) = (parse(&fields.join(" "))?, numbers(&parse(&format!("{seconds} * * * *"))?));
        let unknown =
            |error: jiff::Error| ScheduleError::Zone { zone: zone.to_owned(), problem: error.to_string() };
        let zone = TimeZone::get(zone).map_err(unknown)?;
        let is_each_hour = fields[1].starts_with('*');
        let cron = Self { pattern: pattern.to_owned(), zone, minutes, seconds, is_each_hour };
        match cron.next_local(Timestamp::UNIX_EPOCH) {
            Some(_) => Ok(cron),
            None => Err(wrong(
                "it fits no time within four years: it may name a day such as February 30".to_owned(),
            )),
        }
    }

    /// Returns the pattern as it was written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Returns the name of the zone.
    pub fn zone(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// Returns the first occurrence after a time; `None` if there is none before the year 9999.
    pub fn next_after(&self, after: archon_types::Timestamp) -> Option<archon_types::Timestamp> {
        let after = Timestamp::from_millisecond(i64::try_from(after.as_millis()).ok()?).ok()?;
        let at = self.next(after)?.as_millisecond();
        Some(archon_types::Timestamp::from_millis(u64::try_from(at).ok()?))
    }

    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let mut offset = self.zone.to_offset(after);
        let mut local = self.skip_repeated(after, local_of(after, offset)?)?;
        let mut changes = self.zone.following(after);
        loop {
            let next = instant(self.next_local(local)?, offset);
            let Some(change) = changes.next() else { return next };
            if let Some(next) = next.filter(|next| *next < change.timestamp()) {
                return Some(next);
            }
            // The clocks change before the next occurrence.
            let (before, then) =
                (local_of(change.timestamp(), offset)?, local_of(change.timestamp(), change.offset())?);
            let skips_one = || self.next_local(just_before(before)?).filter(|skipped| *skipped < then);
            if then > before && !self.is_each_hour && skips_one().is_some() {
                return Some(change.timestamp());
            }
            let from = if self.is_each_hour { then } else { then.max(before) };
            (offset, local) = (change.offset(), just_before(from)?);
        }
    }

    /// Returns the end of the local times that the clocks show a second time, if `after` is within them and the pattern
    /// has them only once; otherwise `local`.
    fn skip_repeated(&self, after: Timestamp, local: Local) -> Option<Local> {
        if self.is_each_hour {
            return Some(local);
        }
        // `preceding` excludes its argument, and a change at `after` counts.
        let Some(change) = self.zone.preceding(after.checked_add(SignedDuration::from_nanos(1)).ok()?).next()
        else {
            return Some(local);
        };
        let offset = self.zone.to_offset(change.timestamp().checked_sub(SignedDuration::from_nanos(1)).ok()?);
        Some(local.max(just_before(local_of(change.timestamp(), offset)?)?))
    }

    /// Returns the first local time of the pattern after a local time.
    fn next_local(&self, after: Local) -> Option<Local> {
        let second = after.as_second().rem_euclid(60);
        let minute = after.as_second() - second;
        let in_this = self.seconds.iter().map(|s| i64::from(*s)).find(|s| *s > second);
        if let Some(in_this) = in_this.filter(|_| self.has_minute(minute)) {
            return Timestamp::from_second(minute + in_this).ok();
        }
        let next = self.minutes.find_next(Timestamp::from_second(minute).ok()?).ok()?.timestamp();
        Timestamp::from_second(next.as_second() + i64::from(*self.seconds.first()?)).ok()
    }

    fn has_minute(&self, minute: i64) -> bool {
        Timestamp::from_second(minute).is_ok_and(|minute| self.minutes.matches(minute).unwrap_or(false))
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern && self.zone == other.zone
    }
}

/// Returns the values of the field of the minute.
fn numbers(pattern: &cronexpr::Crontab) -> Vec<i8> {
    let is_in = |n: &i8| {
        Timestamp::from_second(i64::from(*n) * 60).is_ok_and(|at| pattern.matches(at).unwrap_or(false))
    };
    (0..60).filter(is_in).collect()
}

fn local_of(at: Timestamp, offset: Offset) -> Option<Local> {
    at.checked_add(SignedDuration::from_secs(offset.seconds().into())).ok()
}

fn instant(local: Local, offset: Offset) -> Option<Timestamp> {
    local.checked_sub(SignedDuration::from_secs(offset.seconds().into())).ok()
}

fn just_before(local: Local) -> Option<Local> {
    local.checked_sub(SignedDuration::from_secs(1)).ok()
}

/// Returns a message of several lines as one line.
fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
