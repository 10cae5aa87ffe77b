//! Finds the times in a question: "on 3 June, 2023", "in July 2022", "last spring", "two weeks ago", "before May".
//!
//! People talk about June in June or soon after. So a date in a question is not a word to search for, but
//! gives the time of the memory. [`TimeHint::closeness`] returns the closeness of a memory's time. Seasons are
//! those of the northern hemisphere; the words are English.

mod calendar;

use archon_types::Timestamp;

use crate::words::is_any;
use calendar::{Yearly, civil, day_number, day_of, days_in};

/// A time in a question: a range of days, both ends included, in a given year or in any year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeHint(Range);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    /// Days since 1970.
    Days(i64, i64),
    /// The same days of each year.
    EachYear(Yearly),
}

/// The distance from the range, in days, at which the closeness is half.
const HALF_LIFE_DAYS: f32 = 4.0;

/// The bounds of ranges that are open on one side.
const EVER: (i64, i64) = (-1_000_000, 1_000_000);

impl TimeHint {
    /// Returns the closeness of `at` to this time: 1 within the range, halved for each four days of distance
    /// from it.
    pub fn closeness(&self, at: Timestamp) -> f32 {
        let day = day_of(at);
        let distance = |(first, last): (i64, i64)| (first - day).max(day - last).max(0);
        let nearest = match self.0 {
            Range::Days(first, last) => Some(distance((first, last))),
            Range::EachYear(days) => {
                let year = civil(day).0;
                (year - 1..=year + 1).filter_map(|year| days.of(year)).map(distance).min()
            }
        };
        nearest.map_or(0.0, |days| (-(days as f32) / HALF_LIFE_DAYS).exp2())
    }
}

/// Returns the times in `question`. Words such as "yesterday" and "two weeks ago" are relative to `now` and are
/// ignored without it.
pub fn time_hints(question: &str, now: Option<Timestamp>) -> Vec<TimeHint> {
    let lower = question.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric() && c != '-').filter(|w| !w.is_empty()).collect();
    let today = now.map(day_of);
    let mut hints: Vec<TimeHint> = Vec::new();
    let (mut at, mut end) = (0, 0);
    while at < words.len() {
        let Some((range, length)) = read(&words, at, today) else {
            at += 1;
            continue;
        };
        let before = |back: usize| at.checked_sub(back).map_or("", |i| words[i]);
        let joined = matches!(before(1), "and" | "to" | "until") && at == end + 1;
        let from =
            end.checked_sub(1).and_then(|_| hints.last()).copied().filter(|_| joined && is_span(&words, end));
        match from.and_then(|from| between(from.0, range)) {
            Some(span) => {
                hints.pop();
                hints.push(TimeHint(span));
            }
            None => hints.push(TimeHint(limited(before(1), before(2), range, today))),
        }
        at += length;
        end = at;
    }
    hints
}

/// Returns true if `between` or `from` stands before the time that ends at `end`.
fn is_span(words: &[&str], end: usize) -> bool {
    words[..end].iter().rev().take(5).any(|word| matches!(*word, "between" | "from"))
}

/// Joins the two ends of a span; the first is the latest before the last, if it has no year of its own.
fn between(first: Range, last: Range) -> Option<Range> {
    let Range::Days(_, end) = last else { return None };
    let start = match first {
        Range::Days(start, _) => Some(start),
        Range::EachYear(yearly) => yearly.latest(end + 1).map(|(start, _)| start),
    };
    start.filter(|start| *start <= end).map(|start| Range::Days(start, end))
}

/// Applies the word before a time: `before June` is all time before it.
fn limited(before: &str, earlier: &str, range: Range, today: Option<i64>) -> Range {
    let led = if matches!(before, "the" | "last" | "this" | "early" | "late") { earlier } else { before };
    // Without a year it is the latest such time.
    let days = match range {
        Range::Days(first, last) => Some((first, last)),
        Range::EachYear(yearly) => today.and_then(|today| yearly.latest(today)),
    };
    match (led, days) {
        ("before" | "until", Some((first, _))) => Range::Days(EVER.0, first - 1),
        ("after" | "since", Some((first, last))) => {
            Range::Days(if led == "since" { first } else { last + 1 }, EVER.1)
        }
        _ => range,
    }
}

