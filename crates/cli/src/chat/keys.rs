//! Converts the events of the terminal's library to inputs.

use archon_terminal::{Input, Key, KeyCode};
use crossterm::event::{self, Event, KeyEvent, KeyEventKind, KeyModifiers};

/// Returns the input of an event; `None` for an event that is neither a key nor a paste, and for a key that is let
/// go.
pub(crate) fn input(event: Event) -> Option<Input> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(Input::Key(self::key(key))),
        Event::Paste(text) => Some(Input::Paste(text)),
        _ => None,
    }
}

fn key(key: KeyEvent) -> Key {
    let has = |modifier| key.modifiers.contains(modifier);
    Key {
        code: code(key.code),
        shift: has(KeyModifiers::SHIFT),
        alt: has(KeyModifiers::ALT) || has(KeyModifiers::META),
        ctrl: has(KeyModifiers::CONTROL),
    }
}

fn code(code: event::KeyCode) -> KeyCode {
    match code {
        event::KeyCode::Char(c) => KeyCode::Char(c),
        event::KeyCode::Enter => KeyCode::Enter,
        event::KeyCode::Tab => KeyCode::Tab,
        event::KeyCode::BackTab => KeyCode::BackTab,
        event::KeyCode::Backspace => KeyCode::Backspace,
        event::KeyCode::Delete => KeyCode::Delete,
        event::KeyCode::Left => KeyCode::Left,
        event::KeyCode::Right => KeyCode::Right,
        event::KeyCode::Up => KeyCode::Up,
        event::KeyCode::Down => KeyCode::Down,
        event::KeyCode::Home => KeyCode::Home,
        event::KeyCode::End => KeyCode::End,
        event::KeyCode::PageUp => KeyCode::PageUp,
        event::KeyCode::PageDown => KeyCode::PageDown,
        event::KeyCode::Esc => KeyCode::Escape,
        _ => KeyCode::Other,
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEventState;

    use super::*;

    fn pressed(code: event::KeyCode, modifiers: KeyModifiers, kind: KeyEventKind) -> Option<Input> {
        input(Event::Key(KeyEvent { code, modifiers, kind, state: KeyEventState::NONE }))
    }

    #[test]
    fn input_of_events_has_keys_with_modifiers_and_pastes() {
        use event::KeyCode as Code;
        let press = KeyEventKind::Press;
        for (code, modifiers, kind, expected) in [
            (Code::Char('c'), KeyModifiers::CONTROL, press, Some(Key::ctrl('c'))),
            (Code::Char('é'), KeyModifiers::NONE, KeyEventKind::Repeat, Some(Key::char('é'))),
            (Code::Enter, KeyModifiers::SHIFT, press, Some(Key::plain(KeyCode::Enter).with_shift())),
            (Code::Char('b'), KeyModifiers::META, press, Some(Key::alt('b'))),
            (Code::F(1), KeyModifiers::NONE, press, Some(Key::plain(KeyCode::Other))),
            (Code::Char('c'), KeyModifiers::NONE, KeyEventKind::Release, None),
        ] {
            assert_eq!(pressed(code, modifiers, kind), expected.map(Input::Key), "{code:?}");
        }
        assert_eq!(input(Event::Paste("a\nb".to_owned())), Some(Input::Paste("a\nb".to_owned())));
        assert_eq!(input(Event::Resize(80, 24)), None);
    }
}
