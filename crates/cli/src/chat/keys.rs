//! Converts the events of the terminal's library to inputs.

use archon_terminal::{Input, Key, KeyCode};
use crossterm::event::{self, Event, KeyEvent, KeyEventKind, KeyModifiers};

/// The input that was typed before raw mode, while the terminal still gave whole lines. In this input, Enter is a line
/// feed, which means Ctrl+J in raw mode.
pub(crate) struct EarlyInput {
    /// The number of its bytes that are still to come.
    bytes: u64,
}

impl EarlyInput {
    /// Creates an early input of `bytes` bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        Self { bytes }
    }

    /// Returns the next event of the terminal, with Enter for a line feed of the early input.
    pub(crate) fn correct(&mut self, event: Event) -> Event {
        let is_early = self.bytes > 0;
        self.bytes = self.bytes.saturating_sub(least_bytes(&event));
        let line_feed = KeyEvent::new(event::KeyCode::Char('j'), KeyModifiers::CONTROL);
        match event {
            Event::Key(key) if is_early && key == line_feed => Event::Key(event::KeyCode::Enter.into()),
            event => event,
        }
    }
}

/// Returns the least number of bytes that a terminal sends for an event.
fn least_bytes(event: &Event) -> u64 {
    match event {
        Event::Key(KeyEvent { code: event::KeyCode::Char(c), .. }) => c.len_utf8() as u64,
        Event::Key(_) => 1,
        Event::Paste(text) => text.len() as u64,
        _ => 0,
    }
}

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

    fn press(code: event::KeyCode, modifiers: KeyModifiers, kind: KeyEventKind) -> Option<Input> {
        input(Event::Key(KeyEvent { code, modifiers, kind, state: KeyEventState::NONE }))
    }

    #[test]
    fn input_of_events_has_keys_with_modifiers_and_pastes() {
        use event::KeyCode as Code;
        let down = KeyEventKind::Press;
        for (code, modifiers, kind, expected) in [
            (Code::Char('c'), KeyModifiers::CONTROL, down, Some(Key::ctrl('c'))),
            (Code::Char('é'), KeyModifiers::NONE, KeyEventKind::Repeat, Some(Key::char('é'))),
            (Code::Enter, KeyModifiers::SHIFT, down, Some(Key::plain(KeyCode::Enter).with_shift())),
            (Code::Char('b'), KeyModifiers::META, down, Some(Key::alt('b'))),
            (Code::F(1), KeyModifiers::NONE, down, Some(Key::plain(KeyCode::Other))),
            (Code::Char('c'), KeyModifiers::NONE, KeyEventKind::Release, None),
        ] {
            assert_eq!(press(code, modifiers, kind), expected.map(Input::Key), "{code:?}");
        }
        assert_eq!(input(Event::Paste("a\nb".to_owned())), Some(Input::Paste("a\nb".to_owned())));
        assert_eq!(input(Event::Resize(80, 24)), None);
    }

    #[test]
    fn correct_makes_enter_of_a_line_feed_only_in_the_early_input() {
        let key = |code, modifiers| Event::Key(KeyEvent::new(code, modifiers));
        let letter = || key(event::KeyCode::Char('é'), KeyModifiers::NONE);
        let line_feed = || key(event::KeyCode::Char('j'), KeyModifiers::CONTROL);
        let enter = key(event::KeyCode::Enter, KeyModifiers::NONE);
        // `é`, a line feed and `é` take five bytes.
        let mut early = EarlyInput::new(5);
        let events = [letter(), line_feed(), letter(), line_feed()].map(|event| early.correct(event));
        assert_eq!(events, [letter(), enter, letter(), line_feed()]);
    }
}
