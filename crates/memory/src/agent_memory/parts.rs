//! Splits long texts into parts, since stores limit the length of a text, and since an embedder reads some hundred
//! words only: a search finds the part that says it.

/// The number of bytes up to which a text is one part.
pub(super) const LEAST: usize = 2 << 10;

/// The maximum number of bytes of a part.
const MOST: usize = 64 << 10;

/// The number of parts below which the parts of a longer text do not grow: each costs a call of the embedder.
const PARTS: usize = 32;

/// Splits a text into parts, if possible between paragraphs, lines or words: of at most [`LEAST`] bytes, or of more if
/// there would be too many, up to [`MOST`]. Joined, the parts are the text.
pub(super) fn parts(mut text: &str) -> Vec<&str> {
    let most = (text.len() / PARTS).clamp(LEAST, MOST);
    let mut parts = Vec::new();
    while text.len() > most {
        let (part, rest) = text.split_at(end_of_part(text, most));
        parts.push(part);
        text = rest;
    }
    parts.push(text);
    parts
}

/// Returns the end of the first part: after a paragraph, a line or a word that ends in the second half,
/// otherwise after a character.
fn end_of_part(text: &str, limit: usize) -> usize {
    let most = text.floor_char_boundary(limit);
    let window = &text[..most];
    let ends = [window.rfind("\n\n").map(|at| at + 2), window.rfind('\n').map(|at| at + 1)];
    let word = window.char_indices().rfind(|(_, c)| c.is_whitespace()).map(|(at, c)| at + c.len_utf8());
    ends.into_iter().chain([word]).flatten().find(|end| *end > limit / 2).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: C-18
    #[test]
    fn the_parts_are_the_text_and_each_is_short() {
        for (most, unit) in [(LEAST, LEAST), (MOST, PARTS * MOST)] {
            let half = most / 2 + 10;
            let (a, e) = ("a".repeat(half), "é".repeat(unit));
            let texts = [
                String::new(),
                "a".repeat(unit),
                format!("{a}\n\n{a}\n{a}"),
                format!("{a}\n{a}"),
                format!("{a}\u{2003}{a}"),
                // No place but between characters.
                e.clone(),
                format!("a{e}"),
                "\n".repeat(3 * unit),
            ];
            for text in texts {
                let parts = parts(&text);
                assert_eq!(parts.concat(), text);
                assert!(parts.iter().all(|part| part.len() <= most));
                assert!(parts.len() <= (1 + 2 * text.len() / LEAST).min(2 * PARTS + 2 * text.len() / MOST));
            }
        }
        let a = "a".repeat(LEAST / 2 + 10);
        assert_eq!(parts(&format!("{a}\n\n{a}\n")), [format!("{a}\n\n"), format!("{a}\n")]);
    }
}
