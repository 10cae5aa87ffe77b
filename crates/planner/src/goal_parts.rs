//! Splits a goal into its instructions by its words, and finds mentions of earlier results.
//!
//! A model of a few hundred million parameters cannot write a plan, but most goals name their steps:
//! `compute this, compute that, then add both results`. The words are English; a goal in another language
//! is not split.

/// Returns the instructions of a goal as sentences, in order.
pub(crate) fn parts(goal: &str) -> Vec<String> {
    let words: Vec<&str> = goal.split_whitespace().collect();
    let mut parts: Vec<Vec<&str>> = vec![Vec::new()];
    for (at, word) in words.iter().enumerate() {
        if begins(&words[..at], &words[at..])
            && let Some(open) = parts.last_mut()
        {
            while open.last().is_some_and(|last| is_link(last)) {
                open.pop();
            }
            if !open.is_empty() {
                parts.push(Vec::new());
            }
        }
        if let Some(open) = parts.last_mut() {
            open.push(word);
        }
    }
    parts.iter().filter(|words| !words.is_empty()).map(|words| sentence(words)).collect()
}

/// Returns true if the instruction asks for something new to be made, as `Plan a trip` does.
pub(crate) fn composes(instruction: &str) -> bool {
    starts_with_one(instruction, COMPOSING)
}

/// Returns true if the instruction asks for an explanation of results, not for new results.
pub(crate) fn tells(instruction: &str) -> bool {
    starts_with_one(instruction, TELLING)
}

/// Replaces each phrase that refers to earlier results by the names of these results, and also returns the results'
/// indexes in `names`: `Add both results.` becomes `Add A and B.` Returns `None` if there is no such phrase. `names`
/// are the names of all earlier results.
pub(crate) fn with_names(text: &str, names: &[&str]) -> Option<(String, Vec<usize>)> {
    let last = names.len().checked_sub(1)?;
    let mut found: Vec<usize> = Vec::new();
    let mut named = text.to_owned();
    for (phrase, means) in PHRASES {
        let places: Vec<usize> = match means {
            Means::Both => (names.len().saturating_sub(2)..names.len()).collect(),
            Means::All => (0..names.len()).collect(),
            Means::Last => vec![last],
            Means::Number(number) if *number <= last => vec![*number],
            Means::Number(_) => continue,
        };
        let list: Vec<&str> = places.iter().map(|place| names[*place]).collect();
        if let Some(replaced) = replace_words(&named, phrase, &list.join(" and ")) {
            named = replaced;
            found.extend(places);
        }
    }
    found.sort_unstable();
    found.dedup();
    (!found.is_empty()).then_some((named, found))
}

enum Means {
    Both,
    All,
    Last,
    Number(usize),
}

/// Phrases that refer to earlier results. A longer phrase comes before the phrases that it contains.
#[rustfmt::skip]
const PHRASES: &[(&str, Means)] = &[
    ("the first result", Means::Number(0)), ("the second result", Means::Number(1)),
    ("the third result", Means::Number(2)), ("the first one", Means::Number(0)),
    ("the second one", Means::Number(1)), ("the first from", Means::Number(0)),
    ("from the second", Means::Number(1)), ("from the first", Means::Number(0)),
    ("by the second", Means::Number(1)), ("by the first", Means::Number(0)),
    ("all the results", Means::All), ("all results", Means::All),
    ("both the results", Means::Both), ("both results", Means::Both), ("both numbers", Means::Both),
    ("the two results", Means::Both), ("the two numbers", Means::Both), ("the results", Means::All),
    ("both", Means::Both), ("them", Means::All),
    ("the last result", Means::Last), ("the result", Means::Last), ("that result", Means::Last),
    ("this result", Means::Last), ("the sum", Means::Last), ("the product", Means::Last),
    ("the difference", Means::Last), ("the quotient", Means::Last), ("the total", Means::Last),
    ("that number", Means::Last), ("it", Means::Last),
];

/// Words that may follow a phrase that refers to an earlier result. Before any other word, the phrase means something
/// else.
const FOLLOWING: &[&str] = &[
    "and", "as", "by", "from", "in", "into", "is", "on", "or", "then", "through", "to", "together", "up",
    "with",
];

/// Verbs that ask for an explanation.
const TELLING: &str = "tell say name summarise summarize explain describe answer report compare decide \
                       suggest judge recommend mention conclude state";

/// Verbs that ask for something new to be made.
const COMPOSING: &str =
    "plan write outline design prepare organise organize draft invent compose create arrange make";

/// Other verbs with which an instruction starts.
const DOING: &str = "compute calculate add subtract multiply divide sum take read open look search find list \
                     show count give print check translate choose fetch get save delete run use convert \
                     combine sort double halve square edit move copy extract evaluate download send ask \
                     determine work";

/// Returns true if a text starts with one of the verbs.
fn starts_with_one(text: &str, verbs: &str) -> bool {
    let verb = text.split_whitespace().next().map(plain);
    verb.is_some_and(|verb| verbs.split(' ').any(|known| known == verb))
}

fn is_verb(word: &str) -> bool {
    [TELLING, COMPOSING, DOING].iter().any(|verbs| starts_with_one(word, verbs))
}

