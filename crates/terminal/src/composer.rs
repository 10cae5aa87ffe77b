//! The composer: the draft of the next message, and the keys that change it.

mod assist;
pub(crate) mod buffer;
mod completion;
mod draft;
mod fuzzy;
mod history;
pub(crate) mod lines;
mod long_paste;
mod piece;
mod popup;
mod search;
mod vi;

use archon_types::Timestamp;

use self::{
    buffer::Buffer,
    completion::{Completion, Offers},
    history::{Entry, History},
    lines::{Label, Lines, columns_beside},
    piece::{Piece, STAND_IN},
    search::Search,
    vi::Vi,
};
pub use self::{
    draft::{Draft, DraftKind},
    popup::CompletionCandidate,
    vi::ViMode,
};
use crate::{
    interrupts::{InterruptAction, Interrupts},
    key::Input,
    keymap::{Binding, Keymap, Motion},
    row::{Place, Row},
    theme::Page,
    work::Work,
};

/// The action that the program must perform after an input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Nothing: the input changed nothing.
    Nothing,
    /// The draft or its caret changed: draw a frame.
    Redraw,
    /// The person wants the live area drawn anew, because something else wrote on the screen.
    Repaint,
    /// Sends this draft. The composer is empty now, and the draft is in its history.
    Send(Draft),
    /// Sends this draft to the run at work, whose model reads it in its next request; otherwise like
    /// [`Send`](Self::Send).
    SendNow(Draft),
    /// Switches the session to its next mode: ask, accept edits, plan.
    NextMode,
    /// The key that stops a run was pressed, but no run works. With two such presses, a person asks to go back to an
    /// earlier message.
    Escape,
    /// Stops the run or ends the program, as the value says. For [`InterruptAction::ClearDraft`], the composer has
    /// cleared the draft already.
    Interrupt(InterruptAction),
    /// Suspends the program, as Ctrl+Z does in a shell.
    Suspend,
    /// Opens the draft in the person's editor. The program takes [`Composer::draft`], and gives the text of the editor
    /// back with [`Composer::replace`].
    OpenEditor,
    /// Ends the program.
    Leave,
}

/// Edits the draft of the next message. [`apply`](Self::apply) takes an input and returns the action that the program
/// must perform; [`rows`](Self::rows) returns the rows for a frame.
///
/// ```
/// use archon_terminal::{Action, Composer, Draft, Input, Key, KeyCode, Keymap, Work};
/// use archon_types::Timestamp;
///
/// let mut composer = Composer::new(Keymap::default());
/// let now = Timestamp::from_millis(0);
/// composer.apply(Input::Key(Key::char('h')), now, Work::Idle);
/// composer.apply(Input::Paste("ello\nworld".to_owned()), now, Work::Idle);
/// let action = composer.apply(Input::Key(Key::plain(KeyCode::Enter)), now, Work::Idle);
/// assert_eq!(action, Action::Send(Draft::message("hello\nworld")));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Composer {
    keymap: Keymap,
    /// The state of vi keys; `None` without them.
    vi: Option<Vi>,
    buffer: Buffer,
    history: History,
    interrupts: Interrupts,
    view: View,
    offers: Offers,
    /// The open list of candidates for the word at the caret; `None` without such a list.
    completion: Option<Completion>,
    /// The byte offset of the word whose list of candidates was closed and must not open again.
    dismissed: Option<usize>,
    /// The open search in the history; `None` without a search. The draft stays as it is meanwhile.
    search: Option<Search>,
}

/// The layout of the draft in the last frame, in whose rows Up and Down move the caret.
#[derive(Clone, Copy, Debug)]
struct View {
    /// The number of columns for text.
    columns: usize,
    /// The first row that was shown.
    top: usize,
    /// The column that Up and Down return to after shorter rows; `None` after any other input.
    column: Option<usize>,
}

impl Default for View {
    fn default() -> Self {
        Self { columns: 80, top: 0, column: None }
    }
}

impl Composer {
    /// Creates an empty composer whose keys do what `keymap` says, without vi keys.
    pub fn new(keymap: Keymap) -> Self {
        Self { keymap, ..Self::default() }
    }

    /// Adds vi keys. A draft begins in insert mode, and Esc goes to normal mode, in which characters are commands. All
    /// other keys stay as in the keymap, except that Ctrl+R in normal mode redoes a change.
    ///
    /// ```
    /// use archon_terminal::{Composer, Draft, Input, Key, KeyCode, Keymap, ViMode, Work};
    /// use archon_types::Timestamp;
    ///
    /// let mut composer = Composer::new(Keymap::default()).with_vi_keys();
    /// composer.replace(Draft::typed("one two"));
    /// for key in [Key::plain(KeyCode::Escape), Key::char('d'), Key::char('b')] {
    ///     composer.apply(Input::Key(key), Timestamp::from_millis(0), Work::Idle);
    /// }
    /// assert_eq!((composer.vi_mode(), composer.draft()), (Some(ViMode::Normal), Draft::typed("one o")));
    /// ```
    pub fn with_vi_keys(self) -> Self {
        Self { vi: Some(Vi::default()), ..self }
    }

