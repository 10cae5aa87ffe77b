//! Keys and pastes, as the composer and a question take them, and the names of keys in settings.

use std::{error::Error, fmt, str::FromStr};

/// An input of a person at the keyboard. The program makes it from the events of its terminal library.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input {
    /// A key that was pressed or repeats. The release of a key is not an input.
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

/// The names of keys that write no character.
const NAMES: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("tab", KeyCode::Tab),
    ("backtab", KeyCode::BackTab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("esc", KeyCode::Escape),
    ("space", KeyCode::Char(' ')),
];

/// The error for a text that is not the name of a key, or that names a key that cannot be bound because it writes a
/// character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKey {
    text: String,
}

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        write!(
            f,
            "`{}` cannot be bound: write a character behind `ctrl+` or `alt+`, as in `ctrl+j`, or one of {}, also behind `ctrl+`, `alt+` or `shift+`",
            archon_types::printable(&self.text),
            names.join(", ")
        )
    }
}

impl Error for UnknownKey {}

/// Parses a key as it is written in settings, such as `ctrl+j`, `shift+enter` or `esc`.
///
/// ```
/// use archon_terminal::{Key, KeyCode, UnknownKey};
///
/// assert_eq!("ctrl+j".parse(), Ok(Key::ctrl('j')));
/// assert_eq!("shift+enter".parse(), Ok(Key::plain(KeyCode::Enter).with_shift()));
/// assert!("j".parse::<Key>().is_err(), "it writes a character");
/// ```
impl FromStr for Key {
    type Err = UnknownKey;

    fn from_str(text: &str) -> Result<Self, UnknownKey> {
        let unknown = || UnknownKey { text: text.to_owned() };
        let mut key = Self::plain(KeyCode::Other);
        let small = text.trim().to_lowercase();
        let mut name = small.as_str();
        // The last sign may be the key itself, as in `ctrl++`.
        while let Some((modifier, rest)) = name.split_once('+').filter(|(_, rest)| !rest.is_empty()) {
            let is_new = match modifier {
                "ctrl" => !std::mem::replace(&mut key.ctrl, true),
                "alt" => !std::mem::replace(&mut key.alt, true),
                "shift" => !std::mem::replace(&mut key.shift, true),
                _ => false,
            };
            if !is_new {
                return Err(unknown());
            }
            name = rest;
        }
        let named = NAMES.iter().find(|(known, _)| *known == name).map(|(_, code)| *code);
        let mut characters = name.chars();
        key.code = match (named, characters.next(), characters.next()) {
            // Terminals have a key of its own for this.
            (Some(KeyCode::Tab), ..) if key.shift => {
                key.shift = false;
                KeyCode::BackTab
            }
            (Some(KeyCode::Char(_)), ..) if !key.ctrl && !key.alt => return Err(unknown()),
            (Some(code), ..) => code,
            // A letter with Shift is another letter.
            (None, Some(c), None) if (key.ctrl || key.alt) && !key.shift => KeyCode::Char(c),
            _ => return Err(unknown()),
        };
        Ok(key)
    }
}

/// Formats the key as it is written in settings.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (is_held, name) in [(self.ctrl, "ctrl+"), (self.alt, "alt+"), (self.shift, "shift+")] {
            f.write_str(if is_held { name } else { "" })?;
        }
        match (NAMES.iter().find(|(_, code)| *code == self.code), self.code) {
            (Some((name, _)), _) => f.write_str(name),
            (None, KeyCode::Char(c)) => write!(f, "{c}"),
            (None, _) => f.write_str("another key"),
        }
    }
}

/// A key without its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyCode {
    /// A key that writes this character.
    Char(char),
    /// Enter.
    Enter,
    /// Tab.
    Tab,
    /// Shift+Tab, which terminals report as one key.
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
    /// Any other key. It has no name, so settings cannot bind it.
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

    /// Returns this key with Shift held.
    ///
    /// ```
    /// use archon_terminal::Key;
    ///
    /// assert!(Key::ctrl('z').with_shift().shift);
    /// ```
    pub const fn with_shift(self) -> Self {
        Self { shift: true, ..self }
    }

    /// Returns this key with Alt held.
    ///
    /// ```
    /// use archon_terminal::Key;
    ///
    /// assert_eq!(Key::char('b').with_alt(), Key::alt('b'));
    /// ```
    pub const fn with_alt(self) -> Self {
        Self { alt: true, ..self }
    }

    /// Returns this key with Ctrl held.
    ///
    /// ```
    /// use archon_terminal::Key;
    ///
    /// assert_eq!(Key::char('c').with_ctrl(), Key::ctrl('c'));
    /// ```
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_read_as_it_is_written() {
        let enter = Key::plain(KeyCode::Enter);
        for (text, key) in [
            ("enter", enter),
            ("ctrl+alt+shift+enter", enter.with_ctrl().with_alt().with_shift()),
            ("ctrl+j", Key::ctrl('j')),
            ("ctrl++", Key::ctrl('+')),
            ("alt+<", Key::alt('<')),
            ("ctrl+space", Key::ctrl(' ')),
            ("backtab", Key::plain(KeyCode::BackTab)),
        ] {
            assert_eq!((text.parse(), key.to_string().as_str()), (Ok(key), text));
        }
        assert_eq!(" Ctrl+J ".parse(), Ok(Key::ctrl('j')));
        assert_eq!("shift+tab".parse(), Ok(Key::plain(KeyCode::BackTab)));
    }

    #[test]
    fn text_of_no_key_is_refused_with_the_form_of_a_key() {
        for text in [
            "",
            "j",
            "space",
            "shift+j",
            "ctr+j",
            "ctrl+",
            "ctrl+ctrl+j",
            "ctrl+shift+j",
            "return",
            "ctrl+jj",
        ] {
            let error = text.parse::<Key>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("`{text}` cannot be bound: ")) && error.contains("esc"),
                "{error}"
            );
        }
    }
}
