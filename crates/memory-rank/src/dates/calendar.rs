//! Days of the proleptic Gregorian calendar, as numbers since 1970.

use archon_types::Timestamp;

const MS_PER_DAY: u64 = 86_400_000;

/// The same days of each year, both ends included: month and day. The end may be in the next year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Yearly {
    first: (u8, u8),
    last: (u8, u8),
}

/// The last day of a month.
const END: u8 = 0;

impl Yearly {
    /// Returns a month, or a day of it.
    pub(super) fn month(month: u8, day: Option<u8>) -> Self {
        Self { first: (month, day.unwrap_or(1)), last: (month, day.unwrap_or(END)) }
    }

    /// Returns a quarter, from 1 to 4.
    pub(super) fn quarter(quarter: u8) -> Self {
        Self { first: (quarter * 3 - 2, 1), last: (quarter * 3, END) }
    }

    /// Returns the days of a season, a quarter or a feast.
    pub(super) fn named(name: &str) -> Option<Self> {
        let (first, last) = match name {
            "spring" => ((3, 1), (5, END)),
            "summer" => ((6, 1), (8, END)),
            "autumn" | "fall" => ((9, 1), (11, END)),
            "winter" => ((12, 1), (2, END)),
            "christmas" => ((12, 18), (12, 31)),
            "easter" => ((3, 22), (4, 25)),
            "halloween" => ((10, 28), (11, 2)),
            "thanksgiving" => ((11, 20), (11, END)),
            _ => {
                let quarter = name.strip_prefix('q')?.parse().ok()?;
                return (1..=4).contains(&quarter).then(|| Self::quarter(quarter));
            }
        };
        Some(Self { first, last })
    }

    /// Returns the days that begin in `year`; `None` if the year has no such day.
    pub(super) fn of(self, year: i32) -> Option<(i64, i64)> {
        let ends = if self.last.0 < self.first.0 { year + 1 } else { year };
        let last = if self.last.1 == END { days_in(ends, self.last.0) } else { self.last.1 };
        (self.first.1 <= days_in(year, self.first.0) && last <= days_in(ends, self.last.0))
            .then(|| (day_number(year, self.first.0, self.first.1), day_number(ends, self.last.0, last)))
    }

    /// Returns the latest of these days that are over.
    pub(super) fn latest(self, today: i64) -> Option<(i64, i64)> {
        let year = civil(today).0;
        (year - 4..=year).rev().filter_map(|year| self.of(year)).find(|(_, last)| *last < today)
    }
}

pub(super) fn day_of(at: Timestamp) -> i64 {
    (at.as_millis() / MS_PER_DAY) as i64
}

pub(super) fn days_in(year: i32, month: u8) -> u8 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days since 1970-01-01. Years begin in March in this calculation, so that the leap day is the last
/// day of its year.
pub(super) fn day_number(year: i32, month: u8, day: u8) -> i64 {
    let from_march = (i64::from(month) + 9) % 12;
    let year = i64::from(year) - i64::from(month <= 2);
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (from_march * 153 + 2) / 5 + i64::from(day) - 1 - DAYS_TO_1970
}

/// Days from 1 March of the year 0 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;

/// Returns the year, month and day of a day number.
pub(super) fn civil(day: i64) -> (i32, u8, u8) {
    // 146,097 days are 400 years; the guess is at most a year off.
    let guess = ((day * 400).div_euclid(146_097) + 1970) as i32;
    let year = (guess - 1..=guess + 1).rev().find(|year| day_number(*year, 1, 1) <= day).unwrap_or(guess);
    let month = (1..=12u8).rev().find(|month| day_number(year, *month, 1) <= day).unwrap_or(1);
    (year, month, (day - day_number(year, month, 1) + 1) as u8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn date_conversion_round_trips(day in 0i64..80_000) {
            let (year, month, date) = civil(day);
            prop_assert_eq!(day_number(year, month, date), day);
            prop_assert!(date >= 1 && date <= days_in(year, month));
        }
    }
}
