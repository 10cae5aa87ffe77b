//! Splits long texts into parts, since stores limit the length of a text, and since a search should return only
//! the part that contains the words.

/// The maximum number of bytes of a part.
pub(super) const MOST: usize = 64 << 10;

/// Splits a text into parts of at most [`MOST`] bytes, if possible between paragraphs, lines or words.
/// Joined, the parts are the text.
pub(super) fn parts(mut text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    while text.len() > MOST {
        let (part, rest) = text.split_at(end_of_part(text));
        parts.push(part);
        text = rest;
    }
    parts.push(text);
    parts
}

/// Returns the end of the first part: after a paragraph, a line or a word that ends in the second half,
/// otherwise after a character.
fn end_of_part(text: &str) -> usize {
    let most = text.floor_char_boundary(MOST);
    let window = &text[..most];
    let ends = [window.rfind("\n\n").map(|at| at + 2), window.rfind('\n').map(|at| at + 1)];
    let word = window.char_indices().rfind(|(_, c)| c.is_whitespace()).map(|(at, c)| at + c.len_utf8());
    ends.into_iter().chain([word]).flatten().find(|end| *end > MOST / 2).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: C-18
    #[test]
    fn the_parts_are_the_text_and_each_is_short() {
        let half = MOST / 2 + 10;
        let (a, e) = ("a".repeat(half), "é".repeat(MOST));
        let texts = [
            String::new(),
            "a".repeat(MOST),
            format!("{a}\n\n{a}\n{a}"),
            format!("{a}\n{a}"),
            format!("{a}\u{2003}{a}"),
            // No place but between characters.
            e.clone(),
            format!("a{e}"),
            "\n".repeat(3 * MOST),
        ];
        for text in texts {
            let parts = parts(&text);
            assert_eq!(parts.concat(), text);
            assert!(parts.iter().all(|part| part.len() <= MOST));
            assert!(parts.len() <= 1 + 2 * text.len() / MOST, "{} parts", parts.len());
        }
        assert_eq!(parts(&format!("{a}\n\n{a}\n")), [format!("{a}\n\n"), format!("{a}\n")]);
    }
}
