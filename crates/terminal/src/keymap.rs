//! The keys of the composer: which key does what.

use std::{collections::HashMap, error::Error, fmt};

use crate::key::{Key, KeyCode};

/// An action that a key can be bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Binding {
    /// Sends the draft. While a run works, the draft waits until the run has ended.
    Send,
    /// Sends the draft to the run at work, whose model reads it in its next request.
    SendNow,
    /// Begins a new line in the draft.
    NewLine,
    /// Moves the caret. From the first or the last row, Up and Down go to the drafts that were sent.
    Move(Motion),
    /// Erases the text from the caret to where the motion ends.
    Erase(Motion),
    /// Erases text like [`Erase`](Self::Erase), and keeps it for [`Yank`](Self::Yank).
    Kill(Motion),
    /// Inserts the text that [`Kill`](Self::Kill) erased last.
    Yank,
    /// Takes back the last change of the draft.
    Undo,
    /// Takes the selected entry of the list below the draft, or opens the list for the word at the caret.
    Complete,
    /// Opens a search in the drafts that were sent; during the search, selects the next found draft.
    SearchHistory,
    /// Opens the draft in the person's editor.
    OpenEditor,
    /// Goes to the next mode of the session: ask, accept edits, plan.
    Mode,
    /// Stops the run. If no run works, the program decides what to do; see [`Action::Escape`](crate::Action::Escape).
    Stop,
    /// Stops the run, clears the draft or ends the program; see [`Interrupts`](crate::Interrupts).
    Interrupt,
    /// Ends the program if the draft is empty, else erases the next character.
    Leave,
    /// Suspends the program, as Ctrl+Z does in a shell.
    Suspend,
    /// Draws the live area again, because something else wrote on the screen.
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

/// The key bindings of the [`Composer`](crate::Composer), the field in which a person writes the next message. By
/// default the keys move and edit as in shells (Ctrl+A, Ctrl+K, Ctrl+R), and Enter sends the message.
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

impl Binding {
    /// Returns the binding with this name in settings; `None` if there is none.
    ///
    /// ```
    /// use archon_terminal::{Binding, Motion};
    ///
    /// assert_eq!(Binding::named("kill_word_left"), Some(Binding::Kill(Motion::WordLeft)));
    /// assert_eq!(Binding::named("kill_everything"), None);
    /// ```
    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, binding)| *binding)
    }

    /// Returns the name of the binding in settings; `None` for a binding without a name, such as `Kill(Motion::Up)`.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(_, binding)| *binding == self).map(|(name, _)| *name)
    }
}

/// The names of bindings.
const NAMES: &[(&str, Binding)] = &[
    ("send", Binding::Send),
    ("send_now", Binding::SendNow),
    ("newline", Binding::NewLine),
    ("complete", Binding::Complete),
    ("search_history", Binding::SearchHistory),
    ("open_editor", Binding::OpenEditor),
    ("mode", Binding::Mode),
    ("stop", Binding::Stop),
    ("interrupt", Binding::Interrupt),
    ("leave", Binding::Leave),
    ("suspend", Binding::Suspend),
    ("repaint", Binding::Repaint),
    ("undo", Binding::Undo),
    ("yank", Binding::Yank),
    ("left", Binding::Move(Motion::Left)),
    ("right", Binding::Move(Motion::Right)),
    ("word_left", Binding::Move(Motion::WordLeft)),
    ("word_right", Binding::Move(Motion::WordRight)),
    ("line_start", Binding::Move(Motion::LineStart)),
    ("line_end", Binding::Move(Motion::LineEnd)),
    ("text_start", Binding::Move(Motion::TextStart)),
    ("text_end", Binding::Move(Motion::TextEnd)),
    ("up", Binding::Move(Motion::Up)),
    ("down", Binding::Move(Motion::Down)),
    ("erase_left", Binding::Erase(Motion::Left)),
    ("erase_right", Binding::Erase(Motion::Right)),
    ("kill_word_left", Binding::Kill(Motion::WordLeft)),
    ("kill_word_right", Binding::Kill(Motion::WordRight)),
    ("kill_line_start", Binding::Kill(Motion::LineStart)),
    ("kill_line_end", Binding::Kill(Motion::LineEnd)),
];

