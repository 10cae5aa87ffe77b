//! Suggests a similar word for a mistyped one.

/// Returns the candidate that is most similar to `word`; `None` if it differs from `word` in more than two
/// letters, or in half of the letters or more. Case and underscores do not count.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = bare(word);
    let far = |candidate: &'a str| (distance(&word, &bare(candidate)), candidate);
    let (least, meant) = candidates.map(far).min_by_key(|(distance, _)| *distance)?;
    (least <= 2 && least * 2 < word.len()).then_some(meant)
}

fn bare(word: &str) -> Vec<char> {
    word.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

/// Returns the Levenshtein distance: the number of letters to insert, remove or change.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (n, a) in from.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], n + 1);
        for (m, b) in to.iter().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[m + 1];
            row[m + 1] = changed.min(row[m] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_of_a_misspelt_word_is_the_intended_word() {
        let known = ["read_only", "destructive", "name"];
        let check = |word, meant| assert_eq!(nearest(word, known.into_iter()), meant, "{word}");
        check("readonly", Some("read_only"));
        check("ReadOnly", Some("read_only"));
        check("destuctive", Some("destructive"));
        check("nmae", None);
        check("names", Some("name"));
        check("retries", None);
        check("", None);
    }
}
