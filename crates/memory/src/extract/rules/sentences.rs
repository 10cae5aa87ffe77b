//! Splits a text into sentences, and keeps the plain statements.

/// Words at the beginning of a clause that do not change its meaning.
const OPENERS: &str = "today now currently yes well ok okay so also and but btw actually hi hello hey thanks";

/// Words that make the whole text doubtful: it may be a pretence, or a text to work on.
const PRETENCE: &str = "suppose supposing pretend imagine assume assuming hypothetically roleplay role-play \
     translate rephrase proofread kidding joking character game dream dreams story novel campaign";

/// Words that make a sentence a condition, a possibility or reported speech.
const CONDITIONS: &str = "if unless whether when whenever until would could might should maybe perhaps \
     probably possibly supposedly allegedly wish say says said told claims claimed thinks believes wrote writes \
     according example";

/// Words that make a sentence an alternative, a correction or irony. They may belong to another clause of the
/// sentence, as in `I live in Bern, or Basel`.
const DOUBTS: &str =
    "never neither nor none nothing nobody hardly barely or either sorry mean rather wait oops";

/// Titles that end with a full stop and come before a name.
const TITLES: &str = "st mt dr mr mrs ms prof";

/// Characters that may follow the character that ends a sentence.
const CLOSING: &[char] = &['"', '\'', '\u{201D}', '\u{2019}', '\u{BB}', ')', ']', '}'];
/// Characters that end a sentence if white space or the end of the text follows.
const ENDING: &[char] = &['.', '!', '?', ';', '\u{2026}', '\u{3002}', '\u{FF01}', '\u{FF1F}'];

/// A sentence of the author that is neither a question nor a condition.
pub(super) struct Statement<'t> {
    pub(super) words: Vec<&'t str>,
    /// True if the sentence denies something. The denial may belong to another clause, as in `I live in Bern, but not
    /// any more`.
    pub(super) is_denied: bool,
}

/// Returns each sentence that is a plain statement of the author.
pub(super) fn statements(text: &str) -> Vec<Statement<'_>> {
    let mut sentences = sentences(text);
    if sentences.iter().flatten().any(|word| is_one_of(word, PRETENCE)) {
        return Vec::new();
    }
    // After the first quotation it is not known whose words follow.
    let own = sentences.iter().take_while(|sentence| !sentence.iter().any(|word| is_quoting(word))).count();
    sentences.truncate(own);
    // After an ironic exclamation nothing is meant as it is said.
    if sentences.iter().any(|words| words.len() < 4 && words.iter().any(|word| is_one_of(word, "great"))) {
        return Vec::new();
    }
    let is_open = |word: &&str| is_question(word) || is_one_of(word, CONDITIONS) || is_one_of(word, DOUBTS);
    sentences.retain(|sentence| !sentence.iter().any(is_open));
    let is_denied = |words: &Vec<&str>| words.iter().any(|word| is_denied(word));
    sentences.into_iter().map(|words| Statement { is_denied: is_denied(&words), words }).collect()
}

/// Returns true if the word does not change the meaning of the words after it.
pub(super) fn is_opener(word: &str) -> bool {
    is_one_of(word, OPENERS)
}

/// Returns true if the sentence may correct itself. At the beginning of a sentence, `actually` corrects an
/// earlier sentence.
pub(super) fn is_corrected(sentence: &[&str]) -> bool {
    sentence.iter().skip_while(|word| is_opener(word)).any(|word| is_one_of(word, "actually"))
}

/// Returns true if the word ends a sentence; the full stop of a title does not.
pub(super) fn is_ended(word: &str) -> bool {
    let word = word.trim_end_matches(CLOSING);
    word.ends_with(ENDING) && !is_title(word)
}

/// Removes commas, closing characters and characters that end sentences. Characters that belong to the word
/// stay: `C++`, `.NET`, `+41`.
pub(super) fn bare(word: &str) -> &str {
    word.trim_end_matches(|c| c == ',' || CLOSING.contains(&c) || ENDING.contains(&c))
}

/// Splits a text into sentences of words. A sentence ends at an ending character with white space after it,
/// unless a lower-case word follows, and at an empty line. A single line break within a sentence becomes a
/// word that no pattern matches.
fn sentences(text: &str) -> Vec<Vec<&str>> {
    let (mut sentences, mut sentence) = (Vec::new(), Vec::new());
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
        rest = after.trim_start();
        match word {
            "I'm" | "I\u{2019}m" => sentence.extend(["I", "am"]),
            "I've" | "I\u{2019}ve" => sentence.extend(["I", "have"]),
            // What a person says of `we` holds for the person, too.
            "We" | "we" => sentence.push("I"),
            "We're" | "We\u{2019}re" => sentence.extend(["I", "am"]),
            "We've" | "We\u{2019}ve" => sentence.extend(["I", "have"]),
            "are" if sentence.last() == Some(&"I") => sentence.push("am"),
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
    // An initial is no end, as in `Samuel L. Jackson`.
    let is_initial = || word.chars().count() == 2 && word.starts_with(char::is_uppercase);
    word.ends_with(';') || (is_ended(word) && !goes_on() && !(word.ends_with('.') && is_initial()))
}

fn is_title(word: &str) -> bool {
    word.strip_suffix('.').is_some_and(|word| is_one_of(word, TITLES))
}

fn is_denied(word: &str) -> bool {
    let ends = |end: &str| bare(word).ends_with(end);
    is_one_of(word, "not no") || ends("n't") || ends("n\u{2019}t")
}

fn is_question(word: &str) -> bool {
    word.trim_end_matches(CLOSING).ends_with(['?', '\u{FF1F}'])
}

/// Returns true if the word has quotation marks, a colon, or characters of code or quotes.
fn is_quoting(word: &str) -> bool {
    let marks = ['"', '\u{201C}', '\u{201D}', '\u{201E}', '\u{AB}', '\u{BB}', '\u{300C}', '`'];
    let opening = ['\'', '\u{2018}', '\u{201A}', '>'];
    word.contains(marks) || word.starts_with(opening) || word.ends_with([':', '\u{FF1A}'])
}

/// Returns true if the word is one of `words`, which have spaces between them. Case and punctuation around
/// the word are ignored.
fn is_one_of(word: &str, words: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    words.split(' ').any(|one| one.eq_ignore_ascii_case(word))
}
