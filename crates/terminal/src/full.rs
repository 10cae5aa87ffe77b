//! The full view: the whole conversation on a screen of its own, with scroll, search and copy.
//!
//! The full view shows the same cells as the inline screen, with whole outputs of calls. This module only makes rows;
//! [`Alternate`](crate::Alternate) writes them.

mod document;
mod search;

use std::ops::Range;

use archon_types::printable;

use self::{
    document::Document,
    search::{Search, Spot},
};
use crate::{
    cells::{CellKind, Cells},
    key::{Input, Key, KeyCode},
    row::{Place, Row, TextSpan, width},
    theme::{Look, Page, Style},
    work::Work,
    wrap::part,
};

/// The action that the program must perform after an input to the full view.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FullAction {
    /// Draws a frame.
    Redraw,
    /// Draws the whole screen anew, because something else wrote on it.
    Repaint,
    /// Copies this text, with [`Alternate::copy`](crate::Alternate::copy).
    Copy(String),
    /// Suspends the program, as Ctrl+Z does in a shell.
    Suspend,
    /// Goes back to the conversation.
    Leave,
}

/// Shows a whole conversation: the rows of all cells, in a window that scrolls with the cursor's row.
///
/// | key | effect |
/// |---|---|
/// | Up, Down, `k`, `j` | one row up or down |
/// | PageUp, PageDown, `b`, Space | one page up or down |
/// | Home, End, `g`, `G` | to the beginning, to the end |
/// | `/` | asks for a text to search for; `n` and `N` go to the next and to the previous hit |
/// | `v` | begins to mark the rows from this row to the cursor; `v` again, or Esc, removes the mark |
/// | `y` | copies the marked rows, otherwise the message, the answer or the output at the cursor |
/// | `q`, Esc, Ctrl+C | back to the conversation |
///
/// While the cursor is at the end of the conversation, the view follows new rows. No key answers a question.
///
/// ```
/// use archon_terminal::{Cells, FullAction, FullView, Input, Key, Look, Note, Page, Theme, Work};
///
/// let (mut cells, mut view) = (Cells::default(), FullView::default());
/// cells.note(Note::new(Look::Plain, "one\ntwo"));
/// let (rows, cursor) = view.rows(&cells, &Page::new(79, Theme::new(true)), 24, Work::Idle);
/// assert_eq!((rows.len(), rows[1].text().as_str(), cursor.row), (24, "two", 1));
/// let action = view.apply(&Input::Key(Key::char('y')), &cells);
/// assert_eq!(action, FullAction::Copy("one\ntwo".to_owned()));
/// ```
#[derive(Clone, Debug, Default)]
pub struct FullView {
    document: Document,
    cursor: Spot,
    /// The first row in the window.
    top: usize,
    /// The number of rows in the window.
    height: usize,
    /// The row in which the marked rows begin or end; the cursor stands at their other end.
    mark: Option<usize>,
    search: Option<Search>,
    /// The text to search for, while it is typed.
    field: Option<String>,
    /// The effect of the last key, for a person.
    notice: String,
}

/// The minimum number of rows of the screen with which the status is shown.
const WITH_STATUS: usize = 2;
/// The maximum size of a copied text, in bytes. Terminals take about 100,000 bytes in base64.
const MOST_COPIED: usize = 64 << 10;
/// The keys that the status shows without a search and without a mark.
const KEYS: &str = "q goes back · / searches · v marks · y copies";
/// The keys that the status shows after a search; [`KEYS_OF_MARK`] are those that it shows with marked rows.
const KEYS_OF_SEARCH: &str = "q goes back · n next · N previous · y copies";
const KEYS_OF_MARK: &str = "y copies them · Esc marks none";

impl FullView {
    /// Applies a key or pasted text to the view. The input never answers a question and never changes the draft.
    pub fn apply(&mut self, input: &Input, cells: &Cells) -> FullAction {
        self.notice.clear();
        let key = match input {
            Input::Key(key) => key,
            Input::Paste(text) => {
                if let Some(field) = &mut self.field {
                    field.push_str(text.lines().next().unwrap_or_default());
                }
                return FullAction::Redraw;
            }
        };
        for (control, action) in
            [('c', FullAction::Leave), ('z', FullAction::Suspend), ('l', FullAction::Repaint)]
        {
            if *key == Key::ctrl(control) {
                return action;
            }
        }
        match self.field.take() {
            Some(field) => {
                self.edit(field, key);
                FullAction::Redraw
            }
            None if key.ctrl || key.alt => FullAction::Redraw,
            None => self.press(key.code, cells),
        }
    }

