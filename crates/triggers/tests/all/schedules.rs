//! Schedules: their forms in files, intervals and single times.

use std::time::Duration;

use archon_triggers::{Schedule, ScheduleError};
use serde_json::json;

use crate::time;

// spec: TR-03
#[test]
fn schedule_in_json_is_read_and_written_the_same() {
    for form in [
        json!({ "cron": "0 8 * * *", "zone": "Asia/Shanghai" }),
        json!({ "every": 300, "from": "2026-01-31T08:00:00.000Z" }),
        json!({ "at": "2026-01-31T08:00:00.000Z" }),
    ] {
        let schedule: Schedule = serde_json::from_value(form.clone()).unwrap();
        assert_eq!(serde_json::to_value(schedule).unwrap(), form);
    }
    let utc: Schedule = serde_json::from_value(json!({ "cron": "0 8 * * *" })).unwrap();
    assert_eq!(utc, Schedule::cron("0 8 * * *", "UTC").unwrap());
}

#[test]
fn schedule_with_an_error_is_refused_with_the_reason() {
    let error = |form| serde_json::from_value::<Schedule>(form).unwrap_err().to_string();
    assert!(error(json!({ "cron": "0 8 * * *", "zone": "Nowhere" })).contains("no time zone \"Nowhere\""));
    assert!(error(json!({ "every": 0 })).contains("use whole seconds"));
    assert_eq!(
        Schedule::every(Duration::from_millis(10), time("2026-01-01T00:00:00Z")),
        Err(ScheduleError::Interval(Duration::from_millis(10)))
    );
}

// spec: TR-03
#[test]
fn interval_keeps_its_rhythm_from_its_first_time() {
    let five = Schedule::every(Duration::from_secs(300), time("2026-01-01T00:02:00Z")).unwrap();
    let next = |after| five.next_after(time(after)).unwrap().to_string();
    assert_eq!(next("2025-12-01T00:00:00Z"), "2026-01-01T00:02:00.000Z");
    assert_eq!(next("2026-01-01T00:02:00Z"), "2026-01-01T00:07:00.000Z");
    assert_eq!(next("2026-01-01T00:09:59Z"), "2026-01-01T00:12:00.000Z");
}

// spec: TR-03
#[test]
fn single_time_occurs_once() {
    let once = Schedule::Once(time("2026-01-01T00:00:00Z"));
    assert_eq!(once.next_after(time("2025-01-01T00:00:00Z")), Some(time("2026-01-01T00:00:00Z")));
    assert_eq!(once.next_after(time("2026-01-01T00:00:00Z")), None);
}
