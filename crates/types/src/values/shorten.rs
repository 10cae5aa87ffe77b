//! Shortens texts for people and for models.

/// Returns a text unchanged if it has at most `most` characters. Otherwise returns its first `most` characters,
/// followed by `mark`.
///
/// ```
/// use archon_types::shorten;
///
/// assert_eq!(shorten("Grüße", 5, "…"), "Grüße");
/// assert_eq!(shorten("Grüße", 3, "…"), "Grü…");
/// ```
pub fn shorten(text: &str, most: usize, mark: &str) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}{mark}", &text[..end]),
        None => text.to_owned(),
    }
}
