//! The rows of all cells for one page, each with its cell.

use std::ops::Range;

use crate::{
    cells::{Cell, CellId, CellKind, Cells},
    printed::Group,
    row::Row,
    theme::Page,
    wrap::part,
};

/// A row, and the cell that it belongs to. The empty row before a cell belongs to that cell.
#[derive(Clone, Debug)]
pub(super) struct CellRow {
    pub(super) cell: CellId,
    pub(super) row: Row,
    /// True if the row is the rest of a line that was too wide for the row above.
    pub(super) is_rest: bool,
}

/// The place of a row: its cell, and its index within the cell. The anchor stays valid if rows above the cell are
/// added or removed.
pub(super) type Anchor = (CellId, usize);

/// The rows of all cells. Rows of cells that never change again are made once for each page.
#[derive(Clone, Debug, Default)]
pub(super) struct Document {
    page: Option<Page>,
    rows: Vec<CellRow>,
    settled: Settled,
}

/// The cells and rows at the beginning of the document that never change again.
#[derive(Clone, Copy, Debug, Default)]
struct Settled {
    cells: usize,
    rows: usize,
    /// The group of the last of these cells.
    group: Option<Group>,
}

impl Document {
    /// Updates the rows to the present cells. If the page has changed, makes all rows anew and returns true.
    pub(super) fn update(&mut self, cells: &Cells, page: &Page) -> bool {
        let is_anew = self.page != Some(*page);
        if is_anew {
            *self = Self { page: Some(*page), ..Self::default() };
        }
        self.rows.truncate(self.settled.rows);
        let mut group = self.settled.group;
        let mut is_settled = true;
        for cell in cells.in_order(self.settled.cells) {
            self.add(cell, page, &mut group);
            is_settled &= cell.is_closed;
            if is_settled {
                self.settled = Settled { cells: self.settled.cells + 1, rows: self.rows.len(), group };
            }
        }
        for cell in cells.open_cells() {
            if matches!(&cell.kind, CellKind::Call(call) if call.is_running()) {
                self.add(cell, page, &mut group);
            }
        }
        is_anew
    }

    pub(super) fn rows(&self) -> &[CellRow] {
        &self.rows
    }

    /// Returns the number of rows at the beginning that never change again.
    pub(super) fn settled_rows(&self) -> usize {
        self.settled.rows
    }

    /// Returns the text of these rows. Rows that were broken out of one line are joined again.
    pub(super) fn text(&self, rows: Range<usize>) -> String {
        let mut text = String::new();
        for (number, row) in self.rows.get(rows).unwrap_or_default().iter().enumerate() {
            if number > 0 && !row.is_rest {
                text.push('\n');
            }
            text.push_str(&row.row.text());
        }
        text
    }

    /// Returns the range of a cell's rows; `None` if the cell has no rows.
    pub(super) fn rows_of(&self, cell: CellId) -> Option<Range<usize>> {
        let first = self.rows.iter().position(|row| row.cell == cell)?;
        let count = self.rows.iter().skip(first).take_while(|row| row.cell == cell).count();
        Some(first..first + count)
    }

    /// Returns the anchor of a row; `None` if there is no such row.
    pub(super) fn anchor(&self, row: usize) -> Option<Anchor> {
        let cell = self.rows.get(row)?.cell;
        Some((cell, row - self.rows_of(cell)?.start))
    }

    /// Returns the row of an anchor, or the last row of its cell if the cell has fewer rows now; `None` if the cell
    /// has no rows now.
    pub(super) fn row_at(&self, (cell, number): Anchor) -> Option<usize> {
        let rows = self.rows_of(cell)?;
        Some((rows.start + number).min(rows.end - 1))
    }

    fn add(&mut self, cell: &Cell, page: &Page, group: &mut Option<Group>) {
        let rows = cell.rows(page);
        if rows.is_empty() {
            return;
        }
        let own = Group::of(cell);
        if own.is_apart_from(*group) {
            self.rows.push(CellRow { cell: cell.id, row: Row::default(), is_rest: false });
        }
        *group = Some(own);
        for row in rows {
            let pieces = pieces(row, page.width).into_iter().enumerate();
            self.rows.extend(pieces.map(|(n, row)| CellRow { cell: cell.id, row, is_rest: n > 0 }));
        }
    }
}

/// Breaks a row that is too wide, such as a line of code, between its characters.
fn pieces(row: Row, columns: usize) -> Vec<Row> {
    if row.width() <= columns {
        return vec![row];
    }
    let (mut pieces, mut from, end) = (Vec::new(), 0, row.text().len());
    while from < end {
        let piece = part(&row.spans, from, end).cut(columns);
        let length = piece.text().len();
        if length == 0 {
            // A character that is wider than the page.
            break;
        }
        from += length;
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Style;

    #[test]
    fn pieces_of_a_wide_row_are_its_text_and_fit() {
        for (columns, expected) in
            [(9, vec!["ab日本cde"]), (4, vec!["ab日", "本cd", "e"]), (1, vec!["a", "b"])]
        {
            let mut row = Row::new("ab日", Style::PLAIN);
            row.push("本cde", Style::PLAIN.bold());
            let texts: Vec<String> = pieces(row, columns).iter().map(Row::text).collect();
            assert_eq!(texts, expected, "{columns}");
        }
    }
}