/// Reads the time at `at`, and returns the number of its words.
fn read(words: &[&str], at: usize, today: Option<i64>) -> Option<(Range, usize)> {
    iso(words[at])
        .map(|range| (range, 1))
        .or_else(|| relative(&words[at..], today?))
        .or_else(|| named(words, at, today))
        .or_else(|| date(words, at, today))
}

/// Parses `2021-05-17`.
fn iso(word: &str) -> Option<Range> {
    let mut parts = word.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() != 4 {
        return None;
    }
    let month = month.parse().ok().filter(|month| (1..=12).contains(month))?;
    let day: u8 = day.parse().ok()?;
    let year = year.parse().ok()?;
    (1..=days_in(year, month)).contains(&day).then(|| {
        let day = day_number(year, month, day);
        Range::Days(day, day)
    })
}

/// Parses `yesterday`, `last week`, `two weeks ago`, `in the past 3 days`: ranges counted from today.
fn relative(words: &[&str], today: i64) -> Option<(Range, usize)> {
    let word = |i: usize| words.get(i).copied().unwrap_or_default();
    let back = |first: i64, last: i64| Range::Days(today - first, today - last);
    let (year, month, _) = civil(today);
    let range = match (word(0), word(1)) {
        ("today", _) => return Some((back(0, 0), 1)),
        ("yesterday", _) => return Some((back(1, 1), 1)),
        ("this", "week") => back(6, 0),
        ("last", "week") => back(13, 1),
        ("this", "month") => Range::Days(day_number(year, month, 1), today),
        ("last", "month") => {
            let (year, month) = if month == 1 { (year - 1, 12) } else { (year, month - 1) };
            Range::Days(day_number(year, month, 1), day_number(year, month, days_in(year, month)))
        }
        ("this", "year") => Range::Days(day_number(year, 1, 1), today),
        ("last", "year") => Range::Days(day_number(year - 1, 1, 1), day_number(year - 1, 12, 31)),
        ("last", "quarter") if word(2) != "of" => {
            let (year, quarter) = if month <= 3 { (year - 1, 4) } else { (year, (month - 1) / 3) };
            Yearly::quarter(quarter).of(year).map(|(first, last)| Range::Days(first, last))?
        }
        ("last" | "past", _) => {
            let (number, unit) = (number(word(1))?, unit(word(2))?);
            return Some((back(number * unit, 0), 3));
        }
        _ => return ago(words, today),
    };
    Some((range, 2))
}

/// Parses `two weeks ago`, `a couple of days ago`.
fn ago(words: &[&str], today: i64) -> Option<(Range, usize)> {
    let word = |i: usize| words.get(i).copied().unwrap_or_default();
    let (number, mut at) = match (word(0), word(1), word(2)) {
        ("a", "few", _) => (3, 2),
        ("a", "couple", "of") => (2, 3),
        (first, ..) => (number(first)?, 1),
    };
    let unit = unit(word(at))?;
    at += 1;
    (word(at) == "ago").then(|| {
        // Half a unit around it, as people count roughly.
        let (day, around) = (today - number * unit, unit / 2);
        (Range::Days(day - around, (day + around).min(today)), at + 1)
    })
}