    /// Applies an input, and returns the action that the program must perform. `at` is the time at which the input was
    /// read, and `work` is the present work of the conversation.
    pub fn apply(&mut self, input: Input, at: Timestamp, work: Work) -> Action {
        let action = self.apply_input(input, at, work);
        self.rest_caret();
        action
    }

    fn apply_input(&mut self, input: Input, at: Timestamp, work: Work) -> Action {
        if let Some(action) = self.apply_to_search(&input, at, work) {
            return action;
        }
        let before = self.revision();
        let key = match input {
            Input::Paste(text) => {
                self.edit(|buffer| buffer.paste_as_one(&text));
                self.refresh(false);
                return self.redraw_since(before);
            }
            Input::Key(key) => key,
        };
        if let Some(action) = self.apply_to_vi(&key, work) {
            return action;
        }
        if let Some(action) = self.apply_to_completion(&key) {
            return action;
        }
        match self.keymap.binding(&key) {
            Some(binding) => match self.action(binding, at, work) {
                Some(action) => action,
                None => {
                    self.perform(binding);
                    self.refresh(matches!(binding, Binding::Erase(_) | Binding::Kill(_) | Binding::Complete));
                    self.redraw_since(before)
                }
            },
            None => {
                if let Some(c) = key.text() {
                    self.edit(|buffer| buffer.type_char(c));
                    self.refresh(true);
                }
                self.redraw_since(before)
            }
        }
    }

    /// Handles an interrupt signal as if Ctrl+C was pressed, and returns what the program must do. While a search is
    /// open, [`InterruptAction::ClearDraft`] closes the search and keeps the draft.
    pub fn interrupt(&mut self, at: Timestamp, work: Work) -> InterruptAction {
        let is_search = self.search.is_some();
        let meaning = self.interrupts.press(at, work, is_search || !self.is_empty());
        if meaning == InterruptAction::ClearDraft {
            match is_search {
                true => self.close_lists(),
                false => {
                    self.replace(Draft::default());
                    self.begin_insert();
                }
            }
        }
        meaning
    }

    /// Replaces the draft. The key for undo brings the old draft back.
    pub fn replace(&mut self, draft: Draft) {
        self.close_lists();
        self.edit(|buffer| buffer.set(draft.into_piece()));
        self.rest_caret();
    }

    /// Adds a draft to the history as the newest one, such as a message of an earlier part of the conversation.
    pub fn remember(&mut self, draft: Draft) {
        self.history.add(Entry { piece: draft.clone().into_piece(), draft });
    }

    /// Returns the draft as it would be sent now.
    pub fn draft(&self) -> Draft {
        let kind = DraftKind::of(self.buffer.piece());
        Draft { text: self.buffer.whole(), kind, pasted: self.buffer.pasted_parts() }
    }

    /// Returns the mode of vi keys; `None` without them.
    pub fn vi_mode(&self) -> Option<ViMode> {
        self.vi.as_ref().map(Vi::mode)
    }

    /// Returns true while letters go to a search in the history.
    pub fn is_searching(&self) -> bool {
        self.search.is_some()
    }

    /// Returns true if the draft has no text.
    pub fn is_empty(&self) -> bool {
        self.buffer.text().is_empty()
    }

    /// Returns the place of the caret in the draft's text, as a byte offset. The caret never stands within a grapheme
    /// (a character as a person sees it), nor within a long paste that is shown by its size.
    pub fn caret(&self) -> usize {
        let caret = self.buffer.caret();
        let before = self.buffer.long_pastes().take_while(|(at, _)| *at < caret);
        before.fold(caret, |place, (_, paste)| place + paste.text().len() - STAND_IN.len_utf8())
    }

    /// Returns the rows of the draft for a page, at least one and at most `most`, and the place of the caret in these
    /// rows. If the draft has more rows, those around the caret are returned. During a search, the result is the row
    /// with the search text. Up and Down move the caret between the rows that the last call returned.
    pub fn rows(&mut self, page: &Page, most: usize) -> (Vec<Row>, Place) {
        if let Some(shown) = self.search_row(page) {
            return shown;
        }
        let sign = DraftKind::of(self.buffer.piece()).sign();
        self.view.columns = columns_beside(sign, page);
        let labels = self.labels();
        let window = self.lines(&labels).window(self.buffer.caret(), sign, page, self.view.top, most.max(1));
        self.view.top = window.top;
        (window.rows, window.caret)
    }

