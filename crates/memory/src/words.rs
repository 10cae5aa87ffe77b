//! Words as the store in this process compares them.

/// The words of a text in lower case. A run of letters and digits is a word.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}
