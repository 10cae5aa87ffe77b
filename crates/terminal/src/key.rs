//! Keys and pastes, as the composer and a question take them.

/// An input of a person at the keyboard. The program makes it from the events of its library.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input {
    /// A key that was pressed or repeats. A key that is let go is no input.
    Key(Key),
    /// A text that was pasted as one piece. It never sends a draft and never answers a question.
    Paste(String),
}

/// A key with its modifiers.
///
/// ```
/// use archon_terminal::{Key, KeyCode};
///
/// let new_line = Key::plain(KeyCode::Enter).with_shift();
/// assert!(new_line.shift && new_line != Key::plain(KeyCode::Enter));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The key without its modifiers. A letter has the case that it would be written in.
    pub code: KeyCode,
    /// True if Shift is held.
    pub shift: bool,
    /// True if Alt, Option or Meta is held.
    pub alt: bool,
    /// True if Ctrl is held.
    pub ctrl: bool,
}

/// The key itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyCode {
    /// A key that writes this character.
    Char(char),
    /// Enter.
    Enter,
    /// Tab.
    Tab,
    /// Shift and Tab.
    BackTab,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// The arrow to the left.
    Left,
    /// The arrow to the right.
    Right,
    /// The arrow up.
    Up,
    /// The arrow down.
    Down,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Escape.
    Escape,
    /// A key that nothing here is bound to.
    Other,
}

impl Key {
    /// Creates a key without modifiers.
    pub const fn plain(code: KeyCode) -> Self {
        Self { code, shift: false, alt: false, ctrl: false }
    }

    /// Creates the key that writes a character.
    pub const fn char(c: char) -> Self {
        Self::plain(KeyCode::Char(c))
    }

    /// Creates a character's key with Ctrl, such as Ctrl+C for `c`.
    pub const fn ctrl(c: char) -> Self {
        Self::char(c).with_ctrl()
    }

    /// Creates a character's key with Alt.
    pub const fn alt(c: char) -> Self {
        Self::char(c).with_alt()
    }

    /// Adds Shift.
    pub const fn with_shift(self) -> Self {
        Self { shift: true, ..self }
    }

    /// Adds Alt.
    pub const fn with_alt(self) -> Self {
        Self { alt: true, ..self }
    }

    /// Adds Ctrl.
    pub const fn with_ctrl(self) -> Self {
        Self { ctrl: true, ..self }
    }

    /// Returns the character that the key writes into a text; `None` with Ctrl or Alt, and for control
    /// characters.
    pub fn text(&self) -> Option<char> {
        let KeyCode::Char(c) = self.code else { return None };
        // AltGr can come as Ctrl and Alt together with the sign that it writes, such as `@`.
        let is_alt_gr = self.ctrl && self.alt && !c.is_ascii_alphanumeric();
        (!c.is_control() && (is_alt_gr || !(self.ctrl || self.alt))).then_some(c)
    }
}
