//! The lists below the draft: candidates for the word at the caret, and drafts that a search in the history found.

use std::sync::Arc;

use archon_types::Timestamp;

use super::{
    Action, Composer,
    completion::{Completion, Named, Word},
    draft::DraftKind,
    lines::{Lines, columns_beside},
    popup::CompletionCandidate,
    search::{self, Search},
};
use crate::{
    key::{Input, Key},
    keymap::{Binding, Motion},
    row::{Place, Row},
    theme::{Look, Page},
    work::Work,
};

/// The sign before the text of a search.
const SEARCH_SIGN: &str = "search: ";

impl Composer {
    /// Sets the commands of the program, in the order in which they are listed. They are offered for a word that
    /// begins with `/` at the beginning of a draft.
    pub fn set_commands(&mut self, commands: Vec<CompletionCandidate>) {
        self.offers.commands = commands;
        self.refresh(false);
    }

    /// Sets the files of the workspace, as paths relative to its folder. They are offered for a word that begins with
    /// `@`.
    pub fn set_files(&mut self, files: Arc<[String]>) {
        self.offers.files = files;
        self.refresh(false);
    }

    /// Returns true while the person types a word that begins with `@`. Then the program must list the files of the
    /// workspace and call [`set_files`](Self::set_files).
    pub fn wants_files(&self) -> bool {
        self.completion.as_ref().is_some_and(|completion| completion.word.named == Named::File)
    }

    /// Returns the rows below the draft, at most `most`: the candidates or found drafts from which the person can
    /// choose. Without such a list, the result is a hint for a shell line or a text to remember, otherwise empty.
    pub fn popup(&mut self, page: &Page, most: usize) -> Vec<Row> {
        if let Some(search) = &mut self.search {
            return search.popup.rows(page, most);
        }
        if let Some(completion) = &mut self.completion {
            return completion.popup.rows(page, most);
        }
        let hint = DraftKind::of(self.buffer.piece()).hint().filter(|_| most > 0);
        hint.map(|hint| Row::of(format!("  {hint}"), Look::Dim, page).cut(page.width)).into_iter().collect()
    }

    /// Returns the row of the search and the place of the caret in it; `None` without a search.
    pub(super) fn search_row(&self, page: &Page) -> Option<(Vec<Row>, Place)> {
        let search = self.search.as_ref()?;
        let lines = Lines::new(search.text.text(), columns_beside(SEARCH_SIGN, page));
        let window = lines.window(search.text.caret(), SEARCH_SIGN, page, 0, 1);
        Some((window.rows, window.caret))
    }

    /// Opens the search in the history.
    pub(super) fn open_search(&mut self) {
        self.close_lists();
        self.search = Some(Search::new(&self.history));
    }

    pub(super) fn close_lists(&mut self) {
        (self.completion, self.dismissed, self.search) = (None, None, None);
    }

    /// Applies an input to the search. Returns `None` without a search, or for a key that has the same effect without
    /// one.
    pub(super) fn apply_to_search(&mut self, input: &Input, at: Timestamp, work: Work) -> Option<Action> {
        let mut search = self.search.take()?;
        let binding = match input {
            Input::Key(key) => self.keymap.binding(key),
            Input::Paste(_) => None,
        };
        match binding {
            Some(Binding::Stop) => return Some(Action::Redraw),
            Some(Binding::Send | Binding::Complete) => {
                if let Some(entry) = search.selection().cloned() {
                    self.edit(|buffer| buffer.set(entry.piece));
                }
                return Some(Action::Redraw);
            }
            Some(Binding::SearchHistory | Binding::Move(Motion::Down)) => search.popup.down(),
            Some(Binding::Move(Motion::Up)) => search.popup.up(),
            Some(Binding::Interrupt) => {
                self.search = Some(search);
                return Some(Action::Interrupt(self.interrupt(at, work)));
            }
            Some(binding) if search::is_edit(binding) => {
                let binding = if binding == Binding::Leave { Binding::Erase(Motion::Right) } else { binding };
                search.edit(&self.history, |text| text.edit(binding));
            }
            Some(Binding::Suspend | Binding::Repaint) => {
                self.search = Some(search);
                return None;
            }
            Some(_) => {}
            None => match input {
                Input::Paste(text) => {
                    let line = text.replace(['\r', '\n'], " ");
                    search.edit(&self.history, |text| text.paste(&line));
                }
                Input::Key(key) => {
                    if let Some(c) = key.text() {
                        search.edit(&self.history, |text| text.type_char(c));
                    }
                }
            },
        }
        self.search = Some(search);
        Some(Action::Redraw)
    }

    /// Applies a key to the list of candidates. Returns `None` without a list, or for a key that has the same effect
    /// without one.
    pub(super) fn apply_to_completion(&mut self, key: &Key) -> Option<Action> {
        let binding = self.keymap.binding(key)?;
        let completion = self.completion.as_mut().filter(|completion| !completion.popup.is_empty())?;
        match binding {
            Binding::Move(Motion::Up) => completion.popup.up(),
            Binding::Move(Motion::Down) => completion.popup.down(),
            Binding::Stop => {
                self.dismissed = Some(completion.word.range.start);
                self.completion = None;
            }
            Binding::Complete => self.take_name(),
            Binding::Send => return self.take_and_send(),
            _ => return None,
        }
        Some(Action::Redraw)
    }

    /// Puts the selected name into the draft. Returns `None` if the key must also send the draft: after a command that
    /// needs no further words, or a name that was already typed in full.
    fn take_and_send(&mut self) -> Option<Action> {
        let completion = self.completion.as_ref()?;
        let insert = completion.selection()?;
        let is_typed = self.buffer.text().get(completion.word.range.clone()) == Some(insert.trim_end());
        let is_command = completion.word.named == Named::Command && !insert.ends_with(' ');
        if !is_typed {
            self.take_name();
        }
        self.completion = None;
        (!is_typed && !is_command).then_some(Action::Redraw)
    }

    /// Replaces the word at the caret by the selected name.
    fn take_name(&mut self) {
        let Some(completion) = self.completion.take() else { return };
        let Some(insert) = completion.selection() else { return };
        let range = completion.word.range.clone();
        let behind = self.buffer.text().get(range.end..).unwrap_or_default();
        let is_apart = behind.starts_with(char::is_whitespace);
        let text = match completion.word.named {
            _ if is_apart => insert.trim_end().to_owned(),
            Named::Command => insert.to_owned(),
            Named::File => format!("{insert} "),
        };
        self.dismissed = Some(range.start);
        self.edit(|buffer| buffer.replace(range, &text));
    }

    /// Updates the list of candidates for the word at the caret. A closed list is opened only if `may_open` is true.
    pub(super) fn refresh(&mut self, may_open: bool) {
        let was_open = self.completion.take().is_some();
        let word = Word::at_caret(&self.buffer);
        self.dismissed =
            self.dismissed.filter(|start| word.as_ref().is_some_and(|word| word.range.start == *start));
        let word = word.filter(|_| (was_open || may_open) && self.dismissed.is_none());
        self.completion = word.map(|word| Completion::new(word, &self.offers));
    }
}
