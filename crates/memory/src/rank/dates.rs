//! Finds the times in a question: "on 3 June, 2023", "in July 2022", "in August", "2021-05-17", "last week".
//!
//! People talk about June in June or soon after. So a date in a question is not a word to search for, but
//! gives the time of the memory. [`TimeHint::closeness`] returns the closeness of a memory's time.

use archon_types::Timestamp;

/// A time in a question: a range of days, both ends included, in a given year or in any year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeHint {
    year: Option<i32>,
    month: Option<u8>,
    day: Option<u8>,
    /// The range in days since 1970, if the question gives it exactly, as "yesterday" does. Otherwise `None`,
    /// and the range follows from `year`, `month` and `day`.
    span: Option<(i64, i64)>,
}

/// The distance from the range, in days, at which the closeness is half.
const HALF_LIFE_DAYS: f32 = 4.0;

const MS_PER_DAY: u64 = 86_400_000;

impl TimeHint {
    /// Returns the closeness of `at` to this time: 1 within the range, halved for each four days of distance
    /// from it.
    pub fn closeness(&self, at: Timestamp) -> f32 {
        let day = day_of(at);
        let distance = |(first, last): (i64, i64)| (first - day).max(day - last).max(0);
        let nearest = match self.span {
            Some(span) => Some(distance(span)),
            None => {
                let year = civil(day).0;
                let years = self.year.map_or(year - 1..=year + 1, |year| year..=year);
                years.filter_map(|year| self.days(year)).map(distance).min()
            }
        };
        nearest.map_or(0.0, |days| (-(days as f32) / HALF_LIFE_DAYS).exp2())
    }

    fn days(&self, year: i32) -> Option<(i64, i64)> {
        match (self.month, self.day) {
            (Some(month), Some(day)) => (day <= days_in(year, month))
                .then(|| (day_number(year, month, day), day_number(year, month, day))),
            (Some(month), None) => {
                Some((day_number(year, month, 1), day_number(year, month, days_in(year, month))))
            }
            _ => Some((day_number(year, 1, 1), day_number(year, 12, 31))),
        }
    }
}

/// Returns the times in `question`. "yesterday" and "last week" are relative to `now` and are ignored
/// without it.
pub fn time_hints(question: &str, now: Option<Timestamp>) -> Vec<TimeHint> {
    let lower = question.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric() && c != '-').filter(|w| !w.is_empty()).collect();
    let mut hints = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let read = iso(words[at])
            .map(|hint| (hint, 1))
            .or_else(|| relative(&words[at..], now))
            .or_else(|| named(&words, at));
        match read {
            Some((hint, length)) => {
                hints.push(hint);
                at += length;
            }
            None => at += 1,
        }
    }
    hints
}

/// Parses `2021-05-17`.
fn iso(word: &str) -> Option<TimeHint> {
    let mut parts = word.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() != 4 {
        return None;
    }
    let month = month.parse().ok().filter(|month| (1..=12).contains(month))?;
    let day = day.parse().ok().filter(|day| (1..=31).contains(day))?;
    Some(TimeHint { year: Some(year.parse().ok()?), month: Some(month), day: Some(day), span: None })
}

/// Parses `yesterday`, `last week` and similar phrases: ranges that end at or before `now`.
fn relative(words: &[&str], now: Option<Timestamp>) -> Option<(TimeHint, usize)> {
    let today = day_of(now?);
    let second = words.get(1).copied().unwrap_or_default();
    let ((first, last), length) = match (words[0], second) {
        ("today", _) => ((0, 0), 1),
        ("yesterday", _) => ((1, 1), 1),
        ("this", "week") => ((6, 0), 2),
        ("last", "week") => ((13, 1), 2),
        ("this", "month") => ((30, 0), 2),
        ("last", "month") => ((60, 1), 2),
        _ => return None,
    };
    let span = Some((today - first, today - last));
    Some((TimeHint { year: None, month: None, day: None, span }, length))
}

/// Parses `3 June, 2023`, `June 3`, `June of 2023`, `in May`, `2023`.
fn named(words: &[&str], at: usize) -> Option<(TimeHint, usize)> {
    let word = |i: usize| words.get(i).copied().unwrap_or_default();
    let hint = |year, month, day| TimeHint { year, month, day, span: None };
    let skip_of = |i: usize| if word(i) == "of" { i + 1 } else { i };
    if let Some(day) = day(words[at]) {
        let i = skip_of(at + 1);
        if let Some(month) = month(word(i)) {
            let year = year(word(i + 1));
            return Some((hint(year, Some(month), Some(day)), i + 1 - at + usize::from(year.is_some())));
        }
    }
    if let Some(month) = month(words[at]) {
        if let Some(day) = day(word(at + 1)) {
            let year = year(word(at + 2));
            return Some((hint(year, Some(month), Some(day)), 2 + usize::from(year.is_some())));
        }
        let i = skip_of(at + 1);
        if let Some(year) = year(word(i)) {
            return Some((hint(Some(year), Some(month), None), i + 1 - at));
        }
        return means_a_month(words, at).then(|| (hint(None, Some(month), None), 1));
    }
    year(words[at]).map(|year| (hint(Some(year), None, None), 1))
}