/// Parses seasons, quarters and feasts, with or without a year: `last spring`, `Q2 2025`, `around Christmas`.
fn named(words: &[&str], at: usize, today: Option<i64>) -> Option<(Range, usize)> {
    let word = |i: usize| words.get(i).copied().unwrap_or_default();
    let before = at.checked_sub(1).map_or("", |i| words[i]);
    let (yearly, length) = match (word(at), word(at + 1)) {
        ("first", "quarter") => (Yearly::quarter(1), 2),
        ("second", "quarter") => (Yearly::quarter(2), 2),
        ("third", "quarter") => (Yearly::quarter(3), 2),
        ("fourth" | "last", "quarter") => (Yearly::quarter(4), 2),
        (one, _) => (Yearly::named(one)?, 1),
    };
    let next = at + length + usize::from(word(at + length) == "of");
    if let Some(year) = year(word(next)) {
        return yearly.of(year).map(|(first, last)| (Range::Days(first, last), next + 1 - at));
    }
    // `spring` and `fall` are verbs, too.
    let may_be_a_verb = is_any(word(at), "spring fall summer winter autumn");
    if may_be_a_verb && !is_any(before, LEADS) && !is_any(before, "the around at over") {
        return None;
    }
    Some((last(before, yearly, today), length))
}

/// Returns the latest of the yearly days after the word `last`.
fn last(before: &str, yearly: Yearly, today: Option<i64>) -> Range {
    let latest = today.filter(|_| before == "last").and_then(|today| yearly.latest(today));
    latest.map_or(Range::EachYear(yearly), |(first, last)| Range::Days(first, last))
}

/// Parses `3 June, 2023`, `June 3`, `June of 2023`, `in May`, `last May`, `2023`.
fn date(words: &[&str], at: usize, today: Option<i64>) -> Option<(Range, usize)> {
    let word = |i: usize| words.get(i).copied().unwrap_or_default();
    let skip_of = |i: usize| if word(i) == "of" { i + 1 } else { i };
    // The month with its place, and the day.
    let (month, day, mut next) = match (day(words[at]), month(word(skip_of(at + 1)))) {
        (Some(day), Some(month)) => (month, Some(day), skip_of(at + 1) + 1),
        _ => match (month(words[at]), day(word(at + 1))) {
            (Some(month), Some(day)) => (month, Some(day), at + 2),
            (Some(month), None) => (month, None, at + 1),
            (None, _) => {
                let year = year(words[at])?;
                return Some((Range::Days(day_number(year, 1, 1), day_number(year, 12, 31)), 1));
            }
        },
    };
    let yearly = Yearly::month(month, day);
    let year = year(word(next)).or_else(|| day.is_none().then(|| year(word(skip_of(next)))).flatten());
    match year {
        Some(year) => {
            next = if self::year(word(next)).is_some() { next } else { skip_of(next) } + 1;
            yearly.of(year).map(|(first, last)| (Range::Days(first, last), next - at))
        }
        None => {
            let before = at.checked_sub(1).map_or("", |i| words[i]);
            (day.is_some() || means_a_month(words, at)).then(|| (last(before, yearly, today), next - at))
        }
    }
}

/// Returns true if the word at `at` is a month. `may` and `march` are also verbs, and a short form may be a
/// name (Jan), so these words count only after a word that is used with times.
fn means_a_month(words: &[&str], at: usize) -> bool {
    let clear = words[at].len() > 3 && !is_any(words[at], "march sept");
    let before = at.checked_sub(1).map_or("", |i| words[i]);
    clear || is_any(before, LEADS) || is_any(before, "of by next between from and")
}

/// Words before a time.
const LEADS: &str = "in since until during before after last this early late";

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

/// Parses `3`, `three`, `a`.
fn number(word: &str) -> Option<i64> {
    const NUMBERS: &str = "one two three four five six seven eight nine ten eleven twelve";
    let named = NUMBERS.split(' ').position(|number| number == word).map(|at| at as i64 + 1);
    let written = || word.parse().ok().filter(|number| (1..1_000).contains(number));
    named.or_else(written).or(matches!(word, "a" | "an").then_some(1))
}

/// Returns the number of days of `weeks` and other units.
fn unit(word: &str) -> Option<i64> {
    Some(match word.strip_suffix('s').unwrap_or(word) {
        "day" => 1,
        "week" => 7,
        "month" => 30,
        "year" => 365,
        _ => return None,
    })
}
