//! The part of the cells that is printed, that is, in the terminal's scrollback.

use crate::{
    cells::{AnswerCell, Cell, CellKind, Cells},
    markdown::{self, Progress},
    row::Row,
    theme::{Look, Page},
};

/// Records which part of the cells is printed, that is, committed to the scrollback. Cells are printed when they are
/// closed, in the order of closing. An answer is printed row by row while it streams; cells that are closed meanwhile
/// wait until the answer is closed.
///
/// ```
/// use archon_terminal::{Cells, Look, Note, Page, Printed, Theme};
///
/// let (mut cells, mut printed) = (Cells::default(), Printed::default());
/// cells.note(Note::new(Look::Dim, "hello"));
/// let page = Page::new(79, Theme::new(true));
/// assert_eq!(printed.take(&cells, &page).len(), 1);
/// assert!(printed.take(&cells, &page).is_empty(), "a row is taken once");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Printed {
    /// The number of cells that are printed completely: the first ones in the order of printing.
    cells: usize,
    last: Option<Group>,
    answer: PrintedAnswer,
}

/// The printed part of the first answer that is not printed completely.
#[derive(Clone, Debug, Default)]
struct PrintedAnswer {
    has_begun: bool,
    progress: Progress,
    /// The printed text. If the next attempt begins with the same text, the text is not printed again.
    text: String,
}

/// The group of a cell. Between two cells there is an empty row unless both are in the group `Work`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Message,
    Answer,
    Work,
}

/// The maximum number of rows of the step list in the live area.
const PLAN_ROWS: usize = 6;

impl Group {
    pub(crate) fn of(cell: &Cell) -> Self {
        match cell.kind {
            CellKind::Message(_) => Self::Message,
            CellKind::Answer(_) => Self::Answer,
            _ => Self::Work,
        }
    }

    pub(crate) fn is_apart_from(self, before: Option<Self>) -> bool {
        before.is_some_and(|before| before != self || self != Self::Work)
    }
}

impl Printed {
    /// Returns the rows to commit now, which then count as committed: the next call returns only newer rows.
    pub fn take(&mut self, cells: &Cells, page: &Page) -> Vec<Row> {
        let mut rows = Vec::new();
        for cell in cells.in_order(self.cells) {
            if !self.add(cell, page, &mut rows) {
                return rows;
            }
            self.cells += 1;
        }
        rows
    }

    /// Returns the rows for the live area: the rest of an open answer, the cells that wait for its end, the running
    /// calls, the number of working agents if there are several, and the step list. If there are more than `most`
    /// rows, the first ones are left out.
    pub fn open(&self, cells: &Cells, page: &Page, most: usize) -> Vec<Row> {
        let mut after = self.clone();
        let mut rows = after.take(cells, page);
        for cell in cells.in_order(after.cells) {
            match &cell.kind {
                CellKind::Answer(answer) if !cell.is_closed => rows.extend(after.tail(answer, page)),
                _ => after.add_whole(cell, page, &mut rows),
            }
        }
        for cell in cells.open_cells() {
            if let CellKind::Call(call) = &cell.kind
                && call.is_running()
            {
                after.add_whole(cell, page, &mut rows);
            }
        }
        rows.extend(cells.agents_row(page));
        // The list keeps to a half, so that what happens now is seen too.
        let mut plan = match cells.live_plan() {
            Some(plan) => plan.live_rows(page, (most / 2).min(PLAN_ROWS)),
            None => Vec::new(),
        };
        let mut rows = rows.split_off(rows.len().saturating_sub(most.saturating_sub(plan.len())));
        rows.append(&mut plan);
        rows
    }

    /// Marks all cells except the newest `most` as printed, so that they are never returned, and returns the number of
    /// cells that this call left out. Call it before a long conversation is shown again.
    pub fn leave_out(&mut self, cells: &Cells, most: usize) -> usize {
        let skipped = cells.order_len().saturating_sub(most).saturating_sub(self.cells);
        self.cells += skipped;
        if skipped > 0 {
            self.last = Some(Group::Work);
            self.answer = PrintedAnswer::default();
        }
        skipped
    }

    /// Adds the final rows of a cell, and returns true if the cell is then printed completely.
    fn add(&mut self, cell: &Cell, page: &Page, rows: &mut Vec<Row>) -> bool {
        match &cell.kind {
            CellKind::Answer(answer) => {
                self.add_answer(answer, cell.is_closed, page, rows);
                if cell.is_closed {
                    self.answer = PrintedAnswer::default();
                }
                cell.is_closed
            }
            _ => {
                self.add_whole(cell, page, rows);
                true
            }
        }
    }

    fn add_whole(&mut self, cell: &Cell, page: &Page, rows: &mut Vec<Row>) {
        let mut own = cell.rows(page);
        if own.is_empty() {
            return;
        }
        self.begin(Group::of(cell), rows);
        rows.append(&mut own);
    }

    /// Adds the empty row before a cell.
    fn begin(&mut self, group: Group, rows: &mut Vec<Row>) {
        if group.is_apart_from(self.last) {
            rows.push(Row::default());
        }
        self.last = Some(group);
    }

    fn add_answer(&mut self, answer: &AnswerCell, is_closed: bool, page: &Page, rows: &mut Vec<Row>) {
        if !self.answer.goes_on_as(answer) {
            if !is_closed && self.answer.text.starts_with(&answer.text) {
                // The next attempt may still become the same.
                return;
            }
            rows.push(Row::of("— the answer was interrupted and begins again —", Look::Dim, page));
            self.answer = PrintedAnswer { has_begun: true, ..PrintedAnswer::default() };
        }
        let mut own = markdown::advance(&answer.text, &mut self.answer.progress, is_closed, page);
        if !own.is_empty() && !std::mem::replace(&mut self.answer.has_begun, true) {
            self.begin(Group::Answer, rows);
        }
        rows.append(&mut own);
        let known = self.answer.text.len();
        self.answer.text.push_str(answer.text.get(known..self.answer.progress.bytes).unwrap_or_default());
    }

    /// Returns the rows of an open answer that are not final.
    fn tail(&mut self, answer: &AnswerCell, page: &Page) -> Vec<Row> {
        if !self.answer.goes_on_as(answer) {
            return Vec::new();
        }
        let mut own = markdown::open_rows(&answer.text, &self.answer.progress, page);
        let mut rows = Vec::new();
        if !own.is_empty() && !self.answer.has_begun {
            self.begin(Group::Answer, &mut rows);
        }
        rows.append(&mut own);
        rows
    }
}

impl PrintedAnswer {
    /// Returns true if the answer begins with the printed text. Spaces and line ends behind the last row do not
    /// count, because a whole answer may lack them.
    fn goes_on_as(&self, answer: &AnswerCell) -> bool {
        answer.text.starts_with(self.text.trim_end())
    }
}