/// Returns true if the word at `at` is a month. `may` and `march` are also verbs, and a short form may be a
/// name (Jan), so these words count only after a word that is used with times.
fn means_a_month(words: &[&str], at: usize) -> bool {
    let clear = words[at].len() > 3 && !matches!(words[at], "march" | "sept");
    let before = at.checked_sub(1).map_or("", |i| words[i]);
    let led = [
        "in", "of", "since", "until", "by", "during", "before", "after", "last", "this", "next", "early",
        "late",
    ];
    clear || led.contains(&before)
}

fn month(word: &str) -> Option<u8> {
    const MONTHS: &str =
        "january february march april may june july august september october november december";
    let found =
        MONTHS.split(' ').position(|month| month == word || (word.len() == 3 && month.starts_with(word)));
    found.or((word == "sept").then_some(8)).map(|i| i as u8 + 1)
}

fn day(word: &str) -> Option<u8> {
    let digits = word.strip_suffix("st").or(word.strip_suffix("nd")).or(word.strip_suffix("rd"));
    let digits = digits.or(word.strip_suffix("th")).unwrap_or(word);
    digits.parse().ok().filter(|day| digits.len() <= 2 && (1..=31).contains(day))
}

fn year(word: &str) -> Option<i32> {
    word.parse().ok().filter(|year| word.len() == 4 && (1900..2100).contains(year))
}

fn day_of(at: Timestamp) -> i64 {
    (at.as_millis() / MS_PER_DAY) as i64
}

fn days_in(year: i32, month: u8) -> u8 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days since 1970-01-01 in the proleptic Gregorian calendar. Years begin in March in this
/// calculation, so that the leap day is the last day of its year.
fn day_number(year: i32, month: u8, day: u8) -> i64 {
    let from_march = (i64::from(month) + 9) % 12;
    let year = i64::from(year) - i64::from(month <= 2);
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (from_march * 153 + 2) / 5 + i64::from(day) - 1 - DAYS_TO_1970
}

/// Days from 1 March of the year 0 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;

/// Returns the year, month and day of a day number.
fn civil(day: i64) -> (i32, u8, u8) {
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

    fn at(year: i32, month: u8, day: u8) -> Timestamp {
        Timestamp::from_millis(day_number(year, month, day) as u64 * MS_PER_DAY + 3_600_000)
    }

    /// The closeness of a memory of `(year, month, day)` to what the question names.
    fn check(question: &str, memory: (i32, u8, u8), closeness: f32) {
        let now = at(2023, 8, 20);
        let hints = time_hints(question, Some(now));
        let time = at(memory.0, memory.1, memory.2);
        let best = hints.iter().map(|hint| hint.closeness(time)).fold(0.0, f32::max);
        assert!((best - closeness).abs() < 1e-6, "{question}: {best} {hints:?}");
    }

    #[test]
    fn a_day_in_each_way_of_writing() {
        for question in [
            "What happened on 3 June, 2023?",
            "on June 3rd, 2023",
            "on the 3rd of June 2023",
            "on 2023-06-03",
            "on Jun 3",
        ] {
            check(question, (2023, 6, 3), 1.0);
            check(question, (2023, 6, 7), 0.5);
            check(question, (2023, 5, 26), 0.25);
        }
    }

    #[test]
    fn months_and_years() {
        check("Where did she go in July 2022?", (2022, 7, 31), 1.0);
        check("Where did she go in July 2022?", (2022, 8, 4), 0.5);
        check("What did he do in May?", (2021, 5, 4), 1.0);
        check("career in 2021", (2021, 12, 31), 1.0);
        check("between August 11 and August 15 2023", (2023, 8, 15), 1.0);
        check("in early February", (2024, 2, 29), 1.0);
    }

    #[test]
    fn times_counted_from_now() {
        check("what did I say yesterday?", (2023, 8, 19), 1.0);
        check("what did I say last week?", (2023, 8, 12), 1.0);
        assert_eq!(time_hints("what did I say yesterday?", None), []);
    }

    #[test]
    fn date_hints_ignore_words_that_are_no_date() {
        for question in
            ["May I march on?", "Who is Jan?", "2 children, 31 cats", "room 1850", "31 February", ""]
        {
            check(question, (2023, 2, 1), 0.0);
        }
    }

    proptest! {
        #[test]
        fn date_conversion_round_trips(day in 0i64..80_000) {
            let (year, month, date) = civil(day);
            prop_assert_eq!(day_number(year, month, date), day);
            prop_assert!(date >= 1 && date <= days_in(year, month));
        }

        #[test]
        fn date_closeness_of_any_question_is_finite(text in any::<String>(), ms in any::<u64>()) {
            for hint in time_hints(&text, Some(Timestamp::from_millis(ms))) {
                prop_assert!((0.0..=1.0).contains(&hint.closeness(Timestamp::from_millis(ms))));
            }
        }
    }
}