    /// Returns `most` rows, at least one, and the place of the cursor in them. If `most` is at least two, the last row
    /// is the status. `work` is the present work of the conversation: the status says if a question waits.
    pub fn rows(&mut self, cells: &Cells, page: &Page, most: usize, work: Work) -> (Vec<Row>, Place) {
        self.update(cells, &page.unfolded());
        let has_status = most >= WITH_STATUS;
        self.height = most.max(1) - usize::from(has_status);
        self.scroll();
        let window = self.top..self.top + self.height;
        let mut rows: Vec<Row> = window.map(|number| self.row(number)).collect();
        let mut place = Place { row: self.cursor.row - self.top, column: self.column() };
        if has_status {
            if let Some(field) = &self.field {
                place = Place { row: rows.len(), column: ("/".len() + width(field)).min(page.width) };
            }
            rows.push(self.status(page, work));
        }
        (rows, place)
    }

    fn press(&mut self, key: KeyCode, cells: &Cells) -> FullAction {
        let page = self.height.saturating_sub(1).max(1);
        match key {
            KeyCode::Char('q') => return FullAction::Leave,
            KeyCode::Escape if self.mark.is_none() => return FullAction::Leave,
            KeyCode::Char('y') => return self.copy(cells),
            KeyCode::Up | KeyCode::Char('k') => self.go_up(1),
            KeyCode::Down | KeyCode::Char('j') => self.go_down(1),
            KeyCode::PageUp | KeyCode::Char('b') => self.go_up(page),
            KeyCode::PageDown | KeyCode::Char(' ') => self.go_down(page),
            KeyCode::Home | KeyCode::Char('g') => self.cursor = Spot::default(),
            KeyCode::End | KeyCode::Char('G') => self.cursor = Spot { row: self.last(), byte: 0 },
            KeyCode::Char('/') => self.field = Some(String::new()),
            KeyCode::Char('n') => self.go_to_hit(Search::next),
            KeyCode::Char('N') => self.go_to_hit(Search::previous),
            KeyCode::Char('v') if self.mark.is_none() => self.mark = Some(self.cursor.row),
            KeyCode::Char('v') | KeyCode::Escape => self.mark = None,
            _ => {}
        }
        FullAction::Redraw
    }

    /// Applies a key to the search field. The caller has taken `field` out of the view; it is put back unless the key
    /// closes the field.
    fn edit(&mut self, mut field: String, key: &Key) {
        match key.code {
            KeyCode::Escape => return,
            KeyCode::Backspace if field.is_empty() => return,
            KeyCode::Enter => {
                self.search = (!field.is_empty()).then(|| Search::new(field));
                self.find();
                return self.go_to_hit(Search::nearest);
            }
            KeyCode::Backspace => _ = field.pop(),
            _ => field.extend(key.text()),
        }
        self.field = Some(field);
    }

    /// Moves the cursor up. The window moves too, so that the cursor keeps its place on the screen. While rows are
    /// marked, the window moves only if it must.
    fn go_up(&mut self, rows: usize) {
        if self.mark.is_none() {
            self.top = self.top.saturating_sub(rows);
        }
        self.cursor = Spot { row: self.cursor.row.saturating_sub(rows), byte: 0 };
    }

    fn go_down(&mut self, rows: usize) {
        if self.mark.is_none() {
            self.top += rows;
        }
        self.cursor = Spot { row: (self.cursor.row + rows).min(self.last()), byte: 0 };
    }

    /// Moves the cursor to the hit that `choose` returns for the cursor's place. A hit outside of the window comes
    /// into the middle of the window.
    fn go_to_hit(&mut self, choose: impl FnOnce(&Search, Spot) -> Option<Spot>) {
        let Some(hit) = self.search.as_ref().and_then(|search| choose(search, self.cursor)) else { return };
        self.cursor = hit;
        if !(self.top..self.top + self.height).contains(&hit.row) {
            self.top = hit.row.saturating_sub(self.height / 2);
        }
    }

    /// Returns the action that copies the marked rows or, without a mark, the cell at the cursor.
    fn copy(&mut self, cells: &Cells) -> FullAction {
        let text = match self.marked() {
            Some(rows) => self.document.text(rows),
            None => self.cell_text(cells),
        };
        self.mark = None;
        // What is pasted may go to a shell, so it has no control characters either.
        let whole = printable(&text);
        let text = whole.get(..whole.floor_char_boundary(MOST_COPIED)).unwrap_or_default();
        self.notice = match text.lines().count() {
            0 => "there is nothing to copy".to_owned(),
            _ if text.len() < whole.len() => {
                format!("copied the first {} KiB, because terminals take no more", MOST_COPIED >> 10)
            }
            1 => "copied 1 line".to_owned(),
            lines => format!("copied {lines} lines"),
        };
        if text.is_empty() { FullAction::Redraw } else { FullAction::Copy(text.to_owned()) }
    }

    /// Returns the text of the cell at the cursor as it was written: Markdown, and lines that are not broken.
    fn cell_text(&self, cells: &Cells) -> String {
        let Some(id) = self.document.rows().get(self.cursor.row).map(|row| row.cell) else {
            return String::new();
        };
        match cells.get(id).map(|cell| &cell.kind) {
            Some(CellKind::Message(message)) => message.text.clone(),
            Some(CellKind::Answer(answer)) => answer.text.clone(),
            Some(CellKind::Note(note)) => note.text.clone(),
            Some(CellKind::Call(call)) if !call.output.is_empty() => call.output_text().into_owned(),
            _ => {
                let rows = self.document.rows_of(id).unwrap_or_default();
                self.document.text(rows).trim_start_matches('\n').to_owned()
            }
        }
    }

