//! Reads the time that a service asks to wait: `Retry-After` in its two forms, and the form in milliseconds.

use std::time::Duration;

use archon_types::Timestamp;
use reqwest::header::HeaderMap;

/// The maximum wait; a longer wait is cut to it, because a date far in the future is a mistake.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads `retry-after-ms` and `retry-after` (RFC 9110, 10.2.3: seconds or an HTTP date). A date in the past
/// means no wait; a value that cannot be read is ignored.
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let header = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).map(str::trim);
    let ms = header("retry-after-ms").and_then(|v| v.parse::<f64>().ok());
    let wait = match ms {
        Some(ms) => from_seconds(ms / 1000.0),
        None => {
            let value = header("retry-after")?;
            value.parse().map_or_else(|_| until(value, now), from_seconds)
        }
    };
    wait.map(|wait| wait.min(LONGEST))
}

fn from_seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

fn until(date: &str, now: Timestamp) -> Option<Duration> {
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date).ok()?;
    let millis = u64::try_from(date.as_millisecond()).ok()?;
    Some(Timestamp::from_millis(millis).since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: P-31
    #[test]
    fn seconds_dates_and_milliseconds_are_read() {
        let now = "2026-01-31T08:00:00Z".parse().unwrap();
        let cases = [
            ("retry-after", "7", Some(7_000)),
            ("retry-after", " 1.5 ", Some(1_500)),
            ("retry-after", "0", Some(0)),
            ("retry-after", "Sat, 31 Jan 2026 08:00:30 GMT", Some(30_000)),
            ("retry-after", "Sat, 31 Jan 2026 07:00:00 GMT", Some(0)),
            ("retry-after", "Sun, 31 Jan 2100 08:00:00 GMT", Some(86_400_000)),
            ("retry-after", "99999999999", Some(86_400_000)),
            ("retry-after", "-1", None),
            ("retry-after", "soon", None),
            ("retry-after", "NaN", None),
            ("retry-after-ms", "250", Some(250)),
            ("x-other", "7", None),
        ];
        for (name, value, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            let expected = expected.map(Duration::from_millis);
            assert_eq!(retry_after(&headers, now), expected, "{name}: {value}");
        }
    }
}
