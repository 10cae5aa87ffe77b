//! The inline screen: it appends to the terminal's own scrollback and redraws a live area below.
//!
//! The live area is drawn from its first cell, the origin. Between frames the cursor rests there, because a
//! terminal that is resized keeps the cursor on its text, while all other places move. So a frame needs no
//! absolute position: it erases from the cursor down, appends the committed rows, draws the live area and goes
//! back. No sequence clears the scrollback or sets a scroll region.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use crate::{
    ansi::{self, Bytes},
    row::{Place, Row, Size, TextSpan},
    screen::{Frame, Screen},
    support::Support,
    theme::Style,
};

/// Writes frames: new rows into the terminal's own scrollback, and a live area that is drawn again below them.
///
/// ```
/// use archon_terminal::{Frame, Inline, Row, Screen, Size, Style, Support};
///
/// let mut screen = Inline::new(Vec::new(), Support::default());
/// let (committed, live) = ([Row::new("an answer", Style::PLAIN)], [Row::new("> ", Style::PLAIN)]);
/// let size = Size::new(80, 24);
/// screen.frame(&Frame { committed: &committed, live: &live, caret: None, caret_is_real: false, size })?;
/// screen.leave()?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Inline<W: Write> {
    out: W,
    support: Support,
    /// The live rows on the screen; `None` if they are not known, so that the next frame draws the whole live area.
    shown: Option<Vec<Row>>,
    size: Option<Size>,
    /// The place of the cursor, counted from the origin.
    cursor: Place,
    has_begun: bool,
    bytes: Bytes,
}

impl<W: Write> Inline<W> {
    /// Creates a screen whose first live area begins in the cursor's row.
    pub fn new(out: W, support: Support) -> Self {
        Self {
            out,
            support,
            shown: None,
            size: None,
            cursor: Place::default(),
            has_begun: false,
            bytes: Bytes::default(),
        }
    }

    /// Makes the next frame draw the whole live area, even if it seems unchanged. Call it when something else may have
    /// written on the screen.
    pub fn redraw(&mut self) {
        self.shown = None;
    }

    /// Returns the writer that was passed to [`new`](Self::new).
    pub fn out(&self) -> &W {
        &self.out
    }

    /// Returns the writer that was passed to [`new`](Self::new), so that the program can write to it. Write other text
    /// only after [`leave`](Screen::leave), and end it with a line end. Between two frames, write only
    /// [`BELL`](crate::BELL) or a [`desktop_notice`](crate::desktop_notice).
    pub fn out_mut(&mut self) -> &mut W {
        &mut self.out
    }

    fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.bytes.put(ansi::BEGIN_PASTE);
            self.bytes.put(if self.support.has_kitty_keys { ansi::BEGIN_KITTY_KEYS } else { "" });
        }
    }

    fn go_to_origin(&mut self) {
        self.bytes.up(self.cursor.row);
        self.cursor = Place::default();
    }

    /// Erases the live area, appends the committed rows and draws the live area anew.
    fn draw_whole(&mut self, committed: &[Row], live: &[Row]) {
        self.go_to_origin();
        self.bytes.put(ansi::ERASE_FROM_ROW);
        for row in committed {
            self.bytes.row(row);
            self.bytes.put(ansi::NEXT_ROW);
        }
        self.bytes.put(ansi::NO_AUTOWRAP);
        for (number, row) in live.iter().enumerate() {
            self.bytes.put(if number > 0 { ansi::NEXT_ROW } else { "" });
            self.bytes.row(row);
        }
        self.bytes.put(ansi::AUTOWRAP);
        self.bytes.up(live.len().saturating_sub(1));
        self.bytes.put("\r");
    }

    /// Draws the parts of `live` that differ from `shown`, the live area on the screen, which has the same number of
    /// rows.
    fn draw_changes(&mut self, shown: &[Row], live: &[Row]) {
        self.go_to_origin();
        self.bytes.put("\r");
        self.bytes.put(ansi::NO_AUTOWRAP);
        let mut at = 0;
        for (number, (old, new)) in shown.iter().zip(live).enumerate().filter(|(_, (old, new))| old != new) {
            self.go_down(number - at);
            at = number;
            let same = equal_beginning(old, new);
            self.bytes.right(same);
            self.bytes.spans(&behind(new, same));
            self.bytes.put(ansi::ERASE_TO_END_OF_ROW);
            self.bytes.put("\r");
        }
        self.bytes.put(ansi::AUTOWRAP);
        self.bytes.up(at);
    }

    /// Moves the cursor down to the beginning of a row, with line ends. If the terminal has lost rows since its size
    /// was read, a line end scrolls the screen. A plain cursor movement would stop at the bottom, and the cursor would
    /// later go up too far.
    fn go_down(&mut self, rows: usize) {
        (0..rows).for_each(|_| self.bytes.put(ansi::NEXT_ROW));
    }

    fn place_cursor(&mut self, caret: Option<Place>) {
        if let Some(caret) = caret {
            self.go_down(caret.row);
            self.bytes.right(caret.column);
            self.cursor = caret;
            self.bytes.put(ansi::SHOW_CURSOR);
        }
    }

    fn write(&mut self) -> io::Result<()> {
        self.out.write_all(&self.bytes.0)?;
        self.bytes.0.clear();
        self.out.flush()
    }
}