    /// Returns the labels that are shown in place of some characters: the size of a long paste, and an empty text for
    /// a first character that the sign before the draft already shows.
    fn labels(&self) -> Vec<Label> {
        let has_own_sign = DraftKind::of(self.buffer.piece()).has_own_sign();
        let sign = has_own_sign.then(|| Label { at: 0, shown: String::new() });
        let pastes = self.buffer.long_pastes();
        let sizes = pastes.map(|(at, paste)| Label { at, shown: paste.label().to_owned() });
        sign.into_iter().chain(sizes).collect()
    }

    fn lines<'a>(&'a self, labels: &'a [Label]) -> Lines<'a> {
        Lines::with_labels(self.buffer.text(), labels, self.view.columns)
    }

    /// Performs a binding that does more than change the draft, and returns its action; `None` for any other binding.
    fn action(&mut self, binding: Binding, at: Timestamp, work: Work) -> Option<Action> {
        match binding {
            Binding::Send => self.send(Action::Send),
            Binding::SendNow => self.send(Action::SendNow),
            Binding::Mode => Some(Action::NextMode),
            Binding::Stop if work.is_busy() => Some(Action::Interrupt(InterruptAction::CancelRun)),
            Binding::Stop => Some(Action::Escape),
            Binding::Interrupt => Some(Action::Interrupt(self.interrupt(at, work))),
            Binding::Leave if self.is_empty() => Some(Action::Leave),
            Binding::Suspend => Some(Action::Suspend),
            Binding::Repaint => Some(Action::Repaint),
            Binding::OpenEditor => Some(Action::OpenEditor),
            Binding::SearchHistory => {
                self.open_search();
                Some(Action::Redraw)
            }
            _ => None,
        }
    }

    fn send(&mut self, action: impl FnOnce(Draft) -> Action) -> Option<Action> {
        if self.buffer.continue_line() {
            self.history.leave();
            return Some(Action::Redraw);
        }
        let draft = self.draft();
        if draft.text.trim().is_empty() {
            return Some(Action::Nothing);
        }
        let piece = self.buffer.piece().clone();
        self.buffer.clear();
        self.close_lists();
        self.history.add(Entry { draft: draft.clone(), piece });
        self.view = View { columns: self.view.columns, ..View::default() };
        self.begin_insert();
        Some(action(draft))
    }

    fn perform(&mut self, binding: Binding) {
        match binding {
            Binding::Move(Motion::Up) => self.up(),
            Binding::Move(Motion::Down) => self.down(),
            Binding::Leave => self.edit(|buffer| buffer.edit(Binding::Erase(Motion::Right))),
            Binding::Complete => self.dismissed = None,
            other => self.edit(|buffer| buffer.edit(other)),
        }
    }

    fn up(&mut self) {
        let above = self.lines(&self.labels()).row_of(self.buffer.caret()).checked_sub(1);
        match above {
            Some(row) if !self.history.is_shown() => self.move_to_row(row),
            _ => {
                if let Some(older) = self.history.older(self.buffer.piece()) {
                    self.show(older);
                }
            }
        }
    }

    fn down(&mut self) {
        let labels = self.labels();
        let lines = self.lines(&labels);
        let (row, count) = (lines.row_of(self.buffer.caret()) + 1, lines.count());
        if !self.history.is_shown() && row < count {
            self.move_to_row(row);
        } else if let Some(newer) = self.history.newer() {
            self.show(newer);
        }
    }

    fn show(&mut self, piece: Piece) {
        self.completion = None;
        self.view.column = None;
        self.buffer.set(piece);
    }

    fn move_to_row(&mut self, row: usize) {
        let labels = self.labels();
        let lines = self.lines(&labels);
        let column = self.view.column.unwrap_or_else(|| lines.column_of(self.buffer.caret()));
        let at = lines.offset_at(row, column);
        self.view.column = Some(column);
        self.buffer.move_to(at);
    }

    /// Changes the buffer, for any input except Up and Down.
    fn edit(&mut self, change: impl FnOnce(&mut Buffer)) {
        self.history.leave();
        self.view.column = None;
        change(&mut self.buffer);
    }

    /// Returns a value that differs after each change that is visible in a frame.
    fn revision(&self) -> (u64, bool) {
        (self.buffer.revision(), self.completion.is_some())
    }

    fn redraw_since(&self, revision: (u64, bool)) -> Action {
        if self.revision() == revision { Action::Nothing } else { Action::Redraw }
    }
}