/// The error for a key that would have two bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BoundTwice {
    /// The key that would have two bindings.
    pub key: Key,
    /// The two bindings of the key.
    pub bindings: [Binding; 2],
}

impl fmt::Display for BoundTwice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.bindings.map(|binding| binding.name().unwrap_or("another action"));
        write!(f, "`{}` is bound to `{first}` and to `{second}`: remove it from one of them", self.key)
    }
}

impl Error for BoundTwice {}

impl Keymap {
    /// Creates the default keymap with other keys for some bindings. A binding in `changes` has only the keys that are
    /// given there, and a key that is given there loses its default binding.
    ///
    /// ```
    /// use archon_terminal::{Binding, Key, Keymap};
    ///
    /// let keymap = Keymap::with_keys([(Binding::Send, vec![Key::ctrl('j')])])?;
    /// assert_eq!(keymap.binding(&Key::ctrl('j')), Some(Binding::Send));
    /// # Ok::<(), archon_terminal::BoundTwice>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A key is named for two bindings.
    pub fn with_keys(changes: impl IntoIterator<Item = (Binding, Vec<Key>)>) -> Result<Self, BoundTwice> {
        let mut bindings = Self::default().bindings;
        let mut own = HashMap::new();
        for (binding, keys) in changes {
            bindings.retain(|_, other| *other != binding);
            for key in keys {
                if let Some(other) = own.insert(key, binding).filter(|other| *other != binding) {
                    return Err(BoundTwice { key, bindings: [other, binding] });
                }
            }
        }
        bindings.extend(own);
        Ok(Self { bindings })
    }

    /// Returns the keys of a binding, ordered by their names.
    pub fn keys(&self, binding: Binding) -> Vec<Key> {
        let keys = self.bindings.iter().filter(|(_, other)| **other == binding).map(|(key, _)| *key);
        let mut keys: Vec<Key> = keys.collect();
        keys.sort_by_cached_key(Key::to_string);
        keys
    }

    /// Returns the binding of a key; `None` for a key without one, such as a key that writes a character.
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
    (Key::ctrl('s'), Binding::SendNow),
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
    (key(KeyCode::Tab), Binding::Complete),
    (Key::ctrl('r'), Binding::SearchHistory),
    (Key::ctrl('g'), Binding::OpenEditor),
];

const PROGRAM: &[(Key, Binding)] = &[
    (key(KeyCode::BackTab), Binding::Mode),
    (key(KeyCode::Escape), Binding::Stop),
    (Key::ctrl('c'), Binding::Interrupt),
    (Key::ctrl('d'), Binding::Leave),
    (Key::ctrl('z'), Binding::Suspend),
    (Key::ctrl('l'), Binding::Repaint),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_binding_of_a_key_has_a_name_of_its_own() {
        for (key, binding) in MOVES.iter().chain(EDITS).chain(PROGRAM) {
            let name = binding.name().unwrap();
            assert_eq!(Binding::named(name), Some(*binding), "{key}");
        }
        for (name, binding) in NAMES {
            assert_eq!((binding.name(), Binding::named(name)), (Some(*name), Some(*binding)));
            assert!(!Keymap::default().keys(*binding).is_empty(), "{name}");
        }
    }

    #[test]
    fn keys_of_settings_replace_those_of_their_binding_and_leave_others() {
        let changes = [(Binding::Send, vec![Key::ctrl('j')]), (Binding::Stop, Vec::new())];
        let keymap = Keymap::with_keys(changes).unwrap();
        assert_eq!(keymap.keys(Binding::Send), [Key::ctrl('j')]);
        assert!(keymap.keys(Binding::Stop).is_empty());
        let enter = Key::plain(KeyCode::Enter);
        assert_eq!(keymap.keys(Binding::NewLine), [enter.with_alt(), enter.with_shift()]);
        assert_eq!(keymap.binding(&enter), None);
    }

    #[test]
    fn key_for_two_bindings_is_an_error_that_names_both() {
        let changes = [(Binding::Send, vec![Key::ctrl('j')]), (Binding::NewLine, vec![Key::ctrl('j')])];
        let error = Keymap::with_keys(changes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`ctrl+j` is bound to `send` and to `newline`: remove it from one of them"
        );
        let twice = [(Binding::Send, vec![Key::ctrl('j'), Key::ctrl('j')])];
        assert!(Keymap::with_keys(twice).is_ok());
    }
}
