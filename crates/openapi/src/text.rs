//! Text of documents and responses, which is untrusted: bounded, and without invisible characters.

use archon_types::is_hidden;

/// Returns the text without control characters and invisible characters, because a model could read words
/// in them that a person does not see. A text of more than `most` characters is cut, and ends with `…`.
pub(crate) fn plain(text: &str, most: usize) -> String {
    let is_unseen =
        |c: char| !matches!(c, '\n' | '\t') && (is_hidden(c) || ('\u{fe00}'..='\u{fe0f}').contains(&c));
    let mut visible = text.chars().filter(|c| !is_unseen(*c));
    let mut plain: String = visible.by_ref().take(most).collect();
    if visible.next().is_some() {
        plain.pop();
        plain.push('…');
    }
    plain
}

/// Returns the text as [`plain`] does, on one line.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    plain(text, most).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the text without Unicode tag characters and characters that control the direction of writing. Other
/// invisible characters stay, because the data of a response may contain them.
pub(crate) fn without_tags(text: &str) -> String {
    text.replace(is_tag, "")
}

/// Returns whether a text has characters that [`without_tags`] removes.
pub(crate) fn has_tags(text: &str) -> bool {
    text.contains(is_tag)
}

fn is_tag(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the text of an error, and the texts of at most four causes.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let causes: String = causes.take(4).map(|cause| format!(": {cause}")).collect();
    format!("{error}{causes}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_removes_invisible_characters_and_limits_the_length() {
        assert_eq!(plain("a\u{200b}b\u{202e}c\u{e0041}\u{7}d\ne\u{fe0f}", 99), "abcd\ne");
        assert_eq!(plain("abcdef", 4), "abc…");
        assert_eq!(one_line("a\n b\tc\u{200b}d", 99), "a b cd");
    }

    #[test]
    fn without_tags_removes_tags_and_controls_of_direction_and_keeps_joiners() {
        assert_eq!(without_tags("a\u{e0041}b\u{202e}c\u{200d}d"), "abc\u{200d}d");
    }
}