/// Returns true if `words`, which follow the words `before`, start a new instruction.
fn begins(before: &[&str], words: &[&str]) -> bool {
    let (Some(last), Some(word)) = (before.last(), words.first()) else { return false };
    if last.ends_with(';') || (last.ends_with(['.', '!', '?']) && word.starts_with(char::is_uppercase)) {
        return true;
    }
    // The words that link two instructions belong to the second instruction.
    let word = words.iter().find(|word| !is_link(word)).unwrap_or(word);
    (last.ends_with(',') || is_link(last) || words.first().is_some_and(|first| is_link(first)))
        && is_verb(word)
}

fn is_link(word: &str) -> bool {
    matches!(plain(word).as_str(), "and" | "then" | "finally" | "afterwards" | "next")
}

fn sentence(words: &[&str]) -> String {
    let skipped = words.iter().position(|word| !is_link(word)).unwrap_or(0);
    let text = words[skipped..].join(" ");
    let text = text.trim_end_matches([',', ';', ' ']);
    let mut letters = text.chars();
    let mut text: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    if !text.ends_with(['.', '?', '!']) {
        text.push('.');
    }
    text
}

fn plain(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

/// Replaces the phrase wherever it occurs as whole words. A word of the phrase that is not part of the
/// result's name, such as `from`, stays. Returns `None` if the phrase is not found.
fn replace_words(text: &str, phrase: &str, name: &str) -> Option<String> {
    let lower = text.to_lowercase();
    if lower.len() != text.len() {
        return None;
    }
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut out = String::new();
    let mut done = 0;
    for (at, _) in lower.match_indices(phrase) {
        let end = at + phrase.len();
        let is_whole = !is_word(lower[..at].chars().next_back()) && !is_word(lower[end..].chars().next());
        // `both files` is about files, `the sum of 5 and 6` and `the total cost` about something new;
        // `notes.it` is a name.
        let next: String = lower[end..].trim_start().chars().take_while(|c| c.is_alphabetic()).collect();
        let is_named = phrase == "both" || phrase.starts_with("the ");
        let is_other = is_named && !next.is_empty() && !FOLLOWING.contains(&next.as_str());
        if at < done || !is_whole || is_other || lower[..at].ends_with(['.', '/']) {
            continue;
        }
        out.push_str(&text[done..at]);
        out.push_str(&match phrase.split_once(' ') {
            Some((word @ ("from" | "by"), _)) => format!("{word} {name}"),
            _ if phrase.ends_with(" from") => format!("{name} from"),
            _ => name.to_owned(),
        });
        done = end;
    }
    out.push_str(&text[done..]);
    (done > 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(goal: &str, expected: &[&str]) {
        assert_eq!(parts(goal), expected);
    }

    #[test]
    fn parts_of_a_goal_end_where_the_next_instruction_begins() {
        check(
            "Compute 15% of 200, compute 23*47, then add both results",
            &["Compute 15% of 200.", "Compute 23*47.", "Add both results."],
        );
        check("Read a.txt and then say what it is", &["Read a.txt.", "Say what it is."]);
        check("Take 5; double it. Finally print it!", &["Take 5.", "Double it.", "Print it!"]);
        check("Add 3 and 4, and, afterwards, halve the sum", &["Add 3 and 4.", "Halve the sum."]);
    }

    #[test]
    fn parts_of_a_goal_that_is_one_instruction_are_the_goal() {
        check("Compare apples, pears and plums", &["Compare apples, pears and plums."]);
        check("plan a trip to Paris", &["Plan a trip to Paris."]);
        check("Which files mention search and replace?", &["Which files mention search and replace?"]);
        check("Lies die Datei und fasse sie zusammen", &["Lies die Datei und fasse sie zusammen."]);
        check("  ", &[]);
    }

    #[test]
    fn with_names_replaces_mentioned_results_by_names() {
        let named = |text: &str| with_names(text, &["A", "B", "C"]);
        let some = |text: &str, places: &[usize]| Some((text.to_owned(), places.to_vec()));
        assert_eq!(named("Add both results."), some("Add B and C.", &[1, 2]));
        assert_eq!(named("Add all results."), some("Add A and B and C.", &[0, 1, 2]));
        assert_eq!(named("Take the first result from the second."), some("Take A from B.", &[0, 1]));
        assert_eq!(named("Divide the sum by 6."), some("Divide C by 6.", &[2]));
        assert_eq!(named("Say it."), some("Say C.", &[2]));
        assert_eq!(named("Add the results."), some("Add A and B and C.", &[0, 1, 2]));
        assert_eq!(named("Compute the sum of 5 and 6."), None);
        assert_eq!(named("Find the total cost and the difference between a and b."), None);
        assert_eq!(named("Open notes.it and both files."), None);
        assert_eq!(with_names("Add both results.", &[]), None);
        assert_eq!(with_names("Add both results.", &["A"]), some("Add A.", &[0]));
        assert_eq!(with_names("Show the third result.", &["A"]), None);
    }

    proptest! {
        #[test]
        fn goal_parts_of_any_text_keep_all_words_except_links(goal in "([a-z]{1,5}|and|then|add|[,;.\u{130}ß]| ){0,40}") {
            let found = parts(&goal);
            let words = |text: &str| text.split_whitespace().map(plain).filter(|w| !w.is_empty() && !is_link(w)).count();
            let found_words: usize = found.iter().map(|part| words(part)).sum();
            prop_assert_eq!(found_words, words(&goal));
            for part in found {
                with_names(&part, &["A", "B"]);
            }
        }
    }
}
