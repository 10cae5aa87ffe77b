//! Text of servers, which is untrusted: bounded, and without invisible characters.

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

/// Returns the text of an error with its causes, at most four.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let causes: String = causes.take(4).map(|cause| format!(": {cause}")).collect();
    format!("{error}{causes}")
}

/// Returns whether a character is a control character (other than a line break or a tab), or is not shown:
/// marks of direction, joiners, tags and variation selectors.
fn is_unseen(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_removes_invisible_characters_and_limits_the_length() {
        assert_eq!(plain("a\u{200b}b\u{202e}c\u{e0041}\u{7}d\ne\tf", 99), "abcd\ne\tf");
        assert_eq!(plain("grüße 😀", 99), "grüße 😀");
        assert_eq!(plain("abcdef", 4), "abc…");
        assert_eq!(plain("abcd", 4), "abcd");
    }
}
