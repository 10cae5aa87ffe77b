//! Finds the name that is most similar to a mistyped one.

/// The minimum similarity (0 to 1) of a typing error; less similar names are different words.
const ALIKE: f64 = 0.6;

/// The maximum length of a compared name in bytes, because the cost is the product of the lengths.
const LONGEST: usize = 100;

/// Returns the candidate that is most similar to `name`, if it is similar enough; of equally similar
/// candidates the first. Case is ignored, and `-`, `.` and a space count as `_`.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (likeness(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        // The first of equals, so that the answer does not depend on what comes later.
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .map(|(_, candidate)| candidate)
}

/// Returns the similarity of two names, from 0 (nothing in common) to 1 (the same, ignoring case and the
/// difference between `-`, `.`, a space and `_`). The similarity is 0 if a name is longer than 100 bytes.
pub fn likeness(name: &str, candidate: &str) -> f64 {
    let (Some(wanted), Some(known)) = (simplified(name), simplified(candidate)) else { return 0.0 };
    if wanted == known {
        return 1.0;
    }
    // A part of a name counts as a match, such as `file` for `file_path` or `search_files` for `search`.
    let (short, long) = if wanted.len() < known.len() { (&wanted, &known) } else { (&known, &wanted) };
    if short.len() > 3 && long.contains(short.as_str()) {
        return 0.9;
    }
    let letters = wanted.chars().count().max(known.chars().count());
    1.0 - strsim::osa_distance(&wanted, &known) as f64 / letters as f64
}

fn simplified(name: &str) -> Option<String> {
    (name.len() <= LONGEST).then(|| name.to_lowercase().replace(['-', '.', ' '], "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: TE-05, TE-07
    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let known = ["expression", "file_path", "old_string", "recursive", "a", "calculator", "search"];
        for (name, expected) in [
            ("expresion", Some("expression")),
            ("Expression", Some("expression")),
            ("filePath", Some("file_path")),
            ("file-path", Some("file_path")),
            ("path", Some("file_path")),
            ("old_str", Some("old_string")),
            ("recusrive", Some("recursive")),
            ("calclator", Some("calculator")),
            ("serach", Some("search")),
            ("send_email", None),
            ("b", None),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
        assert_eq!(nearest(&"expression".repeat(100_000), known), None);
    }
}
