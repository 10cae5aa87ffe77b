//! The limits of the specification, and its rules for names.

use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

use crate::SkillProblemKind;

/// The maximum number of characters of a name.
pub(crate) const NAME: usize = 64;
/// The maximum number of characters of a description.
pub(crate) const DESCRIPTION: usize = 1024;
/// The maximum number of characters of a compatibility note.
pub(crate) const COMPATIBILITY: usize = 500;

/// Returns the problems of a skill's name, which must not be empty. `folder` is the name of the skill's folder.
pub(crate) fn name_problems(name: &str, folder: &str) -> Vec<(SkillProblemKind, String)> {
    let name: String = name.nfkc().collect();
    let mut problems = Vec::new();
    let mut add = |text: String| problems.push((SkillProblemKind::Name, text));
    let length = name.chars().count();
    if length > NAME {
        add(format!("the name has {length} characters; at most {NAME} are allowed"));
    }
    if name != name.to_lowercase() {
        add(format!("the name `{name}` must be in lower case"));
    }
    if name.starts_with('-') || name.ends_with('-') {
        add(format!("the name `{name}` must not begin or end with a hyphen"));
    }
    if name.contains("--") {
        add(format!("the name `{name}` must not have two hyphens after each other"));
    }
    if !name.chars().all(|c| is_letter_or_digit(c) || c == '-') {
        add(format!("the name `{name}` may have only letters, digits and hyphens"));
    }
    if folder.nfkc().ne(name.chars()) {
        let text = format!("the name `{name}` differs from the folder's name `{folder}`; make them equal");
        problems.push((SkillProblemKind::FolderName, text));
    }
    problems
}

/// Returns true for letters and digits. The standard library also counts marks that belong to a letter, and letters
/// in circles and squares; the reference validator does not.
fn is_letter_or_digit(c: char) -> bool {
    let is_symbol = matches!(c, '\u{24b6}'..='\u{24e9}' | '\u{1f130}'..='\u{1f189}');
    c.is_alphanumeric() && !is_combining_mark(c) && !is_symbol
}
