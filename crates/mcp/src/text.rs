//! Text of servers, which is untrusted: bounded, and without invisible characters.

use archon_types::is_hidden;

/// Maximum number of characters of a server's error message that are passed on.
pub(crate) const MESSAGE: usize = 2_000;

/// Returns the text without control characters and invisible ones, which can hide from a person words that a
/// model reads. A text of more than `most` characters is cut, and ends with `…`.
pub(crate) fn plain(text: &str, most: usize) -> String {
    let mut visible = text.chars().filter(|c| !is_unseen(*c));
    let mut plain: String = visible.by_ref().take(most).collect();
    if visible.next().is_some() {
        plain.pop();
        plain.push('…');
    }
    plain
}

/// Returns the text as [`plain`] does, on one line: a blank replaces each line break and tab. So a server
/// cannot add a line to a list or to a question.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    plain(text, most).replace(['\n', '\t'], " ")
}

/// Returns the text without tag characters and supplementary variation selectors, which can carry a text that
/// a model reads and a person does not see, and without embeddings, overrides and isolates of the direction of
/// writing. Joiners and byte order marks stay, because files contain them.
pub(crate) fn without_tags(text: String) -> String {
    match text.contains(is_tag) {
        true => text.replace(is_tag, ""),
        false => text,
    }
}

/// Returns whether [`without_tags`] removes a character.
fn is_tag(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the text of an error with its causes, at most four.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let causes: String = causes.take(4).map(|cause| format!(": {cause}")).collect();
    format!("{error}{causes}")
}

/// Returns whether a character is a control character (other than a line break or a tab), or is not shown:
/// marks of direction, joiners, fillers, tags and variation selectors.
pub(crate) fn is_unseen(c: char) -> bool {
    !matches!(c, '\n' | '\t') && (is_hidden(c) || matches!(c, '\u{fe00}'..='\u{fe0f}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_removes_invisible_characters_and_limits_the_length() {
        assert_eq!(plain("a\u{200b}b\u{202e}c\u{e0041}\u{7}d\ne\tf", 99), "abcd\ne\tf");
        assert_eq!(plain("a\u{115f}\u{1160}\u{17b4}\u{3164}\u{ffa0}\u{fff0}\u{fe0f}b", 99), "ab");
        assert_eq!(plain("grüße 😀", 99), "grüße 😀");
        assert_eq!(plain("abcdef", 4), "abc…");
        assert_eq!(plain("abcd", 4), "abcd");
    }

    #[test]
    fn one_line_replaces_line_breaks_and_tabs_by_blanks() {
        assert_eq!(one_line("a\nb\tc\u{200b}d", 99), "a b cd");
    }

    #[test]
    fn without_tags_removes_tags_and_controls_of_direction_and_keeps_joiners() {
        let text = "a\u{e0041}\u{e007f}b\u{202e}c\u{2066}d".to_owned();
        assert_eq!(without_tags(text), "abcd");
        let kept = "\u{feff}x\u{200d}y\u{200b}\u{fe0f}\r\n\u{1b}";
        assert_eq!(without_tags(kept.to_owned()), kept);
    }
}