impl<W: Write> Screen for Inline<W> {
    fn frame(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        let (live, caret) = live_area(frame);
        let real = caret.filter(|_| frame.caret_is_real);
        let is_same_size = self.size == Some(frame.size);
        let shown = self
            .shown
            .take()
            .filter(|old| is_same_size && frame.committed.is_empty() && old.len() == live.len());
        if shown.as_ref() == Some(&live) && self.cursor == real.unwrap_or_default() {
            self.shown = shown;
            return Ok(());
        }
        self.bytes.0.clear();
        self.begin();
        self.bytes.put(ansi::BEGIN_SYNC);
        self.bytes.put(ansi::HIDE_CURSOR);
        match shown {
            Some(shown) => self.draw_changes(&shown, &live),
            None => self.draw_whole(frame.committed, &live),
        }
        self.place_cursor(real);
        self.bytes.put(ansi::END_SYNC);
        (self.shown, self.size) = (Some(live), Some(frame.size));
        self.write()
    }

    fn leave(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.has_begun) {
            return Ok(());
        }
        self.bytes.0.clear();
        self.go_to_origin();
        for part in [ansi::ERASE_FROM_ROW, ansi::PLAIN, ansi::AUTOWRAP, ansi::SHOW_CURSOR, ansi::END_PASTE] {
            self.bytes.put(part);
        }
        self.bytes.put(if self.support.has_kitty_keys { ansi::END_KITTY_KEYS } else { "" });
        self.shown = None;
        self.write()
    }
}

impl<W: Write> Drop for Inline<W> {
    /// Leaves the terminal if the program did not call `leave`, for instance because it panicked.
    fn drop(&mut self) {
        // A terminal that is lost has no modes to end.
        let _ = self.leave();
    }
}

/// Returns the live rows that fit on the screen, and the place of the caret in them. The caret is drawn unless the
/// terminal's own cursor shows it.
fn live_area(frame: &Frame<'_>) -> (Vec<Row>, Option<Place>) {
    let most = frame.size.live_rows();
    let above = frame.live.len().saturating_sub(most);
    let first = frame.caret.map_or(above, |caret| caret.row.min(above));
    let columns = frame.size.width();
    let fit = |row: &Row| if row.width() > columns { row.cut(columns) } else { row.clone() };
    let mut rows: Vec<Row> = frame.live.iter().skip(first).take(most).map(fit).collect();
    let caret = frame.caret.map(|caret| Place { row: caret.row - first, column: caret.column.min(columns) });
    if let Some(caret) = caret.filter(|_| !frame.caret_is_real)
        && let Some(row) = rows.get_mut(caret.row)
    {
        *row = with_caret(row, caret.column);
    }
    (rows, caret)
}

/// Returns the row with the character at the column in reversed colors, or a reversed space after the end of the row.
fn with_caret(row: &Row, column: usize) -> Row {
    let mut left = row.cut(column);
    let mut rest = behind(row, left.width());
    let style = Style { is_reversed: true, ..Style::PLAIN };
    let mut under = " ".to_owned();
    if let Some(span) = rest.first_mut() {
        let character = unicode_segmentation::UnicodeSegmentation::graphemes(span.text(), true).next();
        let character = character.unwrap_or(" ").to_owned();
        *span = TextSpan::new(span.text().strip_prefix(character.as_str()).unwrap_or_default(), span.style());
        under = character;
    }
    left.push(under, style);
    left.spans.append(&mut rest);
    left
}

/// Returns the number of columns at the beginning that two rows have in common. Only ASCII counts, because the
/// terminal may show any other character in another width than expected.
fn equal_beginning(old: &Row, new: &Row) -> usize {
    let bytes = |row: &Row| -> Vec<(u8, Style)> {
        row.spans.iter().flat_map(|span| span.text().bytes().map(|byte| (byte, span.style()))).collect()
    };
    let (old, new) = (bytes(old), bytes(new));
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new && new.0.is_ascii()).count();
    // A mark that is drawn over the letter before it belongs to that letter.
    match new.get(same).is_some_and(|(byte, _)| !byte.is_ascii())
        || old.get(same).is_some_and(|(byte, _)| !byte.is_ascii())
    {
        true => same.saturating_sub(1),
        false => same,
    }
}

/// Returns the spans of a row after its first `columns` columns. A wide character across that edge is included.
fn behind(row: &Row, columns: usize) -> Vec<TextSpan> {
    let mut skipped = columns;
    let mut spans = Vec::new();
    for span in &row.spans {
        let (before, is_whole) = crate::row::prefix_within(span.text(), skipped);
        if is_whole {
            skipped -= span.width();
            continue;
        }
        let rest: Cow<'_, str> = span.text().strip_prefix(before).unwrap_or_default().into();
        skipped = 0;
        spans.push(TextSpan::new(rest, span.style()));
    }
    spans
}
