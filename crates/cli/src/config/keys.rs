//! The keys of a conversation on the terminal, in settings.

use std::{borrow::Cow, collections::BTreeMap};

#[cfg(feature = "chat")]
use archon_terminal::{Binding, Key, Keymap, UnknownKey};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

/// `[keys]` of a settings file: the keys of each action by its name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "BTreeMap<String, KeyNames>")]
pub(crate) struct Keys(BTreeMap<String, KeyNames>);

/// The names of the keys of an action, in a file one text or a list.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "OneOrMore")]
struct KeyNames(Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

/// The actions with their descriptions.
const ACTIONS: &[(&str, &str)] = &[
    ("send", "Sends the draft, while a run works for the time after it; by default `enter`."),
    (
        "send_now",
        "Sends the draft to the run at work, which reads it in its next request; by default `ctrl+s`.",
    ),
    ("newline", "Begins a new line in the draft; by default `shift+enter`, `alt+enter` and `ctrl+j`."),
    (
        "complete",
        "Takes the selected entry of the list below the draft, or opens the list; by default `tab`.",
    ),
    ("search_history", "Searches the drafts that were sent; by default `ctrl+r`."),
    ("open_editor", "Opens the draft in the editor of `$VISUAL` or `$EDITOR`; by default `ctrl+g`."),
    ("mode", "Goes to the next mode: ask, accept edits, plan; by default `backtab`."),
    (
        "stop",
        "Closes the list below the draft, stops the run, or pressed twice goes back to an earlier message; by default `esc`.",
    ),
    ("interrupt", "Stops the run, clears the draft or ends the conversation; by default `ctrl+c`."),
    (
        "leave",
        "Ends the conversation if the draft is empty, otherwise erases the next character; by default `ctrl+d`.",
    ),
    ("suspend", "Suspends the program, until the shell continues it; by default `ctrl+z`."),
    ("repaint", "Draws the lowest part of the screen again; by default `ctrl+l`."),
    ("undo", "Takes back the last change of the draft; by default `ctrl+_`, `ctrl+/` and `ctrl+7`."),
    ("yank", "Inserts the text that was erased last by a `kill` action; by default `ctrl+y`."),
    ("left", "Moves to the character before; by default `left` and `ctrl+b`."),
    ("right", "Moves to the next character; by default `right` and `ctrl+f`."),
    ("word_left", "Moves to the beginning of the word; by default `ctrl+left`, `alt+left` and `alt+b`."),
    ("word_right", "Moves to the end of the word; by default `ctrl+right`, `alt+right` and `alt+f`."),
    ("line_start", "Moves to the beginning of the line; by default `home` and `ctrl+a`."),
    ("line_end", "Moves to the end of the line; by default `end` and `ctrl+e`."),
    ("text_start", "Moves to the beginning of the draft; by default `ctrl+home` and `alt+<`."),
    ("text_end", "Moves to the end of the draft; by default `ctrl+end` and `alt+>`."),
    (
        "up",
        "Moves to the row above, in the first row to the older draft, and in a list to the entry above; by default `up` and `ctrl+p`.",
    ),
    (
        "down",
        "Moves to the row below, in the last row to the newer draft, and in a list to the entry below; by default `down` and `ctrl+n`.",
    ),
    ("erase_left", "Erases the character before; by default `backspace` and `ctrl+h`."),
    ("erase_right", "Erases the next character; by default `delete`."),
    (
        "kill_word_left",
        "Erases back to the beginning of the word; by default `ctrl+w`, `alt+backspace` and `ctrl+backspace`.",
    ),
    ("kill_word_right", "Erases to the end of the word; by default `alt+d`, `alt+delete` and `ctrl+delete`."),
    ("kill_line_start", "Erases back to the beginning of the line; by default `ctrl+u`."),
    ("kill_line_end", "Erases to the end of the line; by default `ctrl+k`."),
];

impl Keys {
    /// Returns the keymap: the default one with these keys.
    ///
    /// # Errors
    /// The problem, if a key cannot be bound or is bound to two actions.
    #[cfg(feature = "chat")]
    pub(crate) fn keymap(&self) -> Result<Keymap, String> {
        let bound = self.0.iter().filter_map(|(name, keys)| Some((Binding::named(name)?, keys)));
        let changes: Result<Vec<_>, UnknownKey> =
            bound.map(|(binding, keys)| Ok((binding, keys.parsed()?))).collect();
        let changes = changes.map_err(|e| e.to_string())?;
        Keymap::with_keys(changes).map_err(|e| e.to_string())
    }
}

impl KeyNames {
    #[cfg(feature = "chat")]
    fn parsed(&self) -> Result<Vec<Key>, UnknownKey> {
        self.0.iter().map(|name| name.parse()).collect()
    }
}

impl TryFrom<OneOrMore> for KeyNames {
    type Error = String;

    fn try_from(names: OneOrMore) -> Result<Self, String> {
        let names = match names {
            OneOrMore::One(name) => Self(vec![name]),
            OneOrMore::More(names) => Self(names),
        };
        #[cfg(feature = "chat")]
        names.parsed().map_err(|e| e.to_string())?;
        Ok(names)
    }
}

impl TryFrom<BTreeMap<String, KeyNames>> for Keys {
    type Error = String;

    fn try_from(keys: BTreeMap<String, KeyNames>) -> Result<Self, String> {
        let known = || ACTIONS.iter().map(|(name, _)| *name);
        if let Some(name) = keys.keys().find(|name| known().all(|known| known != *name)) {
            let meant = archon::types::nearest(name, known());
            let advice = match meant {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("known actions: {}", known().collect::<Vec<_>>().join(", ")),
            };
            return Err(format!("there is no action `{name}` for [keys]: {advice}"));
        }
        let keys = Self(keys);
        #[cfg(feature = "chat")]
        keys.keymap()?;
        Ok(keys)
    }
}

impl JsonSchema for Keys {
    fn schema_name() -> Cow<'static, str> {
        "Keys".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let action = |(name, does): &(&str, &str)| {
            let one_or_more = serde_json::json!({
                "description": does,
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            });
            ((*name).to_owned(), one_or_more)
        };
        let actions: serde_json::Map<String, serde_json::Value> = ACTIONS.iter().map(action).collect();
        json_schema!({
            "description": "`[keys]` of a settings file: the keys of each action by its name.",
            "type": "object",
            "properties": actions,
            "additionalProperties": false,
        })
    }
}

