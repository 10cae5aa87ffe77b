//! Tests of schedules, events and tasks.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test may panic and says what it skips"
)]

mod cron;
mod events;
mod oracle;
mod schedules;
mod tasks;

use archon_types::Timestamp;

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}
