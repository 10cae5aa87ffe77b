//! Writes a text as one line of a prompt in which no text can imitate a mark such as `[Memory]`.

/// Formats a text as one line. Its square brackets become `⟦` and `⟧`, since those of a mark are `[` and `]`.
pub(crate) fn marked_line(mark: &str, text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('[', "⟦").replace(']', "⟧");
    format!("{mark}{line}")
}
