//! Vi keys: the modes, and the keys of commands.

mod edit;
mod motion;

use self::{
    edit::{Edit, InsertAt, Operator, Side, Target},
    motion::{Motion, on_character},
};
use super::{Action, Composer};
use crate::{
    key::{Key, KeyCode},
    work::Work,
};

/// The maximum count that a person can give a command.
const MOST: usize = 999;

/// The mode of vi keys, which decides what a typed character does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ViMode {
    /// A typed character is written into the draft.
    #[default]
    Insert,
    /// A typed character is a part of a command.
    Normal,
}

impl ViMode {
    /// Returns the name that a person sees: `insert` or `normal`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Normal => "normal",
        }
    }
}

/// The mode, and the keys of a command that is not complete yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Vi {
    mode: ViMode,
    pending: Pending,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pending {
    count: Option<usize>,
    /// The operator that waits for its motion, with the count typed before it.
    operator: Option<(Operator, Option<usize>)>,
    has_g: bool,
}

/// The command of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    /// Does nothing: the command is not complete, or there is no such command.
    Nothing,
    /// Moves this many rows up, and on to older drafts of the history.
    Up(usize),
    /// Moves this many rows down, and on to newer drafts of the history.
    Down(usize),
    /// Changes the text or moves the caret.
    Edit(Edit),
}

impl Composer {
    /// Applies a key as a vi key. Returns `None` for a key that has the same effect without vi keys. While a question
    /// waits and the draft is empty, the question gets the keys of insert mode, and Esc in both modes. Esc then also
    /// drops a command that a letter began, if the letter was typed too early to answer.
    pub(super) fn apply_to_vi(&mut self, key: &Key, work: Work) -> Option<Action> {
        let is_answer = work == Work::Asking && self.is_empty();
        let vi = self.vi.as_mut()?;
        if is_answer && (vi.mode == ViMode::Insert || key.code == KeyCode::Escape) {
            vi.pending = Pending::default();
            return None;
        }
        match vi.read(key)? {
            Command::Nothing => return Some(Action::Nothing),
            Command::Up(rows) => (0..rows).for_each(|_| self.up()),
            Command::Down(rows) => (0..rows).for_each(|_| self.down()),
            Command::Edit(edit) => {
                if edit == Edit::LeaveInsert {
                    self.close_lists();
                }
                self.edit(|buffer| edit.apply(buffer));
            }
        }
        self.refresh(false);
        Some(Action::Redraw)
    }

    /// Goes to insert mode, for a new draft.
    pub(super) fn begin_insert(&mut self) {
        self.vi = self.vi.map(|_| Vi::default());
    }

    /// Moves the caret from the end of a line onto the last character, in normal mode.
    pub(super) fn rest_caret(&mut self) {
        if self.vi_mode() != Some(ViMode::Normal) {
            return;
        }
        let at = on_character(self.buffer.text(), self.buffer.caret());
        if at != self.buffer.caret() {
            self.buffer.move_to(at);
        }
    }
}

impl Vi {
    pub(super) fn mode(&self) -> ViMode {
        self.mode
    }

    /// Reads a key. Returns `None` for a key that has the same effect without vi keys.
    fn read(&mut self, key: &Key) -> Option<Command> {
        // Without the extended key protocol these are one byte.
        let is_escape = [Key::plain(KeyCode::Escape), Key::ctrl('[')].contains(key);
        if self.mode == ViMode::Insert {
            return is_escape.then(|| {
                self.mode = ViMode::Normal;
                Command::Edit(Edit::LeaveInsert)
            });
        }
        let pending = std::mem::take(&mut self.pending);
        match key.text() {
            Some(c) => Some(self.read_character(pending, c)),
            None if *key == Key::ctrl('r') => Some(Command::Edit(Edit::Redo(pending.count.unwrap_or(1)))),
            None => (is_escape && pending != Pending::default()).then_some(Command::Nothing),
        }
    }

    fn read_character(&mut self, pending: Pending, c: char) -> Command {
        let Pending { count, operator, has_g } = pending;
        let digit = "0123456789".find(c).filter(|digit| !has_g && (*digit > 0 || count.is_some()));
        if let Some(digit) = digit {
            let count = (count.unwrap_or(0) * 10 + digit).min(MOST);
            self.pending = Pending { count: Some(count), ..pending };
            return Command::Nothing;
        }
        if c == 'g' && !has_g {
            self.pending = Pending { has_g: true, ..pending };
            return Command::Nothing;
        }
        let motion = match has_g {
            true => (c == 'g').then_some(Motion::FirstLine),
            false => Motion::of(c),
        };
        match (operator, motion) {
            (Some((operator, before)), Some(motion)) => {
                self.operate(operator, Target::To(motion), product(before, count))
            }
            (Some((operator, before)), None) if !has_g && Operator::of(c) == Some(operator) => {
                self.operate(operator, Target::Lines, product(before, count))
            }
            (None, Some(motion)) => Command::Edit(Edit::Move(motion, count)),
            (None, None) if !has_g => self.read_command(c, count),
            _ => Command::Nothing,
        }
    }

    /// Reads a character that is no motion.
    fn read_command(&mut self, c: char, count: Option<usize>) -> Command {
        if let Some(operator) = Operator::of(c) {
            self.pending.operator = Some((operator, count));
            return Command::Nothing;
        }
        match c {
            'x' => self.operate(Operator::Delete, Target::To(Motion::Right), count),
            'D' => self.operate(Operator::Delete, Target::To(Motion::LineEnd), count),
            'C' => self.operate(Operator::Change, Target::To(Motion::LineEnd), count),
            'i' => self.insert(InsertAt::Caret),
            'a' => self.insert(InsertAt::BehindCaret),
            'I' => self.insert(InsertAt::FirstText),
            'A' => self.insert(InsertAt::LineEnd),
            'o' => self.insert(InsertAt::NewLineBelow),
            'O' => self.insert(InsertAt::NewLineAbove),
            'k' => Command::Up(count.unwrap_or(1)),
            'j' => Command::Down(count.unwrap_or(1)),
            'p' => Command::Edit(Edit::Put(Side::Behind)),
            'P' => Command::Edit(Edit::Put(Side::Before)),
            'u' => Command::Edit(Edit::Undo(count.unwrap_or(1))),
            _ => Command::Nothing,
        }
    }

    fn operate(&mut self, operator: Operator, target: Target, count: Option<usize>) -> Command {
        if operator == Operator::Change {
            self.mode = ViMode::Insert;
        }
        Command::Edit(Edit::Operate(operator, target, count))
    }

    fn insert(&mut self, at: InsertAt) -> Command {
        self.mode = ViMode::Insert;
        Command::Edit(Edit::Insert(at))
    }
}

/// Returns the product of the counts before an operator and before its motion; either count may be missing.
fn product(before: Option<usize>, count: Option<usize>) -> Option<usize> {
    match (before, count) {
        (Some(before), Some(count)) => Some((before * count).min(MOST)),
        (before, count) => before.or(count),
    }
}
