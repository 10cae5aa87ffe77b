//! The composer: the draft of the next message, and the keys that change it.

pub(crate) mod buffer;
mod draft;
mod history;
pub(crate) mod lines;

use archon_types::Timestamp;

pub use self::draft::{Draft, DraftKind};
use self::{
    buffer::{Buffer, Piece},
    history::History,
    lines::{Lines, columns_beside},
};
use crate::{
    interrupts::{Interrupt, Interrupts},
    key::Input,
    keymap::{Binding, Keymap, Motion},
    row::{Place, Row},
    theme::Page,
    work::Work,
};

/// The work of the program after an input.
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
    /// Stops the run or ends the program. For [`Interrupt::ClearDraft`] the draft is cleared already.
    Interrupt(Interrupt),
    /// Suspends the program, as Ctrl+Z does in a shell.
    Suspend,
    /// Ends the program.
    Leave,
}

/// The draft of the next message. Inputs go in, and what the program has to do comes out; rows are made for a
/// frame.
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
    buffer: Buffer,
    history: History,
    interrupts: Interrupts,
    view: View,
}

/// The last frame: Up and Down move in its rows.
#[derive(Clone, Copy, Debug)]
struct View {
    /// The number of columns for text.
    columns: usize,
    /// The first row that was shown.
    top: usize,
    /// The column that Up and Down return to behind a shorter row.
    column: Option<usize>,
}

impl Default for View {
    fn default() -> Self {
        Self { columns: 80, top: 0, column: None }
    }
}

/// The sign of the draft.
const SIGN: &str = "› ";

impl Composer {
    /// Creates an empty composer.
    pub fn new(keymap: Keymap) -> Self {
        Self { keymap, ..Self::default() }
    }

    /// Applies an input that was read at this time, while the conversation does `work`.
    pub fn apply(&mut self, input: Input, at: Timestamp, work: Work) -> Action {
        let before = self.buffer.revision();
        let key = match input {
            Input::Paste(text) => {
                self.edit(|buffer| buffer.paste(&text));
                return self.redraw_since(before);
            }
            Input::Key(key) => key,
        };
        match self.keymap.binding(&key) {
            Some(binding) => match self.action(binding, at, work) {
                Some(action) => action,
                None => {
                    self.perform(binding);
                    self.redraw_since(before)
                }
            },
            None => {
                if let Some(c) = key.text() {
                    self.edit(|buffer| buffer.type_char(c));
                }
                self.redraw_since(before)
            }
        }
    }

    /// Does what Ctrl+C does, for an interrupt that comes as a signal.
    pub fn interrupt(&mut self, at: Timestamp, work: Work) -> Interrupt {
        let meaning = self.interrupts.press(at, work, !self.is_empty());
        if meaning == Interrupt::ClearDraft {
            self.edit(|buffer| buffer.set(Draft::default().into_piece()));
        }
        meaning
    }

    /// Replaces the draft. The replaced one can be taken back with the key for that.
    pub fn replace(&mut self, draft: Draft) {
        self.edit(|buffer| buffer.set(draft.into_piece()));
    }

    /// Adds a draft to the history as the newest one, such as a message of an earlier part of the conversation.
    pub fn remember(&mut self, draft: Draft) {
        self.history.add(draft);
    }

    /// Returns the draft as it would be sent now.
    pub fn draft(&self) -> Draft {
        Draft::of(self.buffer.piece().clone())
    }

    /// Returns true if the draft has no text.
    pub fn is_empty(&self) -> bool {
        self.buffer.text().is_empty()
    }

    /// Returns the place of the caret in the draft's text, as a byte offset at the boundary of a grapheme.
    pub fn caret(&self) -> usize {
        self.buffer.caret()
    }

    /// Returns the rows of the draft for a page, at most `most` and at least one, and the place of the caret in
    /// them. Of a longer draft the rows around the caret are shown. Up and Down move in the rows of the last
    /// call.
    pub fn rows(&mut self, page: &Page, most: usize) -> (Vec<Row>, Place) {
        self.view.columns = columns_beside(SIGN, page);
        let lines = Lines::new(self.buffer.text(), self.view.columns);
        let window = lines.window(self.buffer.caret(), SIGN, page, self.view.top, most.max(1));
        self.view.top = window.top;
        (window.rows, window.caret)
    }

    /// Returns the action of a binding that is more than a change of the draft.
    fn action(&mut self, binding: Binding, at: Timestamp, work: Work) -> Option<Action> {
        match binding {
            Binding::Send => self.send(),
            Binding::Stop if work.is_busy() => Some(Action::Interrupt(Interrupt::CancelRun)),
            Binding::Interrupt => Some(Action::Interrupt(self.interrupt(at, work))),
            Binding::Leave if self.is_empty() => Some(Action::Leave),
            Binding::Suspend => Some(Action::Suspend),
            Binding::Repaint => Some(Action::Repaint),
            _ => None,
        }
    }

    fn send(&mut self) -> Option<Action> {
        if self.buffer.continue_line() {
            self.history.leave();
            return Some(Action::Redraw);
        }
        if self.buffer.text().trim().is_empty() {
            return Some(Action::Nothing);
        }
        let draft = Draft::of(self.buffer.take());
        self.history.add(draft.clone());
        self.view = View { columns: self.view.columns, ..View::default() };
        Some(Action::Send(draft))
    }

    fn perform(&mut self, binding: Binding) {
        match binding {
            Binding::Move(Motion::Up) => self.up(),
            Binding::Move(Motion::Down) => self.down(),
            Binding::Leave => self.edit(|buffer| buffer.edit(Binding::Erase(Motion::Right))),
            other => self.edit(|buffer| buffer.edit(other)),
        }
    }

    fn up(&mut self) {
        let lines = Lines::new(self.buffer.text(), self.view.columns);
        match lines.row_of(self.buffer.caret()).checked_sub(1) {
            Some(row) if !self.history.is_shown() => self.move_to_row(row),
            _ => {
                if let Some(older) = self.history.older(self.buffer.piece()) {
                    self.show(older);
                }
            }
        }
    }

    fn down(&mut self) {
        let lines = Lines::new(self.buffer.text(), self.view.columns);
        let row = lines.row_of(self.buffer.caret()) + 1;
        if !self.history.is_shown() && row < lines.count() {
            self.move_to_row(row);
        } else if let Some(newer) = self.history.newer() {
            self.show(newer);
        }
    }

    fn show(&mut self, piece: Piece) {
        self.view.column = None;
        self.buffer.set(piece);
    }

    fn move_to_row(&mut self, row: usize) {
        let lines = Lines::new(self.buffer.text(), self.view.columns);
        let column = self.view.column.unwrap_or_else(|| lines.column_of(self.buffer.caret()));
        let at = lines.offset_at(row, column);
        self.view.column = Some(column);
        self.buffer.move_to(at);
    }

    /// Changes the buffer by something else than Up and Down.
    fn edit(&mut self, change: impl FnOnce(&mut Buffer)) {
        self.history.leave();
        self.view.column = None;
        change(&mut self.buffer);
    }

    fn redraw_since(&self, revision: u64) -> Action {
        if self.buffer.revision() == revision { Action::Nothing } else { Action::Redraw }
    }
}