#[cfg(all(test, feature = "chat"))]
mod tests {
    use archon_terminal::KeyCode;

    use super::*;

    fn keys(text: &str) -> Result<Keys, String> {
        toml::from_str(text).map_err(|e| e.message().to_owned())
    }

    #[test]
    fn each_action_has_a_binding_and_names_its_default_keys() {
        let keymap = Keymap::default();
        for (name, does) in ACTIONS {
            let binding = Binding::named(name).unwrap_or_else(|| panic!("{name}"));
            let (_, default) = does.split_once("; by default ").unwrap();
            let named = default.split('`').skip(1).step_by(2).map(|key| key.parse::<Key>().unwrap());
            let (mut named, mut bound): (Vec<_>, _) = (named.collect(), keymap.keys(binding));
            named.sort_by_key(Key::to_string);
            bound.sort_by_key(Key::to_string);
            assert_eq!(named, bound, "{name}");
        }
    }

    #[test]
    fn keys_are_a_text_or_a_list_and_replace_the_default() {
        let keymap = keys("send = 'ctrl+enter'\nnewline = ['enter', 'ctrl+j']").unwrap().keymap().unwrap();
        let enter = Key::plain(KeyCode::Enter);
        assert_eq!(keymap.binding(&enter), Some(Binding::NewLine));
        assert_eq!(keymap.keys(Binding::Send), [enter.with_ctrl()]);
        assert_eq!(keymap.keys(Binding::Stop), [Key::plain(KeyCode::Escape)]);
    }

    #[test]
    fn wrong_keys_are_refused_with_their_name_and_advice() {
        for (text, parts) in [
            ("sned = 'enter'", &["there is no action `sned`", "did you mean `send`?"][..]),
            ("zzzzzz = 'enter'", &["there is no action `zzzzzz`", "known actions: send, send_now"]),
            ("send = 'ctr+j'", &["`ctr+j` cannot be bound", "as in `ctrl+j`"]),
            ("send = ['enter', 'x']", &["`x` cannot be bound"]),
            (
                "send = 'ctrl+j'\nnewline = 'Ctrl+J'",
                &["`ctrl+j` is bound to", "`send`", "`newline`", "remove it"],
            ),
        ] {
            let problem = keys(text).unwrap_err();
            assert!(parts.iter().all(|part| problem.contains(part)), "{text}: {problem}");
        }
    }
}
