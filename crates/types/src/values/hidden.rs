//! Makes text from outside harmless for terminals: invisible and control characters are shown by their code.

use std::borrow::Cow;

/// Returns true for characters that control the terminal, change the direction of writing, or are invisible.
/// Line ends and tabs are among these characters.
/// See <https://www.unicode.org/reports/tr9/> and <https://www.unicode.org/reports/tr36/>.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns text for printing to a terminal: as [`visible`] shows it, but without carriage returns.
///
/// ```
/// use archon_types::printable;
///
/// assert_eq!(printable("a\x1b[2Jb\r\n"), "a\\u{1b}[2Jb\n");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    match text.contains(is_shown_by_number) {
        true => Cow::Owned(visible(&text.replace('\r', ""))),
        false => Cow::Borrowed(text),
    }
}

/// Returns the text in a form that is safe to show to a person on a terminal. No character is removed:
/// characters that would control the terminal, reverse the writing direction or be invisible are shown by
/// their number. Line ends and tabs stay.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_shown_by_number(c) {
            true => shown.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            false => shown.push(c),
        }
    }
    shown
}

/// Returns a text as one printable line of at most `most` characters, with `…` at the end if it is cut.
pub fn one_line(text: &str, most: usize) -> String {
    let line = printable(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", line[..at].trim_end()),
        None => line,
    }
}

fn is_shown_by_number(c: char) -> bool {
    !matches!(c, '\n' | '\t') && is_hidden(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: AP-05
    #[test]
    fn visible_escapes_control_and_bidirectional_characters() {
        assert_eq!(visible("a\x1b[2Jb\r\n\tc\u{9b}"), "a\\u{1b}[2Jb\\u{d}\n\tc\\u{9b}");
        assert_eq!(
            visible("rm \u{202e}txt.x\u{2066}\u{200b}é日本"),
            "rm \\u{202e}txt.x\\u{2066}\\u{200b}é日本"
        );
    }

    #[test]
    fn printable_text_cannot_steer_the_terminal() {
        let shown = printable("a\x1b[2Jb\x07\r\n\tc\u{9b}d\u{202e}\u{200b}");
        assert_eq!(shown, "a\\u{1b}[2Jb\\u{7}\n\tc\\u{9b}d\\u{202e}\\u{200b}");
        assert_eq!(printable(&shown), shown, "twice is as once");
        assert_eq!(one_line("a\u{202e}\nb", 99), "a\\u{202e} b");
        assert_eq!(one_line("two\n  lines\tand\x1b[0m more", 9), "two lines…");
        assert_eq!(one_line("short", 9), "short");
    }
}
