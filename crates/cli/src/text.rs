//! Makes text from outside harmless for terminals. All output of the program to a terminal or a pipe goes
//! through here, by [`Output`](crate::output::Output).

use std::{borrow::Cow, fmt::Write as _, path::Path};

pub(crate) use archon::types::{one_line, printable, visible};
use archon::{
    SystemClock,
    types::{Clock, Timestamp},
};
use jiff::tz::TimeZone;

/// Returns a path as [`visible_line`] shows it, so that a person can approve it.
pub(crate) fn visible_path(path: &Path) -> String {
    visible_line(&path.display().to_string())
}

/// Returns a text as [`visible`] does, in one line: line ends and tabs are escaped, so that no name looks like several.
pub(crate) fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// Escapes in JSON the characters that [`visible`] shows by number: a terminal shows the escapes, and a
/// program reads the original text.
pub(crate) fn escaped(json: &str) -> Cow<'_, str> {
    if !json.contains(is_hidden) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    Cow::Owned(text)
}

fn is_hidden(c: char) -> bool {
    !matches!(c, '\n' | '\t') && archon::types::is_hidden(c)
}

/// Returns the text of a time in lists: the time since then, or after a day the local date and time.
pub(crate) fn format_time(at: Timestamp) -> String {
    format_time_at(at, SystemClock.now(), TimeZone::system())
}

fn format_time_at(at: Timestamp, now: Timestamp, zone: TimeZone) -> String {
    let seconds = now.since(at).as_secs();
    match seconds {
        0..60 => return format!("{seconds} s ago"),
        60..3_600 => return format!("{} min ago", seconds / 60),
        3_600..86_400 => return format!("{} h ago", seconds / 3_600),
        _ => {}
    }
    let local = i64::try_from(at.as_millis()).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    local.map_or_else(|| at.to_string(), |local| local.to_zoned(zone).strftime("%Y-%m-%d %H:%M").to_string())
}

/// Returns the text of the time between two moments, in ms or s.
pub(crate) fn seconds(from: Timestamp, to: Timestamp) -> String {
    let ms = to.since(from).as_millis();
    if ms < 1000 { format!("{ms} ms") } else { format!("{}.{} s", ms / 1000, ms % 1000 / 100) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_time_names_recent_times_by_distance_and_older_ones_by_the_local_date() {
        let now = Timestamp::from_millis(1_767_225_600_000);
        let berlin = || TimeZone::fixed(jiff::tz::offset(1));
        for (before, expected) in [
            (0, "0 s ago"),
            (59, "59 s ago"),
            (60, "1 min ago"),
            (3_599, "59 min ago"),
            (86_399, "23 h ago"),
            (86_400, "2025-12-31 01:00"),
        ] {
            let at = Timestamp::from_millis(now.as_millis() - before * 1_000);
            assert_eq!(format_time_at(at, now, berlin()), expected);
        }
        assert_eq!(
            format_time_at(now, Timestamp::from_millis(0), berlin()),
            "0 s ago",
            "a clock may step back"
        );
    }

    // spec: AP-05
    #[test]
    fn visible_path_is_one_line() {
        let name = "a.txt\n  restored  src/main.rs\t\u{1b}[2J";
        assert_eq!(visible_path(Path::new(name)), "a.txt\\n  restored  src/main.rs\\t\\u{1b}[2J");
    }

    #[test]
    fn json_output_is_escaped_and_parses_to_the_same_value() {
        let text = "a\x1b[2J\u{7f}\u{9b}31m\u{85}\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}é日本\u{1f600}\n";
        let json = serde_json::to_string_pretty(&serde_json::json!({ "text": text })).unwrap();
        let printed = escaped(&json);
        assert!(!printed.contains(is_hidden), "{printed}");
        assert!(
            printed.contains("\\u009b31m\\u0085\\u202e") && printed.contains("é日本\u{1f600}"),
            "{printed}"
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap()["text"], text);
    }
}
