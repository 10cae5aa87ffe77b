//! `/help`: the commands, the signs of drafts, keys, and the person's own commands.

use super::entries;
use crate::{app::App, chat::custom_commands::Found, output::Look, skills::OfferedSkill, text::visible_path};

/// A command in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The name without the `/`.
    pub(crate) name: String,
    /// The arguments, for people; empty without arguments.
    pub(crate) arguments: String,
    /// The effect, as one line.
    pub(crate) about: String,
}

/// The drafts that are not commands: the form, and the effect.
const SIGNS: &[(&str, &str)] = &[
    ("!LINE", "Run a line of the shell, under your deny rules and in the sandbox, without a question"),
    ("#TEXT", "Store a text in the memory"),
];

/// The default keys that shells do not have, with their effects.
const KEYS: &[(&str, &str)] = &[
    ("Shift+Tab", "Go to the next mode: ask, accept edits, plan"),
    ("Ctrl+S", "Send the draft to the run at work, which reads it in its next request"),
    ("Esc Esc", "Go back to your last message, and with each further Esc to the one before"),
];

/// The number of columns of the first column.
const FIRST: usize = 28;

/// Prints the help.
pub(super) fn print(app: &App, own: &Found, skills: &[OfferedSkill]) {
    for entry in entries(&own.commands, skills) {
        let name = format!("/{} {}", entry.name, entry.arguments);
        app.note(row(name.trim_end(), &entry.about));
    }
    SIGNS.iter().chain(KEYS).for_each(|(sign, about)| app.note(row(sign, about)));
    for (file, why) in &own.problems {
        app.output.note(Look::Warning, format!("{}: {why}", visible_path(file)));
    }
    app.hint("your own commands: Markdown files in .archon/commands of the project, or in commands beside your settings");
}

fn row(name: &str, about: &str) -> String {
    format!("{name:<FIRST$}  {about}")
}
