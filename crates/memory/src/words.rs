//! Words as they are compared in this crate.

/// The words of a text in lower case. A run of letters and digits is a word.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// What the store in this process looks for: words without those that say nothing, by their stems.
pub(crate) fn terms(text: &str) -> Vec<String> {
    crate::rank::Analyzer::default().terms(text)
}
