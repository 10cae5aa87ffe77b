//! Times in questions.

use archon_memory_rank::time_hints;
use archon_types::Timestamp;
use proptest::prelude::*;

fn at(year: i32, month: u8, day: u8) -> Timestamp {
    format!("{year}-{month:02}-{day:02}T01:00:00Z").parse().unwrap()
}

/// The closeness of a memory of `(year, month, day)` to what the question names on 20 August 2023.
fn check(question: &str, memory: (i32, u8, u8), closeness: f32) {
    let hints = time_hints(question, Some(at(2023, 8, 20)));
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
    check("in May of 2021", (2021, 5, 31), 1.0);
    check("in May of 2021", (2021, 6, 4), 0.5);
    check("in early February", (2024, 2, 29), 1.0);
}

#[test]
fn times_counted_from_now() {
    check("what did I say yesterday?", (2023, 8, 19), 1.0);
    check("what did I say last week?", (2023, 8, 12), 1.0);
    check("what did I say last month?", (2023, 7, 1), 1.0);
    check("what did I say last year?", (2022, 1, 1), 1.0);
    check("what did I say last year?", (2023, 1, 4), 0.5);
    check("what did I say two weeks ago?", (2023, 8, 6), 1.0);
    check("what did I say two weeks ago?", (2023, 7, 30), 0.5);
    check("what did we sell last quarter?", (2023, 4, 1), 1.0);
    check("what did we sell last quarter?", (2023, 7, 4), 0.5);
    check("a couple of days ago", (2023, 8, 18), 1.0);
    check("3 months ago", (2023, 5, 22), 1.0);
    check("in the past 10 days", (2023, 8, 10), 1.0);
    assert_eq!(time_hints("what did I say yesterday?", None), []);
    assert_eq!(time_hints("what did I say two weeks ago?", None), []);
}

#[test]
fn last_names_the_latest_that_is_over() {
    check("What did I plant last spring?", (2023, 4, 1), 1.0);
    check("What did I plant last spring?", (2022, 4, 1), 0.0);
    check("What did I plant last summer?", (2022, 7, 1), 1.0);
    check("What did I plant last winter?", (2023, 1, 9), 1.0);
    check("Where was I last May?", (2023, 5, 2), 1.0);
    check("Where was I last May?", (2022, 5, 2), 0.0);
    check("Where was I last October?", (2022, 10, 2), 1.0);
}

#[test]
fn seasons_quarters_and_feasts() {
    check("revenue of Q2 2025", (2025, 6, 30), 1.0);
    check("revenue in the second quarter of 2025", (2025, 4, 1), 1.0);
    check("revenue of Q2 2025", (2025, 7, 4), 0.5);
    check("around Christmas", (2021, 12, 24), 1.0);
    check("at Christmas 2022", (2022, 12, 24), 1.0);
    check("in the winter of 2022", (2023, 2, 28), 1.0);
    check("summer 2021", (2021, 6, 1), 1.0);
}

#[test]
fn spans_and_open_ends() {
    check("between August 11 and August 15 2023", (2023, 8, 13), 1.0);
    check("between March and May 2024", (2024, 4, 15), 1.0);
    check("from November to February 2023", (2022, 12, 24), 1.0);
    check("What did I cook before June 2022?", (2020, 1, 1), 1.0);
    check("What did I cook before June 2022?", (2022, 6, 4), 0.5);
    check("What did I cook after the summer?", (2022, 9, 1), 1.0);
    check("What did I cook since 2022?", (2022, 1, 1), 1.0);
    check("What did I cook since 2022?", (2021, 12, 28), 0.5);
    check("Who called in March and May 2022?", (2022, 4, 12), 0.5f32.powi(3));
}

#[test]
fn date_hints_ignore_words_that_are_no_date() {
    for question in [
        "May I march on?",
        "Who is Jan?",
        "2 children, 31 cats",
        "room 1850",
        "31 February",
        "",
        "Did the cup fall?",
        "a spring of water",
        "my last three books",
        "before lunch",
    ] {
        check(question, (2023, 2, 1), 0.0);
    }
}

proptest! {
    #[test]
    fn date_closeness_of_any_question_is_finite(text in any::<String>(), ms in any::<u64>()) {
        for hint in time_hints(&text, Some(Timestamp::from_millis(ms))) {
            prop_assert!((0.0..=1.0).contains(&hint.closeness(Timestamp::from_millis(ms))));
        }
    }

    #[test]
    fn date_hints_of_any_date_words_are_finite(
        words in prop::collection::vec(prop::sample::select(
            "between from and to last before after since may spring q2 2023 3 three weeks ago of the christmas february 30"
                .split(' ').collect::<Vec<_>>()), 0..9),
        day in 0u64..40_000,
    ) {
        for hint in time_hints(&words.join(" "), Some(Timestamp::from_millis(day * 86_400_000))) {
            prop_assert!((0.0..=1.0).contains(&hint.closeness(Timestamp::from_millis(1_000_000_000_000))));
        }
    }
}
