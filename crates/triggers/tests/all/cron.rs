//! Cron patterns, where the clocks change and where they do not.

use archon_triggers::{Cron, ScheduleError};

use crate::time;

/// Returns the next occurrences after a time, without milliseconds.
fn next(pattern: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let cron = Cron::new(pattern, zone).unwrap();
    let mut at = time(after);
    let mut all = Vec::new();
    while all.len() < count
        && let Some(next) = cron.next_after(at)
    {
        all.push(next.to_string().replace(":00.000Z", "Z").replace(".000Z", "Z"));
        at = next;
    }
    all
}

// spec: TR-03, A-39
#[test]
fn cron_in_a_zone_occurs_at_its_local_time() {
    let all = next("0 8 * * *", "Asia/Shanghai", "2026-01-31T12:00:00Z", 2);
    assert_eq!(all, ["2026-02-01T00:00Z", "2026-02-02T00:00Z"]);
}

#[test]
fn local_time_that_clocks_skip_occurs_at_the_change() {
    let all = next("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2);
    assert_eq!(all, ["2026-03-29T01:00Z", "2026-03-30T00:30Z"]);
}

#[test]
fn several_skipped_local_times_are_one_occurrence() {
    let all = next("0,30 1-3 * * *", "Europe/Berlin", "2026-03-28T23:00:00Z", 4);
    assert_eq!(all, ["2026-03-29T00:00Z", "2026-03-29T00:30Z", "2026-03-29T01:00Z", "2026-03-29T01:30Z"]);
}

#[test]
fn local_time_that_clocks_show_twice_occurs_at_the_first() {
    let all = next("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
    assert_eq!(all, ["2026-10-25T00:30Z", "2026-10-26T01:30Z"]);
    // After a time within the second showing.
    assert_eq!(next("45 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 1), ["2026-10-26T01:45Z"]);
}

#[test]
fn pattern_of_each_hour_follows_the_time_that_passes() {
    let autumn = next("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z", 5);
    assert_eq!(
        autumn,
        [
            "2026-10-25T00:00Z",
            "2026-10-25T00:30Z",
            "2026-10-25T01:00Z",
            "2026-10-25T01:30Z",
            "2026-10-25T02:00Z"
        ]
    );
    let spring = next("15 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 2);
    assert_eq!(spring, ["2026-03-29T00:15Z", "2026-03-29T01:15Z"]);
}

#[test]
fn clocks_that_change_by_half_an_hour_are_followed() {
    // Lord Howe: from +10:30 to +11 on 2026-10-04 at 2:00, and back on 2026-04-05 at 2:00.
    let spring = next("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", 2);
    assert_eq!(spring, ["2026-10-03T15:30Z", "2026-10-04T15:15Z"]);
    let autumn = next("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", 2);
    assert_eq!(autumn, ["2026-04-04T14:45Z", "2026-04-05T15:15Z"]);
}

#[test]
fn sixth_field_in_front_names_the_seconds() {
    let all = next("*/20 59 7 * * *", "UTC", "2026-01-01T07:59:10Z", 3);
    assert_eq!(all, ["2026-01-01T07:59:20Z", "2026-01-01T07:59:40Z", "2026-01-02T07:59Z"]);
}

#[test]
fn either_field_of_days_is_enough_unless_one_begins_with_a_star() {
    let either = next("0 0 13 * FRI", "UTC", "2026-02-01T00:00:00Z", 4);
    assert_eq!(either, ["2026-02-06T00:00Z", "2026-02-13T00:00Z", "2026-02-20T00:00Z", "2026-02-27T00:00Z"]);
    assert_eq!(next("0 0 L * *", "UTC", "2026-02-01T00:00:00Z", 1), ["2026-02-28T00:00Z"]);
    assert_eq!(next("0 0 * * MON#2", "UTC", "2026-02-01T00:00:00Z", 1), ["2026-02-09T00:00Z"]);
    assert_eq!(
        next("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", 2),
        ["2028-02-29T00:00Z", "2032-02-29T00:00Z"]
    );
}

#[test]
fn wrong_pattern_or_zone_is_refused_with_the_reason() {
    let error = |pattern, zone| Cron::new(pattern, zone).unwrap_err().to_string();
    assert!(error("0 8 * *", "UTC").contains("4 fields instead of 5"), "{}", error("0 8 * *", "UTC"));
    assert!(error("61 8 * * *", "UTC").starts_with("the cron pattern \"61 8 * * *\" cannot be used: "));
    assert!(error("0 0 30 2 *", "UTC").contains("fits no time within four years"));
    assert!(error("0 8 * * *", "Europe/Berln").contains("use a name such as Europe/Berlin"));
    assert!(matches!(Cron::new("0 8 * * *", "Mars/Base"), Err(ScheduleError::Zone { .. })));
}
