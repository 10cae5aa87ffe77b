//! Text from outside, made fit for a terminal.

use archon::types::Timestamp;

/// Text of a model or a tool without the control characters that could steer a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// A text on one line of at most `most` characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let line = printable(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", line[..at].trim_end()),
        None => line,
    }
}

/// The time from one moment to another.
pub(crate) fn seconds(from: Timestamp, to: Timestamp) -> String {
    let ms = to.since(from).as_millis();
    if ms < 1000 { format!("{ms} ms") } else { format!("{}.{} s", ms / 1000, ms % 1000 / 100) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\x07\r\n\tc\u{9b}d"), "a[2Jb\n\tcd");
        assert_eq!(one_line("two\n  lines\tand\x1b[0m more", 9), "two lines…");
        assert_eq!(one_line("short", 9), "short");
    }
}
