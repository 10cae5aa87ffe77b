//! Text from outside, made fit for a terminal.

use archon::types::Timestamp;

/// Text of a model or a tool without the control characters that could steer a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// Text that a person is to agree to. Nothing is taken out of it: what would steer the terminal, turn the direction of
/// writing round or show nothing at all stands there by its number.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            _ if c.is_control() || is_unseen(c) => shown.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            _ => shown.push(c),
        }
    }
    shown
}

/// Marks of direction, joiners and fillers that show nothing, and line ends of other scripts.
/// See <https://www.unicode.org/reports/tr9/> and <https://www.unicode.org/reports/tr36/>.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
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

    // spec: AP-05
    #[test]
    fn what_is_agreed_to_is_seen() {
        assert_eq!(visible("a\x1b[2Jb\r\n\tc\u{9b}"), "a\\u{1b}[2Jb\\u{d}\n\tc\\u{9b}");
        assert_eq!(
            visible("rm \u{202e}txt.x\u{2066}\u{200b}é日本"),
            "rm \\u{202e}txt.x\\u{2066}\\u{200b}é日本"
        );
    }

    #[test]
    fn text_from_outside_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\x07\r\n\tc\u{9b}d"), "a[2Jb\n\tcd");
        assert_eq!(one_line("two\n  lines\tand\x1b[0m more", 9), "two lines…");
        assert_eq!(one_line("short", 9), "short");
    }
}
