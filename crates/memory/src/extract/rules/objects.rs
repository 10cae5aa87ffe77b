//! Finds the object of a fact in the words after a pattern.

use super::sentences::{bare, is_ended};
use crate::words::is_any;

/// The form that the words of an object must have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// Any words, except pronouns.
    Thing,
    /// A name; the words after it are ignored.
    Name,
    /// A name without words after it.
    NameAlone,
    /// A name, and after it nothing that says that the person was there for some time only.
    Place,
    /// A thing without the words about its purpose.
    Tool,
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
const ENDS: &str = "because and but since so which";

/// Words that refer to an earlier statement.
const PRONOUNS: &str = "it this that these those him her them you me us my your how what where when";

/// Words for a choice of the moment.
const CHOICES: &str = "option one version former latter";

/// Words after an object that say that it is one no longer, or since when.
const NO_LONGER: &str = "any anymore now since lately";

/// Words after a tool that begin its purpose or its time.
const TOOL_ENDS: &str = "any anymore for now since to when";

/// Words for a time that a person spends at a place without living there.
const STAYS: &str = "weekend holiday holidays vacation semester temporarily week weeks days while bit";

/// Words that begin a passing state, a place or an activity.
const PASSING: &str = "sure sorry afraid glad happy sad tired here there back home done ready able hungry bored busy \
     late away stuck lost confused curious fine good new in at on from with so too very just about now almost";

/// Lower-case words within names: `Frankfurt am Main`.
const WITHIN: &str = "am an of upon de del da di la der den van von";

const MONTHS: &str = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec";

/// Returns the object at the beginning of these words; `None` if the words do not fit the shape, or if the
/// end of the object is unclear.
pub(super) fn object(words: &[&str], shape: Shape) -> Option<String> {
    let ends = |word: &&&str| !is_any(word, ENDS) && !word.starts_with(['(', '[', '{']);
    let words: Vec<&str> = words.iter().take_while(ends).copied().collect();
    let (last, before) = words.split_last()?;
    let is_unclear = |word: &str| matches!(word, "I" | "\n");
    if is_unclear(last) || before.iter().any(|word| is_unclear(word) || is_ended(word)) {
        return None;
    }
    let object = match shape {
        Shape::Name => name(&words)?,
        Shape::NameAlone => name(&words).filter(|name| *name == joined(&words))?,
        Shape::Place => name(&words).filter(|_| !is_passing_stay(&words))?,
        Shape::Tool => joined(until(&words, TOOL_ENDS)),
        Shape::Thing | Shape::State => joined(until(&words, NO_LONGER)),
        Shape::Role if !["a", "an", "the"].contains(&words[0]) => name(&words)?,
        _ => joined(&words),
    };
    let first = bare(words[0]);
    let fits = match shape {
        Shape::Thing | Shape::Tool => {
            !is_any(first, PRONOUNS) && !words.iter().any(|word| is_any(bare(word), CHOICES))
        }
        Shape::State => !first.ends_with("ing") && !is_any(first, PASSING),
        Shape::Email => before.is_empty() && is_address(&object),
        Shape::Phone => is_number(&object),
        Shape::Date => is_date(&object),
        Shape::Name | Shape::NameAlone | Shape::Place | Shape::Role => true,
    };
    // A full stop of another script needs no space after it, so the object may be several sentences.
    let is_one = !object.contains(['\u{3002}', '\u{FF01}', '\u{FF1F}']);
    (fits && is_one && object.chars().any(char::is_alphanumeric)).then_some(object)
}

/// Returns the words before the first of `ends`; all words if the first one is among them.
fn until<'w, 't>(words: &'w [&'t str], ends: &str) -> &'w [&'t str] {
    let end = words.iter().skip(1).position(|word| is_any(bare(word), ends));
    end.map_or(words, |end| &words[..=end])
}

/// Returns true if the words after a name say that the person was there in a year of the past, or for some time only.
fn is_passing_stay(words: &[&str]) -> bool {
    let is_year = |word: &str| word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit());
    let is_for = words.contains(&"for");
    words.iter().map(|word| bare(word)).any(|word| is_year(word) || (is_for && is_any(word, STAYS)))
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
    let part = |word: &&&str| is_name(word) || is_any(word, WITHIN);
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
            || MONTHS.split(' ').any(|month| word.starts_with(month))
    };
    object.contains(|c: char| c.is_ascii_digit()) && object.split(' ').all(is_part)
}
