//! The keys of the composer: which key does what.

use std::collections::HashMap;

use crate::key::{Key, KeyCode};

/// The action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Binding {
    /// Sends the draft.
    Send,
    /// Begins a new line in the draft.
    NewLine,
    /// Moves the caret, or goes through the history.
    Move(Motion),
    /// Erases the text from the caret to where the motion ends.
    Erase(Motion),
    /// Erases in the same way, and keeps the text for [`Yank`](Self::Yank).
    Kill(Motion),
    /// Inserts the text of the last kill.
    Yank,
    /// Takes back the last change of the draft.
    Undo,
    /// Stops the run.
    Stop,
    /// Stops the run, clears the draft or ends the program; see [`Interrupts`](crate::Interrupts).
    Interrupt,
    /// Ends the program if the draft is empty, else erases the next character.
    Leave,
    /// Suspends the program.
    Suspend,
    /// Draws the live area again.
    Repaint,
}

/// A movement of the caret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Motion {
    /// One character back.
    Left,
    /// One character on.
    Right,
    /// To the beginning of the word.
    WordLeft,
    /// To the end of the word.
    WordRight,
    /// To the beginning of the line.
    LineStart,
    /// To the end of the line.
    LineEnd,
    /// To the beginning of the draft.
    TextStart,
    /// To the end of the draft.
    TextEnd,
    /// One row up; from the first row to the older draft of the history.
    Up,
    /// One row down; from the last row to the newer draft of the history.
    Down,
}

/// The keys of the composer. The default has the keys that shells have.
///
/// ```
/// use archon_terminal::{Binding, Key, KeyCode, Keymap};
///
/// let keymap = Keymap::default();
/// assert_eq!(keymap.binding(&Key::plain(KeyCode::Enter)), Some(Binding::Send));
/// assert_eq!(keymap.binding(&Key::plain(KeyCode::Enter).with_shift()), Some(Binding::NewLine));
/// assert_eq!(keymap.binding(&Key::char('x')), None);
/// ```
#[derive(Clone, Debug)]
pub struct Keymap {
    bindings: HashMap<Key, Binding>,
}

impl Keymap {
    /// Returns what a key is bound to; `None` for a key that writes its character.
    pub fn binding(&self, key: &Key) -> Option<Binding> {
        // Shift with an arrow selects elsewhere; here it moves as well.
        let without_shift = Key { shift: false, ..*key };
        self.bindings.get(key).or_else(|| self.bindings.get(&without_shift)).copied()
    }
}

impl Default for Keymap {
    fn default() -> Self {
        Self { bindings: MOVES.iter().chain(EDITS).chain(PROGRAM).copied().collect() }
    }
}

const fn key(code: KeyCode) -> Key {
    Key::plain(code)
}

const MOVES: &[(Key, Binding)] = &[
    (key(KeyCode::Left), Binding::Move(Motion::Left)),
    (Key::ctrl('b'), Binding::Move(Motion::Left)),
    (key(KeyCode::Right), Binding::Move(Motion::Right)),
    (Key::ctrl('f'), Binding::Move(Motion::Right)),
    (key(KeyCode::Left).with_ctrl(), Binding::Move(Motion::WordLeft)),
    (key(KeyCode::Left).with_alt(), Binding::Move(Motion::WordLeft)),
    (Key::alt('b'), Binding::Move(Motion::WordLeft)),
    (key(KeyCode::Right).with_ctrl(), Binding::Move(Motion::WordRight)),
    (key(KeyCode::Right).with_alt(), Binding::Move(Motion::WordRight)),
    (Key::alt('f'), Binding::Move(Motion::WordRight)),
    (key(KeyCode::Home), Binding::Move(Motion::LineStart)),
    (Key::ctrl('a'), Binding::Move(Motion::LineStart)),
    (key(KeyCode::End), Binding::Move(Motion::LineEnd)),
    (Key::ctrl('e'), Binding::Move(Motion::LineEnd)),
    (key(KeyCode::Home).with_ctrl(), Binding::Move(Motion::TextStart)),
    (Key::alt('<'), Binding::Move(Motion::TextStart)),
    (key(KeyCode::End).with_ctrl(), Binding::Move(Motion::TextEnd)),
    (Key::alt('>'), Binding::Move(Motion::TextEnd)),
    (key(KeyCode::Up), Binding::Move(Motion::Up)),
    (Key::ctrl('p'), Binding::Move(Motion::Up)),
    (key(KeyCode::Down), Binding::Move(Motion::Down)),
    (Key::ctrl('n'), Binding::Move(Motion::Down)),
];

const EDITS: &[(Key, Binding)] = &[
    (key(KeyCode::Enter), Binding::Send),
    (key(KeyCode::Enter).with_shift(), Binding::NewLine),
    // Terminals without the extended key protocol send this for Shift+Enter, or can be set to do so.
    (key(KeyCode::Enter).with_alt(), Binding::NewLine),
    (Key::ctrl('j'), Binding::NewLine),
    (key(KeyCode::Backspace), Binding::Erase(Motion::Left)),
    (Key::ctrl('h'), Binding::Erase(Motion::Left)),
    (key(KeyCode::Delete), Binding::Erase(Motion::Right)),
    (Key::ctrl('w'), Binding::Kill(Motion::WordLeft)),
    (key(KeyCode::Backspace).with_alt(), Binding::Kill(Motion::WordLeft)),
    (key(KeyCode::Backspace).with_ctrl(), Binding::Kill(Motion::WordLeft)),
    (Key::alt('d'), Binding::Kill(Motion::WordRight)),
    (key(KeyCode::Delete).with_alt(), Binding::Kill(Motion::WordRight)),
    (key(KeyCode::Delete).with_ctrl(), Binding::Kill(Motion::WordRight)),
    (Key::ctrl('u'), Binding::Kill(Motion::LineStart)),
    (Key::ctrl('k'), Binding::Kill(Motion::LineEnd)),
    (Key::ctrl('y'), Binding::Yank),
    // Without the extended key protocol Ctrl+_ and Ctrl+/ are one byte, which is read as Ctrl+7.
    (Key::ctrl('_'), Binding::Undo),
    (Key::ctrl('/'), Binding::Undo),
    (Key::ctrl('7'), Binding::Undo),
];

const PROGRAM: &[(Key, Binding)] = &[
    (key(KeyCode::Escape), Binding::Stop),
    (Key::ctrl('c'), Binding::Interrupt),
    (Key::ctrl('d'), Binding::Leave),
    (Key::ctrl('z'), Binding::Suspend),
    (Key::ctrl('l'), Binding::Repaint),
];
