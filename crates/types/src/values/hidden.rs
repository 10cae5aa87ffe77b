//! Finds invisible and control characters, so that a text that a person approves shows them by their code.

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
