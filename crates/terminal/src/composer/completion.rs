//! The candidates for the word at the caret: commands after `/`, files after `@`.

use std::{ops::Range, sync::Arc};

use super::{
    buffer::Buffer,
    draft::DraftKind,
    fuzzy::Pattern,
    piece::STAND_IN,
    popup::{CompletionCandidate, Popup},
};

/// The maximum number of names in a list.
const MOST: usize = 100;

/// The commands and files that can be offered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offers {
    pub(crate) commands: Vec<CompletionCandidate>,
    pub(crate) files: Arc<[String]>,
}

/// The kind of thing that a word names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Command,
    File,
}

/// A word of the draft that names a command or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) named: Named,
    /// The place of the whole word, with its sign.
    pub(crate) range: Range<usize>,
    /// The text from the sign to the caret.
    query: String,
}

/// The candidates for a word, as a list below the draft.
#[derive(Clone, Debug)]
pub(crate) struct Completion {
    pub(crate) word: Word,
    pub(crate) popup: Popup,
    /// For each entry of the list, the text that it puts into the draft.
    inserts: Vec<String>,
}

impl Word {
    /// Returns the word at the caret if it names a command or a file. A word with a pasted `/` or `@` names nothing.
    pub(crate) fn at_caret(buffer: &Buffer) -> Option<Self> {
        let (before, behind) = buffer.text().split_at_checked(buffer.caret())?;
        let space = before.char_indices().rev().find(|(_, c)| c.is_whitespace());
        let start = space.map_or(0, |(at, c)| at + c.len_utf8());
        let end = before.len() + behind.find(char::is_whitespace).unwrap_or(behind.len());
        let mut query = before.get(start..)?.chars();
        let kind = DraftKind::of(buffer.piece());
        let named = match query.next()? {
            '/' if start == 0 && kind == DraftKind::Command => Named::Command,
            '@' if buffer.piece().is_typed(start) && !kind.has_own_sign() => Named::File,
            _ => return None,
        };
        let query = query.as_str().to_owned();
        let has_long_paste = buffer.text().get(start..end).is_some_and(|word| word.contains(STAND_IN));
        (!has_long_paste).then_some(Self { named, range: start..end, query })
    }
}

impl Completion {
    /// Finds the candidates for a word.
    pub(crate) fn new(word: Word, offers: &Offers) -> Self {
        let mut pattern = Pattern::new(&word.query);
        let (inserts, entries) = match word.named {
            Named::Command => {
                let labels = offers.commands.iter().map(|command| command.label.as_str());
                let found = pattern.best(labels, MOST).into_iter().filter_map(|n| offers.commands.get(n));
                found
                    .map(|command| (command.insert.clone(), (command.label.clone(), command.detail.clone())))
                    .unzip()
            }
            Named::File => {
                let found = pattern.best(offers.files.iter().map(String::as_str), MOST);
                let found = found.into_iter().filter_map(|n| offers.files.get(n));
                found.map(|path| (mention(path), (path.clone(), String::new()))).unzip()
            }
        };
        Self { word, popup: Popup::new(entries), inserts }
    }

    /// Returns the text that the selected name puts into the draft; `None` if no name fits.
    pub(crate) fn selection(&self) -> Option<&str> {
        self.inserts.get(self.popup.selection()).map(String::as_str)
    }
}

/// Returns the path of a file as it stands in a message: after `@`, and in quotes if it has spaces.
fn mention(path: &str) -> String {
    match path.contains(char::is_whitespace) {
        true => format!("@\"{path}\""),
        false => format!("@{path}"),
    }
}
