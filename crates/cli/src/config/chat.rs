//! The look of a conversation on the terminal, its notices and its editing keys, in settings.

#![cfg_attr(
    not(feature = "chat"),
    allow(dead_code, reason = "without the conversation only the syntax is checked")
)]

use schemars::JsonSchema;
use serde::Deserialize;

/// `[chat]` of a settings file: a conversation on the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ChatSettings {
    /// The colors: `auto` (those of the terminal), `dark` or `light` (those that can be read on such a background), or
    /// `mono` (none); by default `auto`. With `NO_COLOR`, no theme has colors. `/theme NAME` sets it.
    pub(crate) theme: Option<ThemeChoice>,
    /// The notice when a question waits or long work has ended, and no key was pressed for 5 seconds: `bell`, `osc9`
    /// (a text on the desktop, for terminals that know OSC 9) or `off`; by default `bell`.
    pub(crate) notify: Option<Notify>,
    /// The keys that edit the draft: `emacs` (those that shells have) or `vi` (the same, with the modes of vi); by
    /// default `emacs`.
    pub(crate) editing: Option<EditingKeys>,
}

/// The colors of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ThemeChoice {
    /// Those of the terminal
    #[default]
    Auto,
    /// For a dark background
    Dark,
    /// For a light background
    Light,
    /// None
    Mono,
}

/// The keys that edit a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EditingKeys {
    /// The keys of most shells, as in Emacs
    Emacs,
    /// The same keys, with the modes of vi
    Vi,
}

/// The way in which a person gets notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Notify {
    /// The terminal's bell
    #[default]
    Bell,
    /// A text on the desktop
    Osc9,
    /// Not at all
    Off,
}

#[cfg(feature = "chat")]
impl From<ThemeChoice> for archon_terminal::ThemeName {
    fn from(choice: ThemeChoice) -> Self {
        match choice {
            ThemeChoice::Auto => Self::Auto,
            ThemeChoice::Dark => Self::Dark,
            ThemeChoice::Light => Self::Light,
            ThemeChoice::Mono => Self::Mono,
        }
    }
}

#[cfg(all(test, feature = "chat"))]
mod tests {
    use archon_terminal::ThemeName;

    use super::*;

    #[test]
    fn theme_of_the_settings_has_each_name_and_the_same_default() {
        assert_eq!(ThemeName::from(ThemeChoice::default()), ThemeName::default());
        for name in ThemeName::ALL {
            let settings: ChatSettings = toml::from_str(&format!("theme = '{}'", name.as_str())).unwrap();
            assert_eq!(settings.theme.map(ThemeName::from), Some(name));
        }
    }

    #[test]
    fn settings_of_the_conversation_with_another_name_or_value_are_refused() {
        for (text, problem) in
            [("them = 'dark'", "unknown field `them`"), ("notify = 'loud'", "unknown variant `loud`")]
        {
            let e = toml::from_str::<ChatSettings>(text).unwrap_err();
            assert!(e.message().contains(problem), "{e}");
        }
    }
}
