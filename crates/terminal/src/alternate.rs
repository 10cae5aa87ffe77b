//! The alternate screen of a terminal: it has no scrollback, and the terminal shows its former content again when the
//! program leaves the screen.

use std::io::{self, Write};

use crate::{
    ansi::{self, Bytes},
    row::{Place, Row, Size},
    support::Support,
};

/// Writes frames to the alternate screen. [`Inline`](crate::Inline) must have left the terminal before the first
/// frame. Then the cursor is at the end of the committed rows, and the terminal puts it back there when this screen is
/// left.
///
/// ```
/// use archon_terminal::{Alternate, Place, Row, Size, Style, Support};
///
/// let mut screen = Alternate::new(Vec::new(), Support::default());
/// let rows = [Row::new("one", Style::PLAIN), Row::new("two", Style::PLAIN)];
/// screen.frame(&rows, Place::default(), Size::new(80, 2))?;
/// screen.leave()?;
/// assert!(screen.out().starts_with(b"\x1b[?1049h") && screen.out().ends_with(b"\x1b[?1049l"));
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Alternate<W: Write> {
    out: W,
    support: Support,
    /// The rows on the screen; `None` if they are not known, so that the next frame draws all rows.
    shown: Option<Vec<Row>>,
    cursor: Place,
    size: Option<Size>,
    /// True if the size of the terminal has changed since the first frame.
    is_resized: bool,
    has_begun: bool,
    bytes: Bytes,
}

impl<W: Write> Alternate<W> {
    /// Creates a screen; nothing is written to `out` before the first frame.
    pub fn new(out: W, support: Support) -> Self {
        Self {
            out,
            support,
            shown: None,
            cursor: Place::default(),
            size: None,
            is_resized: false,
            has_begun: false,
            bytes: Bytes::default(),
        }
    }

    /// Makes the next frame draw all rows. Call it when something else may have written on the screen.
    pub fn redraw(&mut self) {
        self.shown = None;
    }

    /// Returns the writer that was passed to [`new`](Self::new).
    pub fn out(&self) -> &W {
        &self.out
    }

    /// Writes a frame: the rows that differ from the last frame, and the place of the cursor. Rows below the bottom of
    /// the terminal are left out, and rows that are too wide are cut.
    ///
    /// # Errors
    ///
    /// Writing to the output failed; the terminal may be gone.
    pub fn frame(&mut self, rows: &[Row], cursor: Place, size: Size) -> io::Result<()> {
        let rows = rows.iter().take(size.rows.into()).map(|row| row.cut(size.width()));
        let rows: Vec<Row> = rows.collect();
        self.is_resized |= self.size.is_some_and(|before| before != size);
        let is_same_size = self.size == Some(size);
        let shown = self.shown.take().filter(|old| is_same_size && old.len() == rows.len());
        if shown.as_ref() == Some(&rows) && self.cursor == cursor {
            self.shown = shown;
            return Ok(());
        }
        self.bytes.0.clear();
        self.begin();
        for part in [ansi::BEGIN_SYNC, ansi::HIDE_CURSOR, ansi::NO_AUTOWRAP] {
            self.bytes.put(part);
        }
        for (number, row) in rows.iter().enumerate() {
            if shown.as_ref().and_then(|old| old.get(number)) != Some(row) {
                self.bytes.go_to(Place { row: number, column: 0 });
                self.bytes.row(row);
                self.bytes.put(ansi::ERASE_TO_END_OF_ROW);
            }
        }
        self.bytes.put(ansi::AUTOWRAP);
        self.bytes.go_to(cursor);
        self.bytes.put(ansi::SHOW_CURSOR);
        self.bytes.put(ansi::END_SYNC);
        (self.shown, self.cursor, self.size) = (Some(rows), cursor, Some(size));
        self.write()
    }

    /// Puts a text into the clipboard of the terminal's machine, with the sequence OSC 52. A terminal that does not know
    /// the sequence, or is set not to obey it, ignores it.
    ///
    /// # Errors
    ///
    /// Writing to the output failed; the terminal may be gone.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        self.bytes.0.clear();
        self.bytes.put(ansi::BEGIN_COPY);
        self.bytes.put(&data_encoding::BASE64.encode(text.as_bytes()));
        self.bytes.put(ansi::BELL);
        self.write()
    }

    /// Goes back to the terminal's own screen, and ends all terminal modes that the alternate screen began. A second
    /// call writes nothing.
    ///
    /// # Errors
    ///
    /// Writing to the output failed; the terminal may be gone.
    pub fn leave(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.has_begun) {
            return Ok(());
        }
        self.bytes.0.clear();
        for part in [ansi::PLAIN, ansi::AUTOWRAP, ansi::SHOW_CURSOR, ansi::END_PASTE] {
            self.bytes.put(part);
        }
        self.bytes.put(if self.support.has_kitty_keys { ansi::END_KITTY_KEYS } else { "" });
        self.bytes.put(ansi::END_ALTERNATE);
        if std::mem::take(&mut self.is_resized) {
            // Not every terminal moves the cursor that it keeps for its own screen with the text there. Behind the last
            // row, nothing that was committed is drawn over.
            self.bytes.put(ansi::TO_LAST_ROW);
            self.bytes.put(ansi::NEXT_ROW);
        }
        (self.shown, self.size) = (None, None);
        self.write()
    }

    fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.bytes.put(ansi::BEGIN_ALTERNATE);
            self.bytes.put(ansi::BEGIN_PASTE);
            // Each of the two screens has its own protocol for keys.
            self.bytes.put(if self.support.has_kitty_keys { ansi::BEGIN_KITTY_KEYS } else { "" });
        }
    }

    fn write(&mut self) -> io::Result<()> {
        self.out.write_all(&self.bytes.0)?;
        self.bytes.0.clear();
        self.out.flush()
    }
}

impl<W: Write> Drop for Alternate<W> {
    /// Leaves the screen if the program did not call `leave`, for instance because it panicked.
    fn drop(&mut self) {
        // A terminal that is lost has no modes to end.
        let _ = self.leave();
    }
}
