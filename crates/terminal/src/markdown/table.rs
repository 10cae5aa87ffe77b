//! A table: columns of text if they fit into the width, and otherwise a line for each cell.

use pulldown_cmark::Alignment;

use crate::{
    row::TextSpan,
    theme::{Look, Page, Style},
};

#[derive(Debug)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    /// The head and the other rows.
    rows: Vec<Vec<Cell>>,
}

type Cell = Vec<TextSpan>;

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new() }
    }

    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn add_cell(&mut self, cell: Cell) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Returns the lines of the table. If the table is wider than `columns`, each cell gets a line of its own, which
    /// may still be wider.
    pub(super) fn lines(&self, columns: usize, page: &Page) -> Vec<Vec<TextSpan>> {
        let dim = page.theme.style(Look::Dim);
        let (between, rule, crossing) = match page.theme.is_ascii() {
            true => (" | ", "-", "-+-"),
            false => (" │ ", "─", "─┼─"),
        };
        let widths: Vec<usize> = (0..self.alignments.len()).map(|column| self.width(column)).collect();
        let total = widths.iter().sum::<usize>() + between.chars().count() * widths.len().saturating_sub(1);
        if total > columns {
            return self.lines_of_cells(page);
        }
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = Vec::new();
            for (column, (width, alignment)) in widths.iter().zip(&self.alignments).enumerate() {
                if column > 0 {
                    line.push(TextSpan::new(between, dim));
                }
                line.extend(aligned(
                    row.get(column).map(Vec::as_slice).unwrap_or_default(),
                    *width,
                    *alignment,
                    number == 0,
                ));
            }
            lines.push(line);
            if number == 0 {
                let parts: Vec<String> = widths.iter().map(|width| rule.repeat(*width)).collect();
                lines.push(vec![TextSpan::new(parts.join(crossing), dim)]);
            }
        }
        lines
    }

    fn width(&self, column: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0)
    }

    /// Returns a line for each cell, beginning with the name of its column, and an empty line between two rows.
    fn lines_of_cells(&self, page: &Page) -> Vec<Vec<TextSpan>> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        if rows.is_empty() {
            return head.iter().map(|cell| bold(cell)).collect();
        }
        let mut lines: Vec<Vec<TextSpan>> = Vec::new();
        for row in rows {
            if !lines.is_empty() {
                lines.push(Vec::new());
            }
            for (name, cell) in head.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
                let mut line = bold(name);
                if !name.is_empty() {
                    line.push(TextSpan::new(": ", page.theme.style(Look::Plain)));
                }
                line.extend(cell.iter().cloned());
                lines.push(line);
            }
        }
        lines
    }
}

fn width(cell: &[TextSpan]) -> usize {
    cell.iter().map(TextSpan::width).sum()
}

fn bold(cell: &[TextSpan]) -> Cell {
    cell.iter().map(|span| TextSpan::new(span.text(), span.style().bold())).collect()
}

fn aligned(cell: &[TextSpan], columns: usize, alignment: Alignment, is_head: bool) -> Cell {
    let free = columns.saturating_sub(width(cell));
    let before = match alignment {
        Alignment::Right => free,
        Alignment::Center => free / 2,
        Alignment::Left | Alignment::None => 0,
    };
    let spaces = |count: usize| TextSpan::new(" ".repeat(count), Style::PLAIN);
    let mut line = vec![spaces(before)];
    line.extend(if is_head { bold(cell) } else { cell.to_vec() });
    line.push(spaces(free - before));
    line
}