    /// Updates the rows to the present cells. The cursor stays at its text, or at the end if it was there.
    fn update(&mut self, cells: &Cells, page: &Page) {
        let (before, mark) = (self.cursor, self.mark);
        let is_at_end = mark.is_none() && before.row >= self.last();
        let anchors = [before.row, self.top, mark.unwrap_or_default()].map(|row| self.document.anchor(row));
        let is_anew = self.document.update(cells, page);
        let last = self.last();
        let [row, top, mark_row] = anchors
            .map(|anchor| anchor.and_then(|anchor| self.document.row_at(anchor)).unwrap_or(last).min(last));
        (self.top, self.mark) = (top, mark.map(|_| mark_row));
        let row = if is_at_end { last } else { row };
        let is_same = !is_anew && row == before.row;
        self.cursor = Spot { row, byte: if is_same { before.byte } else { 0 } };
        if let Some(search) = self.search.as_mut().filter(|_| is_anew) {
            search.restart();
        }
        self.find();
    }

    fn find(&mut self) {
        if let Some(search) = &mut self.search {
            search.update(self.document.rows(), self.document.settled_rows());
        }
    }

    /// Moves the window so that it contains the cursor, and has empty rows only if the conversation has fewer rows.
    fn scroll(&mut self) {
        let least = (self.cursor.row + 1).saturating_sub(self.height);
        let lowest = self.document.rows().len().saturating_sub(self.height);
        self.top = self.top.min(lowest).min(self.cursor.row).max(least);
    }

    /// Returns the number of the last row, or 0 without rows.
    fn last(&self) -> usize {
        self.document.rows().len().saturating_sub(1)
    }

    fn marked(&self) -> Option<Range<usize>> {
        let row = self.cursor.row;
        self.mark.map(|mark| mark.min(row)..mark.max(row) + 1)
    }

    /// Returns the column of the cursor: the column of the hit that it is at, otherwise the first column.
    fn column(&self) -> usize {
        let text = self.document.rows().get(self.cursor.row).map(|row| row.row.text());
        text.and_then(|text| text.get(..self.cursor.byte).map(width)).unwrap_or_default()
    }

    /// Returns a row as it is shown: a marked row in reversed colors, otherwise its hits in reversed colors.
    fn row(&self, number: usize) -> Row {
        let Some(row) = self.document.rows().get(number).map(|row| &row.row) else { return Row::default() };
        if self.marked().is_some_and(|marked| marked.contains(&number)) {
            // An empty row is seen to be marked, too.
            let seen = if row.width() == 0 { Row::new(" ", Style::PLAIN) } else { row.clone() };
            return reversed(&seen, 0, seen.text().len());
        }
        let hits = self.search.iter().flat_map(|search| search.hits_in(number));
        hits.fold(row.clone(), |row, hit| reversed(&row, hit.spot.byte, hit.end))
    }

    fn status(&self, page: &Page, work: Work) -> Row {
        if let Some(field) = &self.field {
            return Row::of(format!("/{field}"), Look::Plain, page).cut(page.width);
        }
        let count = self.document.rows().len();
        let marked = self.marked().map(|rows| match rows.len() {
            1 => "1 row is marked".to_owned(),
            many => format!("{many} rows are marked"),
        });
        let keys = match (&marked, &self.search) {
            (Some(_), _) => KEYS_OF_MARK,
            (None, Some(_)) => KEYS_OF_SEARCH,
            (None, None) => KEYS,
        };
        let parts = [
            Some(self.notice.clone()).filter(|notice| !notice.is_empty()),
            self.search.as_ref().map(|search| search.label(self.cursor)),
            marked,
            Some(format!("row {} of {count}", (self.cursor.row + 1).min(count))),
            Some(keys.to_owned()),
        ];
        let mut row = Row::default();
        if work == Work::Asking {
            row.push("a question waits, q goes to it · ", page.theme.style(Look::Warning));
        }
        row.push(parts.into_iter().flatten().collect::<Vec<_>>().join(" · "), page.theme.style(Look::Dim));
        row.cut(page.width)
    }
}

/// Returns a row with reversed colors between two byte offsets of its text.
fn reversed(row: &Row, from: usize, to: usize) -> Row {
    let mut shown = part(&row.spans, 0, from);
    let inner = part(&row.spans, from, to).spans;
    let style = |span: &TextSpan| Style { is_reversed: true, ..span.style() };
    shown.spans.extend(inner.iter().map(|span| TextSpan::new(span.text(), style(span))));
    shown.spans.extend(part(&row.spans, to, row.text().len()).spans);
    shown
}
