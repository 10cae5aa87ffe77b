//! Finds the object of a fact in the words after a pattern.

use super::sentences::{bare, is_ended};

/// The form that the words of an object must have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// Any words, except pronouns.
    Thing,
    /// A name; the words after it are ignored.
    Name,
    /// A name without words after it.
    NameAlone,
    /// A job: a name, or words with an article.
    Role,
    /// A lasting state; a passing mood or place is refused.
    State,
    /// An address with an `@`.
    Email,
    /// A telephone number.
    Phone,
    /// A day, month and year.
    Date,
}

/// Words that do not belong to the object before them, but begin another clause.
const ENDS: &[&str] = &["because", "and", "but", "since", "so", "which"];

/// Words that refer to an earlier statement.
const PRONOUNS: &[&str] = &[
    "it", "this", "that", "these", "those", "him", "her", "them", "you", "me", "us", "my", "your", "how",
    "what",
];

/// Words that begin a passing state, a place or an activity.
const PASSING: &[&str] = &[
    "sure", "sorry", "afraid", "glad", "happy", "sad", "tired", "here", "there", "back", "home", "done",
    "ready", "able", "hungry", "bored", "busy", "late", "away", "stuck", "lost", "confused", "curious",
    "fine", "good", "new", "in", "at", "on", "from", "with", "so", "too", "very", "just", "about", "now",
    "almost",
];

/// Lower-case words within names: `Frankfurt am Main`.
const WITHIN: &[&str] =
    &["am", "an", "of", "upon", "de", "del", "da", "di", "la", "der", "den", "van", "von"];

const MONTHS: &[&str] = &["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Returns the object at the beginning of these words; `None` if the words do not fit the shape, or if the
/// end of the object is unclear.
pub(super) fn object(words: &[&str], shape: Shape) -> Option<String> {
    let ends = |word: &&&str| !ENDS.contains(*word) && !word.starts_with(['(', '[', '{']);
    let words: Vec<&str> = words.iter().take_while(ends).copied().collect();
    let (last, before) = words.split_last()?;
    let is_unclear = |word: &str| matches!(word, "I" | "\n");
    if is_unclear(last) || before.iter().any(|word| is_unclear(word) || is_ended(word)) {
        return None;
    }
    let object = match shape {
        Shape::Name => name(&words)?,
        Shape::NameAlone => name(&words).filter(|name| *name == joined(&words))?,
        Shape::Role if !["a", "an", "the"].contains(&words[0]) => name(&words)?,
        _ => joined(&words),
    };
    let first = bare(words[0]);
    let fits = match shape {
        Shape::Thing => !PRONOUNS.contains(&first),
        Shape::State => !first.ends_with("ing") && !PASSING.contains(&first),
        Shape::Email => before.is_empty() && is_address(&object),
        Shape::Phone => is_number(&object),
        Shape::Date => is_date(&object),
        Shape::Name | Shape::NameAlone | Shape::Role => true,
    };
    // A full stop of another script needs no space after it, so the object may be several sentences.
    let is_one = !object.contains(['\u{3002}', '\u{FF01}', '\u{FF1F}']);
    (fits && is_one && object.chars().any(char::is_alphanumeric)).then_some(object)
}

/// Returns true if the word can begin a name: its first letter, in any script, is not lower case.
pub(super) fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() && !c.is_lowercase())
}

fn joined(words: &[&str]) -> String {
    bare(&words.join(" ")).to_owned()
}

/// Returns the name at the beginning of these words, with its article.
fn name(words: &[&str]) -> Option<String> {
    let article = usize::from(matches!(words, ["the" | "The", ..]));
    let part = |word: &&&str| is_name(word) || WITHIN.contains(*word);
    let long = article + words[article..].iter().take_while(part).count();
    let last = words[..long].iter().rposition(|word| is_name(word)).filter(|last| *last >= article)?;
    let name = joined(&words[..=last]);
    // A possessive, as in `in Anna's house`, is not the object.
    let is_owner = name.ends_with("'s") || name.ends_with("\u{2019}s");
    (words.get(article).is_some_and(|word| is_name(word)) && !is_owner).then_some(name)
}

fn is_address(object: &str) -> bool {
    let is_part = |text: &str| text.starts_with(char::is_alphanumeric) && !text.contains(['@', '<', '>']);
    object.split_once('@').is_some_and(|(who, place)| is_part(who) && is_part(place))
}

fn is_number(object: &str) -> bool {
    let digits = object.chars().filter(char::is_ascii_digit).count();
    digits >= 5 && object.chars().all(|c| c.is_ascii_digit() || " +-./".contains(c))
}

/// Returns true if the text is a date: `3 March 1990`, `March 3`, `1990-03-03`, `3.3.1990`.
fn is_date(object: &str) -> bool {
    let is_part = |word: &str| {
        word.chars().all(|c| c.is_ascii_digit() || "-./,".contains(c))
            || MONTHS.iter().any(|month| word.starts_with(month))
    };
    object.contains(|c: char| c.is_ascii_digit()) && object.split(' ').all(is_part)
}
