//! What a fact is about, out of the words that follow a pattern.

use super::sentences::{bare, is_ended};

/// What an object has to be, to be one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// Whatever is said, unless it only stands for something.
    Thing,
    /// A name; what follows it is another matter.
    Name,
    /// A name, and nothing after it.
    NameAlone,
    /// What somebody works as: a name, or something with an article.
    Role,
    /// What somebody is for longer than a moment.
    State,
    /// An address with an `@`.
    Email,
    /// A telephone's number.
    Phone,
    /// A day of a year.
    Date,
}

/// An object is short; what follows these is another matter.
const ENDS: &[&str] = &["because", "and", "but", "since", "so", "which"];

/// Words that stand for something that was said before.
const PRONOUNS: &[&str] = &[
    "it", "this", "that", "these", "those", "him", "her", "them", "you", "me", "us", "my", "your", "how",
    "what",
];

/// What begins how somebody is just now, where, or what they do.
const PASSING: &[&str] = &[
    "sure", "sorry", "afraid", "glad", "happy", "sad", "tired", "here", "there", "back", "home", "done",
    "ready", "able", "hungry", "bored", "busy", "late", "away", "stuck", "lost", "confused", "curious",
    "fine", "good", "new", "in", "at", "on", "from", "with", "so", "too", "very", "just", "about", "now",
    "almost",
];

/// Small words within names: `Frankfurt am Main`.
const WITHIN: &[&str] =
    &["am", "an", "of", "upon", "de", "del", "da", "di", "la", "der", "den", "van", "von"];

const MONTHS: &[&str] = &["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The object that these words begin with; `None` if they are no such thing, or it is not clear where it ends.
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
        Shape::NameAlone => name(&words).filter(|name| *name == said(&words))?,
        Shape::Role if !["a", "an", "the"].contains(&words[0]) => name(&words)?,
        _ => said(&words),
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
    // A full stop of another script needs no space after it.
    let is_one = !object.contains(['\u{3002}', '\u{FF01}', '\u{FF1F}']);
    (fits && is_one && object.chars().any(char::is_alphanumeric)).then_some(object)
}

/// Whether this is how a name begins: with a letter that is not a small one, in whatever script.
pub(super) fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() && !c.is_lowercase())
}

fn said(words: &[&str]) -> String {
    bare(&words.join(" ")).to_owned()
}

/// The name that these words begin with, with its article.
fn name(words: &[&str]) -> Option<String> {
    let article = usize::from(matches!(words, ["the" | "The", ..]));
    let part = |word: &&&str| is_name(word) || WITHIN.contains(*word);
    let long = article + words[article..].iter().take_while(part).count();
    let last = words[..long].iter().rposition(|word| is_name(word)).filter(|last| *last >= article)?;
    let name = said(&words[..=last]);
    // Something of somebody's: `in Anna's house`.
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

/// `3 March 1990`, `March 3`, `1990-03-03`, `3.3.1990`.
fn is_date(object: &str) -> bool {
    let is_part = |word: &str| {
        word.chars().all(|c| c.is_ascii_digit() || "-./,".contains(c))
            || MONTHS.iter().any(|month| word.starts_with(month))
    };
    object.contains(|c: char| c.is_ascii_digit()) && object.split(' ').all(is_part)
}
