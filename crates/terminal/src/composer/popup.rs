//! A list below the draft from which a person takes an entry.

use crate::{
    row::{Row, harmless, width},
    theme::{Look, Page},
    wrap::one_row,
};

/// The maximum number of rows of a list.
const MOST_ROWS: usize = 6;
/// The sign before the selected entry, as wide as the space before the others.
const SIGN: &str = "▸ ";

/// A text that can be taken into the draft, such as the name of a command.
///
/// ```
/// use archon_terminal::CompletionCandidate;
///
/// let help = CompletionCandidate::new("/help", "/help", "shows all commands");
/// let model = CompletionCandidate::new("/model ", "/model", "changes the model");
/// assert!(model.insert.ends_with(' ') && !help.insert.ends_with(' '));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletionCandidate {
    /// The text that is put into the draft. A command that ends with a space needs more words, so the key that chooses
    /// it does not send it.
    pub insert: String,
    /// The text in the list, which the typed characters are compared with.
    pub label: String,
    /// The description, one line; it may be empty.
    pub detail: String,
}

impl CompletionCandidate {
    /// Creates a candidate that puts `insert` into the draft; the list shows `label` and `detail`.
    pub fn new(insert: impl Into<String>, label: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { insert: insert.into(), label: label.into(), detail: detail.into() }
    }
}

/// The entries of a list, and the selected one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Popup {
    /// The label and the description of each entry.
    entries: Vec<(String, String)>,
    selected: usize,
    /// The first entry that was shown.
    top: usize,
}

impl Popup {
    pub(crate) fn new(entries: Vec<(String, String)>) -> Self {
        Self { entries, selected: 0, top: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the index of the selected entry.
    pub(crate) fn selection(&self) -> usize {
        self.selected
    }

    /// Selects the entry above; after the first entry comes the last.
    pub(crate) fn up(&mut self) {
        self.selected = self.selected.checked_sub(1).unwrap_or(self.entries.len().saturating_sub(1));
    }

    /// Selects the entry below; after the last entry comes the first.
    pub(crate) fn down(&mut self) {
        self.selected = if self.selected + 1 < self.entries.len() { self.selected + 1 } else { 0 };
    }

    /// Returns the rows of the selected entry and the entries around it, at most `most` and at most six.
    pub(crate) fn rows(&mut self, page: &Page, most: usize) -> Vec<Row> {
        let most = most.min(MOST_ROWS);
        if most == 0 {
            return Vec::new();
        }
        self.top = self.top.clamp((self.selected + 1).saturating_sub(most), self.selected);
        let shown = self.entries.iter().enumerate().skip(self.top).take(most);
        let has_details = shown.clone().any(|(_, (_, detail))| !detail.is_empty());
        let room = page.width.saturating_sub(width(SIGN));
        let room = if has_details { room / 2 } else { room };
        let columns =
            shown.clone().map(|(_, (label, _))| width(&harmless(label))).max().unwrap_or(0).min(room);
        let row = |(number, (label, detail)): (usize, &(String, String))| {
            let label = harmless(label);
            let label = one_row(&label, columns);
            let (sign, look) = match number == self.selected {
                true => (SIGN.to_owned(), Look::Key),
                false => (" ".repeat(width(SIGN)), Look::Plain),
            };
            let mut row = Row::of(format!("{sign}{label}"), look, page);
            if !detail.is_empty() {
                let space = " ".repeat(columns.saturating_sub(width(&label)) + 2);
                row.push(format!("{space}{detail}"), page.theme.style(Look::Dim));
            }
            row.cut(page.width)
        };
        shown.map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Theme;

    fn row_texts(popup: &mut Popup, width: usize, most: usize) -> Vec<String> {
        let rows = popup.rows(&Page::new(width, Theme::new(false)), most);
        rows.iter().map(|row| row.text().trim_end().to_owned()).collect()
    }

    #[test]
    fn rows_have_labels_and_descriptions_in_columns_and_fit() {
        let entries = [("/help", "shows\nall"), ("/long-command", ""), ("/x\u{1b}[2J", "escaped")];
        let mut popup =
            Popup::new(entries.map(|(label, detail)| (label.to_owned(), detail.to_owned())).to_vec());
        popup.down();
        assert_eq!(
            row_texts(&mut popup, 40, 9),
            ["  /help          shows all", "▸ /long-command", "  /x\\u{1b}[2J    escaped"]
        );
        for width in 1..40 {
            let rows = popup.rows(&Page::new(width, Theme::new(false)), 9);
            assert!(rows.iter().all(|row| row.width() <= width), "{width}: {rows:?}");
        }
    }

    #[test]
    fn selection_moves_in_a_circle_and_stays_on_the_screen() {
        let mut popup = Popup::new((0..9).map(|n| (n.to_string(), String::new())).collect());
        assert_eq!(row_texts(&mut popup, 20, 9).len(), MOST_ROWS);
        popup.up();
        assert_eq!(row_texts(&mut popup, 20, 3), ["  6", "  7", "▸ 8"]);
        popup.down();
        assert_eq!(row_texts(&mut popup, 20, 3), ["▸ 0", "  1", "  2"]);
        (0..3).for_each(|_| popup.down());
        assert_eq!(row_texts(&mut popup, 20, 3), ["  1", "  2", "▸ 3"]);
        assert_eq!(row_texts(&mut popup, 20, 0), Vec::<String>::new());
        let mut empty = Popup::default();
        empty.up();
        empty.down();
        assert_eq!(row_texts(&mut empty, 20, 3), Vec::<String>::new());
    }
}
