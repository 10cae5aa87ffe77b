//! All control sequences that the screens write.

use crate::{
    row::{Place, Row, TextSpan},
    theme::{Color, Style},
};

/// Resets the style of the following text to plain.
pub(crate) const PLAIN: &str = "\x1b[0m";
/// Begins a synchronized update: the terminal shows the frame only when it is complete. Terminals that do not know
/// this sequence ignore it.
pub(crate) const BEGIN_SYNC: &str = "\x1b[?2026h";
/// Ends the synchronized update.
pub(crate) const END_SYNC: &str = "\x1b[?2026l";
pub(crate) const HIDE_CURSOR: &str = "\x1b[?25l";
pub(crate) const SHOW_CURSOR: &str = "\x1b[?25h";
/// Turns autowrap on: text beyond the last column continues in the next row.
pub(crate) const AUTOWRAP: &str = "\x1b[?7h";
/// Turns autowrap off: text beyond the last column is cut off.
pub(crate) const NO_AUTOWRAP: &str = "\x1b[?7l";
/// Turns bracketed paste on: the terminal marks the beginning and the end of pasted text.
pub(crate) const BEGIN_PASTE: &str = "\x1b[?2004h";
/// Turns bracketed paste off: the terminal no longer marks pasted text.
pub const END_PASTE: &str = "\x1b[?2004l";
/// Turns the keyboard protocol of kitty on, with which keys such as Enter and Shift+Enter can be distinguished.
pub(crate) const BEGIN_KITTY_KEYS: &str = "\x1b[>1u";
pub(crate) const END_KITTY_KEYS: &str = "\x1b[<u";
/// Rings the terminal's bell. It moves no cursor and changes no mode, so it may be written between two frames.
pub const BELL: &str = "\x07";
/// Begins a notice on the desktop (OSC 9): the text follows, and [`BELL`] ends it. See
/// <https://iterm2.com/documentation-escape-codes.html>.
pub(crate) const BEGIN_NOTICE: &str = "\x1b]9;";
pub(crate) const ERASE_TO_END_OF_ROW: &str = "\x1b[K";
pub(crate) const ERASE_BELOW: &str = "\x1b[J";
/// Erases the cursor's row and everything below it. It erases from the second column first, because tmux keeps
/// a screen that is erased from its first cell in the scrollback.
pub(crate) const ERASE_FROM_ROW: &str = "\r\x1b[C\x1b[J\r\x1b[K";
/// Goes to the alternate screen. The terminal saves its cursor and its own screen, and restores both afterwards.
pub(crate) const BEGIN_ALTERNATE: &str = "\x1b[?1049h";
pub(crate) const END_ALTERNATE: &str = "\x1b[?1049l";
/// Moves the cursor to the last row of the screen.
pub(crate) const TO_LAST_ROW: &str = "\x1b[9999B";
/// Begins a text for the clipboard (OSC 52): the text follows in base64, and [`BELL`] ends it.
pub(crate) const BEGIN_COPY: &str = "\x1b]52;c;";
/// Moves the cursor to the beginning of the next row; at the bottom, the screen scrolls.
pub(crate) const NEXT_ROW: &str = "\r\n";

/// A buffer of output, which is written in one piece.
#[derive(Debug, Default)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    pub(crate) fn put(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn up(&mut self, rows: usize) {
        self.by(rows, 'A');
    }

    pub(crate) fn right(&mut self, columns: usize) {
        self.by(columns, 'C');
    }

    /// Moves the cursor to a place on the screen.
    pub(crate) fn go_to(&mut self, place: Place) {
        self.put(&format!("\x1b[{};{}H", place.row + 1, place.column + 1));
    }

    fn by(&mut self, count: usize, direction: char) {
        match count {
            0 => {}
            1 => self.put(&format!("\x1b[{direction}")),
            _ => self.put(&format!("\x1b[{count}{direction}")),
        }
    }

    pub(crate) fn row(&mut self, row: &Row) {
        self.spans(&row.spans);
    }

    pub(crate) fn spans<'a>(&mut self, spans: impl IntoIterator<Item = &'a TextSpan>) {
        let mut style = Style::PLAIN;
        for span in spans.into_iter().filter(|span| !span.text().is_empty()) {
            if span.style() != style {
                style = span.style();
                self.style(style);
            }
            self.put(span.text());
        }
        if style != Style::PLAIN {
            self.put(PLAIN);
        }
    }

    fn style(&mut self, style: Style) {
        self.put("\x1b[0");
        let modes =
            [(style.is_bold, ";1"), (style.is_dim, ";2"), (style.is_italic, ";3"), (style.is_reversed, ";7")];
        for (is_on, code) in modes {
            self.put(if is_on { code } else { "" });
        }
        for (color, base) in [(style.color, LETTERS), (style.background, BACKGROUND)] {
            self.put(&color.map(|color| color_code(color, base)).unwrap_or_default());
        }
        self.put("m");
    }
}

/// The code of the first color for letters; [`BACKGROUND`] is the code of the first color behind letters.
const LETTERS: u8 = 30;
const BACKGROUND: u8 = 40;

fn color_code(color: Color, base: u8) -> String {
    let number = match color {
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Indexed(number) => return format!(";{};5;{number}", base + 8),
        Color::Rgb(red, green, blue) => return format!(";{};2;{red};{green};{blue}", base + 8),
    };
    format!(";{}", base + number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_the_codes_of_their_styles() {
        let style = Style {
            color: Some(Color::Rgb(1, 2, 3)),
            background: Some(Color::Indexed(124)),
            is_bold: true,
            is_italic: true,
            ..Style::PLAIN
        };
        let mut bytes = Bytes::default();
        bytes.spans(&[TextSpan::new("a", Style::PLAIN), TextSpan::new("b", style)]);
        assert_eq!(String::from_utf8(bytes.0).unwrap(), "a\x1b[0;1;3;38;2;1;2;3;48;5;124mb\x1b[0m");
    }
}
