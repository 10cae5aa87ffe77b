//! The sentences of a text that say plainly how something is.

/// Words that change nothing of what comes after them.
const OPENERS: &[&str] = &[
    "today",
    "now",
    "currently",
    "yes",
    "well",
    "ok",
    "okay",
    "so",
    "also",
    "and",
    "but",
    "btw",
    "actually",
    "hi",
    "hello",
    "hey",
    "thanks",
];

/// A text with one of these is about something else than what it says.
const PRETENCE: &[&str] = &[
    "suppose",
    "supposing",
    "pretend",
    "imagine",
    "assume",
    "assuming",
    "hypothetically",
    "roleplay",
    "role-play",
    "translate",
    "rephrase",
    "proofread",
    "kidding",
    "joking",
];

/// A sentence with one of these says how it would be, or what somebody says.
const CONDITIONS: &[&str] = &[
    "if",
    "unless",
    "whether",
    "when",
    "whenever",
    "until",
    "would",
    "could",
    "might",
    "should",
    "maybe",
    "perhaps",
    "probably",
    "possibly",
    "supposedly",
    "allegedly",
    "wish",
    "say",
    "says",
    "said",
    "told",
    "claims",
    "claimed",
    "thinks",
    "believes",
    "wrote",
    "writes",
    "according",
    "example",
];

/// A sentence with one of these denies something, leaves it open, or takes it back: in whichever clause it stands, it may
/// be about another, as in `I live in Bern, but not any more`.
const DENIALS: &[&str] = &[
    "not", "no", "never", "neither", "nor", "none", "nothing", "nobody", "hardly", "barely", "or", "either",
    "sorry", "mean", "rather", "wait", "oops",
];

/// Words that a full stop belongs to, and a name follows.
const TITLES: &[&str] = &["st", "mt", "dr", "mr", "mrs", "ms", "prof"];

/// Signs that may stand behind the one that ends a sentence.
const CLOSING: &[char] = &['"', '\'', '\u{201D}', '\u{2019}', '\u{BB}', ')', ']', '}'];
/// Signs that end a sentence where white space or the end of the text follows them.
const ENDING: &[char] = &['.', '!', '?', ';', '\u{2026}', '\u{3002}', '\u{FF01}', '\u{FF1F}'];

/// The words of each sentence that is a statement of whoever wrote the text.
pub(super) fn statements(text: &str) -> Vec<Vec<&str>> {
    let mut sentences = sentences(text);
    if sentences.iter().flatten().any(|word| is_one_of(word, PRETENCE)) {
        return Vec::new();
    }
    // From the first sign of another's words on it is not known whose they are.
    let own = sentences.iter().take_while(|sentence| !sentence.iter().any(|word| is_quoting(word))).count();
    sentences.truncate(own);
    let is_open = |word: &&str| is_question(word) || is_one_of(word, CONDITIONS) || is_denied(word);
    sentences.retain(|sentence| !sentence.iter().any(is_open));
    sentences
}

/// Whether this says nothing of what comes after it.
pub(super) fn is_opener(word: &str) -> bool {
    is_one_of(word, OPENERS)
}

/// Whether what is not understood here may correct what is. At the beginning of a sentence `actually` corrects another.
pub(super) fn is_corrected(sentence: &[&str]) -> bool {
    sentence.iter().skip_while(|word| is_opener(word)).any(|word| is_one_of(word, &["actually"]))
}

/// Whether a sign stands at the end of this word that ends sentences, and is no part of the word.
pub(super) fn is_ended(word: &str) -> bool {
    let word = word.trim_end_matches(CLOSING);
    word.ends_with(ENDING) && !is_title(word)
}

/// A word without the signs that end sentences, close and put aside. What belongs to it stays: `C++`, `.NET`, `+41`.
pub(super) fn bare(word: &str) -> &str {
    word.trim_end_matches(|c| c == ',' || CLOSING.contains(&c) || ENDING.contains(&c))
}

/// All sentences by their words. They end at a sign and white space, unless what follows begins small, and at an empty
/// line; a line that breaks within one is a word of its own, which nothing fits.
fn sentences(text: &str) -> Vec<Vec<&str>> {
    let (mut sentences, mut sentence) = (Vec::new(), Vec::new());
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
        rest = after.trim_start();
        match word {
            "I'm" | "I\u{2019}m" => sentence.extend(["I", "am"]),
            _ => sentence.push(word),
        }
        let breaks = after[..after.len() - rest.len()].matches('\n').count();
        let is_colon = word.ends_with(':');
        if is_end(word, rest) || (breaks > 1 && !is_colon) {
            sentences.push(std::mem::take(&mut sentence));
        } else if breaks > 0 && !word.ends_with(',') {
            sentence.push("\n");
        }
    }
    sentences.push(sentence);
    sentences
}

fn is_end(word: &str, rest: &str) -> bool {
    let word = word.trim_end_matches(CLOSING);
    let goes_on = || rest.starts_with(|c: char| c.is_lowercase() || c.is_numeric());
    // The first letter of a name, as in `Samuel L. Jackson`.
    let is_initial = || word.chars().count() == 2 && word.starts_with(char::is_uppercase);
    word.ends_with(';') || (is_ended(word) && !goes_on() && !(word.ends_with('.') && is_initial()))
}

fn is_title(word: &str) -> bool {
    word.strip_suffix('.').is_some_and(|word| is_one_of(word, TITLES))
}

fn is_denied(word: &str) -> bool {
    let ends = |end: &str| bare(word).ends_with(end);
    is_one_of(word, DENIALS) || ends("n't") || ends("n\u{2019}t")
}

fn is_question(word: &str) -> bool {
    word.trim_end_matches(CLOSING).ends_with(['?', '\u{FF1F}'])
}

/// Quotation marks, what stands before others' words, and signs of code.
fn is_quoting(word: &str) -> bool {
    let marks = ['"', '\u{201C}', '\u{201D}', '\u{201E}', '\u{AB}', '\u{BB}', '\u{300C}', '`'];
    let opening = ['\'', '\u{2018}', '\u{201A}', '>'];
    word.contains(marks) || word.starts_with(opening) || word.ends_with([':', '\u{FF1A}'])
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    words.iter().any(|one| one.eq_ignore_ascii_case(word))
}
