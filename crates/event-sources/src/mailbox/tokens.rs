//! Tokens in mail, with which a person can answer a question: no model may read one.

/// The text in place of a token.
const HIDDEN: &str = "[token]";

/// The shortest first part of a token: it has at least the names of its fields.
const SHORTEST: usize = 60;

/// The length of the second part, which is a hash of 32 bytes in base64.
const HASH: usize = 43;

/// Returns a text without the tokens that `archon-answers` makes: two parts in base64 for addresses, with a dot between. They
/// are in the id of the mail of a question, in its link, and in quotes of it.
pub(super) fn hide(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    // Words of the letters of a token, and what is between them.
    let mut rest = text;
    while let Some(start) = rest.find(is_letter) {
        let end = rest[start..].find(|c| !is_letter(c)).map_or(rest.len(), |length| start + length);
        kept.push_str(&rest[..start]);
        let word = &rest[start..end];
        rest = &rest[end..];
        match rest.strip_prefix('.').filter(|_| word.len() >= SHORTEST) {
            Some(second) if second.find(|c| !is_letter(c)).unwrap_or(second.len()) >= HASH => {
                kept.push_str(HIDDEN);
                rest = second.trim_start_matches(is_letter);
            }
            _ => kept.push_str(word),
        }
    }
    kept.push_str(rest);
    kept
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hide_replaces_tokens_and_leaves_other_words() {
        let token = format!("{}.{}", "aB3_-".repeat(40), "x".repeat(HASH));
        assert_eq!(hide(&token), "[token]");
        assert_eq!(
            hide(&format!("see https://a.example/answer#{token}, or")),
            "see https://a.example/answer#[token], or"
        );
        assert_eq!(hide(&format!("question.{token}@archon {token}")), "question.[token]@archon [token]");
        for text in
            ["", "a.b", "mail.example.com", "我.你", &"x".repeat(500), &format!("{}.short", "x".repeat(80))]
        {
            assert_eq!(hide(text), *text);
        }
    }
}
