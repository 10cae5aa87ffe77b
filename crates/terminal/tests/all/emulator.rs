//! A terminal to test with: vt100, with every byte that was written to it.

use std::{
    io::{self, Write},
    num::NonZeroU16,
};

use archon_terminal::Size;
use archon_testkit::Chance;

/// A terminal. A resize changes its height as real terminals do; its width without breaking lines anew, as xterm.
pub(crate) struct Emulator {
    parser: vt100::Parser,
    pub(crate) bytes: Vec<u8>,
    pub(crate) size: Size,
}

impl Write for Emulator {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.parser.process(bytes);
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn non_zero(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).unwrap()
}

impl Emulator {
    pub(crate) fn new(size: Size) -> Self {
        let parser = vt100::Parser::new(non_zero(size.rows), non_zero(size.columns), 100_000);
        Self { parser, bytes: Vec::new(), size }
    }

    pub(crate) fn resize(&mut self, size: Size) {
        self.parser.set_size(non_zero(size.rows), non_zero(size.columns));
        self.size = size;
    }

    /// Returns the rows of the screen, without spaces at their ends.
    pub(crate) fn screen(&self) -> Vec<String> {
        let rows = self.parser.screen().rows(0, self.size.columns);
        rows.map(|row| row.trim_end().to_owned()).collect()
    }

    /// Returns the rows of the scrollback and the screen that are not empty; a line that the terminal broke is
    /// several rows.
    pub(crate) fn paper(&mut self) -> Vec<String> {
        let mut rows = Vec::new();
        let screen = self.parser.screen_mut();
        for above in (1..=screen.scrollback_len()).rev() {
            screen.set_scrollback(above);
            rows.extend(screen.rows(0, self.size.columns).next());
        }
        screen.set_scrollback(0);
        rows.extend(screen.rows(0, self.size.columns));
        rows.retain(|row| !row.trim().is_empty());
        rows.into_iter().map(|row| row.trim_end().to_owned()).collect()
    }

    pub(crate) fn is_alternate(&self) -> bool {
        self.parser.screen().alternate_screen()
    }

    pub(crate) fn cursor(&self) -> (u16, u16) {
        self.parser.screen().cursor_position()
    }

    pub(crate) fn is_cursor_hidden(&self) -> bool {
        self.parser.screen().hide_cursor()
    }

    pub(crate) fn marks_pastes(&self) -> bool {
        self.parser.screen().bracketed_paste()
    }
}

/// Returns any size that is large enough for a live area.
pub(crate) fn any_size(chance: &mut Chance) -> Size {
    let mut any = |from, to| from + u16::try_from(chance.below(to - u64::from(from))).unwrap();
    Size::new(any(20, 140), any(6, 50))
}

/// Fails if the bytes have a control sequence that the screen does not write. The list is short on purpose: no
/// absolute place, no scroll region, no erased scrollback, no alternate screen.
pub(crate) fn check_sequences(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_control() || archon_types::is_hidden(c)) {
        rest = &rest[at..];
        let length = ["\r\n", "\r"].into_iter().find(|known| rest.starts_with(known)).map(str::len);
        let length = length.or_else(|| sequence_length(rest));
        let Some(length) = length else {
            panic!("not a sequence of the screen: {:?}", rest.chars().take(20).collect::<String>());
        };
        rest = &rest[length..];
    }
}

fn sequence_length(text: &str) -> Option<usize> {
    let body = text.strip_prefix("\x1b[")?;
    let end = body.find(|c: char| c.is_ascii_alphabetic())?;
    let (parameters, last) = (&body[..end], body.as_bytes()[end]);
    let is_count = parameters.chars().all(|c| c.is_ascii_digit());
    let is_known = match last {
        b'A' | b'C' => is_count,
        b'J' | b'K' => parameters.is_empty(),
        b'm' => parameters.chars().all(|c| c.is_ascii_digit() || c == ';'),
        b'h' | b'l' => ["?7", "?25", "?2004", "?2026"].contains(&parameters),
        b'u' => [">1", "<"].contains(&parameters),
        _ => false,
    };
    is_known.then_some("\x1b[".len() + end + 1)
}
