//! Detects answers in which a model declines the task, by the words of the answers.
//!
//! A refusal is shown to the person who asked. No code tries to talk a model out of it.

/// Returns true if the text begins by declining. Only the first 240 characters are checked: an answer that
/// does the task and mentions a limit later is no refusal.
pub(crate) fn is_refusal(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(WITHIN).collect::<String>().to_lowercase();
    let start = start.replace('\u{2019}', "'");
    CANNOT.iter().any(|cannot| {
        start.match_indices(cannot).any(|(at, _)| {
            let rest = start[at + cannot.len()..].trim_start();
            is_sentence_start(&start[..at])
                && (rest.starts_with(['.', '!']) || WHAT.iter().any(|what| rest.starts_with(what)))
        })
    })
}

/// Returns true if the last sentence of `before` is empty or consists of polite words only.
fn is_sentence_start(before: &str) -> bool {
    let sentence = before.rsplit(['.', '!', '\n']).next().unwrap_or(before).trim();
    let polite = [
        "",
        "i'm sorry, but",
        "i'm sorry,",
        "i am sorry, but",
        "sorry, but",
        "sorry,",
        "unfortunately,",
        "i apologize, but",
    ];
    polite.contains(&sentence)
}

/// The number of characters at the beginning of an answer that are checked.
const WITHIN: usize = 240;

const CANNOT: &[&str] = &[
    "i can't",
    "i cannot",
    "i can not",
    "i won't",
    "i will not",
    "i'm unable to",
    "i am unable to",
    "i'm not able to",
    "i am not able to",
    "i'm not allowed to",
    "i must decline",
    "i have to decline",
];

const WHAT: &[&str] = &[
    "do that",
    "do this",
    "help",
    "assist",
    "comply",
    "fulfil",
    "provide",
    "create",
    "write",
    "generate",
    "answer that",
    "answer this",
    "discuss",
    "continue with",
    "support",
    "participate",
    "engage",
    "to ",
];

#[cfg(test)]
mod tests {
    use super::*;

    // spec: R-29
    #[test]
    fn is_refusal_is_true_for_declining_answers_and_false_for_reports() {
        for text in [
            "I cannot do that.",
            "I can\u{2019}t help with this request.",
            "I'm sorry, but I can't assist with that.",
            "Sorry, I won't write malware.",
            "That is dangerous. I must decline to explain it.",
            "I cannot.",
        ] {
            assert!(is_refusal(text), "{text}");
        }
        for text in [
            "",
            "The capital is Paris.",
            "I can't find the file `a.txt`: it is not there.",
            "Done. The script that says \"I cannot do that\" is in a.sh.",
            "He said that I cannot help.",
            "I am able to help: 4.",
        ] {
            assert!(!is_refusal(text), "{text}");
        }
    }
}
