//! Keys written as text, for tables of inputs.

use archon_terminal::{Input, Key, KeyCode};
use archon_types::Timestamp;

pub(crate) fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// Returns the inputs of a text in which `<Enter>`, `<C-w>`, `<A-Left>`, `<S-Enter>` are keys, and `<P:text>` is
/// a paste.
pub(crate) fn inputs(text: &str) -> Vec<Input> {
    let mut inputs = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        match named {
            Some((name, after)) => {
                inputs.push(named_input(name));
                rest = after;
            }
            None => {
                inputs.push(Input::Key(Key::char(c)));
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    inputs
}

fn named_input(name: &str) -> Input {
    if let Some(text) = name.strip_prefix("P:") {
        return Input::Paste(text.to_owned());
    }
    let (modifier, name) = name.split_once('-').map_or(("", name), |(modifier, name)| (modifier, name));
    let code = match name {
        "Enter" => KeyCode::Enter,
        "Tab" => KeyCode::Tab,
        "BackTab" => KeyCode::BackTab,
        "Back" => KeyCode::Backspace,
        "Del" => KeyCode::Delete,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "Esc" => KeyCode::Escape,
        other => KeyCode::Char(other.chars().next().unwrap()),
    };
    let key = Key::plain(code);
    Input::Key(match modifier {
        "" => key,
        "C" => key.with_ctrl(),
        "A" => key.with_alt(),
        "S" => key.with_shift(),
        other => panic!("unknown modifier {other}"),
    })
}
